"""A lock on an output that works on every file system, also on Lustre and NFS without `flock`.

The lock is a file that is created exclusively and names the process that holds it. A lock of this
machine is stale once that process has ended. Processes of another machine cannot be seen, so the
holder touches the file every few seconds, and a lock is stale once nobody has for `STALE_SECONDS`
of the waiting process, because no two clocks agree. A holder that was stopped for longer has lost
its lock, and notices before it writes on: see `OutputLock.require`.
"""

import errno
import logging
import os
import platform
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from time import monotonic, sleep
from typing import AnyStr, NamedTuple

from rewardkit.errors import OutputError

#: How often the holder touches its lock.
BEAT_SECONDS = 5.0

#: A lock that another machine's process has not touched for so long is stale.
STALE_SECONDS = 30.0

#: How often a lock is looked at meanwhile.
POLL_SECONDS = 0.5

#: From then on whoever waits is told why.
NOTICE_SECONDS = 2.0

#: Bytes of a lock that are read: nobody writes more.
MAX_LOCK_BYTES = 400

#: A process as `process_id` writes it: machine, number and start in hexadecimal, random digits.
PROCESS_ID = (
    r"(?P<machine>[0-9a-f]{12})-(?P<number>[0-9a-f]{1,7})-(?P<start>[0-9a-f]{1,12})-[0-9a-f]{8}"
)
_log = logging.getLogger("rewardkit")
_LOCK_TEXT = re.compile(rf"{PROCESS_ID} (?P<host>[\w.-]*)\n".encode(), re.ASCII)


class OutputLock:
    """The lock of one output. Use `lock_output`."""

    def __init__(self, out: Path, path: Path, descriptor: int, text: bytes) -> None:
        self._out, self._path, self._descriptor, self._text = out, path, descriptor, text
        self._has_ended = threading.Event()
        self.thread = threading.Thread(target=self._beat, daemon=True)

    def require(self) -> None:
        """Raise `OutputError` if another run has taken the lock of this one, which had stopped."""
        now = _read(self._path)
        if now is None or now.text != self._text:
            raise OutputError(
                f"{self._out}: another run has taken it over while this one was stopped; look at "
                "what that run writes."
            )

    def release(self) -> None:
        """Remove the lock, unless another run has taken it."""
        self._has_ended.set()
        if self.thread.is_alive():
            self.thread.join()
        with suppress(OSError):
            self.require()
            self._path.unlink()
        os.close(self._descriptor)

    def _beat(self) -> None:
        while not self._has_ended.wait(BEAT_SECONDS):
            with suppress(OSError):
                os.utime(self._descriptor)


@contextmanager
def lock_output(out: Path, path: Path) -> Iterator[OutputLock]:
    """Hold the lock of an output, in a file of a folder that exists, during the block.

    Raises:
        OutputError: another run holds the lock, or the path is not one of our locks.
        OSError: the lock cannot be written.
    """
    lock = _acquire(out, path)
    try:
        lock.thread.start()
        yield lock
    finally:
        lock.release()


def process_id() -> str:
    """Return a new name for this process, from which others see whether it still runs."""
    start = _start_of(os.getpid()) or 0
    return f"{_machine()}-{os.getpid():x}-{start:x}-{os.urandom(4).hex()}"


def is_running(match: re.Match[AnyStr]) -> bool | None:
    """Return whether the process in a match of `PROCESS_ID` runs; None if nobody here can tell."""
    machine, number, start = (os.fsdecode(match[name]) for name in ("machine", "number", "start"))
    if machine != _machine():
        return None
    now = _start_of(int(number, 16))
    if now is None:
        return False
    return now == int(start, 16) if now and start != "0" else None


@cache
def _machine() -> str:
    """Return the name of the running kernel and its processes: containers share no numbers."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        name = f"{boot}{Path('/proc/self/ns/pid').readlink()}"
    except OSError:  # macOS
        name = platform.node()
    return blake2b(name.encode(), digest_size=6).hexdigest()


def _start_of(number: int) -> int | None:
    """Return when a process started, in ticks since the boot; 0 if unknown, None if it has ended."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return None
    except PermissionError:  # another user's process
        pass
    try:
        fields = Path(f"/proc/{number}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0
    return None if fields[0] in b"ZX" else int(fields[19])


class _Lock(NamedTuple):
    text: bytes
    touched: int


def _acquire(out: Path, path: Path) -> OutputLock:
    while True:
        with suppress(FileExistsError):
            return OutputLock(out, path, *_create(path))
        lock = _read(path)
        if lock is None:  # it has just been released
            continue
        match = _LOCK_TEXT.fullmatch(lock.text)
        holder = str(path)
        if match:
            holder = f"process {int(match['number'], 16)} on {match['host'].decode()}"
        running = is_running(match) if match else None
        if _is_alive(out, path, lock, holder) if running is None else running:
            raise OutputError(
                f"{out}: another run is writing it ({holder}). Wait until it ends, or name another "
                "--out."
            )
        if own := _take_over(out, path, lock):
            return own


def _is_alive(out: Path, path: Path, lock: _Lock, holder: str) -> bool:
    """Return whether a lock is touched; False also if another run has taken it meanwhile."""
    start, has_notice = monotonic(), False
    while (waited := monotonic() - start) < STALE_SECONDS:
        if waited >= NOTICE_SECONDS and not has_notice:
            has_notice = True
            text = (
                f"{out}: another run may be writing it ({holder}); waiting up to "
                f"{STALE_SECONDS:.0f} s to see whether that run is alive."
            )
            _log.warning("%s", "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text))
        sleep(POLL_SECONDS)
        now = _read(path)
        if now != lock:
            return now is not None and now.text == lock.text
    return False


def _take_over(out: Path, path: Path, stale: _Lock) -> OutputLock | None:
    """Replace a stale lock by one of this process; None if another process was faster.

    A second lock keeps two processes from replacing the same one, and may become stale in its turn.
    """
    with lock_output(out, path.with_name(f"{path.name}.next")) as next_lock:
        if _read(path) != stale:
            return None
        temporary = path.with_name(f"{path.name}.new")
        temporary.unlink(missing_ok=True)
        own = OutputLock(out, path, *_create(temporary))
        next_lock.require()
        temporary.replace(path)
        return own


def _create(path: Path) -> tuple[int, bytes]:
    text = f"{process_id()} {re.sub(r'[^A-Za-z0-9_.-]', '', platform.node())[:200]}\n".encode()
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o644)
    try:
        os.write(descriptor, text)
    except OSError:  # such as a full disk
        path.unlink()
        os.close(descriptor)
        raise
    return descriptor, text


def _read(path: Path) -> _Lock | None:
    """Return the lock in a file; None if there is no file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return _Lock(os.read(descriptor, MAX_LOCK_BYTES), os.fstat(descriptor).st_mtime_ns)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ESTALE}:  # the latter on NFS
            return None
        if error.errno in {errno.ELOOP, errno.EISDIR}:
            raise OutputError(f"{path} is not a lock that rewardkit created; remove it.") from error
        raise
