"""tools/verl_releases.py reads a wheel, and the HEAD of a repository, without an installed verl."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from rewardkit.launch.verl import releases

SCRIPT = Path(__file__).parents[1] / "tools/verl_releases.py"


@pytest.fixture
def tool(monkeypatch):
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("rewardkit_verl_releases", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    return module


def repository(folder, version):
    """Commit a verl of one file and a version, on a known day, and change the file afterwards."""
    config = folder / "verl/trainer/config/ppo_trainer.yaml"
    number = folder / "verl/version/version"
    for path, text in ((config, "committed: 1\n"), (number, f"{version}\n")):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@y", "-C", folder]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    day = {"GIT_COMMITTER_DATE": "2026-08-22T12:00:00+00:00", "PATH": "/usr/bin:/bin"}
    subprocess.run([*git, "commit", "-qm", "x"], check=True, env=day)
    config.write_text("not committed: 1\n")


def test_a_repository_is_read_at_its_head_with_commit_and_day(tool, tmp_path):
    repository(tmp_path, "0.10.0.dev")
    with tool.open_source(str(tmp_path)) as source:
        assert (source.version, source.date) == ("0.10.0.dev0", "2026-08-22")
        assert len(source.commit) == 40
        assert (source.config / "ppo_trainer.yaml").read_text() == "committed: 1\n"


def test_every_file_of_keys_has_its_own_version_and_only_a_snapshot_has_a_commit():
    for file in releases.FOLDER.glob("*.json"):
        stored = json.loads(file.read_text())
        assert stored["verl"] == file.stem
        assert bool(stored["commit"]) == (file.stem in releases.snapshots())
        assert stored["fsdp"].keys() > {*stored["megatron_lacks"]}
