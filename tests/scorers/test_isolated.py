"""A user's scorer that hangs, prints or ends its process costs one score and not the command."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rewardkit.errors import SourceError, UsageError
from rewardkit.responses.score import score_files
from rewardkit.scorers import isolated
from rewardkit.scorers.base import NeverAnswersError, Score, Status
from rewardkit.scorers.isolated import is_built_in, open_scorer
from tests.isolate.test_function import has_ended

BAD = """
import os, sys, time
from pathlib import Path
from rewardkit.scorers.base import Score, Status

def score(response, ground_truth, extra_info=None, *, mark="x"):
    n = int(response.rpartition(" ")[2])
    if n == 2:
        os._exit(3)
    if n == 3:
        os.kill(os.getpid(), 11)
    if n == 4:
        time.sleep(600)
    if n == 5:
        raise LookupError("\\nfive\\n")
    if n == 6:
        sys.exit("six")
    if n == 7:
        return 0.5
    if n == 8:
        print("printed by the scorer")
    if n == 9 and not Path(__file__).with_name("once").exists():
        Path(__file__).with_name("once").touch()
        os._exit(1)
    return Score(1.0, True, f"{os.getpid()} {mark}", Status.CORRECT)
"""

#: The reason for each row without a score.
REASONS = {
    "3": "the scorer ended its process (exit code 3)",
    "4": "the scorer ended its process (SIGSEGV)",
    "5": "no verdict within 1 s",
    "6": "the scorer raised LookupError: five",
    "7": "the scorer raised ScorerExitedError: it calls sys.exit('six')",
    "8": "the scorer returned float, not a Score",
}


@pytest.fixture
def bad(tmp_path):
    (tmp_path / "bad.py").write_text(BAD)
    return f"{tmp_path}/bad.py:score"


@pytest.fixture
def rows(tmp_path):
    file = tmp_path / "r.jsonl"
    lines = [{"response": f"row {i}", "ground_truth": "1"} for i in range(12)]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(file)


def scorer(tmp_path, text):
    (tmp_path / "mine.py").write_text(text)
    return f"{tmp_path}/mine.py:score"


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.full)])
def test_score_reports_the_rows_that_break_a_scorer_and_scores_the_rest(bad, rows, tmp_path, jobs):
    out = tmp_path / "out.jsonl"
    report = score_files([rows], bad, jobs=jobs, out=out, seconds=1)
    assert {row.where.rpartition(":")[2]: row.reason for row in report.examples} == REASONS
    assert report.total.n == 12 - len(REASONS)
    lines = (tmp_path / "out.jsonl.unscored.jsonl").read_text().splitlines()
    assert [json.loads(line)["reason"] for line in lines] == list(REASONS.values())


def test_a_built_in_scorer_runs_in_this_process_and_any_other_in_its_own(bad, monkeypatch):
    with open_scorer("gsm8k", {}) as built_in:
        assert built_in("#### 1", "1").correct
        assert not isinstance(built_in, isolated.IsolatedScorer)
    with open_scorer(bad, {"mark": "m"}) as custom:
        pid, mark = custom("row 1", "1").pred.split()
    assert (int(pid) != os.getpid(), mark) == (True, "m")
    assert not Path(f"/proc/{pid}").exists()
    assert list(map(is_built_in, ("auto", "math", "x.py:f", "acme"))) == [True] * 2 + [False] * 2
    monkeypatch.setattr(isolated.registry, "_plugins", lambda group: {"acme": "acme:score"})
    assert not is_built_in("auto")  # it may call another package's


def test_a_response_on_which_the_process_ended_is_tried_once_more(bad, tmp_path):
    with open_scorer(bad, {}, 5) as judge:
        assert judge("row 9", "1").correct
        assert (tmp_path / "once").exists()


@pytest.mark.parametrize(
    ("text", "seconds", "words"),
    [
        ("def score(r, g, e=None):\n    while True: pass\n", 0.2, "no verdict within 0.2 s"),
        ("import os\ndef score(r, g, e=None): os._exit(9)\n", 60, "exit code 9"),
    ],
)
def test_a_scorer_that_never_answers_is_soon_not_called_again(tmp_path, rows, text, seconds, words):
    with pytest.raises(NeverAnswersError, match=rf"first 5 responses.*{words}"):
        score_files([rows], scorer(tmp_path, text), jobs=2, seconds=seconds)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import os; os._exit(4)", r"process ended while it was imported \(exit code 4\)"),
        ("import nothing_of_that_name", "does not import: ModuleNotFoundError"),
        ("import sys; sys.exit(2)", "does not import"),
        (None, "no such file"),
        ("x = 1", r"has no 'score'.* name one as .*mine\.py:x\."),
        ("score = 1", "is int, not a function"),
    ],
)
def test_a_scorer_that_does_not_load_is_one_line_of_error(tmp_path, rows, text, words):
    name = scorer(tmp_path, text) if text else f"{tmp_path}/nope.py:score"
    with pytest.raises((SourceError, UsageError), match=words):
        score_files([rows], name)


def test_a_scorer_gets_all_values_unchanged_and_cannot_change_the_row(tmp_path):
    text = (
        "from rewardkit.scorers.base import Score, Status\n"
        "def score(response, ground_truth, extra_info=None):\n"
        "    pred = f\"{response} {ground_truth} {extra_info['data_source']} {extra_info['b']}\"\n"
        "    extra_info.clear()\n"
        "    return Score(0.25, False, pred, Status.WRONG)\n"
    )
    with open_scorer(scorer(tmp_path, text), {}) as judge:
        info = {"data_source": "d", "b": b"\xff"}
        long = "é \ud800 \n" * 100_000
        score = judge(long, "1", info)
        assert score == Score(0.25, False, f"{long} 1 d {info['b']}", Status.WRONG)
        assert len(info) == 2


def test_a_module_in_the_current_folder_does_not_replace_one_of_python(tmp_path, bad, monkeypatch):
    (tmp_path / "select.py").write_text("raise RuntimeError('not the one')")
    monkeypatch.chdir(tmp_path)
    with open_scorer(bad, {}) as judge:
        assert judge("row 1", "1").correct


STRAY = """
import os, stat
from rewardkit.scorers.base import Score, Status

def score(response, ground_truth, extra_info=None):
    if response.endswith(" 3"):
        for name in os.listdir("/proc/self/fd"):
            try:
                if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                    os.write(int(name), b"half a line" + b"\\n" * {ends})
            except OSError:
                pass
    return Score(1.0, True, response, Status.CORRECT)
"""


@pytest.mark.parametrize("ends", [0, 1])
def test_a_scorer_that_writes_to_the_socket_loses_only_that_response(tmp_path, rows, ends):
    out = tmp_path / "out.jsonl"
    report = score_files([rows], scorer(tmp_path, STRAY.replace("{ends}", str(ends))), out=out)
    (only,) = report.examples
    assert "wrote to the socket" in only.reason
    assert [r["pred"] for r in map(json.loads, out.read_text().splitlines())] == [
        f"row {i}" for i in range(12) if i != 3
    ]


LEAVES_CHILDREN = """
import os, subprocess, time
from pathlib import Path
from rewardkit.scorers.base import Score, Status

def score(response, ground_truth, extra_info=None):
    child = subprocess.Popen(["sleep", "600"])
    (Path(__file__).parent / f"pid-{child.pid}").touch()
    time.sleep({wait})
    return Score(1.0, True, response, Status.CORRECT)
"""


@pytest.mark.full
@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("end", [None, signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_processes_that_a_scorer_starts_end_with_the_command_however_that_ends(
    tmp_path, rows, jobs, end
):
    name = scorer(tmp_path, LEAVES_CHILDREN.replace("{wait}", "600" if end else "0"))
    command = [sys.executable, "-m", "rewardkit", "score", rows, "--scorer", name, "--jobs", jobs]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while end and process.poll() is None and not list(tmp_path.glob("pid-*")):
        time.sleep(0.05)
    if end:
        process.send_signal(end)
    process.wait(120)
    pids = [int(path.name.partition("-")[2]) for path in tmp_path.glob("pid-*")]
    assert pids
    assert all(map(has_ended, pids))
