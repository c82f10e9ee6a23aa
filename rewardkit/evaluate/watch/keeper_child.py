"""Run a command until standard input ends: `python -m rewardkit.evaluate.watch.keeper_child SECONDS WORDS`.

`serving.serve_model` holds the other end of the pipe. However that process ends, even by kill -9, the
pipe closes, and the whole process group of the command ends: SIGTERM first, SIGKILL after SECONDS.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress


def main() -> int:
    """Run the command and return its exit code, 127 if it cannot start; then kill its group."""
    seconds, words = float(sys.argv[1]), sys.argv[2:]
    try:
        process = subprocess.Popen(  # noqa: S603 - the user's own command
            words, stdin=subprocess.DEVNULL, start_new_session=True
        )
    except OSError as error:
        sys.stderr.write(f"{words[0]}: {error.strerror}\n")
        return 127
    threading.Thread(target=_end_after_input, args=(process, seconds), daemon=True).start()
    code = process.wait()
    _send(process, signal.SIGKILL)
    return code


def _end_after_input(process: subprocess.Popen[bytes], seconds: float) -> None:
    while os.read(0, 4096):
        pass
    _send(process, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    _send(process, signal.SIGKILL)


def _send(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to the command's group, whose workers may outlive the command."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


if __name__ == "__main__":
    sys.exit(main())
