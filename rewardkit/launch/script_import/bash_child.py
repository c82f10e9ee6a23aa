"""The child process in which bash reads a script, with nothing to run and nothing to write to.

Four fences, each of which holds alone for most of what a script may try: `stand_ins.bash` leaves no
command that acts; bash is restricted; the kernel (Linux on x86-64 and ARM) refuses every system call
that bash does not need, so that nothing starts a program, opens a socket or a file, lists a folder,
sends a signal or leaves the group; and limits of memory, CPU time, output and processes, with the
guard of `isolate`, which kills the group at the deadline.

RLIMIT_NPROC counts the processes of a user and does not hold for root, so root becomes a user that no
other process has. Where that is not allowed only the deadline ends a script that forks.
"""

import ctypes
import errno
import fcntl
import os
import platform
import resource
import struct
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile

from rewardkit.isolate.child import Channel

#: Seconds of CPU time and bytes of memory of a process, bytes of all records, and processes at one time.
CPU_SECONDS, MEMORY, OUTPUT, PROCESSES = 1, 400 << 20, 8 << 20, 64

#: By machine: its number in the kernel; `openat` and `execve`; the other calls that bash makes when it
#: starts no program.
_CALLS = {
    "x86_64": (
        *(0xC000003E, 257, 59),
        """0 1 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 21 22 23 25 28 32 33 35 39 56 57 58 60 61 63 72
        79 89 95 96 97 98 99 100 102 104 107 108 110 111 115 118 120 121 124 131 158 201 202 217 218
        219 228 229 230 231 247 262 267 269 270 273 292 293 302 318 332 334 439""",
    ),
    "aarch64": (
        *(0xC00000B7, 56, 221),
        """17 23 24 25 29 48 57 59 61 62 63 64 65 66 67 72 73 78 79 80 93 94 95 96 98 99 101 113 114
        115 124 128 132 134 135 139 148 150 153 155 156 158 160 163 165 166 169 172 173 174 175 176
        177 179 214 215 216 220 222 226 233 260 261 278 291 293 439""",
    ),
}

#: Whether the kernel refuses what bash does not need.
IS_FENCED = sys.platform == "linux" and platform.machine() in _CALLS


def serve(channel: Channel) -> None:
    """Let bash read the texts that are sent; reply with its exit status, stdout and stderr."""
    while True:
        words, text, environment = channel.receive()
        with TemporaryFile() as stdin, TemporaryFile() as stdout, TemporaryFile() as stderr:
            stdin.write(text.encode("utf-8", "replace"))
            stdin.seek(0)
            process = subprocess.run(
                [sys.executable],  # which bash becomes
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                preexec_fn=partial(_become_bash, words, environment),
                check=False,
            )
            outputs = []
            for file in (stdout, stderr):
                file.seek(0)
                outputs.append(file.read().decode("utf-8", "replace"))
        channel.send([process.returncode, *outputs])


def _become_bash(words: list[str], environment: dict[str, str]) -> None:
    """Become bash, with descriptors 5 and 6 for a token and 8 for /dev/null, within all limits."""
    copies = [
        fcntl.fcntl(each, fcntl.F_DUPFD, 20)
        for each in (*os.pipe(), os.open(os.devnull, os.O_RDWR))
    ]
    for number, copy in zip((5, 6, 8), copies, strict=True):
        os.dup2(copy, number)
        os.close(copy)
    os.write(6, b"x")
    _limit()
    program = ctypes.create_string_buffer(words[0].encode())
    libc = ctypes.CDLL(None, use_errno=True)
    argv, envp = (
        (ctypes.c_char_p * (len(each) + 1))(*(text.encode("utf-8", "replace") for text in each))
        for each in (words, [f"{name}={value}" for name, value in environment.items()])
    )
    if IS_FENCED:
        code = ctypes.create_string_buffer(_filter(ctypes.addressof(program)))
        filters = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(code))
        libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
        libc.prctl(22, 2, filters, 0, 0)  # PR_SET_SECCOMP
    libc.execve(program, argv, envp)
    os._exit(126)


def _limit() -> None:
    """Give this process limits, and make it a user of its own if it is root's."""
    processes = PROCESSES
    if os.geteuid() == 0:
        for user in (0x60000000 + os.getppid(), 65534):  # all runs of an import share it
            with suppress(OSError):
                os.setgroups([])
                os.setresgid(user, user, user)
                os.setresuid(user, user, user)
                break
    else:
        for folder in Path("/proc").glob("[0-9]*/task"):
            with suppress(OSError):
                processes += (folder.stat().st_nlink - 2) * (folder.stat().st_uid == os.getuid())
    limits = {"AS": MEMORY, "CPU": CPU_SECONDS, "FSIZE": OUTPUT, "CORE": 0, "NOFILE": 64}
    limits |= {"NPROC": processes} if sys.platform == "linux" else {}
    for name, most in limits.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))


def _filter(program: int) -> bytes:
    """Return what the kernel allows, as a BPF program; `execve` takes this one program only."""
    machine, openat, execve, calls = _CALLS[platform.machine()]
    allow, refuse = (6, 0, 0, 0x7FFF0000), (6, 0, 0, 0x00050000 | errno.ENOSYS)
    flags = os.O_ACCMODE | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_DIRECTORY
    number = (0x20, 0, 0, 0)  # loads the number of the call; from 16 on there are its arguments
    rules = [(0x20, 0, 0, 4), (0x15, 1, 0, machine), refuse, number]
    rules += [(0x15, 0, 4, openat), (0x20, 0, 0, 32), (0x54, 0, 0, flags)]
    rules += [(0x15, 0, 1, os.O_CLOEXEC), allow]
    rules += [number, (0x15, 0, 5, execve), (0x20, 0, 0, 16), (0x15, 0, 3, program & 0xFFFFFFFF)]
    rules += [(0x20, 0, 0, 20), (0x15, 0, 1, program >> 32), allow, number]
    for call in calls.split():
        rules += [(0x15, 0, 1, int(call)), allow]
    return b"".join(struct.pack("HBBI", *rule) for rule in [*rules, refuse])
