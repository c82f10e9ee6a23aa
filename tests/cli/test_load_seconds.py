"""Every command that imports a user's file ends the import after --load-seconds and names the line."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_train import recipe  # noqa: F401 - a fixture

#: A scorer, and a dataset, whose import hangs in line 4.
SCORER = """\
import os, pathlib, time

pathlib.Path(__file__).with_name(f"pid-{os.getpid()}").touch()
time.sleep(1e6)
def compute_score(data_source, solution_str, ground_truth, extra_info=None): return 1.0
"""
DATASET = SCORER.replace("def compute_score", "DATASET = None #")

#: The arguments of each command; `{s}` is the scorer and `{d}` the dataset.
COMMANDS = {
    "check": "check train.parquet --scorer {s}",
    "check --against": "check train.parquet --against {d}",
    "score": "score r.jsonl --scorer {s}",
    "score --jobs": "score r.jsonl --scorer {s} --jobs 2 --out out.jsonl",
    "explain": "explain --gold 1 --response r.jsonl --scorer {s}",
    "audit --data": "audit {s} --data train.parquet",
    "eval run": "eval run train.parquet --base-url http://127.0.0.1:9/v1 --model m --out o.jsonl --scorer {s}",
    "eval responses": "eval responses train.parquet r.jsonl --scorer {s}",
    "reward-server": "reward-server {s} --port 0",
    "path": "path {s}",
    "compose": "compose reward.yaml --out reward.py",
    "prep": "prep {d} --sample --out out.parquet",
    "show": "show {d} --sample",
    "list": "list {d}",
}  # fmt: skip


@pytest.fixture
def folder(sample, tmp_path):
    """The folder of the commands, with a hanging scorer and a hanging dataset."""
    sample(tmp_path / "train.parquet")
    (tmp_path / "mine.py").write_text(SCORER)
    (tmp_path / "my_set.py").write_text(DATASET)
    (tmp_path / "reward.yaml").write_text("scorer: mine.py:compute_score\nparts: {correct: 1.0}\n")
    (tmp_path / "r.jsonl").write_text('{"response": "#### 1", "ground_truth": "1"}\n')
    return tmp_path


def live_processes(folder):
    pids = [path.name.partition("-")[2] for path in folder.glob("pid-*")]
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


@pytest.mark.parametrize(
    "name",
    [n if n in ("score", "prep") else pytest.param(n, marks=pytest.mark.full) for n in COMMANDS],
)
def test_a_file_that_hangs_while_it_is_imported_ends_the_command_with_its_line(run, folder, name):
    words = COMMANDS[name].format(s="mine.py:compute_score", d="my_set.py")
    done = run(*shlex.split(words), "--load-seconds", "0.5")
    assert done.returncode == 2, done
    file = "my_set.py" if "{d}" in COMMANDS[name] else "mine.py"
    message = rf"^error: \S*{file}:4: the import stood at this line after 0\.5 s\. Fix the file"
    assert re.search(message, done.stderr, re.MULTILINE), done.stderr
    assert done.stdout == ""
    assert list(folder.glob("pid-*"))
    assert live_processes(folder) == []


@pytest.mark.parametrize(
    "command",
    [
        "check",
        *(pytest.param(name, marks=pytest.mark.full) for name in ("train", "train --rehearse")),
    ],
)
def test_a_recipe_whose_scorer_hangs_has_one_finding_with_the_line(run, folder, recipe, command):  # noqa: F811
    setting = "reward.scorer=mine.py:compute_score"
    options = ["--set", setting, "--verl-version", "0.9", "--load-seconds", "0.5"]
    done = run(*command.split(), "my.yaml", *options)
    assert done.returncode == 1
    lines = (done.stdout + done.stderr).splitlines()
    (finding,) = [line for line in lines if "mine.py" in line]
    assert finding.startswith("error   L-51")
    assert "mine.py:4: the import stood at this line after 0.5 s." in finding
    assert live_processes(folder) == []


@pytest.fixture
def packages(tmp_path):
    """Install a package whose scorer and dataset hang while they are imported."""
    site = tmp_path / "site"
    facts = site / "acme-1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(
        "[rewardkit.scorers]\nslow = acme_slow:compute_score\n"
        "[rewardkit.datasets]\nslow-set = acme_slow_set:DATASET\n"
    )
    (site / "acme_slow.py").write_text(SCORER)
    (site / "acme_slow_set.py").write_text(DATASET)
    paths = [str(site), os.environ.get("PYTHONPATH", ""), str(Path(__file__).parents[2])]
    return {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


@pytest.mark.full
def test_a_scorer_or_dataset_of_another_package_has_the_deadline_too(folder, recipe, packages):  # noqa: F811
    def rewardkit(*words):
        command = [sys.executable, "-m", "rewardkit", *words, "--load-seconds", "0.5"]
        options = {"cwd": folder, "env": {**os.environ, **packages}, "timeout": 120}
        return subprocess.run(command, capture_output=True, text=True, **options)

    for words, file in (
        (["path", "slow"], "acme_slow.py"),
        (["prep", "slow-set", "--out", "o.parquet"], "acme_slow_set.py"),
    ):
        done = rewardkit(*words)
        assert done.returncode == 2, (words, done)
        assert f"{file}:4: the import stood at this line" in done.stderr
    done = rewardkit("list")
    assert done.returncode == 0
    assert "acme_slow_set.py:4: the import stood" in done.stderr
    assert "broken:" in done.stdout
    assert "GSM8K's" in done.stdout
