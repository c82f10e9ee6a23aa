"""The oldest versions of all dependencies that `pyproject.toml` allows work, beside the newest of theirs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXTRAS = "json-schema,math-verify,modelscope,server,test,tokenizer"  # verl's one version is tested
#: Tests that failed with a dependency at an older floor, or crashed.
TESTS = [
    "tests/cli/test_help.py",
    "tests/launch/test_launch_script.py",
    "tests/reward_server/test_server.py",
]
DATA = "--set data.train=data/train.parquet --set data.val=data/test.parquet"
#: Commands with their exit code and a part of what they print.
COMMANDS = [
    ("prep gsm8k --sample", 2, "Missing option '--out'"),
    ("prep gsm8k --sample --split all --out data --html prep.html", 0, "data/train.parquet"),
    ("check data/train.parquet --html check.html", 0, "rows"),
    ("score {root}/examples/gsm8k_responses.jsonl --scorer gsm8k --out s.jsonl", 0, "20 scored"),
    ("score {root}/examples/gsm8k_responses.jsonl --scorer math_verify", 0, "20 scored"),
    ("score s.jsonl --html report.html", 0, "report.html"),
    ("audit gsm8k", 0, "gsm8k"),
    (f"train qwen2.5-0.5b-ppo-gsm8k --dry-run --verl-version 0.9.1 {DATA}", 0, "main_ppo"),
    ("logs {root}/examples/train.log", 0, "step"),
]


def run(*command, folder, code=0):
    """Return what a command prints; it has to end with the code."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1"}  # as pip has them
    done = subprocess.run(
        [*map(str, command)], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


@pytest.mark.full
def test_commands_work_with_the_oldest_allowed_versions_of_all_dependencies(tmp_path):
    uv, floors = tmp_path / "uv", tmp_path / "floors/bin"
    run(sys.executable, "-m", "venv", uv, folder=tmp_path)
    if subprocess.run([uv / "bin/python", "-m", "pip", "install", "-q", "uv"]).returncode:
        pytest.skip("no package index")
    run(uv / "bin/uv", "venv", "--python", sys.executable, floors.parent, folder=tmp_path)
    run(
        *(uv / "bin/uv", "pip", "install", "--python", floors / "python"),
        *("--resolution", "lowest-direct"),
        *("--only-binary", ":all:", "--no-binary", "rewardkit", f"{ROOT}[{EXTRAS}]"),
        folder=tmp_path,
    )
    for arguments, code, part in COMMANDS:
        words = arguments.format(root=ROOT).split()
        assert part in run(floors / "rewardkit", *words, folder=tmp_path, code=code), arguments
    assert all((tmp_path / f"{page}.html").stat().st_size for page in ("prep", "check", "report"))
    run(floors / "python", "-c", "import modelscope, transformers", folder=tmp_path)
    pytest_options = ["-p", "no:cacheprovider", "-n0", "-m", "not full"]
    run(floors / "python", "-m", "pytest", *pytest_options, *TESTS, folder=ROOT)
