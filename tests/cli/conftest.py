"""What the tests of commands share: `run` runs one."""

import os

import pytest


@pytest.fixture
def run(cli, tmp_path):
    """Run `rewardkit ARGS` in an empty folder, without network or caches."""

    def go(*arguments, **environment):
        env = os.environ | {
            "HF_HOME": str(tmp_path / "hf"),
            "HF_HUB_OFFLINE": "1",
            "COLUMNS": "140",
            **environment,
        }
        return cli(*arguments, cwd=tmp_path, env=env)

    return go
