import pytest

from rewardkit.checkpoints import find_checkpoint
from rewardkit.errors import DataError, SourceError


@pytest.fixture
def run(tmp_path):
    """A run's folder with an FSDP checkpoint of four ranks at steps 10 and 20."""
    for step in (10, 20):
        actor = tmp_path / f"global_step_{step}" / "actor"
        (actor / "huggingface").mkdir(parents=True)
        (actor / "huggingface" / "config.json").write_text("{}")
        for rank in range(4):
            (actor / f"model_world_size_4_rank_{rank}.pt").touch()
            (actor / f"optim_world_size_4_rank_{rank}.pt").touch()
    (tmp_path / "latest_checkpointed_iteration.txt").write_text("20")
    return tmp_path


def test_the_checkpoint_of_a_run_a_step_or_an_actor_is_found(run):
    step = run / "global_step_20"
    for path in (run, step, step / "actor"):
        found = find_checkpoint(path)
        assert (found.folder, found.backend) == (step / "actor", "fsdp")


def test_the_ranks_of_missing_shards_are_named(run):
    for rank in (1, 2):
        (run / "global_step_20" / "actor" / f"model_world_size_4_rank_{rank}.pt").unlink()
    with pytest.raises(DataError, match=r"2 of 4 shards; ranks 1-2 are missing.*other nodes"):
        find_checkpoint(run)


def test_shards_of_two_runs_are_not_mixed(run):
    (run / "global_step_20" / "actor" / "model_world_size_8_rank_0.pt").touch()
    with pytest.raises(DataError, match="4 and 8 ranks"):
        find_checkpoint(run)


def test_megatron_is_recognised_by_its_folder_and_weights_need_no_merge(tmp_path):
    (tmp_path / "actor" / "dist_ckpt").mkdir(parents=True)
    assert find_checkpoint(tmp_path).backend == "megatron"
    (tmp_path / "actor" / "huggingface").mkdir()
    (tmp_path / "actor" / "huggingface" / "model.safetensors").touch()
    checkpoint = find_checkpoint(tmp_path)
    assert (checkpoint.backend, checkpoint.model) == ("hf", tmp_path / "actor" / "huggingface")


def test_the_folder_of_megatron_in_0_9_is_recognised(tmp_path):
    (tmp_path / "actor" / "model" / "dist_ckpt").mkdir(parents=True)
    checkpoint = find_checkpoint(tmp_path)
    assert (checkpoint.folder, checkpoint.backend) == (tmp_path / "actor", "megatron")
    (tmp_path / "actor" / "model" / "huggingface").mkdir()
    (tmp_path / "actor" / "model" / "huggingface" / "model.safetensors").touch()
    assert find_checkpoint(tmp_path).backend == "hf"


def test_a_folder_without_a_checkpoint_is_an_error_that_says_what_is_missing(tmp_path):
    with pytest.raises(DataError, match="not a checkpoint of verl"):
        find_checkpoint(tmp_path)
    with pytest.raises(SourceError, match="no such folder"):
        find_checkpoint(tmp_path / "x")
    (tmp_path / "latest_checkpointed_iteration.txt").write_text("30")
    with pytest.raises(SourceError, match=r"names this folder, which does not exist"):
        find_checkpoint(tmp_path)
