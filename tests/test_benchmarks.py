"""The list of benchmarks: scripts exist, README has a heading for each, and faults are reported.

`make bench-small` shows that they run; these tests cover what it does not notice.
"""

import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
RUN = FOLDER / "run.py"
README = (FOLDER / "README.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", README, re.MULTILINE | re.DOTALL))


@pytest.fixture
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return runpy.run_path(str(RUN))["BENCHMARKS"]


def run(*arguments):
    return subprocess.run([sys.executable, RUN, *arguments], capture_output=True, text=True)


def test_every_script_exists_and_has_the_options_of_its_command(benchmarks):
    for name, each in benchmarks.items():
        small = "" if each.small.startswith("skip: ") else each.small
        python, script, *words = shlex.split(f"{each.command} {small}")
        source = (FOLDER / script).read_text(encoding="utf-8")
        assert python in ("{own}", "{verl}", "{peers}"), name
        assert not [w for w in words if w.startswith("--") and f'"{w}"' not in source], name


def test_every_heading_of_the_page_is_a_benchmark_and_names_its_command(benchmarks):
    assert set(SECTIONS) == {each.heading for each in benchmarks.values()}
    for name, each in benchmarks.items():
        assert re.search(rf"`run.py {name}`", SECTIONS[each.heading]), name


@pytest.mark.full
def test_small_writes_a_page_with_the_machine_and_the_table(tmp_path):
    done = run("--small", "overlap", "--out", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    [page] = tmp_path.glob("*.md")
    text = page.read_text(encoding="utf-8")
    assert text == done.stdout
    assert re.search(r"rewardkit \S+, revision \S+, Python 3", text)
    assert "\n## Contamination\n" in text
    assert "| overlap |" in text
