"""A user's file that does not get through its import is ended, and the message names its line."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rewardkit.errors import UsageError
from rewardkit.scorers.isolated import IsolatedScorer
from tests.processes import is_running, wait_until

ROOT = Path(__file__).parents[2]

#: Files that hang in their third line; `{here}` is their folder.
HANGS = {
    "sleep": "import time\n\ntime.sleep(1e6)\n",
    "loop": "import os\n\nwhile True: pass\n",
    "signals": (
        "import signal as s; [s.signal(n, s.SIG_IGN) for n in s.valid_signals() - {9, 19}]\n"
        "s.pthread_sigmask(s.SIG_BLOCK, s.valid_signals())\n"
        "while True: pass\n"
    ),
    "C code that holds the lock": "import re\n\nre.match('(a+)+$', 'a' * 60 + 'b')\n",
    "fork": "import os, time\nif os.fork() == 0: time.sleep(1e6)\nos.wait()\n",
    "thread": (
        "import threading, time\n"
        "thread = threading.Thread(target=time.sleep, args=[1e6]); thread.start()\n"
        "thread.join()\n"
    ),
}
SCORER = "def score(response, ground_truth, extra_info=None): ...\n"


@pytest.fixture
def hanging_file(tmp_path):
    """Return a function that writes a file that hangs; each of its processes leaves its number."""
    mark = f"__import__('pathlib').Path({str(tmp_path)!r}, f'pid-{{__import__(\"os\").getpid()}}').touch(); "

    def write(text):
        (tmp_path / "mine.py").write_text(mark + text + SCORER)
        return f"{tmp_path}/mine.py:score"

    return write


def processes(folder):
    """Return the processes that the file ran in and that still live."""
    pids = [int(path.name.partition("-")[2]) for path in folder.glob("pid-*")]
    return [pid for pid in pids if is_running(pid)]


@pytest.mark.parametrize("name", HANGS)
def test_a_file_that_hangs_is_ended_at_its_line_in_whatever_way_it_hangs(
    hanging_file, tmp_path, name
):
    scorer = hanging_file(HANGS[name])
    with pytest.raises(UsageError, match=r"mine\.py:3: the import stood at .* after 0\.5 s\. Fix"):
        IsolatedScorer(scorer, {}, 60, 0.5)
    assert list(tmp_path.glob("pid-*"))
    assert wait_until(lambda: not processes(tmp_path))


def test_the_message_names_the_line_of_the_user_s_file_and_where_a_call_in_it_stands(hanging_file):
    scorer = hanging_file(
        "import asyncio\n\nasyncio.new_event_loop().run_until_complete(asyncio.Event().wait())\n"
    )
    with pytest.raises(UsageError, match=r"mine\.py:3: .* \(in .*/selectors\.py:\d+\) after"):
        IsolatedScorer(scorer, {}, 60, 0.5)


@pytest.mark.full
def test_a_file_that_cancels_the_watchdog_is_ended_by_the_caller(hanging_file, tmp_path):
    text = "import faulthandler\nfaulthandler.cancel_dump_traceback_later()\nwhile True: pass\n"
    with pytest.raises(UsageError, match=r"mine\.py:score: not imported within 0\.5 s\."):
        IsolatedScorer(hanging_file(text), {}, 60, 0.5)
    assert wait_until(lambda: not processes(tmp_path))


def test_a_path_is_recognised_however_it_is_written(hanging_file, tmp_path, monkeypatch):
    hanging_file(HANGS["sleep"])
    folder = tmp_path / "größe 数"
    folder.mkdir()
    (tmp_path / "mine.py").rename(folder / "mine.py")
    monkeypatch.chdir(folder)
    for path in ("mine.py", "./mine.py", f"../{folder.name}/mine.py", f"{folder}/mine.py"):
        with pytest.raises(UsageError) as error:
            IsolatedScorer(f"{path}:score", {}, 60, 0.2)
        assert str(error.value).startswith(f"{path}:3: the import stood at this line after 0.2 s.")


def test_a_file_that_loads_in_time_has_no_deadline_afterwards(hanging_file):
    text = (
        "import time\nfrom rewardkit.scorers.gsm8k import score as gsm8k\n"
        "def slow(*a, **k): time.sleep(1.2); return gsm8k(*a, **k)\n"
    )
    judge = IsolatedScorer(hanging_file(text).replace(":score", ":slow"), {}, 60, 1)
    assert judge("#### 1", "1").correct
    judge.close()


def test_a_copy_that_a_file_forks_does_not_answer(hanging_file):
    text = (
        "import os; os.fork()\nfrom rewardkit.scorers.gsm8k import score as gsm8k\n"
        "def score(*a, **k): return gsm8k(*a, **k)\n#"
    )
    judge = IsolatedScorer(hanging_file(text), {}, 60, 60)
    assert [judge(f"#### {n}", "1").correct for n in (1, 2, 1)] == [True, False, True]
    judge.close()


@pytest.mark.full
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_process_is_left_if_the_command_is_ended_during_an_import(hanging_file, tmp_path, end):
    scorer = hanging_file(HANGS["signals"])
    words = [sys.executable, "-m", "rewardkit", "audit", scorer]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    assert wait_until(lambda: processes(tmp_path))
    process.send_signal(end)
    process.wait(60)
    assert wait_until(lambda: not processes(tmp_path))


def test_the_line_of_a_thread_other_than_the_main_one_is_not_named(hanging_file):
    """The watchdog writes at most 100 stacks, the main thread's last."""
    text = (
        "import threading, time\n"
        "for _ in range(120): threading.Thread(target=lambda: time.sleep(1e6)).start()\n"
        "time.sleep(1e6)\n"
    )
    with pytest.raises(UsageError, match=r"mine\.py:score: not imported within 0\.5 s\."):
        IsolatedScorer(hanging_file(text), {}, 60, 0.5)
