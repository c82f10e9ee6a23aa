"""One reader adds up the lines of recorders and verl's dumps, and finds their steps."""

import json
from dataclasses import replace
from statistics import fmean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.errors import DataError, SourceError
from rewardkit.recorder.writer import Recorder
from rewardkit.trainlog import files, reward_files
from rewardkit.trainlog.follow import RunTail
from rewardkit.trainlog.read import read_run
from rewardkit.trainlog.reward_files import RewardRecords, read_rewards
from rewardkit.trainlog.rewards import join_rewards, recorded_run, with_rewards
from rewardkit.trainlog.training_run import Restart
from tests.trainlog.runs import make_run


class Clock:
    now = 1.75e9

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def add(recorder, score=1.0, index=0, source="a", **changes):
    call = {"response": "r", "data_source": source, "ground_truth": "1", "seconds": 0.0}
    call |= {"extra_info": {"index": index}, **changes}
    recorder.add({"score": score, "pred": str(score)}, **call)


def record_step(recorders, clock, score, *, prompts=8, split="train"):
    """Record a step whose 4 responses of one prompt are spread over all processes; then a pause."""
    for i in range(prompts * 4):
        info = {"split": split, "index": i // 4, "question": "How many?"}
        options = {
            "response": rf"it is \boxed{{{17 + i % 2}}}",
            "ground_truth": "18",
            "seconds": 0.01,
        }
        values = {"score": score, "acc": score, "pred": str(i % 2)}
        recorders[i % len(recorders)].add(values, data_source="a", extra_info=info, **options)
        clock.now += 0.05
    clock.now += 20


def record_steps(folder, clock, scores):
    """Record the steps of one start of a run; return the times at which they ended."""
    recorders, ends = processes(folder, clock), []
    for score in scores:
        record_step(recorders, clock, score)
        ends.append(clock.now)
    return tuple(ends)


def processes(folder, clock, count=3):
    return [Recorder(str(folder), clock=clock) for _ in range(count)]


def log_of(steps, clock=(), restarts=()):
    marks = tuple(Restart(step, "line", 0) for step in restarts)
    run = make_run({step: {"a/b": 1.0} for step in steps})
    return replace(run, clock=clock, restarts=marks)


def test_steps_are_found_by_counting_training_samples(tmp_path, clock):
    recorders = processes(tmp_path, clock)
    record_step(recorders, clock, 0.25, split="test")
    for score in (0.0, 0.5, 1.0):
        record_step(recorders, clock, score)
        record_step(recorders, clock, score / 2, prompts=5, split="test")
    run = recorded_run(read_rewards(tmp_path), samples_per_step=32)
    assert run.steps == (0, 1, 2, 3)
    assert run.table["rewards/score/mean"] == (None, 0.0, 0.5, 1.0)
    assert run.table["rewards-val/score/mean"] == (0.25, 0.0, 0.25, 0.5)
    assert run.table["rewards/distinct_answers/mean"] == (None, 0.5, 0.5, 0.5)
    assert run.table["rewards/states_gold/mean"] == (None, 0.5, 0.5, 0.5)
    assert run.table["rewards/count"] == (None, 32, 32, 32)
    rates = [rate for rate in run.table["rewards/calls_per_second"] if rate is not None]
    assert rates == pytest.approx([20] * 3, rel=0.05)  # the pauses do not count


def test_a_log_with_times_gives_the_steps(tmp_path, clock):
    ends = record_steps(tmp_path, clock, (0.0, 0.5, 1.0))
    joined = join_rewards(log_of((7, 8, 9), ends), read_rewards(tmp_path))
    assert joined.table["rewards/score/mean"] == (0.0, 0.5, 1.0)
    assert {(it.step, it.score) for it in joined.samples} == {(7, 0), (8, 0.5), (9, 1)}


def test_a_growing_folder_is_polled_without_reading_it_again(tmp_path, clock):
    recorders, records, runs = processes(tmp_path, clock), RewardRecords(tmp_path), []
    assert not records.poll()
    for score in (1.0, 0.0):
        record_step(recorders, clock, score)
        assert records.poll()
        runs.append(recorded_run(records, samples_per_step=32))
        assert not records.poll()
    assert [run.steps for run in runs] == [(1,), (1, 2)]
    assert runs[1].table == recorded_run(read_rewards(tmp_path), samples_per_step=32).table


SCORES = st.integers(-64, 64).map(lambda number: number / 64)  # sums of these are exact


@given(st.lists(st.lists(st.tuples(SCORES, st.integers(0, 4)), max_size=30)).filter(any))
def test_the_totals_of_processes_are_those_of_all_calls(tmp_path_factory, calls_of_process):
    folder, clock = tmp_path_factory.mktemp("records"), Clock()
    for calls in calls_of_process:
        recorder = Recorder(str(folder), clock=clock)
        for score, index in calls:
            add(recorder, score, index)
            clock.now += 3
    scores = [score for calls in calls_of_process for score, _ in calls]
    (row,) = recorded_run(read_rewards(folder)).rows()
    assert row["rewards/count"] == len(scores)
    ends = row["rewards/score/min"], row["rewards/score/max"]
    assert (row["rewards/score/mean"], *ends) == (fmean(scores), min(scores), max(scores))
    assert row["rewards/score/std"] == pytest.approx(pstdev(scores))


@pytest.mark.parametrize(
    ("restarts", "expected"),
    [
        ((), {1: 0.0, 2: 0.25, 3: 0.5, 4: 1.0, 5: 1.0}),
        ((4,), {1: 0.0, 2: 0.25, 3: 0.5, 4: 1.0, 5: 1.0}),
        ((2,), {1: 0.0, 2: 1.0, 3: 1.0}),
    ],
)
def test_a_run_that_starts_again_begins_where_its_log_does(tmp_path, clock, restarts, expected):
    for scores in ((0.0, 0.25, 0.5), (1.0, 1.0)):
        record_steps(tmp_path, clock, scores)
    records = read_rewards(tmp_path)
    assert len(records.starts) == 2
    run = recorded_run(records, samples_per_step=32)
    if restarts:
        run = join_rewards(log_of((1, 2, 3, 4, 5), restarts=restarts), records, 32)
    assert dict(run.series("rewards/score/mean")) == expected


def test_what_a_later_start_did_again_is_dropped_by_the_clock(tmp_path, clock):
    ends = record_steps(tmp_path, clock, (0.0, 0.25, 0.5))
    record_steps(tmp_path, clock, [1.0])
    run = join_rewards(log_of((1, 2), (ends[0], clock.now)), read_rewards(tmp_path))
    assert run.table["rewards/score/mean"] == (0.0, 1.0)


def test_windows_of_time_end_at_pauses(tmp_path, clock):
    recorders = processes(tmp_path, clock)
    for score in (0.0, 0.5, 1.0):
        record_step(recorders, clock, score, prompts=40)
        record_step(recorders, clock, 0.25, split="test")
    run = recorded_run(read_rewards(tmp_path))
    assert run.table["rewards/score/mean"] == (0.0, 0.5, 1.0)
    assert run.table["rewards-val/score/mean"] == (0.25, 0.25, 0.25)


def test_several_data_sources_have_their_own_curves_too(tmp_path, clock):
    recorder = Recorder(str(tmp_path), clock=clock)
    for source, score in (("a", 1.0), ("b", 0.0)):
        add(recorder, score, source=source)
    table = recorded_run(read_rewards(tmp_path)).table
    prefixes = ("rewards", "rewards@a", "rewards@b")
    assert [table[f"{prefix}/score/mean"] for prefix in prefixes] == [(0.5,), (1.0,), (0.0,)]


def test_samples_and_rows_are_limited_and_every_call_counts(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(reward_files, "MAX_SAMPLES", 20)
    monkeypatch.setattr(reward_files, "MAX_NUMBERS", 400)
    recorder = Recorder(str(tmp_path), clock=clock, share=1)
    for _ in range(128):
        add(recorder)
        clock.now += 7
    records = read_rewards(tmp_path)
    assert 8 <= records.count <= 64
    run = recorded_run(records, samples_per_step=16)
    assert sum(run.table["rewards/count"]) == pytest.approx(128, rel=0.1)
    assert 4 <= len(run.samples) <= 20
    assert min(sample.step for sample in run.samples) <= 5


def test_a_folder_without_records_is_refused_in_one_line(tmp_path):
    with pytest.raises(DataError, match="no reward records"):
        read_rewards(tmp_path)
    with pytest.raises(SourceError, match="no such folder"):
        read_rewards(tmp_path / "nothing")


def test_unreadable_lines_are_counted_with_the_first_of_them_and_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(reward_files, "MAX_LINE_BYTES", 5_000)
    monkeypatch.setattr(files, "CHUNK_BYTES", 1_000)
    recorder = Recorder(str(tmp_path), share=0)
    add(recorder)
    [file] = tmp_path.iterdir()
    bad = ["x", "7", "[" * 4_000, "x" * 20_000, '{"time": NaN, "values": {}}', "{}"]
    with file.open("a") as stream:
        stream.write("".join(f"{line}\n" for line in bad))
    add(recorder)
    records = read_rewards(tmp_path)
    assert (records.unread, records.examples[0].where) == (len(bad), f"{file.name}:2")
    assert "20,000 bytes" in records.examples[3].reason
    assert records.count == 2


JSON = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)


@given(st.recursive(JSON, lambda inner: st.lists(inner, max_size=3)))
def test_a_field_of_another_type_makes_a_line_unreadable_and_nothing_else(tmp_path_factory, value):
    folder = tmp_path_factory.mktemp("records")
    add(Recorder(str(folder), clock=Clock(), share=1))
    [file] = folder.iterdir()
    line = json.loads(file.read_text(encoding="utf-8"))
    lines = [line, *({**line, key: value} for key in [*line, "gold", "validation", "lost"])]
    file.write_text("".join(f"{json.dumps(each)}\n" for each in lines), encoding="utf-8")
    recorded_run(read_rewards(folder), samples_per_step=1)
    for row in ({"output": "o", "uid": value}, {"input": "i", "gts": "1", "pred": value}):
        dumps = tmp_path_factory.mktemp("dumps")
        (dumps / "1.jsonl").write_text(json.dumps({**row, "score": 1.0}) + "\n", encoding="utf-8")
        recorded_run(read_rewards(dumps))


def write_dump(folder, step, scores):
    folder.mkdir(exist_ok=True)
    row = {"input": "q", "gts": "18", "uid": "a", "step": step}
    rows = [{**row, "output": rf"\boxed{{{17 + int(y)}}}", "score": y} for y in scores]
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    (folder / f"{step}.jsonl").write_text(text, encoding="utf-8")


def test_dumps_of_the_default_trainer_have_score_length_answers_and_gold_by_step(tmp_path):
    for step, scores in ((2, (0.0, 1.0)), (10, (1.0, 1.0))):
        write_dump(tmp_path, step, scores)
    run = recorded_run(read_rewards(tmp_path))
    assert (run.source, run.steps) == ("rollouts", (2, 10))
    assert run.table["rewards/score/mean"] == run.table["score/mean"] == (0.5, 1.0)
    assert run.table["rewards/states_gold/mean"] == (0.5, 1.0)
    assert run.table["rewards/score_without_gold/mean"] == (0.0, None)
    assert run.table["rewards/distinct_answers/mean"] == (1.0, 0.5)
    assert run.table["groups/zero_variance"] == (0.0, 1.0)
    assert {sample.index for sample in run.samples} == {"a"}


def test_dumps_stand_beside_a_log_and_are_followed(tmp_path):
    folder, log = tmp_path / "rollouts", tmp_path / "train.log"
    tails = RunTail(log, folder), RunTail(folder)
    for tail in tails:
        assert (tail.poll(), tail.is_missing) == (None, True)
    for step in (1, 2):
        write_dump(folder, step, (0.0, 1.0))
        with log.open("a") as file:
            file.write(f"step:{step} - critic/rewards/mean:0.5\n")
        for tail in tails:
            assert tail.poll().table["rewards/score/mean"] == (0.5,) * step
            assert tail.poll() is None


def test_the_dumps_that_a_run_s_configuration_names_are_shown_with_it(tmp_path):
    write_dump(tmp_path / "rollouts", 1, (0.0, 1.0))
    folder = tmp_path / "run"
    folder.mkdir()
    config = "{'actor_rollout_ref': {}, 'trainer': {'rollout_data_dir': 'rollouts'}}"
    (folder / "console.log").write_text(f"{config}\nstep:1 - critic/rewards/mean:0.5\n")
    manifest = {"created": "2026-01-01T00:00:00+00:00", "folder": str(tmp_path), "tree": {}}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    tail = RunTail(folder)
    tail.poll()
    joined, note = with_rewards(read_run(folder), folder, None, None)
    assert "rollouts" in note
    for run in (joined, tail.poll()):
        assert run.table["rewards/score/mean"] == (0.5,)
