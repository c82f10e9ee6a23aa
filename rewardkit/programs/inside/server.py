"""The server that runs programs: it keeps a warm interpreter and forks it for each test.

It is started with `python -I -S` and an empty environment, and never gets an expected output of a
program. Three kinds of processes come from it:

- the server forks a job for each program, with a connection to the grader of its own;
- the job forks a runner for each test, measures it and ends it;
- the runner confines itself (`jail`) and only then reads the program. If a test is itself code, one
  runner has the program, and another one, which starts later, has the test and calls the program
  through two pipes.

Whatever a program does in its runner, it can only change the bytes that it sends.
"""

import builtins
import gc
import importlib
import json
import os
import resource
import select
import shutil
import signal
import socket
import sys
from _sitebuiltins import Quitter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from fcntl import LOCK_SH, flock
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import jail  # type: ignore[import-not-found]  # the folder of this file is on the path
import runner  # type: ignore[import-not-found]
from watch import Watch  # type: ignore[import-not-found]
from wire import receive, send  # type: ignore[import-not-found]

#: Bytes of the stack; Python 3.10 needs about 500 for each call of a recursion.
STACK_BYTES = 1 << 26
#: Seconds in which a runner confines itself, on a busy machine.
CONFINE_SECONDS = 10.0

#: The modules that programs import most often, loaded once; without `threading`, whose work after a fork
#: takes half as long again as the fork itself.
_WARM = """array bisect cmath collections contextlib copy dataclasses datetime decimal enum fractions
functools heapq io itertools json math operator random re statistics string time typing""".split()
_READABLE = """/usr/lib /usr/lib64 /usr/local/lib /lib /lib64 /etc/ld.so.cache /etc/localtime
/usr/share/zoneinfo /dev/urandom /dev/zero""".split()


class Server:
    """What all jobs share: the confinement that this machine offers, and the folder of their folders."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.root = settings["folder"]
        self.readable = [*_READABLE, *settings["readable"]]
        self.landlock = jail.landlock_version() if settings["landlock"] else 0

    def rules(self, folder: str, readable: Iterable[str] = ()) -> int | None:
        """Return the rules that allow a folder to be written, and files to be read; None without Landlock."""
        if not self.landlock:
            return None
        return int(jail.landlock_rules([*self.readable, *readable], [folder, "/dev/null"]))

    def failure(self) -> str:
        """Confine a fork for a trial. Return why that failed; "" if it did not."""
        reader, writer = os.pipe()
        if not (child := os.fork()):
            try:
                jail.confine_job()
                jail.confine_runner(self.rules(self.root))
                os.write(writer, b"+")
            except OSError as error:
                os.write(writer, str(error).encode())
            os._exit(0)
        os.close(writer)
        reason = os.read(reader, 1000).decode()
        os.close(reader)
        os.waitpid(child, 0)
        return "" if reason == "+" else reason or "the kernel ended the process"


def main() -> None:
    """Serve the grader that has the other end of a socket, until it closes it or ends."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    with suppress(OSError):  # not every network file system has locks
        flock(os.open(sys.argv[3], os.O_RDONLY), LOCK_SH)  # the folder is not abandoned
    with suppress(PermissionError):  # it has its own, unless bubblewrap started it
        os.setsid()
    try:
        serve(connection, receive(connection.fileno())[0])
    finally:  # also where the grader was killed before it read what it was sent
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.killpg(0, signal.SIGTERM)  # jobs, whose runners end with them
        with suppress(ChildProcessError):
            os.waitpid(-1, 0)  # until all have ended
        shutil.rmtree(sys.argv[3], ignore_errors=True)


def serve(connection: socket.socket, settings: Mapping[str, Any]) -> None:
    """Fork a job for each connection that the grader sends."""
    sys.path.extend(settings["packages"])
    prepare()
    for name in settings["modules"]:
        with suppress(ImportError):  # a program that needs it says so
            importlib.import_module(name)
    jail.adopt_orphans()
    server = Server(settings)
    if not server.landlock:
        jail.leave_user()
    hello = {"seccomp": jail.has_seccomp(), "landlock": server.landlock}
    hello["failure"] = server.failure()
    send(connection.fileno(), hello)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for jobs
    gc.collect()
    gc.freeze()
    while descriptors := socket.recv_fds(connection, 1, 1)[1]:
        server_pid = os.getpid()
        if not os.fork():
            connection.close()
            jail.die_with_parent(server_pid)
            run_job(server, *descriptors)
        os.close(*descriptors)


def prepare() -> None:
    """Load what programs use most, and make this process what they expect and may not read."""
    # `random` would start anew after each fork, which takes time and makes a program's verdict a matter of
    # luck: it starts at the same place in each test.
    register, os.register_at_fork = os.register_at_fork, lambda **_: None
    for name in _WARM:
        importlib.import_module(name)
    os.register_at_fork = register
    sys.modules["random"].seed(0)
    for name in ("exit", "quit"):  # which `site` would add
        setattr(builtins, name, Quitter(name, "end of file"))
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(0)
    with suppress(OSError):  # the kernel ends a program, and not the trainer, where memory is short
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")
    jail.hide_memory()


def run_job(server: Server, connection: int) -> NoReturn:
    """Run the tests of one program as the grader asks for them, until it closes the connection."""
    for each in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(each, signal.SIG_DFL)
    folder = f"{server.root}/{os.getpid()}"
    try:
        jail.adopt_orphans()
        jail.confine_job()
        Path(folder).mkdir(0o700)
        program, source = receive(connection)
        job = Job(server, connection, folder, program, source.decode("utf-8", "surrogatepass"))
        while True:
            header, body = receive(connection)
            report, output = job.run(header, body)
            send(connection, report, output)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)  # the grader has closed, or sees that this end is closed


class Job:
    """One program and its limits."""

    def __init__(
        self, server: Server, connection: int, folder: str, program: Mapping[str, Any], source: str
    ) -> None:
        self.connection, self.folder, self.source = connection, folder, source
        self.program, self.rules = program, server.rules(folder, program.get("readable", ()))
        self.code: Any = None
        # Each page of memory that a runner changes takes time: what all of them need is done here.
        os.environ.update(HOME=folder, TMPDIR=folder)
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    def run(self, request: Mapping[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
        """Run one test. Return its report, and its output, result or verdict."""
        for name, text in request.get("files", {}).items():
            Path(self.folder, name).write_text(text, "utf-8", "surrogatepass")
        watch = Watch(self.connection, self.folder, self.rules, request)
        if request["kind"] == "tests":
            asked, answered = os.pipe(), os.pipe()
            ends = (asked[0], answered[1])
            watch.start(partial(runner.serve, self.program, self.source, *ends), ends, watch.error)
            # The program's runner has a copy of this process, and so it starts before the tests come.
            select.select([watch.report[0]], [], [], CONFINE_SECONDS)
            tests = json.loads(receive(self.connection)[1])
            ends = (answered[0], asked[1])
            watch.start(partial(runner.run_tests, self.program, tests, *ends), ends, None)
            for descriptor in (*asked, *answered):
                os.close(descriptor)
        elif request["kind"] == "call":
            text = body.decode("utf-8", "surrogatepass")
            main = partial(runner.call, self.program, self.code or self.source, text)
            watch.start(main, (), watch.error)
        else:
            watch.feed(body)
            main = partial(runner.run, self.code or self.source, request)
            watch.start(main, (), watch.error, watch.output)
        report, output = watch.finish()
        for name in os.listdir(self.folder):  # noqa: PTH208 - at once; it holds files only
            os.unlink(f"{self.folder}/{name}")  # noqa: PTH108 - each test starts in an empty folder
        if self.code is None and report["status"] == "ok" and request["kind"] != "tests":
            # It compiled in a runner, within limits, so that it does here.
            self.code = runner.compile_program(self.source)
        return report, output


def start(arguments: list[str]) -> None:
    """Give the interpreter a larger stack, which it takes only when it starts, and serve."""
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    wanted = STACK_BYTES if hard == resource.RLIM_INFINITY else min(STACK_BYTES, hard)
    if soft != wanted:
        resource.setrlimit(resource.RLIMIT_STACK, (wanted, hard))
        os.execv(arguments[0], arguments)
    main()
