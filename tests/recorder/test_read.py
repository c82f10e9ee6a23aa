"""The reader adds up what all processes of a run recorded."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.errors import DataError, SourceError
from rewardkit.recorder import read
from rewardkit.recorder.interval import Total
from rewardkit.recorder.read import RewardTail, read_rewards
from rewardkit.recorder.slots import Slot
from rewardkit.recorder.windows import windows_of_clock, windows_of_steps
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
    for prefix in ("rewards", "rewards-val"):  # twenty calls a second, and none in the pauses
        rates = [rate for rate in run.table[f"{prefix}/calls_per_second"] if rate is not None]
        assert rates == pytest.approx([20] * len(rates), rel=0.05)


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
    with pytest.raises(SourceError, match="no such folder"):
        read_rewards(tmp_path / "nothing")


SCORES = st.integers(-64, 64).map(lambda number: number / 64)  # sums of these are exact


@given(st.lists(st.lists(st.tuples(SCORES, st.integers(0, 4)), max_size=30), max_size=4))
def test_the_totals_of_processes_add_up_to_those_of_all_calls(tmp_path_factory, calls_of_process):
    folder, clock = tmp_path_factory.mktemp("records"), Clock()
    for calls in calls_of_process:
        recorder = Recorder(str(folder), clock=clock)
        for score, index in calls:
            add(recorder, score, index)
            clock.now += 3
        recorder.flush()
    calls = [call for calls in calls_of_process for call in calls]
    if not calls:
        assert RewardTail(folder).poll() is None
        return
    records = read_rewards(folder)
    whole = Slot(clock.now, clock.now)
    for slot in records.slots:
        whole.include(slot)
    total = whole.sources["a", False].values["score"]
    scores = [score for score, _ in calls]
    squares = sum(score * score for score in scores)
    assert total == Total(len(scores), sum(scores), squares, min(scores), max(scores))


def add(recorder, score=1.0, index=0, **changes):
    recorder.add(
        {"score": score, "pred": str(score)},
        response="r",
        data_source="a",
        ground_truth="1",
        extra_info={"index": index},
        seconds=0.0,
        **changes,
    )


def test_processes_choose_the_same_groups_when_there_are_too_many(tmp_path, clock):
    recorders = processes(tmp_path, clock, count=4)
    for index in range(1_000):
        for number in range(8):
            add(recorders[(index + number) % 4], score=float(number % 2), index=index)
    for recorder in recorders:
        recorder.flush()
    [slot] = read_rewards(tmp_path).slots
    totals = slot.sources["a", False]
    chosen = {pair >> 32 for pair in totals.pairs if pair >> 32 < totals.pair_limit}
    assert len(chosen) >= 5
    assert totals.distinct_answers() == 0.25


@pytest.mark.parametrize("ends", [(), (4,)])
def test_a_run_that_starts_again_goes_on_or_begins_where_its_log_does(tmp_path, clock, ends):
    for scores in ((0.0, 0.25, 0.5), (1.0, 1.0)):
        recorders = processes(tmp_path, clock)
        for score in scores:
            record_step(recorders, clock, score)
    records = read_rewards(tmp_path)
    assert len(records.generations) == 2
    windows = windows_of_steps(records, 32, ends)
    scores = {w.step: w.sources["gsm8k", False].values["score"].sum / 32 for w in windows}
    expected = {1: 0.0, 2: 0.25, 3: 0.5, 4: 1.0, 5: 1.0}
    assert scores == expected
    again = windows_of_steps(records, 32, (1, 2))
    scores = {w.step: w.sources["gsm8k", False].values["score"].sum / 32 for w in again}
    assert scores == {1: 0.0, 2: 1.0, 3: 1.0}


def test_what_a_later_start_did_again_is_dropped_by_the_clock(tmp_path, clock):
    recorders, ends = processes(tmp_path, clock), []
    for score in (0.0, 0.25, 0.5):
        record_step(recorders, clock, score)
        ends.append(clock.now)
    recorders = processes(tmp_path, clock)
    record_step(recorders, clock, 1.0)
    windows = windows_of_clock(read_rewards(tmp_path), (1, 2), (ends[0], clock.now))
    scores = [(w.step, w.sources["gsm8k", False].values["score"].sum / 32) for w in windows]
    assert scores == [(1, 0.0), (2, 1.0)]


def test_windows_of_time_end_at_pauses(tmp_path, clock):
    recorders = processes(tmp_path, clock)
    for score in (0.0, 0.5, 1.0):
        record_step(recorders, clock, score, prompts=40)
        record_step(recorders, clock, 0.25, split="test")
    run = recorded_run(read_rewards(tmp_path)).run
    assert run.table["rewards/score/mean"] == (0.0, 0.5, 1.0)
    assert run.table["rewards-val/score/mean"] == (0.25, 0.25, 0.25)


def test_several_data_sources_have_their_own_curves_too(tmp_path, clock):
    recorder = Recorder(str(tmp_path), clock=clock)
    for source, score in (("a", 1.0), ("b", 0.0)):
        recorder.add(
            {"score": score}, response="r", data_source=source, ground_truth="1", extra_info={},
            seconds=0.0,
        )  # fmt: skip
    recorder.flush()
    table = recorded_run(read_rewards(tmp_path)).run.table
    assert table["rewards/score/mean"] == (0.5,)
    assert table["rewards@a/score/mean"] == (1.0,)
    assert table["rewards@b/score/mean"] == (0.0,)


def test_samples_are_thinned_out_evenly_when_there_are_too_many(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(read, "MAX_ALL_SAMPLES", 20)
    recorder = Recorder(str(tmp_path), clock=clock)
    for _ in range(100):
        add(recorder)
        recorder.flush()
        clock.now += 7
    samples = recorded_run(read_rewards(tmp_path), samples_per_step=1).samples
    assert 4 <= len(samples) <= 20
    assert min(sample.step for sample in samples) <= 50


def test_more_slots_than_the_limit_are_joined_and_lose_nothing(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(read, "MAX_SLOTS", 8)
    recorder = Recorder(str(tmp_path), clock=clock)
    for _ in range(50):
        add(recorder)
        recorder.flush()
        clock.now += 7
    slots = read_rewards(tmp_path).slots
    assert 4 <= len(slots) <= 8
    assert sum(slot.count(is_validation=False) for slot in slots) == 50


@pytest.mark.parametrize(
    "text", ["step:1 - loss:2\n", "[]\n", "{}\n", "7\n", '{"rewardkit_rewards": 2, "start": 5}\n']
)
def test_a_file_of_something_else_is_refused_in_one_line(tmp_path, text):
    (tmp_path / "rewards-x.jsonl").write_text(text)
    with pytest.raises(DataError, match="not a file of reward records") as error:
        read_rewards(tmp_path)
    assert "\n" not in str(error.value)


def test_unreadable_lines_are_counted_and_left_out(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(read, "MAX_LINE_BYTES", 5_000)
    monkeypatch.setattr(read, "CHUNK_BYTES", 1_000)
    recorder = Recorder(str(tmp_path), clock=clock, samples=0)
    add(recorder)
    recorder.flush()
    [file] = tmp_path.iterdir()
    bad = ["x", "7", "[" * 4_000, "x" * 20_000, '{"start": NaN, "end": 1, "sources": []}']
    with file.open("a") as stream:
        stream.write("".join(f"{line}\n" for line in bad))
    add(recorder)
    recorder.flush()
    records = read_rewards(tmp_path)
    assert records.unread == len(bad)
    assert sum(slot.count(is_validation=False) for slot in records.slots) == 2


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
                    lambda inner: st.lists(inner, max_size=3)))  # fmt: skip
def test_a_field_of_another_type_makes_a_line_unreadable_and_nothing_else(tmp_path_factory, value):
    folder = tmp_path_factory.mktemp("records")
    recorder = Recorder(str(folder), clock=Clock())
    add(recorder)
    recorder.flush()
    [file] = folder.iterdir()
    header, interval, _ = file.read_text(encoding="utf-8").splitlines()
    lines = [header, interval]
    record = json.loads(interval)
    [source] = record["sources"]
    lines += [json.dumps({**record, key: value}) for key in record]
    lines += [json.dumps({**record, "sources": [{**source, key: value}]}) for key in source]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    records = read_rewards(folder)
    recorded_run(records, samples_per_step=1)
