"""`--watch`: each checkpoint once, as soon as it is whole, on a server that we start."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rewardkit.cli.eval import app as eval_app
from rewardkit.errors import DataError, OutputError, RewardkitError, SourceError, UsageError
from rewardkit.evaluate.client import Server
from rewardkit.evaluate.generate import GenerationConfig
from rewardkit.evaluate.progress import ProgressCallbacks
from rewardkit.evaluate.sampling import Sampling
from rewardkit.evaluate.suite import SuiteMember
from rewardkit.evaluate.watch.curve import CurvePoint, read_curves, write_curves
from rewardkit.evaluate.watch.serving import serve_model, server_command
from rewardkit.evaluate.watch.watch import (
    UNREACHABLE_URL,
    WatchConfig,
    complete_steps,
    watch_checkpoints,
)

#: A server that answers the first N questions right, N being what the "weights" say; it notes its
#: start, and leaves a child behind, as vLLM does with its workers.
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
def run(tmp_path, parquet):
    """A run with checkpoints, as verl writes them with `hf_model` among what is saved."""

    class Run:
        folder = tmp_path / "run"
        out = tmp_path / "out"
        notes = tmp_path / "starts.jsonl"
        script = tmp_path / "server.py"
        serve = f"{sys.executable} {tmp_path}/server.py {{model}} {{port}} {tmp_path}/starts.jsonl"

        def save(self, step, right, latest=None):
            weights = self.folder / f"global_step_{step}/actor/huggingface"
            weights.mkdir(parents=True)
            (weights / "model.safetensors").write_text(str(right))
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

    server, sampling = Server(UNREACHABLE_URL), Sampling(temperature=0.0)
    generation = GenerationConfig(server, "", sampling, tries=2)

    questions = parquet(8)
    Run.folder.mkdir()
    Run.script.write_text(SERVER)
    return Run()


def means(found):
    return {step: reports["test"].metrics.total.mean()[0] for step, reports in found}


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"


def test_each_checkpoint_is_evaluated_once_and_read_again_afterwards(run):
    run.save(50, 2)
    run.save(100, 6)
    assert means(run.watch()) == {50: 0.25, 100: 0.75}
    assert len(run.starts()) == 2
    assert means(run.watch()) == {50: 0.25, 100: 0.75}
    assert len(run.starts()) == 2


def test_a_server_is_ended_with_all_that_it_started(run):
    run.save(1, 1)
    list(run.watch())
    for _, child in run.starts():
        assert not alive(child)


def test_a_checkpoint_is_not_touched_before_verl_says_that_it_is_saved(run):
    run.save(50, 2)
    run.save(100, 6, latest=50)
    assert means(run.watch()) == {50: 0.25}
    run.finish(100)
    assert means(run.watch()) == {50: 0.25, 100: 0.75}


def test_checkpoints_that_come_while_it_waits_are_evaluated(run):
    run.save(1, 0)
    said = []
    found = run.watch(once=False, last_step=3, say=said.append)
    assert next(found)[0] == 1
    timer = threading.Timer(0.3, run.save, (3, 4))
    timer.start()
    assert means(found) == {3: 0.5}
    timer.join()
    assert sum("waiting" in sentence for sentence in said) == 1


@pytest.mark.parametrize("text", ["", "1x", "-1", "99999999999999999999"])
def test_a_number_that_is_being_written_is_no_number(run, text):
    run.save(1, 0)
    run.finish(text)
    assert complete_steps(run.folder) == []


def test_folders_that_are_no_steps_are_left_alone(run):
    run.save(20, 0)
    run.save(3, 0, latest=20)
    for name in ("global_step_x", "global_step_", "best", "global_step_5.old"):
        (run.folder / name).mkdir()
    (run.folder / "global_step_7").touch()
    assert complete_steps(run.folder) == [3, 20]
    with pytest.raises(DataError, match="no such folder"):
        complete_steps(run.folder / "none")


def test_shards_that_are_not_all_there_are_said_and_looked_at_again(run):
    shards = run.folder / "global_step_1/actor"
    shards.mkdir(parents=True)
    (shards / "model_world_size_2_rank_0.pt").touch()
    run.finish(1)
    said = []
    assert means(run.watch(say=said.append)) == {}
    assert "ranks 1 are missing" in said[0]
    found = run.watch(once=False, last_step=1, say=said.append)
    timer = threading.Timer(0.3, run.save, (1, 8))
    timer.start()
    assert means(found) == {1: 1.0}
    timer.join()
    assert sum("skipped" in sentence for sentence in said) == 2  # once in each run


def test_a_checkpoint_that_verl_deletes_meanwhile_is_left_out(run):
    """verl's rotation removes `actor` and leaves the folder of the step with its data.pt."""
    run.save(1, 1)
    run.save(2, 2)
    (run.folder / "global_step_1/data.pt").touch()
    run.finish(2)
    said = []
    run.script.write_text(
        f"import shutil, sys\nif 'global_step_1' in sys.argv[1]:\n"
        f"    shutil.rmtree(r'{run.folder}/global_step_1/actor')\n    sys.exit(3)\n{SERVER}"
    )
    assert means(run.watch(say=said.append)) == {2: 0.25}
    assert any("global_step_1: skipped" in sentence for sentence in said)


def test_new_weights_under_an_old_number_are_said_and_their_results_stay(run):
    run.save(1, 1)
    run.save(2, 2)
    said = []
    list(run.watch())
    (run.folder / "global_step_1/actor/huggingface/model.safetensors").write_text("88")
    run.finish(2)
    found = run.watch(once=False, last_step=3, say=said.append)
    next(found), next(found)
    timer = threading.Timer(0.5, run.save, (3, 4))
    timer.start()
    assert means(found) == {3: 0.5}
    timer.join()
    assert sum("global_step_1: its weights were replaced" in sentence for sentence in said) == 1


def test_a_step_that_is_being_written_again_is_not_touched(run):
    run.save(1, 1)
    old = time.time() - 1000
    os.utime(run.folder / "latest_checkpointed_iteration.txt", (old, old))
    said = []
    assert means(run.watch(say=said.append)) == {}
    assert "it is being written" in said[0]


def test_a_server_that_fails_later_is_tried_again_and_the_others_go_on(run):
    for step in (1, 2, 3):
        run.save(step, step)
    marker = run.out.parent / "failed"
    run.script.write_text(
        f"import os, sys\n"
        f"if 'global_step_2' in sys.argv[1] and not os.path.exists(r'{marker}'):\n"
        f"    open(r'{marker}', 'w').close()\n    sys.exit('out of memory')\n{SERVER}"
    )
    said = []
    assert list(means(run.watch(once=False, last_step=3, say=said.append))) == [1, 3]
    assert any("out of memory It will be tried again." in sentence for sentence in said)
    assert list(means(run.watch())) == [1, 2, 3]


def test_a_server_that_dies_among_the_requests_is_noticed_at_once(run):
    run.save(1, 8)
    run.script.write_text(
        SERVER.replace("body = json.loads", "import os; os._exit(9); body = json.loads")
    )
    with pytest.raises(SourceError, match="the server ended with exit code 9"):
        list(run.watch())


def test_two_watches_do_not_write_to_one_folder(run):
    run.save(1, 1)
    found = run.watch(once=False)
    next(found)
    with pytest.raises(OutputError, match="another watch is writing there"):
        list(run.watch())
    found.close()
    assert list(means(run.watch())) == [1]


@pytest.mark.parametrize("out", ["file/below", "m.jsonl"])
def test_an_out_that_can_be_no_folder_is_refused_before_a_server_starts(run, tmp_path, out):
    run.save(1, 1)
    (tmp_path / "file").touch()
    run.out = tmp_path / out
    with pytest.raises((OutputError, UsageError), match="cannot be created|name a folder"):
        list(run.watch())
    assert run.starts() == []


def test_a_server_that_fails_ends_the_watch_with_its_last_line(run):
    run.save(1, 1)
    run.script.write_text("print('CUDA out of memory')\nraise SystemExit(7)")
    with pytest.raises(SourceError, match=r"exit code 7.*ends: CUDA out of memory"):
        list(run.watch())


def test_a_server_that_never_answers_is_ended_in_time(run, tmp_path):
    run.script.write_text("import time\ntime.sleep(300)")
    with (
        pytest.raises(SourceError, match="did not answer within 1 s"),
        serve_model(run.serve, tmp_path, tmp_path / "log", 1),
    ):
        pass


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("vllm serve {model}", r"\{port\} is missing"),
        ("vllm serve --port {port}", r"\{model\} is missing"),
        ("vllm 'serve {model} {port}", "not a shell command"),
        ("", "is missing"),
        ("no-such-server {model} {port}", "not installed here"),
    ],
)
def test_a_command_that_cannot_serve_is_refused(command, said, tmp_path):
    with pytest.raises(UsageError, match=said):
        server_command(command, tmp_path, 1)


def test_a_command_is_words_and_no_shell(tmp_path):
    words = server_command("sh serve {model} --x '{\"a\": 1}' ; rm --port={port}", tmp_path, 80)
    assert words == ["sh", "serve", str(tmp_path), "--x", '{"a": 1}', ";", "rm", "--port=80"]


def test_the_command_prints_a_line_for_each_step_and_draws_the_curve(cli, run, tmp_path):
    run.save(50, 2)
    run.save(100, 6)
    watched = ("watch", "run", "test.parquet", "--serve", run.serve, "--out", "out", "--once")
    done = cli("eval", *watched, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"step (\d+): openai/gsm8k: ([\d.]+)%", done.stdout) == [
        ("50", "25.0"),
        ("100", "75.0"),
    ]
    curve = json.loads((tmp_path / "out/curve.json").read_text())["openai/gsm8k"]
    assert [(point["step"], point["value"]) for point in curve] == [(50, 0.25), (100, 0.75)]
    assert (tmp_path / "out/curve.html").read_text().count("<circle") == 2
    shown = cli("leaderboard", "out/global_step_50", "out/global_step_100", cwd=tmp_path)
    assert "75.0* [" in shown.stdout


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
def test_however_it_ends_the_server_ends_with_it(run, tmp_path, signals, code):
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
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == code
    assert ("run the same command again to resume" in said) is (code != -9)
    until = time.monotonic() + 60
    while alive(run.starts()[0][1]) and time.monotonic() < until:
        time.sleep(0.1)
    assert not alive(run.starts()[0][1])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--serve", "x {model}"], "{port} is missing"),
        (["--serve", "sh {model} {port}", "--suite", "gsm8k"], "either a parquet"),
        (["--serve", "sh {model} {port}", "--hub", "modelscope"], "--hub needs --suite"),
    ],
)
def test_wrong_options_are_one_line(run, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    line = ["watch", "run", "test.parquet", "--out", "o", *arguments]
    error = CliRunner().invoke(eval_app, line).exception
    assert isinstance(error, RewardkitError), error
    assert said in str(error)
    assert "\n" not in str(error)


def test_a_folder_that_does_not_exist_is_one_line(cli, run, tmp_path):
    line = ["eval", "watch", "none", "test.parquet", "--out", "o", "--serve", "sh {model} {port}"]
    done = cli(*line, cwd=tmp_path)
    assert done.returncode == 1
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


def test_curves_are_read_as_they_were_written_and_drawn_in_the_order_of_steps(tmp_path):
    found = {
        "set": {
            2: point(2, 0.5, truncated=0.5),
            1: point(1, 0.25, truncated=None),
        }
    }
    assert read_curves(tmp_path) == {}
    write_curves(found, "t", tmp_path)
    assert read_curves(tmp_path) == found
    steps = [point["step"] for point in json.loads((tmp_path / "curve.json").read_text())["set"]]
    assert steps == [1, 2]
    (tmp_path / "curve.json").write_text('{"set": [{"step": 1}]}')
    with pytest.raises(DataError, match="Move it away"):
        read_curves(tmp_path)


def test_points_of_checkpoints_that_are_gone_stay_in_the_curve(cli, run, tmp_path):
    watched = ("watch", "run", "test.parquet", "--serve", run.serve, "--out", "out", "--once")
    for step in (1, 2):
        run.save(step, step)
        done = cli("eval", *watched, "--json", cwd=tmp_path)
        assert [json.loads(line)["step"] for line in done.stdout.splitlines()] == [step]
        shutil.rmtree(run.folder / f"global_step_{step}")
    assert list(read_curves(run.out)["openai/gsm8k"]) == [1, 2]
