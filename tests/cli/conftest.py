"""What the tests of commands share: `run` runs one."""

import os
import subprocess
import sys

import pytest


@pytest.fixture
def run(tmp_path):
    """Run `rewardkit ARGS` in an empty folder, without network or caches."""

    def go(*arguments, stdout=subprocess.PIPE, **environment):
        env = os.environ | {
            "HF_HOME": str(tmp_path / "hf"),
            "HF_HUB_OFFLINE": "1",
            "COLUMNS": "140",
            **environment,
        }
        command = [sys.executable, "-m", "rewardkit", *map(str, arguments)]
        return subprocess.run(
            command, stdout=stdout, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=env
        )

    return go
