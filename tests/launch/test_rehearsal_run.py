"""A rehearsal while it runs, and afterwards: processes, recorded calls, errors in the log, checks."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
import sys
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.isolate.child_process import ChildTimeoutError
from rewardkit.isolate.run import run
from rewardkit.launch.rehearsal import rehearse as rehearse_module
from rewardkit.launch.rehearsal.rehearse import HOOKS_FOLDER, rehearse
from rewardkit.launch.rehearsal.results import (
    check_rehearsal,
    first_error,
    hanging_call,
    last_activity,
    last_lines,
    read_calls,
)
from rewardkit.launch.rehearsal.sample import ImageTokens, RowSample
from rewardkit.launch.rehearsal.settings import RehearsalPlan
from rewardkit.trainlog.training_run import TrainingRun

ROOT = Path(__file__).parents[2]
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


def test_progress_says_what_verl_is_doing_in_the_order_of_a_run():
    grown = [last_activity(LOG[:end], 2) for end in range(0, len(LOG) + 10, 10)]
    assert [*dict.fromkeys(grown)] == [
        "starting Ray", "starting verl's trainer", "reading the rows", "building the models",
        "training step 1 of 2", "training step 2 of 2", "validating", "saving the checkpoint", "ending",
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
    later = (
        TRACE.replace("Error executing job", "Traceback ")
        + "\nError executing job with overrides: []\n"
    )
    later += "Traceback (most recent call last):\nRuntimeError: no groups\n"
    assert first_error(later) == "RuntimeError: no groups"
    assert first_error(later, "/home/me/my.py").endswith("No module named 'missing' (my.py:12)")


def hook_settings(folder):
    scorer = str(folder / "mine.py")
    settings = {"folder": str(folder), "critic": False, "pixels": 0, "call_seconds": 1}
    return json.dumps({**settings, "scorer": scorer})


@pytest.fixture
def record(tmp_path, monkeypatch):
    """Return the function of a rehearsal that records the calls of another, in this folder."""
    monkeypatch.setenv("REWARDKIT_REHEARSAL", hook_settings(tmp_path))
    spec = importlib.util.spec_from_file_location("calls", HOOKS_FOLDER / "rehearsal_calls.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module.record_calls
    module._stacks.close()


class Scorer:
    def __call__(self, **_):
        return 1.0


ROW = {"data_source": "d", "solution_str": "s", "ground_truth": "g"}


def test_a_recorded_function_has_the_same_arguments_and_result(record, tmp_path):
    arguments, result = [], {"score": 0.5, "pred": "x", "acc": True}

    def score(*args, **kwargs):
        arguments.append((args, kwargs))
        return result

    info = {"index": 3, "split": "train"}
    assert record(score)(**ROW, extra_info=info, method="robust") is result
    assert record(score)("d", "s", "g", info) is result
    assert arguments[0][1]["extra_info"] is info
    assert arguments[1][0] == ("d", "s", "g", info)
    for call in read_calls(tmp_path):
        expected = {"data_source": "d", "ground_truth": "g", "response": "s", "score": 0.5}
        lists = {"keys": ["score", "pred", "acc"], "numbers": ["score", "acc"]}
        info_of = {"index": "3", "extra_info": ["index", "split"]}
        assert call.items() >= (expected | lists | info_of).items()


def test_a_recorded_coroutine_function_stays_one(record, tmp_path):
    async def score(**_):
        return 1.0

    assert inspect.iscoroutinefunction(record(score))
    assert asyncio.run(record(score)(**ROW)) == 1.0
    assert read_calls(tmp_path)[0]["score"] == 1.0


def test_the_cause_of_an_exception_is_recorded_and_the_exception_reaches_verl(record, tmp_path):
    def score(**_):
        {}["gold"]

    def wrapper(**kwargs):
        try:
            score(**kwargs)
        except KeyError as error:
            raise RuntimeError from error

    with pytest.raises(RuntimeError):
        record(wrapper)(data_source="d", ground_truth=None)
    (call,) = read_calls(tmp_path)
    assert call["error"].startswith("the scorer raised KeyError: 'gold' (test_rehearsal_run.py:")
    assert (call["ground_truth"], "score" in call) == (None, False)


def test_results_of_any_function_and_type_are_recorded(record, tmp_path):
    """verl's own scorer is a partial for most managers; some scorers are objects, or written in C."""
    numpy = pytest.importorskip("numpy")
    values = (None, numpy.float32(0.25), "text", {"score": "1"}, {("a", 1): object()}, 10**400)
    functions = [lambda value=value, **_: value for value in values]
    for function in (*functions, partial(Scorer()), Scorer(), partial(dict, score=1.0)):
        record(function)()
    calls = read_calls(tmp_path)
    assert [call.get("score") for call in calls] == [None, 0.25, *[None] * 4, 1.0, 1.0, 1.0]
    assert "returned NoneType" in calls[0]["error"]
    assert all("seconds" in call for call in calls)


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

{a}def compute_score(data_source, solution_str, ground_truth, extra_info):
    if extra_info["index"] == 2:
        {hang}
    return 1.0

{a}def call(function, **kwargs):
    return {w}function(**kwargs)
"""
HANGING = {
    "time.sleep(600)": "",
    "re.match('(a+)+$', 'a' * 64 + 'b')": "",
    "await asyncio.sleep(600)": "async ",
}


def caller(folder, hang, a=""):
    """Return the command and the environment of a process whose scorer runs this for its last row."""
    path = folder / "mine.py"
    path.write_text(SCORER.format(hang=hang, a=a, w="await " if a else ""))
    command = [sys.executable, "-c", CALLER, str(HOOKS_FOLDER), str(path)]
    env = {"REWARDKIT_REHEARSAL": hook_settings(folder), "PYTHONPATH": str(ROOT)}
    return command, env


@pytest.mark.parametrize(
    "hang",
    [
        pytest.param(hang, marks=[pytest.mark.full] * (number > 0))
        for number, hang in enumerate(HANGING)
    ],
)
def test_a_call_that_hangs_is_found_with_its_line_and_its_row(tmp_path, hang):
    """A regex holds the interpreter's lock while it hangs; a coroutine that waits is on no stack."""
    command, env = caller(tmp_path, hang, HANGING[hang])
    messages = [""]

    def should_end():
        messages.append(hanging_call(tmp_path, str(tmp_path / "mine.py")))
        return messages[-1]

    with pytest.raises(ChildTimeoutError):
        run(command, env, 120, should_end=should_end)
    message = messages[-1]
    assert message.startswith(f"{tmp_path}/mine.py:5: a call of the scorer has not returned after")
    assert "extra_info.index 2, data_source 'd', ground_truth '7'" in message
    assert "the response begins with 'an answer'. Fix the scorer, or raise" in message


def test_calls_that_return_or_end_their_process_do_not_hang(tmp_path):
    for hang in ("time.sleep(0.9)", "import os; os._exit(1)"):
        command, env = caller(tmp_path, hang)
        run(command, env, 60)
    assert '"index": "2"' in (tmp_path / "calls.jsonl").read_text()
    assert hanging_call(tmp_path, "") == ""


def plan(folder, **changes):
    sample = RowSample((), 4, 80)
    fields = {"folder": folder, "steps": 2, "train": sample, "val": RowSample((), 2, 80)}
    return RehearsalPlan(**(fields | changes))


@pytest.mark.full
def test_a_rehearsal_that_is_ended_says_what_verl_did(tmp_path, monkeypatch):
    (tmp_path / "hooks").mkdir()
    code = "import time; print('dataset len: 4', flush=True); time.sleep(600)"
    (tmp_path / "hooks" / "rehearsal_train.py").write_text(code)
    monkeypatch.setattr(rehearse_module, "require_packages", lambda: None)
    monkeypatch.setattr(rehearse_module, "prepare", lambda *_: plan(tmp_path / "r"))
    monkeypatch.setattr(rehearse_module, "HOOKS_FOLDER", tmp_path / "hooks")
    (check,) = rehearse([], folder=tmp_path / "r", seconds=6).checks
    assert (check.name, check.ok) == ("run", False)
    assert check.detail.startswith("ended after 6 s, its time limit (--rehearse-seconds); verl was")
    assert "reading the rows" in check.detail


NAN, VALIDATION = float("nan"), "val-core/d/acc/mean@1"


def run_of(*metric):
    """Return a run of two steps that went well, but for this metric and its two values."""
    names = "critic/score/mean", "actor/pg_loss", "response_length/mean"
    table = dict.fromkeys(names, (0.0, 0.5)) | {VALIDATION: (None, 0.5)}
    table |= {name: values for name, *values in [metric] * bool(metric)}
    texts = dict.fromkeys(("name", "path", "source", "era"), "")
    return TrainingRun(**texts, steps=(1, 2), table=table)


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
        ended = check_rehearsal(plan(tmp_path, **changes), log, run, read_calls(tmp_path))
        return {each.name: each for each in ended}

    return check


def test_a_run_without_problems_passes_every_check(checks):
    results = checks(config={"reward.reward_manager.name": "dapo"})
    assert all(check.ok for check in results.values()), results
    assert list(results) == [
        "rows read", "scorer called", "rewards", "metrics", "validation", "checkpoint", "log",
    ]  # fmt: skip
    assert results["rewards"].detail == "mean by step 0.000, 0.500 by the reward manager dapo"
    assert results["scorer called"].detail.endswith("data_source d x 2; extra_info: index")


# fmt: off
FAILURES = [
    ({"log": ROWS.replace("filter dataset len: 4", "filter dataset len: 1")}, "rows read",
     "1 of 4 to train on, 2 of 2 to validate on: verl left rows out as too long"),
    ({"log": ""}, "rows read", "verl's log does not say how many rows it read"),
    ({"results": []}, "scorer called", "the scorer was never called"),
    ({"results": [None, 1.0]}, "scorer called", "1 of 2 calls failed; first: the reward returned"),
    ({"results": [{"score": 1.0, "length": 3}]}, "metrics",
     "the scorer returns length, but verl logs no metric of it"),
    ({"results": [{"score": 1.0, "acc": 1.0}, {"score": 0.0}]}, "metrics",
     "return the same keys for every response; some lack acc"),
    ({"run": run_of("critic/score/mean", 0.0, NAN)}, "rewards", "a step's mean reward is"),
    ({"run": run_of("actor/pg_loss", 0.0, NAN)}, "metrics", "not a number: actor/pg_loss at step 2"),
    ({"run": None}, "log", "0 of 2 steps in "),
    ({"run": run_of(VALIDATION, None, NAN)}, "validation", f"not a number: {VALIDATION}"),
    ({"run": run_of("val-aux/len", None, NAN)}, "validation", "not a number: val-aux/len"),
    ({"run": run_of(VALIDATION, None, None)}, "validation", "no val-core/... metric was logged"),
]
# fmt: on


@pytest.mark.parametrize(("changes", "name", "detail"), FAILURES)
def test_what_went_wrong_fails_its_check(checks, changes, name, detail):
    result = checks(**changes)[name]
    assert (result.ok, result.detail[: len(detail)]) == (False, detail)


def test_images_that_reach_no_model_or_do_not_fit_the_plan_fail_their_check(checks, tmp_path):
    def check(*parts, max_prompt=1024, model="Qwen/Qwen2.5-VL-7B"):
        lines = (json.dumps({"part": part, "images": 2}) + "\n" for part in parts)
        (tmp_path / "images.jsonl").write_text("".join(lines))
        images = ImageTokens((24, 0), False, 1024, 26)
        config = {"data.max_prompt_length": max_prompt, "actor_rollout_ref.model.path": model}
        result = checks(images=images, config=config)["images"]
        return result.ok, result.detail

    ok, detail = check("actor", "rollout", "actor")
    assert ok
    assert detail.startswith("1 of 2 rows have images, with up to 24 tokens of data.max_prompt_l")
    assert detail.endswith("the actor got 4, the rollout got 2")
    assert check("rollout")[1] == "no image reached the model: verl trained on the text alone"
    assert check("actor", max_prompt=24)[0] is False
    assert check("actor", max_prompt=24, model="Qwen/Qwen3-VL-8B")[0] is True
