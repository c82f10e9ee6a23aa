"""Grade a program: run it on the tests of its problem, and compare here what it printed or returned.

The expected outputs never leave this process, except in tests that are code: those run in the sandbox
too, in another process than the program.

A `checker` of the row, for problems with several right outputs, is a Python program that is called
as `checker.py input.txt correct_output.txt solution_output.txt` and prints 1 for right, as in
open-r1/codeforces (`generated_checker` in its dataset card). It runs in the sandbox as well.
"""

import json
import random
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any

from rewardkit.programs.compare import same_text, same_value
from rewardkit.programs.extract import defines
from rewardkit.programs.inside.wire import WireError, dump, load_tree
from rewardkit.programs.local import Run, Sandbox, SandboxError, in_sandbox
from rewardkit.programs.problem import Problem

#: Characters of an input, an output or an error that a failure quotes.
MAX_QUOTE = 2_000
#: Bytes of a result that are read in any case, and times the characters of the expected one.
MAX_PLAIN, MAX_RATIO = 200_000, 8
#: Seconds that a program may wait for nothing, beside its seconds on the processor.
IDLE_SECONDS = 2.0
#: Seconds of the processor, and of waiting, of a checker.
CHECKER_SECONDS = 10.0
#: The limits of a test that end it as a timeout.
TIMEOUTS = ("cpu", "idle")


@dataclass(frozen=True, kw_only=True)
class Grading:
    """How programs are graded; see the options of `scorers.code`."""

    fraction: bool = False
    tests: int = 0
    seconds: float = 6.0
    total_seconds: float = 60.0
    memory_mb: int = 1024
    unsafe: bool = False
    backend: str = "local"
    sandbox_url: str = ""
    concurrency: int = 16
    request_seconds: float = 180.0
    retries: int = 4


@dataclass(frozen=True, kw_only=True)
class Grade:
    """What became of a program.

    Attributes:
        passed: tests that it passed.
        run: tests that were run: all, or those up to the first failure.
        total: tests of the problem, or of the sample.
        timeout: whether a test was ended by its limit of time.
        failure: the first test that failed: `input`, `expected`, `got`, `reason`, `seconds`, `memory_mb`.
        level: how the program was confined (`local.Sandbox.level`).
    """

    passed: int
    run: int
    total: int
    timeout: bool = False
    failure: Mapping[str, str] = field(default_factory=dict)
    level: str = ""

    @property
    def is_right(self) -> bool:
        """Whether the program passed every test."""
        return self.passed == self.total > 0


def grade_locally(problem: Problem, program: str, grading: Grading) -> Grade:
    """Grade a program in the local sandbox.

    Raises:
        SandboxError: the sandbox failed in each try, or this machine cannot confine programs.
    """
    return in_sandbox(lambda sandbox: _grade(sandbox, problem, program, grading))


def _grade(sandbox: Sandbox, problem: Problem, program: str, grading: Grading) -> Grade:
    if sandbox.failure and not grading.unsafe:
        raise SandboxError(
            f"programs cannot be confined here: {sandbox.failure}. Grade with backend=sandbox_fusion, or "
            "set unsafe=true on a machine that a program may damage."
        )
    facts = {"entry_point": problem.entry_point, "prelude": problem.settings["prelude"]}
    with sandbox.program(complete(problem, program), facts) as run:
        if problem.kind == "tests":
            return _grade_tests(run, problem, grading, sandbox.level)
        tests = sample(problem, grading.tests)
        results = _run_tests(run, problem, tests, grading)
        check = partial(_check, sandbox, problem, limits_of(problem, grading))
        return grade_results(problem, tests, results, check, grading, sandbox.level)


def _run_tests(
    run: Run, problem: Problem, tests: Sequence[tuple[Any, Any]], grading: Grading
) -> Iterator[tuple[dict[str, Any], bytes]]:
    left = grading.total_seconds
    for given, _ in tests:
        request = limits_of(problem, grading, left) | {"kind": problem.kind}
        report, output = run.test(request, body_of(problem, given))
        yield report, output
        left -= report["cpu_seconds"]
        if left <= 0:
            break


def grade_results(
    problem: Problem,
    tests: Sequence[tuple[Any, Any]],
    results: Iterable[tuple[Mapping[str, Any], bytes]],
    check: Callable[[tuple[str, str, str]], str],
    grading: Grading,
    level: str,
) -> Grade:
    """Return the grade of a program by its reports and outputs.

    `check` asks the row's checker about an input, the expected and the program's output, and returns
    why it is not right.
    """
    passed, count, timeout = 0, 0, False
    failure: Mapping[str, str] = {}
    for (given, expected), (report, output) in zip(tests, results, strict=False):
        count += 1
        got, reason = outcome(problem, report, output, expected)
        if not reason and problem.settings["checker"]:
            reason = check((given, expected, got))
        if reason:
            failure = failure or describe(report, given, expected, got, reason)
            timeout = report["status"] in TIMEOUTS
        passed += not reason
        if timeout or (reason and not grading.fraction):
            break
    return Grade(
        passed=passed,
        run=count,
        total=len(tests),
        timeout=timeout,
        failure=failure,
        level=level,
    )


def complete(problem: Problem, program: str) -> str:
    """Return a program with the prompt that it continues, if it does not define its entry point."""
    prompt = problem.settings["prompt"]
    is_complete = not prompt or defines(program, problem.entry_point)
    return program if is_complete else f"{prompt}\n{program}"


def sample(problem: Problem, count: int) -> Sequence[tuple[Any, Any]]:
    """Return the tests of a problem, or the same few of them at every call."""
    tests = problem.tests
    if not 0 < count < len(tests):
        return tests
    seed = zlib.crc32(repr(tests[0]).encode("utf-8", "surrogatepass"))
    return [tests[i] for i in sorted(random.Random(seed).sample(range(len(tests)), count))]  # noqa: S311 - no secret


def limits_of(problem: Problem, grading: Grading, left: float = inf) -> dict[str, Any]:
    """Return the limits of a test of a program that has some seconds left."""
    seconds = min(max(grading.seconds, problem.settings["time_limit"]), max(left, 0.1))
    return {
        "cpu_seconds": seconds,
        "idle_seconds": seconds + IDLE_SECONDS,
        "memory_mb": int(max(grading.memory_mb, problem.settings["memory_limit"])),
    }


def body_of(problem: Problem, given: Any) -> bytes:
    """Return what the sandbox gets of a test: standard input, or arguments."""
    text = given if problem.kind == "run" else dump(given)
    return bytes(text, "utf-8", "surrogatepass")


def outcome(
    problem: Problem, report: Mapping[str, Any], output: bytes, expected: Any
) -> tuple[Any, str]:
    """Return what a program printed or returned, and why that is not right; "" if it is."""
    if problem.kind == "run":
        text = output.decode("utf-8", "replace")
        if report["status"] != "ok":
            return text, _reason(report)
        is_right = bool(problem.settings["checker"]) or same_text(output, expected)
        return text, "" if is_right else "another output"
    if report["status"] != "ok":
        return None, _reason(report)
    if len(output) > MAX_PLAIN and len(output) > MAX_RATIO * len(ascii(expected)):
        return None, "a longer result than any that is right"
    try:
        value = load_tree(output.decode())
    except (WireError, UnicodeDecodeError):
        return None, "the result cannot be read"
    is_right = expected.holds(value) if problem.kind == "assert" else same_value(value, expected)
    return value, "" if is_right else "another result"


_REASONS = {
    "cpu": "more than {cpu_seconds:.1f} seconds of processor time",
    "idle": "it waits, after {wall_seconds:.1f} seconds",
    "memory": "more memory than allowed",
    "output": "more output than allowed",
    "threads": "more threads than allowed",
    "files": "more files than allowed",
    "signal": "ended by signal {code}",
    "exit": "exit status {code}",
}


def _reason(report: Mapping[str, Any]) -> str:
    reason = _REASONS[report["status"]].format_map(report)
    last = report["stderr"].strip().rpartition("\n")[2]
    return f"{reason}: {last}" if last else reason


def describe(
    report: Mapping[str, Any], given: Any, expected: Any, got: Any, reason: str
) -> Mapping[str, str]:
    """Return a failing test as text."""
    facts = {
        "reason": reason,
        "input": given,
        "expected": expected,
        "got": got,
        "seconds": f"{report['cpu_seconds']:.3f}",
        "memory_mb": report["memory_mb"],
    }
    return {name: _quote(value) for name, value in facts.items()}


def _quote(value: Any) -> str:
    try:
        return (value if isinstance(value, str) else ascii(value))[:MAX_QUOTE]
    except (RecursionError, ValueError):  # a deep list, a long number
        return "..."


def _check(
    sandbox: Sandbox, problem: Problem, limits: Mapping[str, Any], texts: tuple[str, str, str]
) -> str:
    """Ask the row's checker about an output. Return why it is not right; "" if it is."""
    with sandbox.program(problem.settings["checker"], {}) as run:
        return checker_reason(*run.test(checker_request(limits, texts), b""))


def checker_request(limits: Mapping[str, Any], texts: tuple[str, str, str]) -> dict[str, Any]:
    """Return the request for a checker's run on an input, the expected and the program's output."""
    names = ("input.txt", "correct_output.txt", "solution_output.txt")
    seconds = {"cpu_seconds": CHECKER_SECONDS, "idle_seconds": CHECKER_SECONDS}
    files = dict(zip(names, texts, strict=True))
    return {**limits, **seconds, "kind": "run", "files": files, "arguments": names}


def checker_reason(report: Mapping[str, Any], output: bytes) -> str:
    """Return why a checker does not accept an output; "" if it does."""
    if report["status"] != "ok":
        return f"the checker failed: {_reason(report)}"
    return "" if output.split()[:1] == [b"1"] else "the checker rejects the output"


def _grade_tests(run: Run, problem: Problem, grading: Grading, level: str) -> Grade:
    limits = limits_of(problem, grading, grading.total_seconds)
    limits["cpu_seconds"] = min(grading.total_seconds, 4 * limits["cpu_seconds"])
    tests = json.dumps([text for text, _ in problem.tests]).encode()
    report, output = run.test({**limits, "kind": "tests"}, tests)
    facts: dict[str, Any] = {"failures": [], "count": 0, "passed": 0, "is_complete": False}
    reason = "" if report["status"] == "ok" else _reason(report)
    if not reason:
        facts = json.loads(output)  # of the process that ran the tests, not of the program
        if facts["is_broken"]:
            raise SandboxError(
                f"the tests of the row cannot run here: {facts['failures'][-1]['error']}"
            )
    failure: Mapping[str, str] = {}
    if facts["failures"] or reason:
        first = (
            facts["failures"][0] if facts["failures"] else {"test": "", "got": "", "error": reason}
        )
        failure = describe(report, first["test"], "", first["got"], first["error"])
    total = facts["count"] + (not facts["is_complete"])
    return Grade(
        passed=facts["passed"],
        run=facts["count"],
        total=max(total, 1),
        timeout=report["status"] in TIMEOUTS,
        failure=failure,
        level=level,
    )
