"""The server that runs programs: it keeps a warm interpreter and forks it for each test.

It is started with `python -I -S` and an empty environment, and never gets an expected output of a
program. Three kinds of processes come from it:

- the server forks a job for each program, with a connection to the grader of its own;
- the job forks a runner for each test, measures it and ends it;
- the runner confines itself (`jail`) and only then reads the program. If a test is itself code, one
  runner has the program, and another one has the test and calls the program through two pipes.

Whatever a program does in its runner, it can only change the bytes that it sends.
"""

import builtins
import gc
import importlib
import os
import resource
import select
import shutil
import signal
import socket
import sys
import tempfile
from _sitebuiltins import Quitter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import ceil
from pathlib import Path
from time import monotonic
from typing import Any, NoReturn

import jail  # type: ignore[import-not-found]  # the folder of this file is on the path
import runner  # type: ignore[import-not-found]
from wire import receive, send  # type: ignore[import-not-found]

#: Bytes of standard output, or of a result, of one test.
MAX_OUTPUT = 1 << 24
#: Bytes at the end of standard error that are reported.
MAX_ERROR = 2_000
#: Bytes of one file, and number of files, in the folder of a program.
MAX_FILE_BYTES, MAX_FILES = 1 << 24, 100
MAX_THREADS = 64
#: Seconds between two looks at the time, memory, threads and files of a runner.
LOOK_SECONDS = 0.05
#: Bytes of the stack; Python 3.10 needs about 500 for each call of a recursion.
STACK_BYTES = 1 << 26
#: Seconds after which the server notices that the grader was killed while a fork of it lives.
PARENT_SECONDS = 2.0

#: The modules that programs import most often, loaded once.
_WARM = """array bisect cmath collections contextlib copy dataclasses datetime decimal enum fractions
functools heapq io itertools json math operator queue random re statistics string threading time
typing""".split()
_READABLE = """/usr/lib /usr/lib64 /usr/local/lib /lib /lib64 /etc/ld.so.cache /etc/localtime
/usr/share/zoneinfo /dev/urandom /dev/zero""".split()


class Server:
    """What all jobs share: the confinement that this machine offers, and the folder of their folders."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.root = tempfile.mkdtemp(prefix="rewardkit-code-", dir=settings["folder"])
        self.readable = [*_READABLE, *settings["readable"]]
        self.landlock = jail.landlock_version() if settings["landlock"] else 0

    def confine_job(self) -> None:
        """Confine this process, which runs a job, if this machine can."""
        if jail.has_seccomp():
            jail.confine_job(self.landlock > 0)

    def rules(self, folder: str) -> int | None:
        """Return the rules that allow a folder to be written; None without Landlock."""
        if not self.landlock:
            return None
        return int(jail.landlock_rules(self.readable, [folder, "/dev/null"]))

    def failure(self) -> str:
        """Confine a fork for a trial. Return why that failed; "" if it did not."""
        reader, writer = os.pipe()
        if not (child := os.fork()):
            try:
                self.confine_job()
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
    parent = os.getppid()
    settings, _ = receive(connection.fileno())
    sys.path.extend(settings["packages"])
    for name in _WARM:
        importlib.import_module(name)
    for name in ("exit", "quit"):  # which `site` would add
        setattr(builtins, name, Quitter(name, "end of file"))
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(0)
    jail.hide_memory()
    server = Server(settings)
    hello = {"seccomp": jail.has_seccomp(), "landlock": server.landlock}
    hello["failure"] = server.failure()
    send(connection.fileno(), hello)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for jobs
    gc.collect()
    gc.freeze()
    while os.getppid() == parent:
        if not select.select([connection], [], [], PARENT_SECONDS)[0]:
            continue
        data, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
        if not data:
            break
        server_pid = os.getpid()
        if not os.fork():
            connection.close()
            jail.die_with_parent(server_pid)
            run_job(server, *descriptors)
        os.close(*descriptors)
    with suppress(ChildProcessError):
        os.waitpid(-1, 0)  # until all jobs have ended, which remove their folders
    shutil.rmtree(server.root, ignore_errors=True)


def run_job(server: Server, connection: int) -> NoReturn:
    """Run the tests of one program as the grader asks for them, until it closes the connection."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    jail.adopt_orphans()
    server.confine_job()
    folder = tempfile.mkdtemp(dir=server.root)
    try:
        program, source = receive(connection)
        job = Job(server, connection, folder, program, source.decode("utf-8", "surrogatepass"))
        while True:
            header, body = receive(connection)
            report, output = job.run(header, body)
            send(connection, report, output)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)


class Job:
    """One program and its limits."""

    def __init__(
        self, server: Server, connection: int, folder: str, program: Mapping[str, Any], source: str
    ) -> None:
        self.connection, self.folder, self.source = connection, folder, source
        self.program, self.rules = program, server.rules(folder)
        self.code: Any = None

    def run(self, request: Mapping[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
        """Run one test. Return its report, and its output, result or verdict."""
        for name, text in request.get("files", {}).items():
            Path(self.folder, name).write_text(text, "utf-8")
        watch = Watch(self, request)
        if request["kind"] == "tests":
            asked, answered = os.pipe(), os.pipe()
            ends = (asked[0], answered[1])
            watch.start(lambda _: runner.serve(self.program, self.source, *ends), ends, watch.error)
            ends = (answered[0], asked[1])
            watch.start(
                lambda report: runner.run_tests(self.program, request, *ends, report), ends, None
            )
            for descriptor in (*asked, *answered):
                os.close(descriptor)
        elif request["kind"] == "call":
            text = body.decode("utf-8", "surrogatepass")
            watch.start(
                lambda report: runner.call(self.program, self.code or self.source, text, report),
                (),
                watch.error,
            )
        else:
            watch.feed(body)
            watch.start(
                lambda report: runner.run(self.code or self.source, request, report),
                (),
                watch.error,
                watch.output,
            )
        report, output = watch.finish()
        if self.code is None and report["status"] == "ok" and request["kind"] != "tests":
            # It compiled in a runner, within limits, so that it does here.
            self.code = runner.compile_program(self.source)
        return report, output


class Watch:
    """The runners of one test: what they write, and the limits that they may not exceed.

    The last runner that starts decides when the test ends.
    """

    def __init__(self, job: Job, request: Mapping[str, Any]) -> None:
        self.job, self.started = job, monotonic()
        self.cpu_seconds = float(request["cpu_seconds"])
        self.idle_seconds = float(request["idle_seconds"])
        self.memory_bytes = int(request["memory_mb"]) << 20
        self.pids: list[int] = []
        self.readers: dict[int, bytearray] = {}
        self.report, self.output, self.error = (self._reader() for _ in range(3))
        self.input = memoryview(b"")
        self.feeder: tuple[int, int] | None = None
        self.status = ""

    def _reader(self) -> tuple[int, int]:
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        self.readers[reader] = bytearray()
        return reader, writer

    def feed(self, data: bytes) -> None:
        """Give the next runner this standard input."""
        self.feeder, self.input = os.pipe(), memoryview(data)
        os.set_blocking(self.feeder[1], False)

    def start(
        self,
        main: Callable[[int], NoReturn],
        ends: Sequence[int],
        error: tuple[int, int] | None,
        output: tuple[int, int] | None = None,
    ) -> None:
        """Fork a runner that confines itself and calls `main` with the descriptor of its report."""
        job = os.getpid()
        if pid := os.fork():
            self.pids.append(pid)
            return
        try:
            jail.die_with_parent(job)
            os.setsid()
            null = os.open("/dev/null", os.O_RDWR)
            standard = (
                self.feeder[0] if self.feeder and output else null,
                output[1] if output else null,
                error[1] if error else null,
            )
            for number, descriptor in enumerate(standard):
                os.dup2(descriptor, number)
            jail.hide_memory()
            os.chdir(self.job.folder)
            os.environ.update(HOME=self.job.folder, TMPDIR=self.job.folder)
            seconds, address_space = ceil(self.cpu_seconds), 2 * self.memory_bytes + (1 << 30)
            jail.limit_resources(seconds, address_space, MAX_FILE_BYTES)
            jail.confine_runner(self.job.rules)
            kept = sorted({self.report[1], *ends})
            for low, high in zip([2, *kept], [*kept, 1024], strict=True):
                os.closerange(low + 1, high)
            os.write(self.report[1], b"+")
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            main(self.report[1])
        finally:
            os._exit(1)

    def finish(self) -> tuple[dict[str, Any], bytes]:
        """Wait for the runners and end them. Return the report of the test, and its output."""
        for _, writer in (self.report, self.output, self.error):
            os.close(writer)
        if self.feeder:
            os.close(self.feeder[0])
        code, peak, cpu = self._wait()
        wall = monotonic() - self.started
        report, output, error = (
            bytes(self.readers[r]) for r, _ in (self.report, self.output, self.error)
        )
        for reader in self.readers:
            os.close(reader)
        if not self.status:
            self.status = "ok" if code == 0 else "exit" if code > 0 else "signal"
            if cpu > self.cpu_seconds or code == -signal.SIGXCPU:
                self.status = "cpu"
            elif code == -signal.SIGKILL:
                self.status = "sandbox"  # the kernel had no memory, or somebody ended it
        if report[: len(self.pids)] != b"+" * len(self.pids):
            self.status = "sandbox"
        facts = {
            "status": self.status,
            "code": code,
            "cpu_seconds": cpu,
            "wall_seconds": wall,
            "memory_mb": peak >> 10,
            "stderr": error[-MAX_ERROR:].decode("utf-8", "replace"),
        }
        return facts, report[len(self.pids) :] or output

    def _wait(self) -> tuple[int, int, float]:
        """Return the exit code of the last runner, and the peak memory in KB and the CPU seconds of all."""
        poll = select.poll()
        for reader in self.readers:
            poll.register(reader, select.POLLIN)
        poll.register(self.job.connection, select.POLLIN)
        if self.feeder:
            poll.register(self.feeder[1], select.POLLOUT)
        last, codes, peak, cpu = self.pids[-1], dict[int, int](), 0, 0.0
        look_at = self.started + LOOK_SECONDS
        pause = self._end_event(poll, last)
        try:
            while last not in codes:
                for descriptor, _ in poll.poll(pause * 1000):
                    if descriptor == self.job.connection:
                        raise EOFError  # the grader has gone
                    self._transfer(poll, descriptor)
                if monotonic() >= look_at:
                    look_at = monotonic() + LOOK_SECONDS
                    self.status = self.status or self._exceeded()
                if self.status:
                    break
                for pid in set(self.pids) - codes.keys():
                    peak, cpu = self._reap(pid, os.WNOHANG, codes, peak, cpu)
        finally:
            self._kill(set(self.pids) - codes.keys())
            for pid in set(self.pids) - codes.keys():
                peak, cpu = self._reap(pid, 0, codes, peak, cpu)
            self._end_orphans()
            if self._event >= 0:
                os.close(self._event)
            if self.feeder and self.feeder[1] >= 0:
                os.close(self.feeder[1])
        for reader in self.readers:
            while self._transfer(poll, reader):
                pass  # what arrived between the last look and the end
        return codes[last], peak, cpu

    def _end_event(self, poll: select.poll, pid: int) -> float:
        """Have the end of a process wake the poll, and return its timeout."""
        self._event = -1
        with suppress(OSError, AttributeError):  # Linux before 5.3
            self._event = os.pidfd_open(pid)
            poll.register(self._event, select.POLLIN)
        return LOOK_SECONDS if self._event >= 0 else LOOK_SECONDS / 20

    def _transfer(self, poll: select.poll, descriptor: int) -> bool:
        """Read from or write to a pipe; return whether more may follow."""
        if self.feeder and descriptor == self.feeder[1]:
            with suppress(BlockingIOError):
                try:
                    self.input = self.input[os.write(descriptor, self.input[: 1 << 20]) :]
                except BrokenPipeError:
                    self.input = memoryview(b"")
            if not self.input:
                poll.unregister(descriptor)
                os.close(descriptor)
                self.feeder = (-1, -1)
            return False
        buffer = self.readers.get(descriptor)
        if buffer is None:
            return False
        data = b""
        with suppress(BlockingIOError):
            data = os.read(descriptor, 1 << 20)
            if not data:
                with suppress(KeyError):
                    poll.unregister(descriptor)
        if descriptor == self.error[0]:
            del buffer[: max(0, len(buffer) - MAX_ERROR)]
        elif len(buffer) > MAX_OUTPUT:
            self.status = self.status or "output"
            return False
        buffer += data
        return bool(data)

    def _exceeded(self) -> str:
        """Return the limit that the runners exceed now; "" for none."""
        cpu = delay = 0.0
        for pid in self.pids:
            with suppress(OSError, ValueError, IndexError):
                resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                if resident * resource.getpagesize() > self.memory_bytes:
                    return "memory"
                tasks = os.listdir(f"/proc/{pid}/task")
                if len(tasks) > MAX_THREADS:
                    return "threads"
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                cpu += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
                for task in tasks:
                    times = Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()
                    delay += int(times[1]) / 1e9
        if cpu > self.cpu_seconds:
            return "cpu"
        if monotonic() - self.started - cpu - delay > self.idle_seconds:
            return "idle"
        with os.scandir(self.job.folder) as files:
            return "files" if sum(1 for _ in files) > MAX_FILES else ""

    def _reap(
        self, pid: int, flags: int, codes: dict[int, int], peak: int, cpu: float
    ) -> tuple[int, float]:
        ended, status, usage = os.wait4(pid, flags)
        if not ended:
            return peak, cpu
        codes[pid] = os.waitstatus_to_exitcode(status)
        return max(peak, usage.ru_maxrss), cpu + usage.ru_utime + usage.ru_stime

    def _kill(self, pids: set[int]) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _end_orphans(self) -> None:
        """End what runners have started, which only happens where the filter is missing."""
        children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
        with suppress(ChildProcessError, OSError):
            while pids := set(map(int, children.read_text().split())):
                self._kill(pids)
                for pid in pids:
                    os.waitpid(pid, 0)


def start(arguments: list[str]) -> None:
    """Give the interpreter a larger stack, which it takes only when it starts, and serve."""
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    wanted = STACK_BYTES if hard == resource.RLIM_INFINITY else min(STACK_BYTES, hard)
    if soft != wanted:
        resource.setrlimit(resource.RLIMIT_STACK, (wanted, hard))
        os.execv(arguments[0], arguments)
    main()
