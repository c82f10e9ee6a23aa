# All commands for contributors. They need Python 3.10 or newer, git and a package index.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := -m pip install -qq --disable-pip-version-check

.PHONY: demo test test-full verl test-verl test-verl-nightly rehearse-0.9.1 rehearse-0.5.0 lint bench bench-small floors docs clean

demo: $(BIN)/rewardkit  ## prep, check, score and verl's command on the packaged sample
	@BIN=$(BIN) sh examples/demo.sh

# The tests start hundreds of Python processes, which would compile the package each time.
unexport PYTHONDONTWRITEBYTECODE
# tests/conftest.py says what auto is.
SPREAD := --numprocesses auto --maxprocesses 4 --dist worksteal
test: $(VENV)/.test  ## quick, deterministic tests: about 3 minutes on two cores
	env -u REWARDKIT_SHARED $(BIN)/python -m pytest $(SPREAD) -m 'not full'

test-full: $(VENV)/.test  ## slow tests, tests on real data, and properties with random examples
	$(BIN)/python -m pytest $(SPREAD) -m 'full or hypothesis' --hypothesis-profile random --durations 12

verl: .venv-verl-0.9.1/.ready .venv-verl-0.5.0/.ready  ## environments for test-verl; -j2 builds both at once

test-verl: verl  ## tests with real verl releases
	.venv-verl-0.9.1/bin/python -m pytest -m 'not nightly' --durations 12 tests/integration
	.venv-verl-0.5.0/bin/python -m pytest -m 'not nightly' --durations 12 tests/integration

# These are not in .ci/run, which takes about 25 of its 30 minutes without them: run them nightly, and
# before a release.
test-verl-nightly: verl  ## more combinations with real verl releases
	.venv-verl-0.9.1/bin/python -m pytest -m nightly --durations 12 tests/integration
	.venv-verl-0.5.0/bin/python -m pytest -m nightly --durations 12 tests/integration

REHEARSALS := tests/integration/test_rehearsal_pictures.py tests/integration/test_pictures_in_verl.py
rehearse-0.9.1: .venv-rehearse-0.9.1/.ready  ## rehearsals with verl 0.9.1 and vLLM on the CPU; 4 GB of packages
	.venv-rehearse-0.9.1/bin/python -m pytest --durations 12 $(REHEARSALS) tests/integration/test_rehearsal_agent_loops.py

rehearse-0.5.0: .venv-rehearse-0.5.0/.ready  ## a rehearsal of pictures with verl 0.5.0; its others are in test-verl
	.venv-rehearse-0.5.0/bin/python -m pytest --durations 12 $(REHEARSALS)

lint: $(VENV)/.lint  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

SHARED ?= $(REWARDKIT_SHARED)
bench: $(VENV)/.test .venv-verl-0.9.1/.ready .venv-peers/.ready  ## tables of benchmarks/README.md, an hour and a half; SHARED=folder of real data
	$(BIN)/python benchmarks/run.py $(if $(SHARED),--shared "$(SHARED)")

bench-small: $(VENV)/.test  ## the benchmarks in small on packaged samples, a minute; the figures mean nothing
	$(BIN)/python benchmarks/run.py --small

floors: $(VENV)/.test  ## figures that no change may make worse: accuracy, plans, scripts, guard, speed; SHARED=folder of real data
	$(BIN)/python benchmarks/floors.py --shared "$(SHARED)"

docs: $(BIN)/rewardkit  ## build the pages as a site in build/site; optional
	$(BIN)/python $(PIP) zensical
	$(BIN)/python tools/docs_site.py
	$(BIN)/zensical build --strict

clean:  ## remove what the targets above created
	rm -rf $(VENV) .venv-verl-* .venv-rehearse-* .venv-peers demo

$(BIN)/rewardkit: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) --editable .
	@touch $@

$(VENV)/.test: $(BIN)/rewardkit
	$(BIN)/python $(PIP) --editable '.[test]'
	@touch $@

$(VENV)/.lint: $(BIN)/rewardkit
	$(BIN)/python $(PIP) --editable '.[test,lint]'
	@touch $@

# torch and verl need a Python that has wheels for them: VERL_PYTHON=python3.11 selects one.
VERL_PYTHON ?= $(PYTHON)
.venv-verl-%/.ready: tests/integration/verl-%.txt pyproject.toml
	$(VERL_PYTHON) -m venv .venv-verl-$*
	.venv-verl-$*/bin/python $(PIP) --no-compile --requirement $< --editable '.[test]'
	@touch $@

# Here packages are compiled: a rehearsal imports them in a dozen processes.
.venv-rehearse-%/.ready: tests/integration/rehearse-%.txt pyproject.toml
	$(VERL_PYTHON) -m venv .venv-rehearse-$*
	.venv-rehearse-$*/bin/python $(PIP) --requirement $< --editable '.[test]'
	.venv-rehearse-$*/bin/python -m pip uninstall --quiet --yes torchaudio torchcodec
	@touch $@

# The pinned peers of the package index have wheels for Python 3.11.
PEERS_PYTHON ?= python3.11
.venv-peers/.ready: benchmarks/peers/requirements.txt
	$(PEERS_PYTHON) -m venv .venv-peers
	.venv-peers/bin/python $(PIP) --requirement $<
	@touch $@
