"""The child process that lets bash read a script, with nothing to run and nothing to write to.

Four fences, each of which holds alone for most of what a script may try:

- `bash_text` leaves no file in the text, and `stand_ins.bash` no command and no builtin that acts;
- bash is restricted: no command with a path, no output file, no `PATH`, no disabled builtin;
- the kernel (Linux on x86-64 and ARM) refuses every system call that bash does not need: it starts no
  program, opens no socket, sends no signal, makes, changes and lists no file, and leaves no group;
- limits of memory, CPU time and processes, and the guard of `isolate` that kills the group.

RLIMIT_NPROC counts the processes of a user and does not hold for root, so root becomes a user that no
other process has. Where that is not allowed only the deadline ends a script that forks.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import resource
import select
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from rewardkit.errors import DataError
from rewardkit.isolate.child import Channel
from rewardkit.launch.script_import.answers import Answers

#: Seconds of a run and of its CPU time, bytes of a process, of what it sends, and of a here-document.
RUN_SECONDS, CPU_SECONDS = 10, 5
MEMORY, OUTPUT, DOCUMENT = 400 << 20, 16 << 20, 8 << 20

#: Processes of a script at one time, and questions that it asks.
PROCESSES, QUESTIONS = 64, 20_000

#: System calls that bash makes when it starts no program, by machine, then `openat` and `execve`.
_CALLS = {
    "x86_64": (
        0xC000003E,
        """0 1 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 21 22 23 25 28 32 33 35 39 56 57 58 60 61 63 72 79 89
        95 96 97 98 99 100 102 104 107 108 110 111 115 118 120 121 124 131 158 201 202 217 218 219 228
        229 230 231 247 262 267 269 270 273 292 293 302 318 332 334 439""",
        (257, 59),
    ),
    "aarch64": (
        0xC00000B7,
        """17 23 24 25 29 48 57 59 61 62 63 64 65 66 67 72 73 78 79 80 93 94 95 96 98 99 101 113 114 115 124
        128 132 134 135 139 148 150 153 155 156 158 160 163 165 166 169 172 173 174 175 176 177 179 214
        215 216 220 222 226 233 260 261 278 291 293 439""",
        (56, 221),
    ),
}
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000


def serve(channel: Channel) -> None:
    """Run the scripts that are asked for, one after the other; reply with what each calls."""
    while True:
        request = channel.receive()
        try:
            channel.send(_run(**request))
        except RecursionError:
            channel.send({"refused": "nested too deep."})
        except DataError as error:
            channel.send({"refused": str(error)})


def _run(
    bash: str,
    text: str,
    environment: Mapping[str, str],
    arguments: Sequence[str],
    answers: Mapping[str, Any],
) -> dict[str, Any]:
    """Let bash read a script, and return the `Answers` that it got."""
    oracle = Answers(**answers)
    rewritten = oracle.script.rewrite(text)
    questions, their_questions = os.pipe()
    their_answers, replies = os.pipe()
    token, token_back = os.pipe()
    os.write(token_back, b"x")
    with TemporaryFile() as script, TemporaryFile() as stdin:
        script.write(b"unset __TEXT;" + rewritten.encode("utf-8", "replace"))
        stdin.write((oracle.script.mark("what is read from the terminal", 1) + "\n").encode() * 50)
        for file in (script, stdin):
            file.seek(0)
        stand_ins = Path(__file__).with_name("stand_ins.bash").read_text(encoding="utf-8")
        words = [bash, "--norc", "--noprofile", "-c", stand_ins, *arguments]
        child = os.fork()
        if not child:
            try:
                null = os.open(os.devnull, os.O_RDWR)
                descriptors = [
                    stdin.fileno(),
                    null,
                    null,
                    their_questions,
                    their_answers,
                    token,
                    token_back,
                ]
                _take(dict(enumerate(descriptors)) | {7: script.fileno(), 8: null})
                _limit()
                _start(words, environment)
            finally:
                os._exit(126)
    for descriptor in (their_questions, their_answers, token, token_back):
        os.close(descriptor)
    try:
        status = _converse(oracle, child, questions, replies)
    finally:
        os.close(questions)
        os.close(replies)
    if status == 97:
        raise DataError("bash is older than 4.4, and reads launch scripts from 4.4 on.")
    return oracle.result()


def _take(descriptors: Mapping[int, int]) -> None:
    """Give the process its descriptors, by the numbers that `stand_ins.bash` knows."""
    copies = {n: fcntl.fcntl(old, fcntl.F_DUPFD_CLOEXEC, 20) for n, old in descriptors.items()}
    for number, descriptor in copies.items():
        os.dup2(descriptor, number)


def _converse(oracle: Answers, child: int, questions: int, replies: int) -> int:
    """Answer the questions of a script until it ends; return its exit status."""
    end, status = time.monotonic() + RUN_SECONDS, None
    reader = _Questions(oracle, replies)
    while not oracle.is_done:
        seconds = end - time.monotonic()
        if seconds <= 0 and status is None:
            raise DataError(f"takes longer than {RUN_SECONDS} seconds.")
        if seconds <= 0:
            raise DataError("leaves commands in the background, which do not end.")
        is_ready = select.select([questions], [], [], min(seconds, 0.1))[0]
        if is_ready and not reader.take(os.read(questions, 1 << 16)):
            break
        if status is None:
            ended, code = os.waitpid(child, os.WNOHANG)
            if ended:
                status, end = os.waitstatus_to_exitcode(code), min(end, time.monotonic() + 3)
    if oracle.is_done and status is None:  # a loop that starts the same again and again
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return 0
    if status is None:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status < 0:
        raise DataError("takes more memory or CPU time than an import may.")
    return status


class _Questions:
    """Puts the questions of all processes of a script together, and answers them."""

    def __init__(self, oracle: Answers, replies: int) -> None:
        self.oracle, self.replies = oracle, replies
        self.size = self.count = 0
        self.rest = b""
        self.partial: dict[bytes, list[bytes]] = {}

    def take(self, piece: bytes) -> bool:
        """Take what a script sent; return whether there can be more."""
        self.size += len(piece)
        if self.size > OUTPUT:
            raise DataError(f"passes on more than {OUTPUT >> 20} MB.")
        *messages, self.rest = (self.rest + piece).split(b"\0")
        for message in messages:
            process, _, text = message.partition(b"\x1f")
            if text:
                self.partial.setdefault(process, []).append(text)
                continue
            self.count += 1
            if self.count > QUESTIONS:
                raise DataError(f"calls more than {QUESTIONS:,} commands.")
            whole = b"".join(self.partial.pop(process, [])).decode("utf-8", "replace")
            answer = self.oracle.answer(whole.split("\x1f"))
            if answer is not None:
                with suppress(BrokenPipeError):  # it has ended
                    os.write(self.replies, answer.encode("utf-8", "replace") + b"\0")
        return bool(piece)


def _limit() -> None:
    """Give this process limits, and make it a user of its own if it is root's."""
    for kind, most in (
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_FSIZE, DOCUMENT),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 64),
    ):
        resource.setrlimit(kind, (most, most))
    others = 0
    if os.geteuid() == 0:
        for user in (0x60000000 + os.getppid(), 65534):  # all runs of an import share it
            try:
                os.setgroups([])
                os.setresgid(user, user, user)
                os.setresuid(user, user, user)
                break
            except OSError:
                continue
    elif Path("/proc/self/task").is_dir():
        others = sum(_tasks())
    resource.setrlimit(resource.RLIMIT_NPROC, (others + PROCESSES, others + PROCESSES))


def _tasks() -> Iterator[int]:
    """Yield the number of threads of each process of this user, which the limit counts as well."""
    for folder in Path("/proc").glob("[0-9]*/task"):
        try:
            if folder.stat().st_uid == os.getuid():
                yield sum(1 for _ in folder.iterdir())
        except OSError:
            continue


def _start(words: Sequence[str], environment: Mapping[str, str]) -> None:
    """Become bash, which the kernel lets do nothing else than read."""
    program = ctypes.create_string_buffer(words[0].encode())
    libc = ctypes.CDLL(None, use_errno=True)
    argv = (ctypes.c_char_p * (len(words) + 1))(*(word.encode() for word in words), None)
    listed = [f"{name}={value}".encode("utf-8", "replace") for name, value in environment.items()]
    envp = (ctypes.c_char_p * (len(listed) + 1))(*listed, None)
    _fence(libc, ctypes.addressof(program))
    libc.execve(program, argv, envp)


def _fence(libc: Any, program: int) -> None:
    """Refuse the system calls that bash does not need; `execve` takes this one program only."""
    known = _CALLS.get(platform.machine())
    if known is None or sys.platform != "linux":
        return
    arch, calls, (openat, execve) = known
    low, high = program & 0xFFFFFFFF, program >> 32
    flags = os.O_ACCMODE | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_DIRECTORY
    rules = [(0x20, 0, 0, 4), (0x15, 1, 0, arch), (6, 0, 0, _REFUSE | 38), (0x20, 0, 0, 0)]
    rules += [(0x15, 0, 4, openat), (0x20, 0, 0, 32), (0x54, 0, 0, flags)]
    rules += [(0x15, 0, 1, os.O_CLOEXEC), (6, 0, 0, _ALLOW)]
    rules += [(0x20, 0, 0, 0), (0x15, 0, 5, execve), (0x20, 0, 0, 16), (0x15, 0, 3, low)]
    rules += [(0x20, 0, 0, 20), (0x15, 0, 1, high), (6, 0, 0, _ALLOW), (0x20, 0, 0, 0)]
    for call in calls.split():
        rules += [(0x15, 0, 1, int(call)), (6, 0, 0, _ALLOW)]
    rules.append((6, 0, 0, _REFUSE | 38))

    class Rule(ctypes.Structure):
        _fields_ = [("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte), ("no", ctypes.c_ubyte), ("k", ctypes.c_uint)]  # fmt: skip

    class Program(ctypes.Structure):
        _fields_ = [("size", ctypes.c_ushort), ("rules", ctypes.POINTER(Rule))]

    filters = (Rule * len(rules))(*(Rule(*rule) for rule in rules))
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    libc.prctl(22, 2, ctypes.byref(Program(len(rules), filters)), 0, 0)  # PR_SET_SECCOMP
