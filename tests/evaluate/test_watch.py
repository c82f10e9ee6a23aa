"""`eval watch` evaluates each checkpoint once, as soon as it is complete, on a server it starts."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rewardkit.cli.eval import app as eval_app
from rewardkit.errors import DataError, OutputError, RewardkitError, SourceError, UsageError
from rewardkit.evaluate.generate import GenerationConfig
from rewardkit.evaluate.progress import ProgressCallbacks
from rewardkit.evaluate.sampling import Sampling
from rewardkit.evaluate.suite import SuiteMember
from rewardkit.evaluate.watch import serving
from rewardkit.evaluate.watch.curve import CurvePoint, best_checkpoint, read_curves, write_curves
from rewardkit.evaluate.watch.serving import serve_model, server_command
from rewardkit.evaluate.watch.watch import (
    UNREACHABLE_URL,
    WatchConfig,
    complete_steps,
    watch_checkpoints,
)
from rewardkit.model_client.client import Server

#: A server that answers the first N questions right, where N is the content of the "weights". It
#: records its start and leaves a child process, as vLLM does with its workers.
SERVER = """
import json, re, subprocess, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

model, port = Path(sys.argv[1]), int(sys.argv[2])
right = int((model / "model.safetensors").read_text())
child = subprocess.Popen(["sleep", "300"])
with open(sys.argv[3], "a") as notes:
    notes.write(json.dumps([str(model), child.pid]) + "\\n")

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.say({"data": [{"id": str(model)}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        number = int(re.search("[0-9]+", body["messages"][-1]["content"])[0])
        text = f"#### {number if number < 10 + right else 0}"
        choice = {"index": 0, "message": {"content": text}, "finish_reason": "stop"}
        assert body["model"] == str(model)
        self.say({"choices": [choice], "usage": {"completion_tokens": 5}})

    def say(self, what):
        text = json.dumps(what).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass

ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


@pytest.fixture
def run(tmp_path, parquet, monkeypatch):
    """A run whose checkpoints include Hugging Face weights, as verl writes them with `hf_model`."""

    class Run:
        folder = tmp_path / "run"
        out = tmp_path / "out"
        notes = tmp_path / "starts.jsonl"
        script = tmp_path / "server.py"
        serve = f"{sys.executable} {tmp_path}/server.py {{model}} {{port}} {tmp_path}/starts.jsonl"

        def save(self, step, rights, latest=None):
            weights = self.folder / f"global_step_{step}/actor/huggingface"
            weights.mkdir(parents=True)
            (weights / "model.safetensors").write_text(str(rights))
            self.finish(step if latest is None else latest)

        def finish(self, step):
            (self.folder / "latest_checkpointed_iteration.txt").write_text(str(step))

        def starts(self):
            if not self.notes.exists():
                return []
            return [json.loads(line) for line in self.notes.read_text().splitlines()]

        def watch(self, **options):
            suite = [SuiteMember("test", questions, 1)]
            options = {"once": True, "poll_seconds": 0.05, "start_timeout_seconds": 30, **options}
            callbacks = ProgressCallbacks(options.pop("say", lambda _: None))
            config = WatchConfig(
                folder=self.folder,
                serve=self.serve,
                out=self.out,
                suite=suite,
                generation=generation,
                callbacks=callbacks,
                **options,
            )
            return watch_checkpoints(config)

    monkeypatch.setattr(serving, "POLL_SECONDS", 0.05)
    server, sampling = Server(UNREACHABLE_URL), Sampling(temperature=0.0)
    generation = GenerationConfig(server, "", sampling, tries=2)

    questions = parquet(8)
    Run.folder.mkdir()
    Run.script.write_text(SERVER)
    return Run()


def means(steps):
    return {step: reports["test"].metrics.total.mean()[0] for step, reports in steps}


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"


def test_each_checkpoint_is_evaluated_once_and_its_results_are_read_again(run):
    run.save(50, 2)
    run.save(100, 6)
    assert means(run.watch()) == {50: 0.25, 100: 0.75}
    assert len(run.starts()) == 2
    assert means(run.watch()) == {50: 0.25, 100: 0.75}
    assert len(run.starts()) == 2


def test_a_server_is_ended_with_all_processes_that_it_started(run):
    run.save(1, 1)
    list(run.watch())
    for _, child in run.starts():
        assert not is_running(child)


def test_a_checkpoint_is_evaluated_only_after_verl_has_recorded_it(run):
    run.save(50, 2)
    run.save(100, 6, latest=50)
    assert means(run.watch()) == {50: 0.25}
    run.finish(100)
    assert means(run.watch()) == {50: 0.25, 100: 0.75}


@pytest.mark.full
def test_checkpoints_that_appear_during_the_watch_are_evaluated(run):
    run.save(1, 0)
    messages = []
    steps = run.watch(once=False, last_step=3, say=messages.append)
    assert next(steps)[0] == 1
    timer = threading.Timer(0.3, run.save, (3, 4))
    timer.start()
    assert means(steps) == {3: 0.5}
    timer.join()
    assert sum("waiting" in message for message in messages) == 1


@pytest.mark.parametrize("text", ["", "1x", "-1", "99999999999999999999"])
def test_an_invalid_latest_step_means_that_no_checkpoint_is_complete(run, text):
    run.save(1, 0)
    run.finish(text)
    assert complete_steps(run.folder) == []


def test_folders_without_a_step_number_are_ignored(run):
    run.save(20, 0)
    run.save(3, 0, latest=20)
    for name in ("global_step_x", "global_step_", "best", "global_step_5.old"):
        (run.folder / name).mkdir()
    (run.folder / "global_step_7").touch()
    assert complete_steps(run.folder) == [3, 20]
    with pytest.raises(SourceError, match="no such folder"):
        complete_steps(run.folder / "none")


def test_missing_shards_are_reported_and_the_step_is_tried_again(run):
    shards = run.folder / "global_step_1/actor"
    shards.mkdir(parents=True)
    (shards / "model_world_size_2_rank_0.pt").touch()
    run.finish(1)
    messages = []
    assert means(run.watch(say=messages.append)) == {}
    assert "ranks 1 are missing" in messages[0]
    steps = run.watch(once=False, last_step=1, say=messages.append)
    timer = threading.Timer(0.3, run.save, (1, 8))
    timer.start()
    assert means(steps) == {1: 1.0}
    timer.join()
    assert sum("skipped" in message for message in messages) == 2  # once in each run


def test_a_checkpoint_that_verl_deletes_meanwhile_is_skipped(run):
    """verl's rotation removes `actor` and leaves the step's folder with its data.pt."""
    run.save(1, 1)
    run.save(2, 2)
    (run.folder / "global_step_1/data.pt").touch()
    run.finish(2)
    messages = []
    run.script.write_text(
        f"import shutil, sys\nif 'global_step_1' in sys.argv[1]:\n"
        f"    shutil.rmtree(r'{run.folder}/global_step_1/actor')\n    sys.exit(3)\n{SERVER}"
    )
    assert means(run.watch(say=messages.append)) == {2: 0.25}
    assert any("global_step_1: skipped" in message for message in messages)


@pytest.mark.full
def test_replaced_weights_of_a_step_are_reported_and_its_results_stay(run):
    run.save(1, 1)
    run.save(2, 2)
    messages = []
    list(run.watch())
    (run.folder / "global_step_1/actor/huggingface/model.safetensors").write_text("88")
    run.finish(2)
    steps = run.watch(once=False, last_step=3, say=messages.append)
    next(steps), next(steps)
    timer = threading.Timer(0.5, run.save, (3, 4))
    timer.start()
    assert means(steps) == {3: 0.5}
    timer.join()
    assert sum("global_step_1: its weights were replaced" in message for message in messages) == 1


def test_a_step_that_is_being_written_again_is_skipped(run):
    run.save(1, 1)
    old = time.time() - 1000
    os.utime(run.folder / "latest_checkpointed_iteration.txt", (old, old))
    messages = []
    assert means(run.watch(say=messages.append)) == {}
    assert "it is being written" in messages[0]


def test_a_step_whose_server_fails_is_tried_again_after_other_steps(run):
    for step in (1, 2, 3):
        run.save(step, step)
    marker = run.out.parent / "failed"
    run.script.write_text(
        f"import os, sys\n"
        f"if 'global_step_2' in sys.argv[1] and not os.path.exists(r'{marker}'):\n"
        f"    open(r'{marker}', 'w').close()\n    sys.exit('out of memory')\n{SERVER}"
    )
    messages = []
    assert list(means(run.watch(once=False, last_step=3, say=messages.append))) == [1, 3]
    assert any("out of memory It will be tried again." in message for message in messages)
    assert list(means(run.watch())) == [1, 2, 3]


def test_a_server_that_exits_during_requests_is_noticed_at_once(run):
    run.save(1, 8)
    run.script.write_text(
        SERVER.replace("body = json.loads", "import os; os._exit(9); body = json.loads")
    )
    with pytest.raises(SourceError, match="the server ended with exit code 9"):
        list(run.watch())


def test_two_watches_cannot_write_to_the_same_folder(run):
    run.save(1, 1)
    steps = run.watch(once=False)
    next(steps)
    with pytest.raises(OutputError, match="another run is writing it"):
        list(run.watch())
    steps.close()
    assert list(means(run.watch())) == [1]


@pytest.mark.parametrize("out", ["file/below", "m.jsonl"])
def test_an_out_that_cannot_be_a_folder_is_an_error_before_a_server_starts(run, tmp_path, out):
    run.save(1, 1)
    (tmp_path / "file").touch()
    run.out = tmp_path / out
    with pytest.raises((OutputError, UsageError), match="cannot be written|name a folder"):
        list(run.watch())
    assert run.starts() == []


def test_the_error_for_a_failed_server_has_the_last_line_of_its_log(run):
    run.save(1, 1)
    run.script.write_text("print('CUDA out of memory')\nraise SystemExit(7)")
    with pytest.raises(SourceError, match=r"exit code 7.*ends: CUDA out of memory"):
        list(run.watch())


def test_a_server_that_never_answers_is_ended_at_the_timeout(run, tmp_path):
    run.script.write_text("import time\ntime.sleep(300)")
    with (
        pytest.raises(SourceError, match="did not answer within 1 s"),
        serve_model(run.serve, tmp_path, tmp_path / "log", 1),
    ):
        pass


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("vllm serve {model}", r"\{port\} is missing"),
        ("vllm serve --port {port}", r"\{model\} is missing"),
        ("vllm 'serve {model} {port}", "not a shell command"),
        ("", "is missing"),
        ("no-such-server {model} {port}", "not installed on this machine"),
    ],
)
def test_a_command_that_cannot_serve_is_an_error(command, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        server_command(command, tmp_path, 1)


def test_a_command_runs_without_a_shell(tmp_path):
    words = server_command("sh serve {model} --x '{\"a\": 1}' ; rm --port={port}", tmp_path, 80)
    assert words == ["sh", "serve", str(tmp_path), "--x", '{"a": 1}', ";", "rm", "--port=80"]


@pytest.mark.full
def test_the_command_prints_a_line_per_step_and_writes_the_curve(cli, run, tmp_path):
    run.save(50, 2)
    run.save(100, 6)
    arguments = ("watch", "run", "test.parquet", "--serve", run.serve, "--out", "out", "--once")
    done = cli("eval", *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"step (\d+): openai/gsm8k: ([\d.]+)%", done.stdout) == [
        ("50", "25.0"),
        ("100", "75.0"),
    ]
    assert re.search(r"^Best: step 100, 75\.0% \([\d.]+ to [\d.]+\); ", done.stdout, re.MULTILINE)
    curve = json.loads((tmp_path / "out/curve.json").read_text())["openai/gsm8k"]
    assert [(point["step"], point["value"]) for point in curve] == [(50, 0.25), (100, 0.75)]
    assert (tmp_path / "out/curve.html").read_text().count('class="dot"') == 2
    table = cli("leaderboard", "out/global_step_50", "out/global_step_100", cwd=tmp_path)
    assert "75.0* [" in table.stdout


@pytest.mark.full
@pytest.mark.parametrize(
    ("signals", "code"),
    [
        ([signal.SIGINT], 130),
        ([signal.SIGTERM], 143),
        ([signal.SIGHUP], 129),
        ([signal.SIGKILL], -9),
        ([signal.SIGINT, signal.SIGINT], 130),
    ],
    ids=str,
)
def test_the_server_ends_however_the_watch_ends(run, tmp_path, signals, code):
    run.save(1, 1)
    slow = SERVER.replace("assert body", "import time; time.sleep(300); assert body")
    deaf = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    run.script.write_text(deaf + slow if len(signals) > 1 else slow)
    command = [
        *(sys.executable, "-m", "rewardkit", "eval", "watch", "run", "test.parquet"),
        *("--serve", run.serve, "--out", "out"),
    ]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        until = time.monotonic() + 60
        while not run.starts() and time.monotonic() < until:
            time.sleep(0.1)
        for number in signals:
            time.sleep(1)
            process.send_signal(number)
        _, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == code
    assert ("run the same command again to resume" in stderr) is (code != -9)
    until = time.monotonic() + 60
    while is_running(run.starts()[0][1]) and time.monotonic() < until:
        time.sleep(0.1)
    assert not is_running(run.starts()[0][1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--serve", "x {model}"], "{port} is missing"),
        (["--serve", "sh {model} {port}", "--suite", "gsm8k"], "either a parquet"),
        (["--serve", "sh {model} {port}", "--hub", "modelscope"], "--hub needs --suite"),
    ],
)
def test_wrong_options_are_a_one_line_error(run, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    line = ["watch", "run", "test.parquet", "--out", "o", *arguments]
    error = CliRunner().invoke(eval_app, line).exception
    assert isinstance(error, RewardkitError), error
    assert message in str(error)
    assert "\n" not in str(error)


def test_a_missing_folder_is_a_one_line_error(cli, run, tmp_path):
    line = ["eval", "watch", "none", "test.parquet", "--out", "o", "--serve", "sh {model} {port}"]
    done = cli(*line, cwd=tmp_path)
    assert done.returncode == 3
    assert "no such folder" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("option", [["--base-url", "http://h/v1"], ["--responses", "f"]])
def test_options_of_other_commands_are_unknown(option):
    done = CliRunner().invoke(eval_app, ["watch", "run", "--serve", "s", "--out", "o", *option])
    assert done.exit_code == 2


def point(step, value, truncated):
    return CurvePoint(step, value, (0.1, 0.6), questions=3, n=1, truncated=truncated, no_answer=0.1)


def test_names_cannot_break_the_page(tmp_path):
    write_curves({"<script>x": {1: point(1, 0.5, truncated=0.5)}}, "<b>", tmp_path)
    page = (tmp_path / "curve.html").read_text()
    assert "<script" not in page
    assert "<b>" not in page


def test_curves_are_read_back_unchanged_and_written_in_the_order_of_steps(tmp_path):
    curves = {
        "set": {
            2: point(2, 0.5, truncated=0.5),
            1: point(1, 0.25, truncated=None),
        }
    }
    assert read_curves(tmp_path) == {}
    write_curves(curves, "t", tmp_path)
    assert read_curves(tmp_path) == curves
    steps = [point["step"] for point in json.loads((tmp_path / "curve.json").read_text())["set"]]
    assert steps == [1, 2]
    (tmp_path / "curve.json").write_text('{"set": [{"step": 1}]}')
    with pytest.raises(DataError, match="Move it away"):
        read_curves(tmp_path)


def checkpoint(step, value, half=0.03):
    return replace(point(step, value, truncated=None), interval=(value - half, value + half))


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({300: 0.612}, "Step 300, the only checkpoint: 61.2% (58.2 to 64.2)"),
        (
            {250: 0.60, 300: 0.612, 350: 0.59, 50: 0.3},
            "Best: step 300, 61.2% (58.2 to 64.2); steps 250 and 350 are within its interval.",
        ),
        ({250: 0.60, 300: 0.612}, "Best: step 300, 61.2% (58.2 to 64.2); step 250 is within its"),
        ({250: 0.2, 300: 0.612}, "no other step is within its interval."),
        (
            dict.fromkeys(range(1, 8), 0.6),
            "Best: step 1, 60.0% (57.0 to 63.0); steps 2, 3, 4, 5 and 2",
        ),
    ],
)
def test_the_best_checkpoint_is_named_with_those_within_its_interval(tmp_path, values, sentence):
    points = [checkpoint(step, value) for step, value in sorted(values.items())]
    assert sentence in best_checkpoint({"set": points}).sentence()
    write_curves({"set": {each.step: each for each in points}}, "t", tmp_path)
    assert sentence in (tmp_path / "curve.html").read_text()


def test_of_several_data_sources_the_average_of_their_common_steps_counts():
    curves = {
        "a": [checkpoint(1, 0.9), checkpoint(2, 0.5), checkpoint(3, 1.0)],
        "b": [checkpoint(1, 0.1), checkpoint(2, 0.7)],
    }
    best = best_checkpoint(curves)
    assert (best.step, best.value, best.near, best.checkpoints) == (2, pytest.approx(0.6), (), 2)
    assert best.interval == pytest.approx((0.6 - 0.03 / 2**0.5, 0.6 + 0.03 / 2**0.5))
    assert "on average of 2 data sources" in best.sentence()
    assert best_checkpoint({**curves, "c": [checkpoint(9, 0.5)]}) is None


@pytest.mark.full
def test_points_of_deleted_checkpoints_stay_in_the_curve(cli, run, tmp_path):
    arguments = ("watch", "run", "test.parquet", "--serve", run.serve, "--out", "out", "--once")
    for step in (1, 2):
        run.save(step, step)
        done = cli("eval", *arguments, "--json", cwd=tmp_path)
        result, *best = map(json.loads, done.stdout.splitlines())
        assert result["step"] == step
        assert [each["best"]["step"] for each in best] == [2] * (step == 2)
        shutil.rmtree(run.folder / f"global_step_{step}")
    assert list(read_curves(run.out)["openai/gsm8k"]) == [1, 2]


def test_the_page_names_the_best_checkpoint_and_marks_it(tmp_path):
    values = {"a": {1: 0.2, 2: 0.5, 3: 0.4}, "b": {1: 0.3, 2: 0.2, 3: 0.4}}
    curves = {
        source: {step: point(step, value, truncated=None) for step, value in steps.items()}
        for source, steps in values.items()
    }
    best = best_checkpoint({source: [*steps.values()] for source, steps in curves.items()})
    assert (best.step, best.value) == (3, pytest.approx(0.4))
    write_curves(curves, "run", tmp_path)
    page = (tmp_path / "curve.html").read_text()
    assert "Best: step 3, 40.0% (" in page
    assert ") on average of 2 data sources; steps 1 and 2 are within its interval." in page
    assert "best: step 2, 50.0%" in page
    assert page.count('<circle class="best"') == 2
    assert best_checkpoint({}) is None


def test_a_checkpoint_without_all_data_sources_is_not_the_best():
    curves = {"a": [point(1, 0.9, truncated=None), point(2, 0.1, truncated=None)]}
    curves["b"] = curves["a"][1:]
    best = best_checkpoint(curves)
    assert (best.step, best.value, best.checkpoints) == (2, pytest.approx(0.1), 1)
