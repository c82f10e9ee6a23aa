"""`rewardkit ARGUMENTS` in a process of its own, without the start of an interpreter each time.

A server, started once for each pytest process, has imported what the command needs and forks for
each call. The call has the folder, the environment and the standard streams that it is given, its
own exit code, and nothing of it is left in the tests' process. Tests that are about the start
itself, signals, `PYTHON...` variables or the network cache's variables of a *running* process start
an interpreter instead.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import re
import socket
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from types import NoneType

#: What commands import when they run. Not huggingface_hub, which reads the environment once.
LIBRARIES = (
    "pyarrow.compute", "pyarrow.csv", "pyarrow.json", "pyarrow.parquet", "ijson", "jinja2", "mpmath",
    "httpx", "pydantic", "rich.console", "rich.table", "yaml",
)  # fmt: skip
#: Modules that are not the command's: scripts for another interpreter, extras, and the start itself.
APART = re.compile(r"__main__|\.inside\b|\.wait_for_nodes|\.ms_swift\b|\._math_verify_target")
#: Bytes of the longest request.
WHOLE = 1 << 22


class Commands:
    """The client's side: start the server when it is first needed, and call it."""

    def __init__(self):
        self.process = None

    def __call__(self, *arguments, cwd=".", env=None, text=""):
        """Run `rewardkit ARGUMENTS` with `text` as its input."""
        if self.process is None:
            self._start()
        request = {
            "arguments": [str(argument) for argument in arguments],
            "cwd": str(Path(cwd).resolve()),
            "env": dict(os.environ if env is None else env),
        }
        with TemporaryFile() as read, TemporaryFile() as output, TemporaryFile() as error:
            read.write(text.encode())
            read.seek(0)
            numbers = [file.fileno() for file in (read, output, error)]
            socket.send_fds(self.control, [json.dumps(request).encode()], numbers)
            code = int(self.control.recv(64))
            said = []
            for file in (output, error):
                file.seek(0)
                said.append(file.read().decode())
        return subprocess.CompletedProcess(request["arguments"], code, *said)

    def _start(self):
        # Whole messages: one request is one packet, however long its environment.
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, WHOLE)
        command = [sys.executable, __file__, str(theirs.fileno())]
        self.process = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        theirs.close()

    def close(self):
        """End the server: it ends when its socket does."""
        if self.process is not None:
            self.control.close()
            self.process.wait()


def load():
    """Import what commands import when they run, and build the command line."""
    import rewardkit

    for name in LIBRARIES:
        importlib.import_module(name)
    for module in pkgutil.walk_packages(rewardkit.__path__, "rewardkit."):
        if not APART.search(module.name):
            importlib.import_module(module.name)
    import typer

    from rewardkit.cli.main import app

    typer.main.get_command = cache(typer.main.get_command)
    typer.main.get_command(app)
    gc.freeze()  # a collection in the fork would copy all of this


def serve(control):
    """Fork for each request; return its arguments in the process that is to do it."""
    while True:
        message, numbers, *_ = socket.recv_fds(control, WHOLE, 3)
        if not message:
            os._exit(0)
        pid = os.fork()
        if pid == 0:
            request = json.loads(message)
            control.close()
            for target, number in enumerate(numbers):
                os.dup2(number, target)
                os.close(number)
            os.chdir(request["cwd"])
            os.environ.clear()
            os.environ.update(request["env"])
            sys.path[0] = request["cwd"]  # as with `python -m rewardkit`
            return request["arguments"]
        for number in numbers:
            os.close(number)
        _, status = os.waitpid(pid, 0)
        control.send(str(os.waitstatus_to_exitcode(status)).encode())


def end_with(run):
    """Run it and end as an interpreter does, but without taking apart all that was imported.

    That is most of what a short command costs here.
    """
    code: object = 0
    try:
        run()
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001 - as the interpreter itself
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    if not isinstance(code, (int, NoneType)):
        sys.stderr.write(f"{code}\n")
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])
    load()
    sys.argv[1:] = serve(socket.socket(fileno=int(sys.argv[1])))
    sys.argv[0] = "rewardkit"
    from rewardkit.cli.main import run

    end_with(run)
