"""Run a command until its standard input ends: `python -m rewardkit.evaluate._keeper SECONDS WORDS`.

`serving.served` holds the other end of that pipe. However it goes, by kill -9 too, the pipe closes,
and the command is ended with all of its process group: asked first, killed after SECONDS.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress


def main() -> int:
    """The command's exit code; 127 if it cannot be run."""
    seconds, words = float(sys.argv[1]), sys.argv[2:]
    signal.signal(signal.SIGTERM, lambda *_: None)  # sent to the group, which this is of
    try:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL)  # noqa: S603 - the user's own
    except OSError as error:
        sys.stderr.write(f"{words[0]}: {error.strerror}\n")
        return 127
    threading.Thread(target=_end_with_input, args=(process, seconds), daemon=True).start()
    return process.wait()


def _end_with_input(process: subprocess.Popen[bytes], seconds: float) -> None:
    while os.read(0, 4096):
        pass
    os.killpg(0, signal.SIGTERM)
    until = time.monotonic() + seconds
    with suppress(subprocess.TimeoutExpired):
        process.wait(until - time.monotonic())
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
