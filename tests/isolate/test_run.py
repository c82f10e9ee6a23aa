"""A command leaves no process behind, whether it ends, takes too long or is interrupted."""

import pytest

from rewardkit.isolate import run as run_module
from rewardkit.isolate.child_process import ChildTimeoutError
from rewardkit.isolate.run import run
from tests.processes import is_running

#: It starts a process in a group of its own, which ignores SIGTERM, and passes its input on.
SCRIPT = "set -m; trap '' TERM; sleep 600 & echo $! > {}/pid; cat; echo problem >&2; {}"


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Run the script with this end; no process of its session is left."""
    monkeypatch.setattr(run_module, "GRACE_SECONDS", 0.3)

    def run_script(end, seconds=60.0, **options):
        return run(["bash", "-c", SCRIPT.format(tmp_path, end)], {}, seconds, **options)

    yield run_script
    assert not is_running((tmp_path / "pid").read_text().strip())


def test_a_command_returns_its_output_also_if_it_leaves_a_process_behind(start, tmp_path):
    assert start("exit 3", text="text") == (3, "text", "problem\n")
    assert start("exit 4", text="text", log=tmp_path / "log") == (4, "", "")
    assert (tmp_path / "log").read_text() == "textproblem\n"


@pytest.mark.full
def test_a_command_that_takes_too_long_is_ended(start):
    with pytest.raises(ChildTimeoutError):
        start("wait", 5)


def test_an_interrupted_command_is_ended(start, tmp_path):
    def interrupt():
        """Stand in for Ctrl-C as soon as the process has started."""
        if (tmp_path / "pid").exists():
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        start("wait", should_end=interrupt)


def test_a_program_that_does_not_exist_is_an_exit_code_with_its_name():
    assert run(["/no/program"], {}, 60) == (1, "", "/no/program: No such file or directory")
