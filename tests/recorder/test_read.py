"""The reader adds up what all processes of a run recorded."""

import pytest

from rewardkit.errors import DataError, SourceError
from rewardkit.recorder.read import RewardTail, read_rewards
from rewardkit.recorder.writer import Recorder
from rewardkit.trainlog.rewards import join_rewards, recorded_run
from rewardkit.trainlog.training_run import TrainingRun

START = 1.75e9


class Clock:
    def __init__(self):
        self.now = START

    def __call__(self):
        return self.now


def record_step(recorders, clock, score, *, prompts=8, responses=4, split="train"):
    """Record a step whose responses of one prompt are spread over all processes; then a pause."""
    for number in range(prompts * responses):
        recorders[number % len(recorders)].add(
            {"score": score, "acc": score, "pred": str(number % 2)},
            response=f"it is {number}",
            data_source="gsm8k",
            ground_truth="18",
            extra_info={"split": split, "index": number // responses, "question": "How many?"},
            seconds=0.01,
        )
        clock.now += 0.05
    for recorder in recorders:
        recorder.flush()
    clock.now += 20


@pytest.fixture
def clock():
    return Clock()


def processes(folder, clock, count=3):
    return [Recorder(str(folder), clock=clock) for _ in range(count)]


def test_steps_are_found_by_counting_training_samples(tmp_path, clock):
    recorders = processes(tmp_path, clock)
    record_step(recorders, clock, 0.25, split="test")
    for score in (0.0, 0.5, 1.0):
        record_step(recorders, clock, score)
        record_step(recorders, clock, score / 2, prompts=5, split="test")
    run = recorded_run(read_rewards(tmp_path), samples_per_step=32).run
    assert run.steps == (0, 1, 2, 3)
    assert run.table["rewards/score/mean"] == (None, 0.0, 0.5, 1.0)
    assert run.table["rewards-val/score/mean"] == (0.25, 0.0, 0.25, 0.5)
    assert run.table["rewards/distinct_answers/mean"] == (None, 0.5, 0.5, 0.5)
    assert run.table["rewards/count"] == (None, 32, 32, 32)


def test_a_log_with_times_gives_the_steps(tmp_path, clock):
    recorders = processes(tmp_path, clock)
    ends = []
    for score in (0.0, 0.5, 1.0):
        record_step(recorders, clock, score)
        ends.append(clock.now)
    run = TrainingRun(
        name="run", path="train.log", source="console", era="", steps=(7, 8, 9), table={},
        clock=tuple(ends),
    )  # fmt: skip
    joined = join_rewards(run, read_rewards(tmp_path))
    assert joined.alignment == "clock"
    assert joined.run.table["rewards/score/mean"] == (0.0, 0.5, 1.0)
    assert {sample.step for sample in joined.samples} == {7, 8, 9}
    assert {(sample.step, sample.score) for sample in joined.samples} == {(7, 0), (8, 0.5), (9, 1)}


def test_a_growing_folder_is_polled_without_reading_it_again(tmp_path, clock):
    recorders = processes(tmp_path, clock)
    tail = RewardTail(tmp_path)
    assert tail.poll() is None
    record_step(recorders, clock, 1.0)
    first = recorded_run(tail.poll(), samples_per_step=32).run
    assert tail.poll() is None
    record_step(recorders, clock, 0.0)
    second = recorded_run(tail.poll(), samples_per_step=32).run
    assert (first.steps, second.steps) == ((1,), (1, 2))
    whole = recorded_run(read_rewards(tmp_path), samples_per_step=32).run
    assert second.table == whole.table


def test_a_folder_without_records_is_refused(tmp_path):
    with pytest.raises(DataError, match="no reward records"):
        read_rewards(tmp_path)
    with pytest.raises(SourceError, match="does not exist"):
        read_rewards(tmp_path / "nothing")
