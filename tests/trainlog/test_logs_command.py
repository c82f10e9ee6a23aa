"""Output of `rewardkit logs`: summaries, tables, exports, and runs in progress."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys

import pytest

from rewardkit.cli import logs
from rewardkit.errors import DataError, SourceError, UsageError
from rewardkit.trainlog.read import read_run, with_config
from rewardkit.trainlog.summary import summarize
from tests.trainlog.runs import run_logs

LINE = (
    "step:{step} - critic/rewards/mean:{reward} - actor/entropy:0.5 - actor/grad_norm:{grad} - "
    "timing_s/gen:30.0 - timing_s/update_actor:10.0 - timing_s/step:50.0\n"
)


def log(n, grad=0.25):
    lines = (LINE.format(step=i, reward=i / n, grad=grad) for i in range(1, n + 1))
    scores = "val-core/my/set/acc/mean@4:0.5 - val-core/my/set/acc/mean@8:0.625"
    return f"{''.join(lines)}step:{n} - {scores}\n"


@pytest.fixture
def path(tmp_path):
    (tmp_path / "run.log").write_text(log(20))
    return tmp_path / "run.log"


@pytest.fixture
def broken(tmp_path):
    (tmp_path / "broken.log").write_text(log(20, "nan"))
    return tmp_path / "broken.log"


def test_the_summary_matches_the_log(path):
    summary = summarize(read_run(path))
    assert summary.seconds == 1000
    assert summary.phases == {"gen": 0.6, "update_actor": 0.2, "other": 0.2}
    reward = next(curve for curve in summary.curves if curve.id == "reward")
    assert (reward.ends["first"], reward.ends["last"]) == ((1, 0.05), (20, 1.0))
    assert reward.summary()["trend"] == pytest.approx(0.8)
    (validation,) = summary.validations
    assert (validation.id, validation.ends["last"]) == ("my/set", (20, 0.5))


@pytest.mark.parametrize(
    ("lang", "texts"),
    [
        ("en", ["error", "NaN or infinite 20 (steps 1-20)"]),
        ("zh", ["步数", "奖励", "数据来源", "出现 NaN 或无穷", "回到出现之前的检查点"]),
    ],
)
def test_findings_are_printed_with_numbers_and_set_the_exit_code(broken, lang, texts):
    result = run_logs(broken, "--fail-on", "error", "--lang", lang)
    assert result.exit_code == 1
    assert all(text in result.stdout for text in texts)
    assert run_logs(broken).exit_code == 0


def test_unreadable_lines_are_shown(path):
    path.write_text(log(20) + "step:21 - a/b:x\n")
    result = run_logs(path)
    assert "not read" in result.stdout
    assert "line 22" in result.stderr


def test_json_has_the_summary_the_findings_and_every_step(path):
    document = json.loads(run_logs(path, "--json").stdout)
    assert document["steps"] == {"n": 20, "first": 1, "last": 20}
    assert document["findings"] == []
    assert document["rows"][19]["val-core/my/set/acc/mean@8"] == 0.625
    assert document["rows"][0]["step"] == 1


def test_exports_have_a_row_per_step_and_distinguish_missing_from_nan(broken, tmp_path):
    broken.write_text(log(2, "nan"))
    (tmp_path / "a.csv").write_text("mine")
    arguments = broken, "--csv", tmp_path / "a.csv"
    assert "exists" in str(run_logs(*arguments).exception)
    assert run_logs(*arguments, "--overwrite").exit_code == 0
    with (tmp_path / "a.csv").open() as file:
        rows = list(csv.DictReader(file))
    names = "step", "actor/grad_norm", "val-core/my/set/acc/mean@8"
    assert [[row[name] for name in names] for row in rows] == [
        ["1", "nan", ""],
        ["2", "nan", "0.625"],
    ]


def test_a_configuration_file_provides_the_limit(tmp_path):
    path, config = tmp_path / "run.log", tmp_path / "config.yaml"
    cut = "response_length/clip_ratio:0.5 - response_length/max:512.5"
    path.write_text(f"(TaskRunnerV1 pid=1) step:1 - {cut}\n")
    config.write_text("data:\n  max_response_length: 512\n")
    assert run_logs(path, "--fail-on", "warning").exit_code == 0
    assert run_logs(path, "--fail-on", "warning", "--config", config).exit_code == 1
    assert run_logs(path, "--fail-on", "error", "--config", config).exit_code == 0
    config.write_text("- a\n")
    with pytest.raises(DataError, match=r"config\.yaml"):
        with_config(read_run(path), config)
    with pytest.raises(SourceError, match="no such file"):
        with_config(read_run(path), tmp_path / "none.yaml")


def test_the_choice_of_the_log_of_a_run_s_folder_is_reported(tmp_path, monkeypatch):
    (tmp_path / "verl.log").write_text(log(3))
    (tmp_path / "metrics.jsonl").write_text("{}\n")
    text = run_logs(tmp_path).output
    assert f"{tmp_path}: read from verl.log; metrics.jsonl not read." in text
    paths = []
    monkeypatch.setattr(logs, "_follow", lambda tail, *_: paths.append(tail.poll().path))
    assert run_logs(tmp_path, "--follow").exit_code == 0
    assert paths == [str(tmp_path / "verl.log")]


def test_following_a_run_excludes_options_that_write(path, tmp_path):
    result = run_logs(path, "--follow", "--csv", tmp_path / "a.csv")
    assert isinstance(result.exception, UsageError)


FOLLOW = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from tests.trainlog.runs import app
app()
"""


def test_following_waits_prints_a_line_per_step_and_ends_with_130_on_ctrl_c(tmp_path):
    path = tmp_path / "run.log"
    command = [sys.executable, "-c", FOLLOW, str(path), "--follow", "--interval", "0.05"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, **pipes)
    try:
        assert "waiting" in process.stderr.readline()
        path.write_text("step:1 - actor/entropy:0.5\nstep:2 - actor/entropy:0.5\n")
        lines = [process.stdout.readline() for _ in range(2)]
        path.write_text("step:1 - actor/entropy:nan\n")
        lines += [process.stdout.readline() for _ in range(3)]
        process.send_signal(signal.SIGINT)
        assert "waiting" not in process.communicate(timeout=30)[1]
        assert process.returncode == 130
    finally:
        process.kill()
    assert lines[:2] == ["step 1  entropy 0.5\n", "step 2  entropy 0.5\n"]
    assert lines[2:4] == ["the log was replaced by a new one\n", "step 1  entropy nan\n"]
    assert lines[4].startswith("error: NaN or infinite values")
