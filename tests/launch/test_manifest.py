import json

import pytest

from rewardkit.errors import DataError, OutputError
from rewardkit.launch.manifest import changes_since, manifest_of, read_manifest, write_manifest
from rewardkit.launch.request import LaunchRequest

REQUEST = LaunchRequest(tree={}, where="my.yaml")


@pytest.fixture
def files(tmp_path):
    (tmp_path / "train.parquet").write_bytes(b"rows")
    (tmp_path / "mine.py").write_text(
        "def compute_score(data_source, solution_str, ground_truth, extra_info=None): return 1.0\n"
    )
    return {
        "data": {"train": str(tmp_path / "train.parquet")},
        "reward": {"scorer": f"{tmp_path}/mine.py:compute_score"},
    }


def test_a_manifest_reads_back_and_gives_the_same_command(plan, files, tmp_path):
    launch_plan = plan("0.9", "trainer.total_epochs=2", **files)
    request = LaunchRequest(tree={}, where="my.yaml", overrides=("trainer.total_epochs=2",))
    manifest = manifest_of(launch_plan, request)
    write_manifest(manifest, tmp_path / "manifest.json")
    read = read_manifest(tmp_path / "manifest.json")
    assert read == manifest
    assert changes_since(read, launch_plan) == []
    assert set(read.files) == {str(tmp_path / "train.parquet"), str(tmp_path / "mine.py")}
    assert read.versions["rewardkit"]


def test_the_changes_since_a_run_are_reported(plan, files, tmp_path):
    launch_plan = plan("0.9", **files)
    manifest = manifest_of(launch_plan, REQUEST)
    (tmp_path / "train.parquet").write_bytes(b"other rows")
    (tmp_path / "mine.py").unlink()
    lines = changes_since(manifest, plan("0.9", "trainer.total_epochs=3", **files))
    assert lines == [
        "the command now has trainer.total_epochs=3",
        f"{tmp_path}/train.parquet has changed",
        f"{tmp_path}/mine.py no longer exists",
    ]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"created": "x", "nope": 1}'])
def test_a_file_that_is_not_a_manifest_is_refused(tmp_path, text):
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(DataError, match="is not a manifest"):
        read_manifest(tmp_path / "m.json")


def test_a_manifest_of_another_format_is_refused_and_none_is_overwritten(plan, tmp_path):
    file = tmp_path / "m.json"
    write_manifest(manifest_of(plan(), REQUEST), file)
    with pytest.raises(OutputError, match="exists"):
        write_manifest(manifest_of(plan(), REQUEST), file)
    file.write_text(json.dumps(json.loads(file.read_text()) | {"format": 2}))
    with pytest.raises(DataError, match="format 2, and this rewardkit reads format 1"):
        read_manifest(file)


def test_a_manifest_has_only_the_variables_that_the_plan_sets(plan, monkeypatch, tmp_path):
    monkeypatch.setenv("WANDB_API_KEY", "secret-key-value")
    write_manifest(manifest_of(plan(), REQUEST), tmp_path / "m.json")
    assert "secret-key-value" not in (tmp_path / "m.json").read_text()
