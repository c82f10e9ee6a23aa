"""Verdicts are the same on every supported Python: no detail of the interpreter matters."""

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import mpmath
import pytest
import yaml

ROOT = Path(__file__).parents[1]
POLICY = ROOT / "tests/answers/policy.yaml"
MINORS = ("3.10", "3.11", "3.12", "3.13")
RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"
#: Answers whose verdict may depend on the Python version: unicode tables, `int` and `Fraction` of
#: text, recursion.
AT_RISK = [
    ("1e2", "100"), ("1_000", "1000"), ("٣", "3"), ("３．５", "3.5"), ("½", "0.5"), ("1/2", "0.50"),
    ("+ 5", "5"), ("1 /2", "0.5"), (r"\text{ſ}", "S"), ("İ", "i"), ("ß", "SS"), ("x" + "^x" * 60, "x"),
    ("(" * 15 + "x" + ")" * 15, "x"), ("-" * 63 + "5", "5"), ("9" * 250, "9" * 250 + ".0"), ("🫨", "x"),
]  # fmt: skip

SCRIPT = r"""
import hashlib, json, sys
from rewardkit.scorers import math, math_dapo, mcq

pairs = json.load(open(sys.argv[1], encoding="utf-8"))

def judge(response, gold):
    robust = math_dapo.score(response, gold, mode="robust")
    scores = (math.score(response, gold), mcq.score(response, gold), robust)
    return [[s.score, s.correct, s.pred, s.status.value] for s in scores]

orders = [judge(*pair) for pair in pairs], [judge(*pair) for pair in pairs[::-1]][::-1]
digests = [hashlib.sha256(json.dumps(results).encode()).hexdigest() for results in orders]
print(json.dumps([digests, orders[0]]))
"""


@cache
def interpreters():
    """Return the paths of other Pythons by minor version, without the running one."""
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    candidates = [folder / f"python{minor}" for minor in MINORS for folder in folders]
    candidates += sorted(Path.home().glob(".pyenv/versions/*/bin/python"))
    paths = {}
    for path in filter(Path.is_file, candidates):
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20)
        version = re.match(r"Python (3\.\d+)\.", done.stdout)  # a shim of pyenv may print nothing
        if version and version[1] in MINORS:
            paths.setdefault(version[1], path)
    return {minor: path for minor, path in paths.items() if minor != RUNNING}


def policy_pairs():
    """Yield (response, gold) of every row of the policy's tables, which test_policy.py checks."""
    for section in yaml.safe_load(POLICY.read_text(encoding="utf-8")):
        for part in section["parts"]:
            if not isinstance(part, str) and "verdict" in part["head"]:
                for answer, gold, *_ in part["rows"]:
                    yield rf"\boxed{{{answer}}}", gold


def verdicts(python, pairs, folder):
    """Return (digests in file order and in reversed order, results) of an interpreter's scorers."""
    site = folder / "site"
    if not site.exists():
        site.mkdir()
        (site / "mpmath").symlink_to(Path(mpmath.__file__).parent)
    (folder / "pairs.json").write_text(json.dumps(pairs), encoding="utf-8")
    command = [python, "-c", SCRIPT, folder / "pairs.json"]
    environ = {"PYTHONPATH": f"{ROOT}{os.pathsep}{site}", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def check_all_pythons(pairs, folder):
    """Check that every interpreter gives the running one's verdicts, in any order."""
    others = interpreters()
    if not others:
        pytest.skip(f"this machine has no other Python of {', '.join(MINORS)} than {RUNNING}")
    (digest, reversed_digest), results = verdicts(sys.executable, pairs, folder)
    assert digest == reversed_digest, "verdicts depend on the order"
    for minor, python in others.items():
        digests, theirs = verdicts(python, pairs, folder)
        rows = zip(pairs, results, theirs, strict=True)
        differ = [(minor, *pair, ours, other) for pair, ours, other in rows if ours != other]
        assert not differ
        assert digests == [digest, digest], minor


@pytest.mark.full
def test_every_python_gives_the_policy_the_same_verdicts_in_any_order(tmp_path):
    pairs = list(policy_pairs())
    assert len(pairs) >= 700, "the parser lost rows of policy.yaml"
    at_risk = [(rf"\boxed{{{answer}}}", gold) for answer, gold in AT_RISK]
    check_all_pythons(pairs + at_risk, tmp_path)
