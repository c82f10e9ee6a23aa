"""The command line as a user meets it: output, one-line errors, exit codes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rewardkit


def assert_success(done):
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def assert_failure(done, code, *expected):
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    for words in expected:
        assert words in done.stderr
    return done.stderr


@pytest.mark.parametrize(
    "line",
    [
        "check pipe.parquet", "mix pipe.parquet --out out.parquet", "logs pipe.log",
        "prep pipe.jsonl --out out.parquet", "prep gsm8k --source pipe.jsonl --out out.parquet",
    ],
)  # fmt: skip
def test_a_pipe_is_refused_and_not_waited_for(tmp_path, line):
    pipe = next(word for word in line.split() if word.startswith("pipe"))
    os.mkfifo(tmp_path / pipe)
    command = [sys.executable, "-m", "rewardkit", *line.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert_failure(done, 3, f"error: {pipe} is not a regular file. Save its content to one first.")


def test_path_prints_the_file_or_the_package_or_the_overrides(run):
    file = assert_success(run("path", "gsm8k")).strip()
    assert file.endswith("rewardkit/scorers/gsm8k.py")
    assert Path(file).is_file()
    assert assert_success(run("path", "auto", "--pkg")).strip() == "pkg://rewardkit.scorers.auto"
    options = ("--verl-version", "0.9.1", "--set", "method=robust")
    assert assert_success(run("path", "gsm8k", "--verl", *options)).splitlines() == [
        f"reward.custom_reward_function.path={file}",
        "reward.custom_reward_function.name=compute_score",
        "+reward.custom_reward_function.reward_kwargs.method=robust",
    ]
    old = assert_success(run("path", "gsm8k", "--verl", "--verl-version", "0.6"))
    assert old.startswith("custom_reward_function.path=")


def test_show_prints_the_row_whose_number_check_names(run):
    """Of a file and of a dataset; the number counts from 0, as in `check`."""
    assert_success(run("prep", "gsm8k", "--sample", "--out", "t.parquet"))
    rows = json.loads(assert_success(run("show", "t.parquet", "-n", "64", "--json")))
    for name in (("t.parquet",), ("gsm8k", "--sample", "--split", "train")):
        [row] = json.loads(assert_success(run("show", *name, "--row", "40", "--json")))
        assert row["prompt"] == rows[40]["prompt"], name
    text = assert_success(run("show", "t.parquet", "--row", "62", "-n", "5"))
    assert [f" row {number} " in text for number in (61, 62, 63, 64)] == [False, True, True, False]
    assert_failure(run("show", "t.parquet", "--row", "64"), 4, "t.parquet: there is no row 64.")


def test_doctor_reports_the_key_that_the_installed_verl_reads(run):
    facts = json.loads(assert_success(run("doctor", "--offline", "--json")))
    assert facts["versions"]["rewardkit"] == rewardkit.__version__
    assert "custom_reward_function.path" in facts["verl"]["custom reward"]
    assert facts["devices"].keys() == {"GPU", "NPU", "CPU"}
    online = json.loads(assert_success(run("doctor", "--json", HF_ENDPOINT="http://127.0.0.1:9")))
    assert "not reachable" in online["hubs"]["http://127.0.0.1:9"]


@pytest.mark.full
def test_ctrl_c_exits_130_and_leaves_nothing(tmp_path):
    line = json.dumps({"question": "q", "answer": "#### 1"}) + "\n"
    (tmp_path / "raw.jsonl").write_text(line * 500_000)
    command = [sys.executable, "-m", "rewardkit", "prep", "gsm8k"]
    command += ["--source", "raw.jsonl", "--out", "o.parquet"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: len(list(tmp_path.iterdir())) > 1)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (130, "")
    assert [p.name for p in tmp_path.iterdir()] == ["raw.jsonl"]


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_explain_shows_the_answer_and_the_comparison_that_decided(run, tmp_path):
    (tmp_path / "r.txt").write_text(r"It is \boxed{\frac12}.")
    text = assert_success(run("explain", "--gold", "0.5", "--response", "r.txt"))
    assert "value: equal" in text
    text = assert_success(run("explain", "--gold", "0.5", "--response", "r.txt", "--json"))
    facts = json.loads(text)
    assert (facts["correct"], facts["where"], facts["pred"]) == (True, "box", r"\frac12")
    for text in ("It is 1.", "It is 1. " * 40):
        message = assert_failure(run("explain", "--gold", "1", "--response", text), 3, text)
        assert "no such file. To give the text itself, pipe it: echo TEXT |" in message


def test_explain_does_not_judge_a_text_that_it_cannot_read(run, tmp_path):
    (tmp_path / "r.txt").write_bytes("答案是 5".encode("gbk"))
    done = run("explain", "--gold", "5", "--response", "r.txt")
    assert_failure(done, 4, "the text is GBK, not UTF-8. Run `iconv -f GBK -t UTF-8 r.txt >")


def test_a_bug_is_one_line_unless_the_debug_variable_is_set(tmp_path):
    """`app()` would put typer's own hook in the place of ours."""
    code = (
        "import rewardkit.registry as registry\n"
        "def broken(*_): raise ZeroDivisionError('boom')\n"
        "registry.known = broken\n"
        "import sys; sys.argv = ['rewardkit', 'list', 'gsm8k']\n"
        "from rewardkit.cli.main import run; run()\n"
    )
    for debug, lines in (("0", 1), ("1", 5)):
        env = os.environ | {"REWARDKIT_DEBUG": debug}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
        assert done.returncode == 70
        assert "boom" in done.stderr
        assert (done.stderr.count("\n") > 1) == (lines > 1)


def test_compose_prints_the_overrides_for_gdpo(run, tmp_path):
    """The sizes of the weights are GDPO's weights, and a part without weight is not one of its keys."""
    (tmp_path / "reward.yaml").write_text(
        "scorer: gsm8k\nparts: {correct: 1, format: {weight: 0.1}, repetition: -0.5, base: 0}\n"
    )
    arguments = ("compose", "reward.yaml", "--out", "reward.py", "--gdpo", "--verl-version")
    assert_failure(run(*arguments, "0.7.0"), 2, "verl 0.7.0: plans start at verl 0.7.1")
    assert not (tmp_path / "reward.py").exists()
    first, *overrides = assert_success(run(*arguments, "0.9")).splitlines()
    assert first == f"reward.py: reward.custom_reward_function.path={tmp_path / 'reward.py'}"
    assert overrides == [
        "algorithm.adv_estimator=gdpo",
        "reward.reward_manager.name=gdpo",
        "+algorithm.gdpo_reward_keys=[correct,format,repetition]",
        "+algorithm.gdpo_reward_weights=[1.0,0.1,0.5]",
        "trainer.use_v1=False",
    ]
    (tmp_path / "nothing.yaml").write_text("scorer: gsm8k\nparts: {correct: 0}\n")
    nothing = ("compose", "nothing.yaml", "--out", "nothing.py", "--gdpo")
    assert_failure(run(*nothing), 2, "every part of the reward has the weight 0")


@pytest.mark.parametrize(
    "line", ["list", "doctor --offline", "path gsm8k", "recipes list", "--version", "prep --help"]
)
def test_a_full_disk_under_stdout_is_one_line_and_exits_5(run, line):
    with Path("/dev/full").open("w") as full:
        message = assert_failure(run(*line.split(), stdout=full), 5, "No space left on device")
    assert message.startswith("error: standard output cannot be written")
    assert message.count("\n") == 1


def test_a_closed_pipe_ends_a_command_in_silence_and_a_closed_stdout_is_one_line(run):
    """Also with stderr closed, where no message can be printed."""
    reader, writer = os.pipe()
    os.close(reader)
    done = run("list", "--json", stdout=writer)
    assert (done.returncode, done.stderr) == (141, "")
    os.close(writer)
    command = f"{sys.executable} -m rewardkit list --json >&-"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (5, 1)
    assert "standard output is closed" in done.stderr
    done = subprocess.run(f"{command} 2>&-", shell=True, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (5, "")


def test_an_output_in_a_folder_of_inputs_is_refused(run, tmp_path):
    (tmp_path / "ro").mkdir()
    row = {"response": "#### 18", "ground_truth": "18"}
    (tmp_path / "ro/1.jsonl").write_text(json.dumps(row) + "\n")
    done = run("score", "ro", "--scorer", "gsm8k", "--out", "ro/scored.jsonl")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "the next run would count its rows as responses" in done.stderr
    assert sorted(path.name for path in (tmp_path / "ro").iterdir()) == ["1.jsonl"]
