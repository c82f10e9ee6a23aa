"""Whether processes of this machine run."""

import time
from pathlib import Path


def is_running(pid):
    """Return whether a process runs; a zombie of init does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(condition, seconds=60):
    """Wait until a condition holds; return what it was in the end."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def has_ended(pid):
    """Return whether a process ends within a minute."""
    return wait_until(lambda: not is_running(pid))
