"""Fixtures for tests of commands; `run` runs one."""

import os
import shutil
import subprocess
import sys

import pytest

import rewardkit


@pytest.fixture(scope="session")
def sample(tmp_path_factory):
    """Return a function that writes a split of the GSM8K sample as `prep gsm8k --sample` does."""
    folder = tmp_path_factory.mktemp("sample")

    def copy(to, split="train"):
        parquet = folder / f"{split}.parquet"
        if not parquet.exists():
            rewardkit.prep("gsm8k", parquet, split=split, sample=True)
        shutil.copy(parquet, to)

    return copy


@pytest.fixture
def run(cli, tmp_path):
    """Return a function that runs `rewardkit ARGS` in an empty folder, without network."""

    def run_command(*arguments, stdout=None, **environment):
        env = os.environ | {
            "HF_HOME": str(tmp_path / "hf"),
            "HF_HUB_OFFLINE": "1",
            "COLUMNS": "140",
            **environment,
        }
        if stdout is None:
            return cli(*arguments, cwd=tmp_path, env=env)
        command = [sys.executable, "-m", "rewardkit", *map(str, arguments)]
        streams = {"stdout": stdout, "stderr": subprocess.PIPE, "text": True}
        return subprocess.run(command, cwd=tmp_path, env=env, **streams)

    return run_command
