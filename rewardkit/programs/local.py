"""The local sandbox: the grader's side of `inside.server`.

Each process has one server, started when it is first needed, and again if it ends. A program has a
connection of its own, so that any number of threads can grade at once.
"""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from shutil import rmtree, which
from tempfile import gettempdir, mkdtemp
from typing import Any, TypeVar
from weakref import WeakSet

from rewardkit.programs.inside.jail import hide_memory
from rewardkit.programs.inside.wire import receive, send

#: Seconds for the server to start, on a busy machine.
START_SECONDS = 60.0
#: Tries of a program whose sandbox failed.
TRIES = 3
#: Seconds before the next one: a server that was killed takes some to end.
RETRY_SECONDS = 0.5

#: What an interpreter reads beside its own folders.
_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/localtime")
_PREFIX = "rewardkit-code-"
_INSIDE = Path(__file__).parent / "inside"
_MAIN = (
    "import sys; sys.path[0] = sys.argv[2]; import server; del sys.path[0]; "
    "server.start(sys.orig_argv)"
)
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",  # the same program gets the same verdict
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


class SandboxError(RuntimeError):
    """The sandbox did not run a program: the machine is at fault, not the program."""


class Sandbox:
    """A server of this process.

    Attributes:
        level: how programs are confined: names joined by `+`, such as `seccomp+landlock`; `unsafe` if
            system calls are not filtered.
        failure: why this machine cannot confine programs; "" if it can.
        slots: one for each processor.
    """

    def __init__(
        self, *, landlock: bool = True, bubblewrap: bool = True, modules: Iterable[str] = ()
    ) -> None:
        self._modules = [*modules]  # which the server loads once for all programs
        self._lock = threading.Lock()
        self.slots = threading.BoundedSemaphore(len(os.sched_getaffinity(0)))
        command = which("bwrap") if bubblewrap else None
        try:
            hello = self._start(command, landlock)
        except SandboxError:
            if not command:
                raise
            command, hello = None, self._start(None, landlock)
        if not hello["landlock"]:
            hide_memory()  # a program could read the expected outputs there
        names = ["seccomp"] * hello["seccomp"] + ["landlock"] * bool(hello["landlock"])
        self.level = "+".join(names + ["bubblewrap"] * bool(command)) if names else "unsafe"
        self.failure = hello["failure"]
        if not hello["seccomp"]:
            self.failure = self.failure or "this kernel or processor has no filter of system calls"

    def _start(self, bubblewrap: str | None, landlock: bool) -> Mapping[str, Any]:
        packages = [each for each in sys.path if each.endswith(("site-packages", "dist-packages"))]
        readable = [sys.base_prefix, sys.prefix, *packages]
        _remove_abandoned()
        try:
            self._folder = mkdtemp(prefix=_PREFIX)
        except OSError as error:
            raise SandboxError(
                f"no folder for programs in {gettempdir()}: {error}. Free space there, or set TMPDIR."
            ) from None
        settings = {
            "folder": self._folder,
            "landlock": landlock,
            "packages": packages,
            "readable": readable,
            "modules": self._modules,
        }
        prefix = _bubblewrap(bubblewrap, readable, self._folder) if bubblewrap else []
        with ExitStack() as stack:
            self._socket, theirs = map(stack.enter_context, _socketpair())
            # `-I` would ignore PYTHONHASHSEED too.
            python = [sys.executable, "-s", "-S", "-X", "utf8", "-c", _MAIN]
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                [*prefix, *python, str(theirs.fileno()), str(_INSIDE), self._folder],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=None if os.environ.get("REWARDKIT_DEBUG") == "1" else subprocess.DEVNULL,
                env=_ENVIRONMENT,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
            theirs.close()
            self._socket.settimeout(START_SECONDS)
            try:
                send(self._socket, settings)
                hello, _ = receive(self._socket)
            except (OSError, EOFError, ValueError) as error:
                self._process.kill()
                self._process.wait()
                rmtree(self._folder, ignore_errors=True)
                raise SandboxError(f"the sandbox does not start: {error!r}") from None
            stack.pop_all()
        return hello

    @property
    def is_alive(self) -> bool:
        """Whether the server can take a program: it runs, and nobody has tidied up its folder."""
        return self._process.poll() is None and Path(self._folder).is_dir()

    @contextmanager
    def program(self, source: str, facts: Mapping[str, Any]) -> Iterator["Run"]:
        """Yield the runs of a program; end them with the block.

        `facts` has its `entry_point` and `prelude`, and in `readable` further files that it may read, which
        a sandbox with bubblewrap does not have.
        """
        ours, theirs = _socketpair()
        with ours:
            with theirs, self._lock, _sandbox_errors():
                socket.send_fds(self._socket, [b"+"], [theirs.fileno()])
            run = Run(ours)
            with _sandbox_errors():
                send(ours, facts, source.encode("utf-8", "surrogatepass"))
            yield run

    def close(self) -> None:
        """End the server and all programs."""
        self._socket.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        self._process.kill()
        self._process.wait()
        rmtree(self._folder, ignore_errors=True)  # which a server does that is not killed


class Run:
    """The connection to the job of one program."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def test(self, request: Mapping[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
        """Run one test. Return its report (`inside.server.Watch.finish`), and what it wrote.

        Raises:
            SandboxError: the sandbox failed.
        """
        # The job ends each test by its own clock; this one only notices a job that hangs.
        self._connection.settimeout(60 + 20 * (request["cpu_seconds"] + request["idle_seconds"]))
        with _sandbox_errors():
            if request["kind"] == "tests":  # the program's runner starts before the job has them
                send(self._connection, request)
            send(self._connection, request, body)
            report, output = receive(self._connection)
        if report["status"] == "sandbox":
            raise SandboxError(
                f"the program was not confined or was ended: {report['stderr'][-200:]}"
            )
        return report, output


@contextmanager
def _sandbox_errors() -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, ValueError) as error:
        raise SandboxError(f"the sandbox failed: {error!r}") from None


def _remove_abandoned() -> None:
    """Remove the folders of servers that were killed: these do not lock them any more."""
    for path in Path(gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                flock(descriptor, LOCK_EX | LOCK_NB)
                if time.time() - path.stat().st_mtime > START_SECONDS:  # or it starts
                    rmtree(path)
            finally:
                os.close(descriptor)


def _bubblewrap(command: str, readable: Iterable[str], folder: str) -> list[str]:
    """Return the command that gives the server its own view of files, processes and the network."""
    return [
        *(command, "--unshare-user-try", "--unshare-pid", "--unshare-net", "--unshare-ipc"),
        *("--dev", "/dev", "--proc", "/proc", "--bind", folder, folder),
        *(
            part
            for path in (*_SYSTEM, *readable, str(_INSIDE))
            for part in ("--ro-bind-try", path, path)
        ),
    ]


_lock = threading.RLock()
_sockets: WeakSet[socket.socket] = WeakSet()
#: The sandboxes of this process, by whether they are for queries.
_sandboxes: dict[bool, "Sandbox"] = {}


def _socketpair() -> tuple[socket.socket, socket.socket]:
    with _lock:
        pair = socket.socketpair()
        _sockets.update(pair)
        return pair


def _leave() -> None:
    """Close the sandbox in a fork of the grader, which could otherwise outlive it with its programs."""
    _sandboxes.clear()
    for each in list(_sockets):
        each.close()
    _lock.release()


os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_leave)


T = TypeVar("T")


def in_sandbox(run: Callable[[Sandbox], T], *, queries: bool = False) -> T:
    """Call a function with a sandbox that has a slot for it, and again if the sandbox fails.

    Raises:
        SandboxError: the sandbox failed in each try.
    """
    tries_left = TRIES
    while True:
        try:
            sandbox = local_sandbox(queries=queries)
            with sandbox.slots:
                return run(sandbox)
        except SandboxError:
            tries_left -= 1
            if not tries_left:
                raise
            time.sleep(RETRY_SECONDS)


def local_sandbox(*, queries: bool = False) -> Sandbox:
    """Return the sandbox of this process for programs, or for queries; a fork gets its own.

    That for queries has no bubblewrap, which would hide the databases, and sqlite3 is loaded.

    Raises:
        SandboxError: it does not start.
    """
    with _lock:
        if (sandbox := _sandboxes.get(queries)) and not sandbox.is_alive:
            _sandboxes.pop(queries).close()
        if queries not in _sandboxes:
            options: dict[str, Any] = {"bubblewrap": False, "modules": ["sqlite3"]}
            _sandboxes[queries] = Sandbox(**options) if queries else Sandbox()
        return _sandboxes[queries]
