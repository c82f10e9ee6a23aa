"""Run `rewardkit ARGUMENTS` in a separate process without starting an interpreter each time.

A server, started once per pytest process, imports what commands need and forks for each call. A call
has its own folder, environment, standard streams and exit code, and leaves nothing in the tests'
process. Tests of the start itself, of signals, of `PYTHON...` variables, or of cache variables that
a library reads once start an interpreter instead.
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
    "pyarrow.compute", "pyarrow.csv", "pyarrow.json", "pyarrow.parquet", "jinja2", "mpmath",
    "httpx", "pydantic", "rich.console", "rich.table", "yaml",
)  # fmt: skip
#: Modules that commands do not import: scripts of other interpreters, extras, and `__main__`.
NOT_IMPORTED = re.compile(
    r"__main__|\.inside\b|\.wait_for_nodes|\.ms_swift\b|\._math_verify_target"
    r"|\.tool_loop"
)
#: Maximum size of a request, in bytes.
MAX_REQUEST_BYTES = 1 << 22


def all_commands(group=None, prefix=""):
    """Yield (words, command) of every command and group that the help shows."""
    import typer

    from rewardkit.cli.main import app

    group = group or typer.main.get_command(app)
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if not command.hidden:
            yield f"{prefix}{name}", command
            if hasattr(command, "commands"):
                yield from all_commands(command, f"{prefix}{name} ")


class Commands:
    """Client of the server; it starts the server at the first call."""

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
            streams = []
            for file in (output, error):
                file.seek(0)
                streams.append(file.read().decode())
        return subprocess.CompletedProcess(request["arguments"], code, *streams)

    def _start(self):
        # SEQPACKET keeps messages whole: a request is one packet, even with a long environment.
        self.control, server_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MAX_REQUEST_BYTES)
        command = [sys.executable, __file__, str(server_end.fileno())]
        self.process = subprocess.Popen(
            command,
            pass_fds=[server_end.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        server_end.close()

    def close(self):
        """End the server; it exits when its socket is closed."""
        if self.process is not None:
            self.control.close()
            self.process.wait()


def load():
    """Import what commands import when they run, and build the command line."""
    import rewardkit

    for name in LIBRARIES:
        importlib.import_module(name)
    for module in pkgutil.walk_packages(rewardkit.__path__, "rewardkit."):
        if not NOT_IMPORTED.search(module.name):
            importlib.import_module(module.name)
    import typer

    from rewardkit.cli.main import app

    typer.main.get_command = cache(typer.main.get_command)
    group = typer.main.get_command(app)
    for name in group.list_commands(None):
        group.get_command(None, name)
    gc.freeze()  # a collection in the fork would copy all of this


def serve(control):
    """Fork for each request, and return its arguments in the child process."""
    while True:
        message, numbers, *_ = socket.recv_fds(control, MAX_REQUEST_BYTES, 3)
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
    """Run a function and exit as an interpreter does, but without tearing down the modules.

    The teardown is most of the time that a short command takes here.
    """
    code: object = 0
    try:
        run()
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001 - the interpreter catches all of it too
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
