"""Confine this process: no capabilities, Landlock, seccomp and resource limits, without root.

The system calls that a program may use are listed; all others fail with ENOSYS, so that glibc falls
back to older ones, and a call that a later kernel adds is not allowed. None of them starts a process,
opens a network socket or sends a signal to another process. Calls that are only partly allowed are
checked by an argument: `fcntl` could have a signal sent to any process (F_SETOWN), `prlimit64` could
set the limits of one, and `sendto` with an address reaches sockets of the host.

Without Landlock (Linux before 5.13, or a container that refuses it) no file can be written or locked,
but what the user can read a program can read: files, such as the rows with their tests, and named
pipes. The memory and the descriptors of the user's other processes it can only read where it cannot
have a user namespace of its own, and of the grader never (`hide_memory`).
"""

import ctypes
import errno
import os
import platform
import resource
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

#: Names of allowed system calls with their numbers on x86-64 and aarch64, from the kernel's
#: `asm/unistd_64.h` and `asm-generic/unistd.h`; `-` where the machine does not have the call.
_CALLS: Final = """
read 0 63, write 1 64, readv 19 65, writev 20 66, pread64 17 67, pwrite64 18 68, preadv 295 69,
pwritev 296 70, preadv2 327 286, pwritev2 328 287, lseek 8 62, close 3 57, close_range 436 436,
fstat 5 80, stat 4 -, lstat 6 -, newfstatat 262 79, statx 332 291, statfs 137 43, fstatfs 138 44,
poll 7 -, ppoll 271 73, select 23 -, pselect6 270 72, mmap 9 222, mprotect 10 226, munmap 11 215,
brk 12 214, mremap 25 216, madvise 28 233, rt_sigaction 13 134, rt_sigprocmask 14 135,
rt_sigreturn 15 139, rt_sigpending 127 136, rt_sigsuspend 130 133, rt_sigtimedwait 128 137,
sigaltstack 131 132, access 21 -, faccessat 269 48, faccessat2 439 439, pipe 22 -, pipe2 293 59,
dup 32 23, dup2 33 -, dup3 292 24, sched_yield 24 124, sched_getaffinity 204 123,
sched_getparam 143 121, sched_getscheduler 145 120, nanosleep 35 101, clock_nanosleep 230 115,
getitimer 36 102, setitimer 38 103, alarm 37 -, pause 34 -, getpid 39 172, gettid 186 178,
getppid 110 173, getuid 102 174, geteuid 107 175, getgid 104 176, getegid 108 177,
getgroups 115 158, getpgrp 111 -, getpgid 121 155, getsid 124 156, getresuid 118 148,
getresgid 120 150, getpriority 140 141, uname 63 160, sysinfo 99 179, getcwd 79 17, chdir 80 49,
fchdir 81 50, readlink 89 -, readlinkat 267 78, getdents64 217 61, getrlimit 97 163,
setrlimit 160 164, getrusage 98 165, times 100 153, time 201 -, gettimeofday 96 169,
clock_gettime 228 113, clock_getres 229 114, futex 202 98, futex_waitv 449 449,
set_robust_list 273 99, set_tid_address 218 96, rseq 334 293, exit 60 93, exit_group 231 94,
open 2 -, openat 257 56,
getrandom 318 278, membarrier 324 283, getcpu 309 168, restart_syscall 219 128, umask 95 166,
epoll_create1 291 20, epoll_ctl 233 21, epoll_wait 232 -, epoll_pwait 281 22, eventfd2 290 19,
recvfrom 45 207, shutdown 48 210, getsockname 51 204, getsockopt 55 209
"""
#: Calls that change files; a runner may use them where Landlock confines them to its folder.
_WRITING_CALLS: Final = """
ftruncate 77 46, fsync 74 82, fdatasync 75 83, unlink 87 -, unlinkat 263 35, rename 82 -,
renameat 264 38, renameat2 316 276, creat 85 -
"""
#: Calls of a job, which starts, confines and ends runners; a runner may not use them.
_JOB_CALLS: Final = """
fork 57 -, vfork 58 -, wait4 61 260, waitid 247 95, kill 62 129, pidfd_open 434 434, prctl 157 167,
seccomp 317 277, landlock_create_ruleset 444 444, landlock_add_rule 445 445,
landlock_restrict_self 446 446, mkdir 83 -, mkdirat 258 34, rmdir 84 -, setsid 112 157
"""
_LOCKS = (5, 6, 7)
_FCNTL = (0, 1, 2, 3, 4, *_LOCKS, 1030, 1032)  # duplicates, flags, locks, size of a pipe
_IOCTL = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451, 0x802C542A)  # is it a terminal, blocking
_CLONE, _CLONE_THREAD = "clone 56 220", 0x10000
_OPEN_TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06  # instructions of the filter
_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000 | errno.ENOSYS

_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT, _CAPSET = 444, 445, 446, (126, 91)
_READ = 1 << 2 | 1 << 3  # a file, a folder
_WRITE = _READ | 1 << 1 | 1 << 5 | 1 << 8 | 1 << 13 | 1 << 14  # remove, make, refer, truncate
_FILE = 1 << 1 | 1 << 2 | 1 << 14  # what a rule may allow for a file: write, read, truncate

_libc = ctypes.CDLL(None, use_errno=True)
_column, _audit_arch = _ARCHITECTURES.get(platform.machine(), (-1, 0))


def has_seccomp() -> bool:
    """Whether this machine has a filter for system calls: a known processor and a kernel with seccomp."""
    return _column >= 0 and int(_libc.prctl(21, 0, 0, 0, 0)) >= 0


def landlock_version() -> int:
    """The version of Landlock's interface; 0 if the kernel or the container has none."""
    no_attributes, size, ask_version = None, ctypes.c_size_t(0), ctypes.c_uint32(1)
    return max(0, int(_libc.syscall(_LANDLOCK_CREATE, no_attributes, size, ask_version)))


def landlock_rules(readable: Iterable[str], writable: Iterable[str]) -> int:
    """Return the descriptor of rules that allow these files and folders, and no others."""
    version = landlock_version()
    handled = (1 << 13) - 1
    for least, bits in ((2, 1 << 13), (3, 1 << 14), (5, 1 << 15)):
        handled |= bits if version >= least else 0
    network, scope = (3 if version >= 4 else 0), (3 if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    attributes = ctypes.create_string_buffer(struct.pack("QQQ", handled, network, scope), 24)
    rules = _require(
        _libc.syscall(_LANDLOCK_CREATE, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0))
    )
    for path, access in [(p, _READ) for p in readable] + [(p, _WRITE) for p in writable]:
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue  # a folder that this distribution does not have
        allowed = access & handled
        if not Path(path).is_dir():
            allowed &= _FILE
        rule = ctypes.create_string_buffer(struct.pack("=Qi", allowed, descriptor), 12)
        _require(_libc.syscall(_LANDLOCK_ADD, rules, ctypes.c_int(1), rule, ctypes.c_uint32(0)))
        os.close(descriptor)
    return rules


def hide_memory() -> None:
    """Forbid other processes of the user to read the memory of this one."""
    _libc.prctl(4, 0, 0, 0, 0)


def leave_user() -> None:
    """Enter a new user namespace, where a program cannot look into the user's other processes."""
    _libc.unshare(0x10000000)  # which many containers refuse


def die_with_parent(parent: int) -> None:
    """End this process when its parent ends."""
    _libc.prctl(1, 9, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Make this process the parent of processes whose parent ends."""
    _libc.prctl(36, 1, 0, 0, 0)


def limit_resources(cpu_seconds: int, memory_bytes: int, file_bytes: int) -> None:
    """Limit processor time, address space, files, descriptors and core dumps."""
    limits = {
        resource.RLIMIT_CPU: cpu_seconds,
        resource.RLIMIT_AS: memory_bytes,
        resource.RLIMIT_FSIZE: file_bytes,
        resource.RLIMIT_NOFILE: 64,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
    }
    for name, value in limits.items():
        most = resource.getrlimit(name)[1]  # which only root could raise
        soft = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(name, (soft, soft + (name == resource.RLIMIT_CPU and soft != most)))


def confine_job() -> None:
    """Drop all capabilities, and allow only the system calls of programs and of jobs, if this machine can.

    Runners inherit this filter, which takes half a millisecond to install; theirs is short.

    Raises:
        OSError: the kernel refuses it.
    """
    if not has_seccomp():
        return
    header = ctypes.create_string_buffer(struct.pack("Ii", 0x20080522, 0), 8)
    _require(_libc.syscall(_CAPSET[_column], header, ctypes.create_string_buffer(24)))
    _install(_JOB_FILTER)


def _job_lines() -> list[Any]:
    """Return the filter of the system calls of programs and of jobs."""
    lines = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, _audit_arch),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
    ]
    for number in _numbers(_CALLS, _JOB_CALLS, _CLONE, _WRITING_CALLS):
        lines += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    lines += _check("fcntl 72 25", 1, _EQUAL, _FCNTL)
    lines += _check("ioctl 16 29", 1, _EQUAL, _IOCTL)
    lines += _check("prlimit64 302 261", 0, _EQUAL, [0])  # of this process only
    lines += _check("socketpair 53 199", 0, _EQUAL, [1])  # AF_UNIX, for asyncio
    for number in _numbers("sendto 44 206"):  # only without an address, both halves of which are 0
        body = [(_LOAD, 0, 0, 48), (_EQUAL, 0, 3, 0), (_LOAD, 0, 0, 52), (_EQUAL, 0, 1, 0)]
        body += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _FAIL)]
        lines += [(_EQUAL, 0, len(body), number), *body]
    return [*lines, (_RETURN, 0, 0, _FAIL)]


def confine_runner(rules: int | None) -> None:
    """Apply the rules of Landlock, if there are any, and forbid the system calls of a job.

    Raises:
        OSError: the kernel refuses one of them.
    """
    _require(_libc.prctl(38, 1, 0, 0, 0))  # no new privileges
    if rules is not None:
        _require(_libc.syscall(_LANDLOCK_RESTRICT, rules, ctypes.c_uint32(0)))
    if has_seccomp():
        _install(_RUNNER_FILTER if rules is not None else _READING_FILTER)


def _filter(lines: Iterable[tuple[int, int, int, int]]) -> tuple[Any, Any]:
    """Return a filter, given as instructions of classic BPF; it stays in memory, for forks to install."""
    data = b"".join(struct.pack("HBBI", *line) for line in lines)
    code = ctypes.create_string_buffer(data, len(data))
    program = struct.pack("HxxxxxxQ", len(data) // 8, ctypes.addressof(code))
    return ctypes.create_string_buffer(program, 16), code  # to which the program points


def _install(program: tuple[Any, Any]) -> None:
    """Install a filter."""
    _require(_libc.prctl(38, 1, 0, 0, 0))
    _require(_libc.prctl(22, 2, program[0], 0, 0))


def _numbers(*tables: str) -> Iterator[int]:
    """Return the numbers of calls on this machine; none on a processor that is not in the tables."""
    if _column < 0:
        return
    for call in ",".join(tables).split(","):
        number = call.split()[1 + _column]
        if number != "-":
            yield int(number)


def _check(
    call: str, argument: int, test: int, values: Iterable[int], *, match: bool = True
) -> list[Any]:
    """Return the lines that allow a call if its argument passes a test, or none with `match=False`."""
    lines: list[Any] = []
    for number in _numbers(call):
        on_match, otherwise = (_ALLOW, _FAIL) if match else (_FAIL, _ALLOW)
        body = [(_LOAD, 0, 0, 16 + 8 * argument)]
        for value in values:
            body += [(test, 0, 1, value), (_RETURN, 0, 0, on_match)]
        body.append((_RETURN, 0, 0, otherwise))
        lines += [(_EQUAL, 0, len(body), number), *body]
    return lines


def _refuse(calls: str) -> list[Any]:
    return [
        line
        for number in _numbers(calls)
        for line in ((_EQUAL, 0, 1, number), (_RETURN, 0, 0, _FAIL))
    ]


_RUNNER_LINES = [
    (_LOAD, 0, 0, 0),
    *_refuse(_JOB_CALLS),
    *_check(_CLONE, 0, _ANY_BIT, [_CLONE_THREAD]),
    (_RETURN, 0, 0, _ALLOW),
]
#: What a runner without Landlock gets.
_READING_LINES = [
    (_LOAD, 0, 0, 0),
    *_refuse(_WRITING_CALLS),
    *_check("open 2 -", 1, _ANY_BIT, [_OPEN_TO_WRITE], match=False),
    *_check("openat 257 56", 2, _ANY_BIT, [_OPEN_TO_WRITE], match=False),
    *_check("fcntl 72 25", 1, _EQUAL, _LOCKS, match=False),
    *_RUNNER_LINES[1:],
]
_JOB_FILTER = _filter(_job_lines())
_RUNNER_FILTER, _READING_FILTER = _filter(_RUNNER_LINES), _filter(_READING_LINES)


def _require(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(result)
