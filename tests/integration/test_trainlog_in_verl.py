"""Logs of verl's own loggers are read back."""

# ruff: noqa: T203 - verl prints its configuration and metrics with pprint

from __future__ import annotations

import contextlib
import io
import pprint
from math import isnan

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rewardkit.trainlog.console_reader import ConsoleReader
from rewardkit.trainlog.read import read_run

words = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")),
    min_size=1,
    max_size=12,
).filter(lambda word: ":" not in word and word == word.strip() and "step" not in word)
keys = st.one_of(
    st.builds("val-core/{}/acc/mean@{}".format, words, st.integers(1, 64)),
    st.builds("{}/{}".format, st.sampled_from(["actor", "critic", "timing_s"]), words),
    st.sampled_from(["actor/lr(1e-4)", "val-aux/a - b/reward/best@2/mean", "critic/score/mean"]),
)
floats = st.floats(allow_nan=True, allow_infinity=True)
values = st.one_of(
    floats,
    st.integers(-(2**53), 2**53),
    st.booleans(),
    floats.map(np.float64),
    st.floats(width=32).map(np.float32),
    st.integers(-(2**31), 2**31 - 1).map(np.int32),
)
logs = st.lists(st.dictionaries(keys, values, min_size=1, max_size=8), min_size=1, max_size=4)
DRESSINGS = {
    "bare": "",
    "ray": "\x1b[36m(TaskRunnerV1 pid=77, ip=10.0.0.9)\x1b[0m ",
    "bar": "Training Progress:   3%|▎         | 1/40 [00:49<31:53, 49.09s/it]",
    "both": "(TaskRunner pid=7) \rTraining Progress:  50%|█████ | 20/40 [00:49<00:53, 49.09s/it]",
    "time": "2025-08-04T12:26:42.932Z ",
}
again = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def assert_metrics(run, step, logged):
    i = run.steps.index(step)
    metrics = {key: column[i] for key, column in run.table.items() if column[i] is not None}
    assert metrics.keys() == logged.keys()
    for key, value in logged.items():
        # A float32 is written with just the digits that distinguish it from others.
        wanted = float(str(value)) if isinstance(value, np.float32) else value
        assert metrics[key] == wanted or (isnan(metrics[key]) and isnan(wanted)), key


@again
@given(logs, st.sampled_from(sorted(DRESSINGS)))
def test_any_metrics_of_verls_console_logger_are_read_back(logged, dressing):
    from verl.utils.logger import LocalLogger

    text = io.StringIO()
    for step, metrics in enumerate(logged):
        text.write(DRESSINGS[dressing])
        with contextlib.redirect_stdout(text):
            LocalLogger().log(metrics, step)
    reader = ConsoleReader()
    reader.feed(text.getvalue().encode())
    run = reader.finish("run", "run.log")
    assert run.unread == 0
    for step, metrics in enumerate(logged):
        assert_metrics(run, step, metrics)


@again
@given(logs)
def test_any_metrics_of_verls_file_logger_are_read_back(tmp_path, monkeypatch, logged):
    tracking = pytest.importorskip("verl.utils.tracking")
    if not hasattr(tracking, "FileLogger"):
        pytest.skip("this verl has no file logger")
    path = tmp_path / "run.jsonl"
    monkeypatch.setenv("VERL_FILE_LOGGER_PATH", str(path))
    logger = tracking.FileLogger("project", "experiment")
    for step, metrics in enumerate(logged):
        logger.log(metrics, step)
    logger.finish()
    run = read_run(path)
    for step, metrics in enumerate(logged):  # the logger writes values that are not finite as null
        finite = {k: v if np.isfinite(v) else float("nan") for k, v in metrics.items()}
        assert_metrics(run, step, finite)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(logs)
def test_any_metrics_of_verls_tensorboard_logger_are_read_back(tmp_path_factory, logged):
    pytest.importorskip("tensorboard")
    from verl.utils.tracking import _TensorboardAdapter

    folder = tmp_path_factory.mktemp("events")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TENSORBOARD_DIR", str(folder))
        logger = _TensorboardAdapter("project", "experiment")
    for step, metrics in enumerate(logged):
        logger.log(metrics, step)
    logger.finish()
    run = read_run(folder)
    assert run.source == "tensorboard"
    assert len(run.clock) == len(run.steps)
    for step, metrics in enumerate(logged):
        with np.errstate(over="ignore"):
            assert_metrics(
                run, step, {key: float(np.float32(value)) for key, value in metrics.items()}
            )


def test_the_printed_configuration_of_verl_is_read(compose, capsys):
    from omegaconf import OmegaConf

    config = compose("algorithm.adv_estimator=grpo", "actor_rollout_ref.rollout.n=5")
    pprint.pprint(OmegaConf.to_container(config, resolve=True))
    lines = capsys.readouterr().out.splitlines()
    printed = "".join(f"(TaskRunner pid=1) {line}\n" for line in lines)
    reader = ConsoleReader()
    reader.feed(f"{printed}(TaskRunner pid=1) step:1 - actor/entropy:0.5\n".encode())
    run = reader.finish("run", "run.log")
    assert run.unread == 0
    assert run.config["actor_rollout_ref.rollout.n"] == 5
    assert run.config["data.max_response_length"] == config.data.max_response_length
    assert run.config["algorithm.adv_estimator"] == "grpo"
