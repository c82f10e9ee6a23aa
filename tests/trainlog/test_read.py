"""Readers extract all values, whatever verl, Ray or a log collector do to a log."""

from __future__ import annotations

import gzip
import time
from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.errors import DataError, SourceError
from rewardkit.trainlog.console_reader import ConsoleReader, parse_metric
from rewardkit.trainlog.read import read_run, read_runs
from rewardkit.trainlog.training_run import FIXED, FULL, V1

RAY = "\x1b[36m(TaskRunner pid=77, ip=10.0.0.9)\x1b[0m "
BAR = "\rTraining Progress:   3%|▎         | 1/40 [00:49<31:53, 49.09s/it]"
STEP = "step:{} - critic/score/mean:{} - actor/entropy:{}\n"


def console(text, pieces=1):
    reader = ConsoleReader()
    data = text.encode()
    size = -(-len(data) // pieces)
    for i in range(0, len(data), max(size, 1)):
        reader.feed(data[i : i + size])
    return reader.finish("run", "run.log")


def row(run, step):
    i = run.steps.index(step)
    return {key: column[i] for key, column in run.table.items() if column[i] is not None}


letters = st.characters(
    codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp"), exclude_characters="\x1b"
)
words = st.text(letters, min_size=1, max_size=12).map(str.strip).filter(bool)
#: Pieces of logs: what the reader looks for, whole and broken.
LINES = [
    b"step:1 - a/b:0.5 - c/d:np.float64(2)",
    b"step:2 - a/b:0.25",
    b"step:2 - a/b:0.250 - e/f:x",
    b"step:",
    b"noise",
    b"(TaskRunner pid=1) ",
    b"{'actor_rollout_ref': {'actor': 1},",
    b" 'data': {'max_response_length': 8}}",
]

keys = st.builds(
    "{}/{}".format,
    st.sampled_from(["actor", "critic", "val-core/openai/gsm8k", "val-aux", "timing_s"]),
    words.filter(lambda word: ":" not in word and "-" not in (word[0], word[-1]))
    | st.sampled_from(["lr(1e-4)", "mean@16", "my data - set/acc/mean@1", "best@2/mean", "a b"]),
)
values = st.one_of(st.floats(allow_nan=True, allow_infinity=True), st.integers(), st.booleans())
MAIN_TASK = "\x1b[2m\x1b[36m(main_task pid=1)\x1b[0m "
dressings = st.sampled_from(["", RAY, BAR, RAY + BAR, "[2025-08-04 12:26:42,932] ", MAIN_TASK])


def numpy_repr(value):
    kind = "float64" if isinstance(value, float) else "int64"
    return f"np.{value}_" if isinstance(value, bool) else f"np.{kind}({value!r})"


@given(
    st.lists(st.dictionaries(keys, values, min_size=1, max_size=6), min_size=1, max_size=5),
    dressings,
    st.sampled_from([repr, numpy_repr]),
    st.integers(1, 9),
)
def test_values_of_any_keys_are_read_with_any_prefix(steps, dressing, write, pieces):
    text = "".join(
        f"{dressing}step:{i} - {' - '.join(f'{k}:{write(v)}' for k, v in pairs.items())}\nnoise\n"
        for i, pairs in enumerate(steps)
    )
    run = console(text, pieces)
    assert run.steps == tuple(range(len(steps)))
    for i, pairs in enumerate(steps):
        expected = {key: +value for key, value in pairs.items()}  # True is logged as 1
        assert row(run, i) == pytest.approx(expected, rel=0, abs=0, nan_ok=True)
    assert run.unread == 0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.500", 0.5), ("1e-06", 1e-6), ("np.float64(0.5)", 0.5), ("np.int32(2)", 2), ("True", 1),
        ("", None), ("x", None), ("1_0", None), (" 1", None), ("３", None), ("0x1", None),
        ("np.float64(x)", None), ("Decimal('1')", None),
    ],
)  # fmt: skip
def test_only_numbers_as_verl_prints_them_are_values(text, value):
    assert parse_metric(text) == value


@pytest.mark.parametrize(
    ("start", "value", "era"),
    [("", "0.120", FIXED), ("", "0.12", FULL), ("", "np.int64(1)", V1), ("TaskRunnerV1 ", "1", V1)],
)
def test_the_format_of_values_determines_the_era(start, value, era):
    assert console(start + STEP.format(1, "0.500", value)).era == era


def test_a_restart_replaces_the_steps_it_repeats():
    first_run = "".join(STEP.format(i, i / 10, 1) for i in range(1, 7))
    second_run = "".join(STEP.format(i, i / 5, 1) for i in range(4, 6))
    run = console(first_run + second_run)
    assert run.steps == (1, 2, 3, 4, 5)
    assert run.table["critic/score/mean"] == (0.1, 0.2, 0.3, 0.8, 1.0)
    (restart,) = run.restarts
    assert (restart.step, restart.where, restart.dropped) == (4, "line 7", 2)


def test_a_validation_on_resuming_keeps_the_row_of_its_step():
    first_run = "".join(STEP.format(i, i / 10, 1) for i in range(1, 7))
    second_run = "(TaskRunner pid=2) {'actor_rollout_ref': {'actor': {}}}\nstep:4 - val/x:0.5\n"
    run = console(first_run + second_run + STEP.format(5, 0.9, 1))
    assert run.steps == (1, 2, 3, 4, 5)
    assert row(run, 4) == {"critic/score/mean": 0.4, "actor/entropy": 1, "val/x": 0.5}
    assert [restart.step for restart in run.restarts] == [4]


@pytest.mark.parametrize("value", [0.5, 0.75])
def test_logging_the_last_step_again_updates_it_without_a_restart(value):
    run = console(STEP.format(1, 0.5, 2) + STEP.format(1, value, 2))
    assert run.table["critic/score/mean"] == (value,)
    assert run.restarts == ()


CONFIG = """{'actor_rollout_ref': {'actor': {'optim': {'lr': 1e-06}},
                       'rollout': {'n': 8,
                                   'name': 'vllm'}},
 'algorithm': {'adv_estimator': 'grpo'},
 'data': {'max_response_length': 1024,
          'train_files': ['a.parquet',
                          'b }.parquet']},
 'trainer': {'project_name': 'p'}}
"""


def test_the_configuration_is_read_between_lines_of_other_processes():
    lines = [f"(TaskRunner pid=5) {line}" for line in CONFIG.splitlines()]
    lines.insert(3, "(WorkerDict pid=6) {'not': 'ours'}")
    lines[4] += "\x1b[36m(WorkerDict pid=7)\x1b[0m broke in"
    run = console("\n".join(lines) + "\n" + STEP.format(1, 0.5, 2))
    assert run.config["data.max_response_length"] == 1024
    assert run.config["data.train_files"] == ["a.parquet", "b }.parquet"]
    assert run.setting("algorithm.adv_estimator") == "grpo"
    assert run.unread == 0


def test_an_incomplete_configuration_is_read_as_far_as_possible_and_counted():
    """Ray leaves out lines that are like others, also those with the last brackets."""
    lines = [f"(TaskRunner pid=5) {line}" for line in [*CONFIG.splitlines()[:4], "other"]]
    run = console("\n".join(lines) + "\n" + STEP.format(1, 0.5, 2))
    assert run.config["algorithm.adv_estimator"] == "grpo"
    assert "is incomplete; 4 settings were read" in run.examples[0].reason


GLUED = "step:1 - a/b:1.0 - c/d:2.0(TaskRunner pid=1) step:2 - a/b:3.0"


@pytest.mark.parametrize(
    ("line", "rows", "unread_count"),
    [
        (GLUED, {1: {"a/b": 1, "c/d": 2}, 2: {"a/b": 3}}, 0),
        (GLUED.replace("(", RAY + "("), {1: {"a/b": 1, "c/d": 2}, 2: {"a/b": 3}}, 1),
        ("step:1 - step:2 - a/b:1.0", {1: {"step": 2, "a/b": 1}}, 0),
        ("step:1 - a/b:0.5 - c:Decimal('1') - a/d:2", {1: {"a/b": 0.5, "a/d": 2}}, 1),
        ("step:1 - a/b:0.5 - a/d:2(Worker pid=9) in: 3", {1: {"a/b": 0.5, "a/d": 2}}, 1),
    ],
)
def test_two_steps_in_one_line_are_both_read_and_other_text_is_counted(line, rows, unread_count):
    run = console(f"{line}\n")
    assert {step: row(run, step) for step in run.steps} == rows
    assert run.unread == unread_count
    assert all(item.where == "line 1" for item in run.examples)


def test_the_last_value_of_an_incomplete_last_line_is_left_out():
    run = console(STEP.format(1, 0.5, 2) + "step:2 - critic/score/mean:0.25 - actor/entropy:0.1")
    assert row(run, 2) == {"critic/score/mean": 0.25}
    assert "the file ends in this line" in run.examples[0].reason


def test_text_of_a_model_is_not_a_step():
    run = console(STEP.format(1, 0.5, 2) + "step:9 - add:3 - then:4\n")
    assert run.steps == (1,)
    assert run.unread == 1


def test_missing_steps_are_found_unless_a_run_logs_every_tenth_step():
    assert console("".join(STEP.format(i, 1, i) for i in (1, 2, 3, 6, 7))).gaps == ((4, 5),)
    assert console("".join(STEP.format(i, 1, i) for i in (10, 20, 30))).gaps == ()


def test_a_time_stamp_before_a_step_becomes_its_clock():
    stamps = "2025-08-04 12:00:00,500", "2025-08-04T12:01:00"
    run = console("".join(f"{time} {STEP.format(i, 1, 1)}" for i, time in enumerate(stamps)))
    assert run.clock[1] - run.clock[0] == 59.5


def test_a_file_without_line_ends_does_not_fill_memory():
    reader = ConsoleReader()
    for _ in range(80):
        reader.feed(b"x" * (1 << 20))
        assert sum(map(len, reader._lines._rest)) <= (5 << 20)


@given(
    st.lists(st.sampled_from([*LINES, b"\n", b"\r", b" ", b"\x1b[0m", b"\xff", b"\0"])),
    st.integers(1, 60),
)
def test_arbitrary_bytes_never_break_the_reader(parts, size):
    data = b"".join(parts)

    def read(pieces):
        reader = ConsoleReader()
        for piece in pieces:
            reader.feed(piece)
        try:
            return reader.finish("run", "run.log")
        except DataError as error:
            return str(error)

    run = read([data])
    assert repr(read([data[i : i + size] for i in range(0, len(data), size)])) == repr(run)


@pytest.mark.parametrize(
    "line",
    [
        b"step:1 - " + b"1" * 300_000,
        b"step:1 - a/b:" + b"1" * 300_000 + b"x",
        b"step:1 - " + b"a:" * 150_000,
        b"step:1 - a/b:1 " + b" " * 300_000 + b"[repeated x",
        pytest.param(b"{'actor_rollout_ref':\n \"" + b'\\"' * 150_000, marks=pytest.mark.full),
        b"{'actor_rollout_ref': " + b"( pid=1" * 40_000,
        b"{'actor_rollout_ref': " + b"[" * 300_000,
        b"{'actor_rollout_ref': 1" + (b"\n " + b"+1" * 5000) * 190 + b"}",
        b"{'actor_rollout_ref': x" + (b"\n " + b"[0]" * 5000) * 120 + b"}",
    ],
)
def test_hostile_lines_are_read_quickly(line):
    reader = ConsoleReader()
    start = time.process_time()
    reader.feed(line + b"\n" + STEP.format(2, 1, 1).encode())
    assert reader.finish("run", "run.log").steps[-1] == 2
    assert time.process_time() - start < 20


@pytest.fixture
def file(tmp_path):
    def write(data, name="run.log"):
        path = tmp_path / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    return write


def test_the_file_logger_is_read(file):
    lines = '{"step": 1, "data": {"a/b": 0.5, "a/c": null}}', '{"step": 2, "data": {"a/b": true}}'
    run = read_run(file("\n".join(lines) + "\nnot json\n", "run.jsonl"))
    assert row(run, 1) == pytest.approx({"a/b": 0.5, "a/c": nan}, nan_ok=True)
    assert (run.source, run.table["a/b"], run.unread) == ("jsonl", (0.5, 1), 1)


ZEROS = "0" * 400


@pytest.mark.parametrize(
    "line",
    [
        f'{{"step": 2, "data": {{"a": 1{ZEROS}}}}}',
        f'{{"step": 1{ZEROS}, "data": {{"a": 1}}}}',
        '{"step": 1234567890123, "data": {"a": 1}}',
        '{"step": 1, "da',
    ],
)
def test_a_line_of_huge_numbers_or_of_garbage_is_counted_as_unread(file, line):
    lines = [line, '{"step": 1, "data": {"a": 1}}', line, '{"step": 3, "data": {"a": 2}}']
    run = read_run(file("\n".join(lines), "run.jsonl"))
    assert (run.source, run.steps, run.unread) == ("jsonl", (1, 3), 2)


def test_a_dump_with_a_huge_score_is_read_without_it(tmp_path):
    (tmp_path / "1.jsonl").write_text(f'{{"score": 1{ZEROS}}}\n{{"score": 1}}\n')
    run = read_run(tmp_path)
    assert (run.table["responses"], run.unread) == ((1,), 1)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty"),
        (b"PAR1\x15\x04", "parquet"),
        (bytes(range(256)) * 40, "binary"),
        (b'{"a": 1}\n', "no training step"),
        (b"a log\nwithout any step\n", "no training step"),
        (b"step:1 - critic/sc", "the file ends in this line"),
        (gzip.compress(b"x" * 4000, mtime=0)[:-9], "damaged"),
    ],
)
def test_a_file_that_is_not_a_log_is_refused_in_one_line(file, data, message):
    with pytest.raises((DataError, SourceError), match=message) as error:
        read_run(file(data))
    assert "\n" not in str(error.value)
    assert "run.log" in str(error.value)


def test_zeros_that_a_crash_left_in_a_log_are_skipped(file):
    assert read_run(file(b"\0" * (2 << 20) + f"\n{STEP.format(1, 1, 1)}".encode())).steps == (1,)


def test_a_missing_file_and_a_folder_without_a_run_are_refused(tmp_path):
    with pytest.raises(SourceError, match="no such file"):
        read_run(tmp_path / "missing.log")

    def refusal():
        with pytest.raises(DataError) as error:
            read_run(tmp_path)
        return str(error.value)

    assert "the folder has no training log (console.log, verl.log" in refusal()
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "verl.log").write_text(STEP.format(1, 1, 1))
    assert "Name a run's folder in it: a." in refusal()
    (tmp_path / "manifest.json").write_text("{}")
    assert "pass the log of its job" in refusal()
    for name in ("x.log", "y.txt"):
        (tmp_path / name).write_text("")
    assert "2 files that may be logs; name one of them: x.log, y.txt" in refusal()


def test_the_log_of_a_run_s_own_folder_is_read(tmp_path):
    """A run has console.log; a rehearsal has verl.log and the same metrics as jsonl."""
    (tmp_path / "metrics.jsonl").write_text('{"step": 7, "data": {"a/b": 1.0}}\n')
    assert read_run(tmp_path).steps == (7,)
    for name, step in (("verl.log", 2), ("console.log", 3)):
        (tmp_path / name).write_text(STEP.format(step, 1, 1))
        run = read_run(tmp_path)
        assert (run.path, run.steps) == (str(tmp_path / name), (step,))
        assert run.name == tmp_path.name


@pytest.mark.parametrize(("values", "rewritten"), [((0.4, 0.8), 5), ((0.4, 0.4), 0)])
def test_two_runs_in_one_log_are_noticed(tmp_path, values, rewritten):
    """Their lines alternate, so that no step goes back as after a restart; the last value counts."""
    lines = [f"(pid={v}) step:{step} - a/b:{v}" for step in range(5) for v in values]
    (tmp_path / "t.log").write_text("\n".join(lines) + "\n")
    run = read_run(tmp_path / "t.log")
    assert (run.rewritten, run.restarts, run.table["a/b"][0]) == (rewritten, (), values[1])


def test_the_only_file_that_may_be_a_log_is_read_and_the_folder_s_name_keeps_its_dots(tmp_path):
    folder = tmp_path / "qwen2.5-0.5b-ppo"
    folder.mkdir()
    (folder / "train.log").write_text(STEP.format(1, 1, 1))
    run = read_run(folder)
    assert (run.path, run.name) == (str(folder / "train.log"), folder.name)


def test_runs_with_the_same_name_are_called_by_their_paths(file, tmp_path):
    paths = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        paths.append(file(STEP.format(1, 1, 1), f"{name}/run.log"))
    assert [run.name for run in read_runs(paths)] == list(map(str, paths))
