"""The runners of one test: what they write, and the limits that end them."""

import os
import resource
import select
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from math import ceil
from pathlib import Path
from time import monotonic
from typing import Any, NoReturn

import jail  # type: ignore[import-not-found]  # the folder of this file is on the path

#: Bytes of standard output, of standard error, or of a result, of one test.
MAX_OUTPUT = 1 << 24
#: Bytes at the end of standard error that are reported.
MAX_ERROR = 2_000
#: Bytes of one file, and number of files, in the folder of a program.
MAX_FILE_BYTES, MAX_FILES = 1 << 22, 100
MAX_THREADS = 64
#: Seconds between two looks at the time, memory, threads and files of a runner.
LOOK_SECONDS = 0.05
#: A runner ends after this many times its seconds of processor time and of idleness, however busy it is.
MAX_PATIENCE = 10


class Watch:
    """The runners of one test: what they write, and the limits that they may not exceed.

    The last runner that starts decides when the test ends.
    """

    def __init__(
        self, connection: int, folder: str, rules: int | None, request: Mapping[str, Any]
    ) -> None:
        self.connection, self.folder, self.rules = connection, folder, rules
        self.started = monotonic()
        self.cpu_seconds = float(request["cpu_seconds"])
        self.idle_seconds = float(request["idle_seconds"])
        self.deadline = self.started + MAX_PATIENCE * (self.cpu_seconds + self.idle_seconds)
        self.memory_bytes = int(request["memory_mb"]) << 20
        self.pids: list[int] = []
        self.usages: dict[int, Any] = {}
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
            os.chdir(self.folder)
            # The kernel's own limit is a backstop: it counts whole ticks, a tenth too many on a busy machine.
            seconds, address_space = 2 * ceil(self.cpu_seconds), 2 * self.memory_bytes + (1 << 30)
            jail.limit_resources(seconds, address_space, MAX_FILE_BYTES)
            jail.confine_runner(self.rules)
            open_ends = sorted({self.report[1], *ends})
            for low, high in zip([2, *open_ends], [*open_ends, 1024], strict=True):
                os.closerange(low + 1, high)
            os.write(self.report[1], b"+")
            main(self.report[1])
        finally:
            os._exit(1)

    def finish(self) -> tuple[dict[str, Any], bytes]:
        """Wait for the runners and end them. Return the report of the test, and its output."""
        for _, writer in (self.report, self.output, self.error):
            os.close(writer)
        if self.feeder:
            os.close(self.feeder[0])
        codes, peak, cpu = self._wait()
        code = codes[-1]
        wall = monotonic() - self.started
        report, output, error = map(bytes, self.readers.values())  # in the order of `__init__`
        for reader in self.readers:
            os.close(reader)
        if not self.status:
            self.status = "ok" if code == 0 else "exit" if code > 0 else "signal"
            if cpu > self.cpu_seconds or -signal.SIGXCPU in codes:
                self.status = "cpu"
            elif code == -signal.SIGKILL:
                self.status = "sandbox"  # the kernel had no memory, or somebody ended it
        if report[: len(self.pids)] != b"+" * len(self.pids):
            self.status = "sandbox"
        facts = {"status": self.status, "code": code, "memory_mb": peak >> 10}
        facts |= {"cpu_seconds": cpu, "wall_seconds": wall}
        facts["stderr"] = error[-MAX_ERROR:].decode("utf-8", "replace")
        return facts, report[len(self.pids) :] or output

    def _wait(self) -> tuple[list[int], int, float]:
        """Return the exit codes of the runners, their peak memory in KB and their CPU seconds."""
        poll, last = select.poll(), self.pids[-1]
        for reader in (*self.readers, self.connection):
            poll.register(reader, select.POLLIN)
        if self.feeder:
            poll.register(self.feeder[1], select.POLLOUT)
        looked = self.started
        try:
            with _end_event(poll, last) as seconds:
                while last not in self.usages and not self.status:
                    for descriptor, _ in poll.poll(seconds * 1000):
                        if descriptor == self.connection:
                            raise EOFError  # the grader has gone
                        self._transfer(poll, descriptor)
                    if (passed := monotonic() - looked) >= LOOK_SECONDS:
                        looked += passed
                        self.status = self.status or self._exceeded(passed)
                    self._reap(os.WNOHANG)
        finally:
            self._end_all()
        for reader in self.readers:
            while self._transfer(poll, reader):
                pass  # what arrived between the last look and the end
        codes = [os.waitstatus_to_exitcode(self.usages[pid][1]) for pid in self.pids]
        usages = [self.usages[pid][2] for pid in self.pids]
        seconds = sum(each.ru_utime + each.ru_stime for each in usages)
        return codes, max(each.ru_maxrss for each in usages), seconds

    def _transfer(self, poll: select.poll, descriptor: int) -> bool:
        """Read from or write to a pipe. Return whether there may be more to read."""
        if self.feeder and descriptor == self.feeder[1]:
            self._feed(poll, descriptor)
        buffer = self.readers.get(descriptor)
        if buffer is None or len(buffer) > MAX_OUTPUT:
            self.status = self.status or ("output" if buffer else "")
            return False
        data = b""
        with suppress(BlockingIOError):
            data = os.read(descriptor, 1 << 20)
            if not data:
                with suppress(KeyError):
                    poll.unregister(descriptor)
        buffer += data
        return bool(data)

    def _feed(self, poll: select.poll, descriptor: int) -> None:
        try:
            self.input = self.input[os.write(descriptor, self.input[: 1 << 20]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # the program does not read all of its input
            self.input = memoryview(b"")
        if not self.input:
            poll.unregister(descriptor)
            os.close(descriptor)
            self.feeder = (-1, -1)

    def _exceeded(self, seconds: float) -> str:
        """Return the limit that the runners exceed, some seconds after the last look; "" for none."""
        cpu, is_busy = 0.0, False
        for pid in self.pids:
            with suppress(OSError, ValueError, IndexError):  # it has ended
                resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                if resident * resource.getpagesize() > self.memory_bytes:
                    return "memory"
                tasks = list(Path(f"/proc/{pid}/task").iterdir())
                if len(tasks) > MAX_THREADS:
                    return "threads"
                fields = _stat(Path(f"/proc/{pid}/stat"))
                cpu += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
                is_busy |= any(_stat(task / "stat")[0] in "RD" for task in tasks)
        if cpu > self.cpu_seconds:
            return "cpu"
        # A program that could run is not idle, however long others have the processor.
        self.idle_seconds -= 0 if is_busy else seconds
        if self.idle_seconds < 0 or monotonic() > self.deadline:
            return "idle"
        with os.scandir(self.folder) as files:
            return "files" if sum(1 for _ in files) > MAX_FILES else ""

    def _reap(self, flags: int) -> None:
        for pid in set(self.pids) - self.usages.keys():
            ended = os.wait4(pid, flags)
            if ended[0]:
                self.usages[pid] = ended

    def _end_all(self) -> None:
        """End the runners, and what they have started, which only happens without a filter."""
        _kill(set(self.pids) - self.usages.keys())
        self._reap(0)
        with suppress(OSError):  # also ChildProcessError: there are none, as a rule
            os.waitpid(-1, os.WNOHANG)
            children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
            while pids := set(map(int, children.read_text().split())):
                _kill(pids)
                for pid in pids:
                    os.waitpid(pid, 0)
        if self.feeder and self.feeder[1] >= 0:
            os.close(self.feeder[1])


@contextmanager
def _end_event(poll: select.poll, pid: int) -> Iterator[float]:
    """Have the end of a process wake a poll; yield the seconds that the poll may wait."""
    event = -1
    with suppress(OSError, AttributeError):  # Linux before 5.3
        event = os.pidfd_open(pid)
        poll.register(event, select.POLLIN)
    try:
        yield LOOK_SECONDS if event >= 0 else LOOK_SECONDS / 20
    finally:
        if event >= 0:
            poll.unregister(event)
            os.close(event)


def _kill(pids: set[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _stat(path: Path) -> list[str]:
    """Return the fields of a `stat` file of /proc after the name of the process, which may hold blanks."""
    return path.read_text().rpartition(")")[2].split()
