"""Nothing is paid to a hostile program, nothing is left behind by it, and the grader lives on."""

import importlib.util
import json
import os
import platform
import signal
import struct
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from platform import machine
from unittest.mock import MagicMock

import pytest

from rewardkit.programs import grade, local
from rewardkit.programs.grade import Grading, grade_locally
from rewardkit.programs.inside import jail
from rewardkit.programs.problem import read_problem
from tests.processes import has_ended, wait_until
from tests.programs.hostile import CALL, CALLS, CODE, HELPERS, READS, RUN, TESTS, WRITES

ANSWER = "the-answer-is-4242"
STDIN = {"inputs": ["7\n"], "outputs": [ANSWER]}
FUNCTION = {"inputs": [[7]], "outputs": [[41, ANSWER]], "fn_name": "f"}
CHECK = {"test": TESTS, "entry_point": "f"}

SECCOMP_ONLY = pytest.param({"landlock": False, "bubblewrap": False}, id="seccomp only")
BEST = pytest.param({}, id="best level")

LOCAL_SANDBOX = local.local_sandbox


@pytest.fixture(
    scope="module",
    params=[BEST, pytest.param(SECCOMP_ONLY.values[0], id="seccomp only", marks=pytest.mark.full)],
)
def sandbox(request):
    """The sandbox of this process at one of its levels; nothing of its programs is left at the end."""
    yield from of_level(request.param)


@pytest.fixture(scope="module", params=[BEST, SECCOMP_ONLY])
def any_sandbox(request):
    """The same at both levels."""
    yield from of_level(request.param)


def of_level(options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grade, "IDLE_SECONDS", 0.1)
        files, threads = len([*Path("/proc/self/fd").iterdir()]), threading.active_count()
        sandbox = local.Sandbox(**options)
        if sandbox.failure:
            pytest.skip(f"programs cannot be confined here: {sandbox.failure}")
        patch.setattr(local, "local_sandbox", lambda **_: sandbox)
        yield sandbox
        assert wait_until(lambda: not descendants(sandbox._process.pid), 5)
        assert wait_until(lambda: not any(Path(sandbox._folder).iterdir()), 5)
        assert verdict(STDIN, f"print('{ANSWER}')").is_right
        sandbox.close()
        assert not Path(sandbox._folder).exists()
        assert len([*Path("/proc/self/fd").iterdir()]) <= files  # other tests close some
        assert threading.active_count() == threads


def descendants(pid):
    """Return the processes that a process has started, and those that they have."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    children = [each for each in parents if parents[each] == pid]
    return children + [each for child in children for each in descendants(child)]


def verdict(row, program, **options):
    options = {"seconds": 0.4, "total_seconds": 2.0, "memory_mb": 128, **options}
    return grade_locally(read_problem(json.dumps(row)), program, Grading(**options))


@pytest.mark.parametrize("name", RUN)
def test_no_output_is_paid_that_is_not_the_expected_one(sandbox, name):
    program, reasons = RUN[name]
    if "architecture" in name and machine() != "x86_64":
        pytest.skip("its code is that of x86-64")
    result = verdict(STDIN, HELPERS + program)
    reasons = (reasons,) if isinstance(reasons, str) else reasons
    assert any(reason in result.failure["reason"] for reason in reasons), result.failure
    assert not result.is_right


@pytest.mark.parametrize("name", CALL)
def test_no_result_is_paid_that_is_not_the_expected_one(sandbox, name):
    result = verdict(FUNCTION, HELPERS + CALL[name], seconds=0.15)
    assert result.failure
    assert not result.is_right


@pytest.mark.parametrize("name", CODE)
def test_no_test_that_is_code_is_passed_by_a_trick(sandbox, name):
    result = verdict(CHECK, HELPERS + CODE[name], total_seconds=0.15)
    assert result.failure
    assert result.passed == 0


@pytest.mark.parametrize("kind", ["reads", "writes"])
def test_a_program_reaches_nothing_outside_of_it(any_sandbox, tmp_path, kind):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    lines = [f"import os\nGRADER, SECRET = {os.getpid()}, {str(secret)!r}"]
    for name, statement in (READS if kind == "reads" else WRITES).items():
        lines.append(f"try:\n    {statement}; print({name!r})\nexcept Exception: pass")
    result = verdict({"inputs": [""], "outputs": ["no"]}, "\n".join(lines), seconds=2)
    reached = set(result.failure["got"].splitlines())
    if any_sandbox.level == "seccomp":  # where files can be read
        reached -= {name for name in READS if "file" in name or "lists" in name or "sibl" in name}
    assert not reached
    assert secret.read_text() == "secret"
    assert not Path("/tmp/rewardkit-probe").exists()


@pytest.mark.skipif(machine() != "x86_64", reason="the numbers are those of x86-64")
def test_a_system_call_that_is_not_listed_does_not_exist(any_sandbox):
    program = HELPERS + (
        f"for name, number in {CALLS!r}.items():\n"
        "    if syscall(number, 0, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() != 38: print(name)"
    )
    assert verdict({"inputs": [""], "outputs": ["no"]}, program).failure["got"] == ""


@pytest.mark.parametrize(
    "header", ["/usr/include/asm-generic/unistd.h", "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"]
)
def test_the_numbers_of_system_calls_are_those_of_the_kernel(header):
    if not Path(header).exists():
        pytest.skip(f"{header} is not installed (linux-libc-dev)")
    column = 2 if "generic" in header else 1
    numbers = {}
    for line in Path(header).read_text().splitlines():
        match line.split():
            case ["#define", name, number] if number.isdigit():
                numbers[name.removeprefix("__NR3264_").removeprefix("__NR_")] = int(number)
    calls = f"{jail._CALLS},{jail._WRITING_CALLS},{jail._JOB_CALLS},{jail._CLONE}"
    calls += (
        ",fcntl 72 25,ioctl 16 29,prlimit64 302 261,socketpair 53 199,sendto 44 206,capset 126 91"
    )
    for call in calls.split(","):
        name, number = call.split()[0], call.split()[column]
        if number != "-":
            aliases = {"newfstatat": "fstatat", "pread64": "pread64"}
            assert numbers.get(name, numbers.get(aliases.get(name, ""))) == int(number), call


def unpacked(code):
    return [*struct.iter_unpack("HBBI", bytes(code))]


def decision(filters, call, *arguments, machine):
    """Return what filters of classic BPF decide about a system call: whether it is allowed."""
    data = struct.pack("iIQ6Q", call, machine, 0, *arguments, *[0] * (6 - len(arguments)))
    for lines in filters:
        position, value = 0, 0
        while True:
            code, yes, no, operand = lines[position]
            position += 1
            if code == 0x20:
                (value,) = struct.unpack_from("I", data, operand)
            elif code == 0x06:
                break
            else:
                position += yes if (value == operand if code == 0x15 else value & operand) else no
        if operand != 0x7FFF0000:
            return False
    return True


@pytest.mark.parametrize("folder", [None, 7], ids=["without a folder", "with a folder"])
@pytest.mark.parametrize("name", ["x86_64", "aarch64"])
def test_the_filters_of_both_machines_allow_what_they_list(monkeypatch, name, folder):
    filters, column = [], 1 + (name == "aarch64")
    monkeypatch.setattr(platform, "machine", lambda: name)
    spec = importlib.util.spec_from_file_location("jail_of_another_machine", jail.__file__)
    other = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(other)
    monkeypatch.setattr(other, "_install", lambda each: filters.append(unpacked(each[1])))
    monkeypatch.setattr(other, "_require", lambda _: 0)
    monkeypatch.setattr(other, "_libc", MagicMock())
    other.confine_job()
    job = [*filters]
    other.confine_runner(folder)

    def allowed(call, *arguments, at=filters):
        number = int(call.split()[column])
        return decision(at, number, *arguments, machine=other._audit_arch)

    for table, of_runner in (
        (other._CALLS, True),
        (other._WRITING_CALLS, folder is not None),
        (other._JOB_CALLS, False),
    ):
        for call in table.split(","):
            if call.split()[column] != "-":
                assert allowed(call, at=job)
                assert allowed(call) == of_runner, call
    assert allowed("clone 56 220", 0x3D0F00)
    assert not allowed("clone 56 220", 17)
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC, os.O_RDWR | os.O_TMPFILE, 3):
        assert allowed("openat 257 56", 0, 0, flags) == (folder is not None)
    assert allowed("fcntl 72 25", 0, 3)
    assert not allowed("fcntl 72 25", 0, 8)
    assert allowed("prlimit64 302 261", 0)
    assert not allowed("prlimit64 302 261", 1)
    assert allowed("sendto 44 206", 0, 0, 0, 0, 0)
    assert not allowed("sendto 44 206", 0, 0, 0, 0, 1 << 40)
    assert not allowed("socketpair 53 199", 2)
    assert not allowed("execve 59 221")
    assert not decision(filters, 1, machine=0x40000003)


RIGHT = {
    "prints": (STDIN, "print('the-answer-is-' + str(4235 + int(input())))"),
    "writes bytes": (STDIN, f"import sys; sys.stdin.buffer.read(); sys.stdout.buffer.write(b'{ANSWER}')"),
    "opens descriptor 0": (STDIN, f"open(0).read(); print('{ANSWER}')"),
    "exits": (STDIN, f"print('{ANSWER}'); exit()"),
    "prints at its end": (STDIN, f"import atexit; atexit.register(print, '{ANSWER}')"),
    "computes in threads": (
        STDIN,
        ("from concurrent.futures import ThreadPoolExecutor\n"
        f"with ThreadPoolExecutor(4) as pool: print(*pool.map(str, ['{ANSWER}']))"),
    ),
    "runs asyncio": (STDIN, f"import asyncio\nasync def f(): print('{ANSWER}')\nasyncio.run(f())"),
    "does not read": ({"inputs": ["7" * (1 << 20)], "outputs": ["1"]}, "print(1)"),
    "reads much": ({"inputs": ["7" * (1 << 20)], "outputs": ["1048576"]}, "print(len(input()))"),
    "prints much": ({"inputs": [""], "outputs": ["7" * (1 << 20)]}, "print('7' * (1 << 20))"),
    "recurses": (STDIN, ("import sys\nsys.setrecursionlimit(10**6)\ndef f(n): return n and f(n - 1)\n"
        f"f(20000); print('{ANSWER}')")),
    "returns": (FUNCTION, f"class Solution:\n    def f(self, x): return (41, '{ANSWER}')"),
    "is tested": (
        CHECK,
        ("def f(x):\n    if isinstance(x, (list, tuple)): return [f(each) for each in x]\n"
        "    return '4000' + x if isinstance(x, str) else 4000 + x"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_program_is_paid(sandbox, name):
    result = verdict(*RIGHT[name])
    assert result.is_right, result.failure


def test_programs_of_many_threads_get_their_own_verdicts(sandbox):
    def outputs(number):
        row = {"inputs": [str(number)], "outputs": [str(number if number % 2 else -1)]}
        return verdict(row, "print(input())", seconds=5).is_right

    with ThreadPoolExecutor(64) as pool:
        assert [*pool.map(outputs, range(64))] == [number % 2 == 1 for number in range(64)]


def test_a_program_is_tried_again_whose_server_is_killed(monkeypatch):
    monkeypatch.setattr(grade, "IDLE_SECONDS", 5)
    monkeypatch.setattr(local, "local_sandbox", LOCAL_SANDBOX)
    first = local.local_sandbox()
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(verdict, STDIN, f"import time; time.sleep(0.3); print('{ANSWER}')")
        assert wait_until(lambda: len(descendants(first._process.pid)) == 2)
        first._process.kill()
        assert job.result().is_right
    assert local.local_sandbox() is not first
    assert not Path(first._folder).exists()
    local.local_sandbox().close()


def test_a_sandbox_without_a_folder_says_what_to_do(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/nonexistent")
    with pytest.raises(local.SandboxError, match="in /nonexistent: .* or set TMPDIR"):
        local.Sandbox()


def test_the_folder_of_a_killed_server_is_removed_by_the_next_one(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    old, new = (tmp_path / f"rewardkit-code-{name}" for name in ("old", "new"))
    (old / "job").mkdir(parents=True)
    new.mkdir()
    first, second = local.Sandbox(), None
    for folder in (old, Path(first._folder)):
        os.utime(folder, (0, 0))
    try:
        second = local.Sandbox()
        assert {*tmp_path.iterdir()} == {new, Path(first._folder), Path(second._folder)}
    finally:
        for each in filter(None, (first, second)):
            each.close()


GRADER = """
import os, threading, time
from rewardkit.programs import local
from tests.programs.test_sandbox import STDIN, verdict
threading.Thread(target=verdict, args=(STDIN, "while True: pass"), kwargs={"seconds": 99}).start()
while not local._sandboxes: time.sleep(0.01)
sandbox = local.local_sandbox()
time.sleep(0.3)
child = os.fork()
if not child:
    print(verdict(STDIN, "print('the-answer-is-4242')").is_right, flush=True)
    local.local_sandbox().close()
    time.sleep(99)
print(sandbox._process.pid, child, sandbox._folder, flush=True)
time.sleep(99)
"""


def test_a_killed_grader_leaves_nothing_even_while_its_fork_lives_and_grades():
    with subprocess.Popen(
        [sys.executable, "-c", GRADER], stdout=subprocess.PIPE, text=True
    ) as grader:
        lines = [grader.stdout.readline().split() for _ in range(2)]
        ((server, child, folder),) = [line for line in lines if len(line) == 3]
        assert ["True"] in lines
        pids = [int(server), *descendants(int(server))]
        assert len(pids) == 3  # the server, the job and the runner
        grader.kill()
        assert wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), 5)
        assert wait_until(lambda: not Path(folder).exists(), 5)
        assert Path(f"/proc/{child}").exists()
        os.kill(int(child), signal.SIGKILL)
        assert has_ended(int(child))
