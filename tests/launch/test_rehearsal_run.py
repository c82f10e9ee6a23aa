"""A rehearsal while it runs, and afterwards: processes, recorded calls, errors in the log, checks."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
import os
import sys
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.cli.train import _print_rehearsal
from rewardkit.isolate import run as isolate_run
from rewardkit.launch.rehearsal import rehearse as rehearse_module
from rewardkit.launch.rehearsal import run as run_module
from rewardkit.launch.rehearsal.calls import first_error, last_lines, read_calls, select_examples
from rewardkit.launch.rehearsal.checks import check_rehearsal
from rewardkit.launch.rehearsal.rehearse import HOOKS_FOLDER, Rehearsal, rehearse
from rewardkit.launch.rehearsal.run import (
    RunMonitor,
    hanging_call,
    last_activity,
    run_command,
)
from rewardkit.launch.rehearsal.sample import PictureTokens, RowSample
from rewardkit.launch.rehearsal.settings import RehearsalPlan
from rewardkit.trainlog.training_run import TrainingRun

#: A process that starts another, which leaves its parent, ignores SIGTERM and outlives the parent.
STUBBORN = """
import os, signal, sys, time
pid = os.fork()
if pid == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        open(sys.argv[1], "w").write(str(os.getpid()))
        print("here", flush=True)
        time.sleep(300)
    os._exit(0)
os.waitpid(pid, 0)
while not os.path.exists(sys.argv[1]) or not open(sys.argv[1]).read():
    time.sleep(0.02)
time.sleep(float(sys.argv[2]))
sys.exit(3)
"""


@pytest.fixture(autouse=True)
def grace(monkeypatch):
    """Wait only a little for a process that ignores SIGTERM, and for the stacks of a process."""
    monkeypatch.setattr(isolate_run, "GRACE_SECONDS", 0.5)


def alive(pid):
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("sleep", "code", "seconds"),
    [("0", 3, 300), pytest.param("300", None, 5, marks=pytest.mark.full)],
)
def test_a_command_leaves_no_process_whether_it_ends_or_is_ended(tmp_path, sleep, code, seconds):
    file = tmp_path / "pid"
    command = [sys.executable, "-c", STUBBORN, str(file), sleep]
    assert run_command(command, {}, tmp_path / "log", seconds=seconds)[0] == code
    assert not alive(file.read_text())
    assert (tmp_path / "log").read_text() == "here\n"


def test_an_interrupted_command_leaves_no_process(tmp_path):
    sessions = []

    def interrupt():
        """Raise as soon as the process has started; it stands in for Ctrl-C."""
        if (tmp_path / "pid").exists() and (pid := int((tmp_path / "pid").read_text() or 0)):
            sessions.append(os.getsid(pid))
            raise KeyboardInterrupt
        return False

    command = [sys.executable, "-c", STUBBORN, str(tmp_path / "pid"), "300"]
    with pytest.raises(KeyboardInterrupt):
        run_command(command, {}, tmp_path / "log", seconds=60, should_end=interrupt)
    assert isolate_run.session_members(sessions[0]) == []


LOG = """\
Started a local Ray instance.
(TaskRunner pid=1) dataset len: 4
(TaskRunner pid=1) Total training steps: 2
Training Progress:   0%|          | 0/2 [00:00<?, ?it/s]
(TaskRunner pid=1) step:1 - critic/score/mean:0.0
(TaskRunner pid=1) test_gen_batch meta info: {}
Training Progress:  50%|#####     | 1/2 [00:01<00:01,  1.85s/it]
(TaskRunner pid=1) local_global_step_folder: /x/global_step_2
(TaskRunner pid=1) step:2 - critic/score/mean:0.0
(TaskRunner pid=1) Final validation metrics: {}
"""


def test_progress_says_what_verl_is_doing_in_the_order_of_a_run(tmp_path):
    activities, log = [], tmp_path / "verl.log"
    monitor = RunMonitor(tmp_path, steps=2, limit=1, progress=activities.append)
    for end in range(0, len(LOG), 10):  # the log grows by parts of lines
        log.write_text(LOG[: end + 10])
        assert monitor() is False
    assert activities == [
        "starting Ray", "starting verl's trainer", "reading the rows", "building the models",
        "training step 1 of 2", "training step 2 of 2", "validating", "saving the checkpoint",
        "ending",
    ]  # fmt: skip


@given(st.text(), st.integers(1, 5))
def test_any_log_has_an_activity_and_is_searched_for_errors(log, steps):
    assert last_activity(log, steps)
    assert "\n" not in first_error(log) + last_lines(log)


TRACE = """\
\x1b[36m(TaskRunner pid=7)\x1b[0m UserWarning: harmless: ModuleNotFoundError("No module named 'x'")
Error executing job with overrides: ['a=1']
Traceback (most recent call last):
  File "/v/main_ppo.py", line 5, in main
    run_ppo(config)
ray.exceptions.RayTaskError(RuntimeError): \x1b[36mray::TaskRunner.run()\x1b[39m (pid=7, ip=1.2.3.4)
  File "/v/reward.py", line 70, in get
    spec.loader.exec_module(module)
  File "/home/me/my.py", line 12, in <module>
    import missing
ModuleNotFoundError: No module named 'missing'

The above exception was the direct cause of the following exception:

ray::TaskRunner.run() (pid=7)
  File "/v/reward.py", line 73, in get
    raise RuntimeError(f"Error loading module") from e
RuntimeError: Error loading module
"""


def test_the_first_error_is_the_cause():
    assert first_error(TRACE) == "ModuleNotFoundError: No module named 'missing' (my.py:12)"
    assert first_error("all is well\nstep:1 - a:1\n") == ""


def hook_settings(folder, **changes):
    settings = {"folder": str(folder), "pixels": 0, "call_seconds": 1, "varied_metric": ""}
    return json.dumps(settings | changes)


@pytest.fixture
def hook(tmp_path, monkeypatch):
    """Load the module that records the calls of a rehearsal in this folder."""

    def load(**changes):
        monkeypatch.setenv("REWARDKIT_REHEARSAL", hook_settings(tmp_path, **changes))
        file = HOOKS_FOLDER / "rehearsal_calls.py"
        spec = importlib.util.spec_from_file_location("rehearsal_calls", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture
def record(hook):
    """Return a function with its calls recorded."""
    module = hook()
    return lambda function: module.record_calls(function, function)


ROW = {"data_source": "d", "solution_str": "s", "ground_truth": "g"}


def test_a_recorded_function_has_the_same_arguments_and_result(record, tmp_path):
    seen, given_back = [], {"score": 0.5, "pred": "x", "acc": True}

    def score(*args, **kwargs):
        seen.append((args, kwargs))
        return given_back

    info = {"index": 3, "split": "train"}
    assert record(score)(**ROW, extra_info=info, method="robust") is given_back
    assert record(score)("d", "s", "g", info) is given_back
    assert seen[0][1]["extra_info"] is info
    assert seen[1][0] == ("d", "s", "g", info)
    first, second = read_calls(tmp_path)
    assert (first.data_source, first.ground_truth, first.score) == ("d", "g", 0.5)
    assert (first.keys, first.numbers) == (("score", "pred", "acc"), ("score", "acc"))
    assert first.extra_info == second.extra_info == ("index", "split")


def test_a_recorded_coroutine_function_stays_one(record, tmp_path):
    async def score(**_):
        return 1.0

    assert inspect.iscoroutinefunction(record(score))
    assert asyncio.run(record(score)(**ROW)) == 1.0
    assert read_calls(tmp_path)[0].score == 1.0


def test_an_exception_of_a_recorded_function_reaches_verl(record, tmp_path):
    def score(**_):
        raise KeyError("gold")

    with pytest.raises(KeyError, match="gold"):
        record(score)(data_source="d", ground_truth=None)
    (call,) = read_calls(tmp_path)
    assert call.error.startswith("KeyError: 'gold' (test_rehearsal_run.py:")
    assert (call.ground_truth, call.returned) == (None, "")


def test_numpy_and_unusual_results_are_recorded(record, tmp_path):
    numpy = pytest.importorskip("numpy")
    values = (None, numpy.float32(0.25), "text", {"score": "1"}, {("a", 1): object()}, float("nan"))
    for value in values:
        record(lambda value=value, **_: value)(**ROW)
    scores = [call.score for call in read_calls(tmp_path)]
    assert scores[:4] == [None, 0.25, None, None]
    assert repr(scores[-1]) == "nan"


class Scorer:
    def __call__(self, **_):
        return 1.0


@pytest.mark.parametrize("function", [partial(Scorer()), Scorer(), partial(dict, score=1.0)])
def test_partials_objects_and_functions_in_c_are_recorded(record, tmp_path, function):
    """verl's own scorer is a partial for most managers."""
    record(function)()
    assert read_calls(tmp_path)[0].score == 1.0


def test_calls_that_differ_are_shown_first(record, tmp_path):
    for i in range(20):
        record(lambda i=i, **_: {"score": i})(data_source="a" if i < 19 else "b")
    assert [call.score for call in select_examples(read_calls(tmp_path), 3)] == [0, 19, 1]


@pytest.mark.parametrize(
    ("metric", "result", "varied"),
    [
        ("acc", {"score": 0.5, "acc": 0.0}, {"score": 0.5, "acc": 1.0}),
        ("reward", {"score": 0.5, "acc": 0.0}, {"score": 1.0, "acc": 0.0}),
        ("acc", 0.5, 1.0),
        ("acc", {"score": 0.5}, {"score": 0.5}),
        ("acc", None, None),
        ("", {"score": 0.5, "acc": 0.0}, {"score": 0.5, "acc": 0.0}),
    ],
)
def test_the_metric_of_dynamic_sampling_varies_and_the_record_has_the_user_s(
    hook, tmp_path, metric, result, varied
):
    def score(**_):
        return result

    wrapped = hook(varied_metric=metric).record_calls(score, score)
    assert [wrapped(**ROW) for _ in range(2)][1] == varied
    own = result["score"] if isinstance(result, dict) else result
    assert [call.score for call in read_calls(tmp_path)] == [own] * 2


#: A process that calls a scorer as verl does: rows 0 and 1 return, row 2 hangs.
CALLER = """
import asyncio, inspect, sys
from functools import partial
from types import SimpleNamespace
sys.path.insert(0, sys.argv[1])
import rehearsal_calls
names = {}
exec(compile(open(sys.argv[2]).read(), sys.argv[2], "exec"), names)
print("dataset len: 4", flush=True)
reward = SimpleNamespace(get_default_compute_score=None)
reward.get_custom_reward_fn = lambda _: partial(names["call"], names["compute_score"])
rehearsal_calls.record_scorer(reward)
score = reward.get_custom_reward_fn({})
for row in range(3):
    info = {"index": row}
    result = score(data_source="d", solution_str="an answer", ground_truth="7", extra_info=info)
    if inspect.iscoroutine(result):
        asyncio.run(result)
"""

#: The fifth line hangs.
SCORER = """import asyncio, re, time

{def_} compute_score(data_source, solution_str, ground_truth, extra_info):
    if extra_info["index"] == 2:
        {hang}
    return 1.0

{def_} call(function, **kwargs):
    return {await_}function(**kwargs)
"""
HANGING = {
    "sleep": SCORER.format(def_="def", hang="time.sleep(600)", await_=""),
    "regex": SCORER.format(def_="def", hang="re.match('(a+)+$', 'a' * 64 + 'b')", await_=""),
    "coroutine": SCORER.format(def_="async def", hang="await asyncio.sleep(600)", await_="await "),
}


def caller(folder, code):
    """Return the command and the environment of a process that calls a scorer with this code."""
    path = folder / "mine.py"
    path.write_text(code)
    command = [sys.executable, "-c", CALLER, str(HOOKS_FOLDER), str(path)]
    return command, {"REWARDKIT_REHEARSAL": hook_settings(folder)}


@pytest.mark.parametrize("kind", HANGING)
def test_a_call_that_hangs_is_found_with_its_line_and_its_row(tmp_path, kind):
    """A regex holds the interpreter's lock while it hangs; a coroutine that waits is on no stack."""
    command, env = caller(tmp_path, HANGING[kind])
    monitor = RunMonitor(tmp_path, steps=2, limit=1, progress=lambda _: None)
    assert run_command(command, env, tmp_path / "verl.log", 120, monitor)[0] is None
    text = monitor.hanging_call
    assert text.startswith(f"{tmp_path / 'mine.py'}:5: a call of the scorer has not returned after")
    assert "extra_info.index 2, data_source 'd', ground_truth '7'" in text
    assert "the response begins with 'an answer'. Fix the scorer, or raise" in text


def test_calls_that_return_and_calls_of_ended_processes_do_not_hang(tmp_path, monkeypatch):
    monkeypatch.setattr(run_module, "STACK_SECONDS", 0.0)
    for hang in ("time.sleep(0.1)", "import os; os._exit(1)"):
        command, env = caller(tmp_path, SCORER.format(def_="def", hang=hang, await_=""))
        run_command(command, env, tmp_path / "log", 60)
    assert '"index": 2' in (tmp_path / "calls.jsonl").read_text()
    assert hanging_call(tmp_path, 0.0) == ""


def plan(folder, **changes):
    sample = RowSample((), 4, 80)
    fields = {"folder": folder, "steps": 2, "train": sample, "val": RowSample((), 2, 80)}
    return RehearsalPlan(**(fields | changes))


def rehearse_with(folder, monkeypatch, code, seconds):
    """Rehearse with a process in place of verl that calls a scorer with this code."""
    (folder / "r").mkdir()
    (folder / "hooks").mkdir()
    command, _ = caller(folder, code)
    stub = f"import os, sys; os.execv(sys.executable, {command!r})"
    (folder / "hooks" / "rehearsal_train.py").write_text(stub)
    installed = {"verl": "0.9.1"}
    monkeypatch.setattr(rehearse_module, "_installed", lambda name: installed.get(name, "1"))
    monkeypatch.setattr(rehearse_module, "prepare", lambda *_: plan(folder / "r"))
    monkeypatch.setattr(rehearse_module, "HOOKS_FOLDER", folder / "hooks")
    return rehearse([], folder=folder / "r", seconds=seconds, call_seconds=1)


LIMIT = (
    "ended after 8 s, its time limit (--rehearse-seconds); verl was at: reading the rows; the last "
)
WAITS = "import time\nprint('dataset len: 4', flush=True)\ntime.sleep(600)\n"


@pytest.mark.full
@pytest.mark.parametrize(
    ("code", "message"),
    [(HANGING["sleep"], "mine.py:5: a call of the scorer has not returned"), (WAITS, LIMIT)],
)
def test_a_rehearsal_that_is_ended_says_why(tmp_path, monkeypatch, code, message):
    result = rehearse_with(tmp_path, monkeypatch, code, seconds=8)
    (check,) = result.checks
    assert (check.name, check.ok) == ("run", False)
    assert message in check.detail


def run_of(**changes):
    table = {
        "critic/score/mean": (0.0, 0.5),
        "actor/pg_loss": (0.0, 0.1),
        "response_length/mean": (9.0, 9.0),
        "val-core/d/acc/mean@1": (None, 0.5),
    } | changes
    return TrainingRun(
        name="verl", path="verl.log", source="console", era="", steps=(1, 2), table=table
    )


WENT_WELL = run_of()
ROWS = "dataset len: 4\nfilter dataset len: 4\ndataset len: 2\n"
WELL = [{"score": 1.0, "acc": 1.0}, {"score": 0.0, "acc": 0.0}]


@pytest.fixture
def checks(record, tmp_path):
    """Check a run of two steps that went well, with these returns of the scorer."""

    def check(results=WELL, log=ROWS, run=WENT_WELL, **changes):
        for result in results:
            record(lambda result=result, **_: result)(**ROW, extra_info={"index": 1})
        actor = tmp_path / "checkpoint/global_step_2/actor"
        actor.mkdir(parents=True, exist_ok=True)
        (actor / "model_world_size_1_rank_0.pt").write_bytes(b"weights")
        found = check_rehearsal(plan(tmp_path, **changes), log, run, read_calls(tmp_path))
        return {check.name: check for check in found}

    return check


def test_a_run_without_problems_passes_every_check(checks):
    results = checks(reward_manager="dapo")
    assert all(check.ok for check in results.values()), results
    assert list(results) == [
        "rows read", "scorer called", "rewards", "metrics", "validation", "checkpoint", "log",
    ]  # fmt: skip
    assert results["rewards"].detail == "mean by step 0.000, 0.500 by the reward manager dapo"
    assert results["scorer called"].detail.endswith("data_source d x 2; extra_info: index")


NAN = float("nan")


@pytest.mark.parametrize(
    ("name", "values", "check", "detail"),
    [
        ("val-core/d/acc/mean@1", (None, NAN), "validation", "not a number: val-core/d/acc/mean@1"),
        ("val-aux/d/len/mean@1", (None, NAN), "validation", "not a number: val-aux/d/len/mean@1"),
        ("val-core/d/acc/mean@1", (None, None), "validation", "no val-core/... metric was logged"),
        ("actor/pg_loss", (0.0, NAN), "metrics", "not a number: actor/pg_loss at step 2"),
    ],
)
def test_a_metric_that_is_not_a_number_or_is_missing_fails_its_check(
    checks, name, values, check, detail
):
    results = checks([1.0, 0.0], run=run_of(**{name: values}))
    assert [name for name, result in results.items() if not result.ok] == [check]
    assert results[check].detail.startswith(detail)


@pytest.mark.parametrize(
    ("changes", "name", "detail"),
    [
        ({"log": ROWS.replace("filter dataset len: 4", "filter dataset len: 1")}, "rows read",
         "1 of 4 to train on, 2 of 2 to validate on: verl left rows out as too long"),
        ({"log": ""}, "rows read", "verl's log does not say how many rows it read"),
        ({"results": []}, "scorer called", "the scorer was never called"),
        ({"results": [{"score": 1.0, "acc": 1.0, "length": 3}]}, "metrics",
         "the scorer returns length, but verl logs no metric of it"),
        ({"results": [{"score": 1.0, "acc": 1.0}, {"score": 0.0}]}, "metrics",
         "return the same keys for every response; some lack acc"),
        ({"run": run_of(**{"critic/score/mean": (0.0, NAN)})}, "rewards", "a step's mean reward is"),
        ({"run": None}, "log", "0 of 2 steps in "),
    ],
)  # fmt: skip
def test_what_went_wrong_fails_its_check(checks, changes, name, detail):
    result = checks(**changes)[name]
    assert (result.ok, result.detail[: len(detail)]) == (False, detail)


def test_pictures_that_reach_no_model_or_do_not_fit_the_plan_fail_their_check(checks, tmp_path):
    def check(*parts, max_prompt=1024):
        lines = (json.dumps({"part": part, "pictures": 2}) + "\n" for part in parts)
        (tmp_path / "pictures.jsonl").write_text("".join(lines))
        pictures = PictureTokens((24, 0), (24, 0), 1024, 26)
        found = checks(pictures=pictures, max_prompt=max_prompt)["pictures"]
        return found.ok, found.detail

    ok, detail = check("actor", "rollout", "actor")
    assert ok
    assert detail.startswith("1 of 2 rows have pictures, with up to 24 tokens of data.max_prompt_l")
    assert detail.endswith("the actor got 4, the rollout got 2")
    assert check("rollout") == (
        False,
        "no picture reached the model: verl trained on the text alone",
    )
    assert check("actor", max_prompt=24)[0] is False
    assert check("actor", max_prompt=0)[0] is True


def test_the_first_line_says_that_a_rehearsal_is_not_as_planned(tmp_path, capsys):
    rehearsal = partial(Rehearsal, "0.9.1", 2, 78.4, (), (), (), tmp_path)
    _print_rehearsal(rehearsal())
    assert capsys.readouterr().out == f"verl 0.9.1, 2 steps in 78 s: {tmp_path}\n"
    _print_rehearsal(rehearsal(notes=("other pictures",), not_rehearsed=("LoRA",)))
    assert capsys.readouterr().out.splitlines() == [
        f"verl 0.9.1, 2 steps in 78 s, not as planned in 2 points: {tmp_path}",
        "not as planned: other pictures",
        "not rehearsed: LoRA",
    ]
