r"""Programs, run against the tests of the row in a sandbox.

verl loads this file directly: `rewardkit path code --verl` prints the override. The ground truth is JSON
text in the shapes of Eurus-2, verl's own sandbox client, HumanEval and LeetCodeDataset, which
`rewardkit.programs.problem` lists; `rewardkit.programs.extract` says which part of a response is the
program, and `rewardkit.programs.compare` when an output is right.

| reward | pays |
|---|---|
| `all` (default) | 1.0 for a program that passes every test, which ends at the first failure |
| `fraction` | the share of the tests that it passes |

No program can be paid for anything but its outputs: the expected ones stay in this process, and tests
that are code run in another process than the program. Each test is a process of its own, without
network, other processes or files but its own folder, and with limits of processor time, memory,
threads, files and output. `docs/how-to/code-rewards.md` says what confines it on which kernel. Without seccomp
no program is run, unless `unsafe=true`.

`backend=sandbox_fusion` runs programs on a SandboxFusion server instead, also those in C++, Java, Go and
JavaScript (`language` of a row). No program is there together with its expected outputs; tests that are
code have to be plain assertions (`rewardkit.programs.fusion`, `rewardkit.programs.asserts`).

A sandbox that fails does not count as a wrong answer: it is tried again, and then the sample has `error` 1.0. verl
gets these numbers for every sample, beside those of every scorer: `tests_passed`, `tests_run` and
`sandbox_level` (0 unsafe, 1 seccomp, 2 with Landlock, 3 with bubblewrap too; on a server one more, from
1 for the server alone).
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Any, Literal

from rewardkit.errors import UsageError
from rewardkit.programs.extract import program_of
from rewardkit.programs.grade import Grade, Grading, grade_locally
from rewardkit.programs.problem import Problem, ProblemError, read_problem
from rewardkit.scorers.base import (
    Score,
    Scorer,
    ScorerSpec,
    Status,
    log_once,
    verl_result_with_metrics,
)
from rewardkit.scorers.gold import reading_fault
from rewardkit.scorers.options import Range, bound_options


def respond(program: str) -> str:
    """Return a response with a program."""
    return f"```python\n{program}\n```"


def score(
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    *,
    reward: Literal["all", "fraction"] = "all",
    tests: Annotated[int, Range(0)] = 0,
    seconds: Annotated[float, Range(0.1, 3600)] = 6.0,
    total_seconds: Annotated[float, Range(0.1, 36_000)] = 60.0,
    memory_mb: Annotated[int, Range(32, 1 << 20)] = 1024,
    unsafe: bool = False,
    backend: Literal["local", "sandbox_fusion"] = "local",
    sandbox_url: str = "",
    concurrency: Annotated[int, Range(1, 4096)] = 16,
    request_seconds: Annotated[float, Range(1, 86_400)] = 180.0,
    retries: Annotated[int, Range(0, 100)] = 4,
) -> Score:
    """Run the program in a response.

    Args:
        response: the model's text.
        ground_truth: the tests as JSON text.
        extra_info: not read.
        reward: what is paid; see above.
        tests: maximum number of tests per program, drawn by the row; 0 for all. Tests that are code
            are all run.
        seconds: processor time per test; a row's own `time_limit` counts if it is longer. Tests that are
            code have four times as much in all.
        total_seconds: processor time per program.
        memory_mb: memory per test; a row's own `memory_limit` counts if it is larger.
        unsafe: run programs also where system calls cannot be filtered.
        backend: where programs run: in the sandbox of this machine, or on a SandboxFusion server.
        sandbox_url: URL of the SandboxFusion server, such as http://127.0.0.1:8080/run_code; by default
            the address that verl passes, if it passes one.
        concurrency: maximum number of concurrent requests of this process.
        request_seconds: timeout per request.
        retries: further tries of a request that failed.

    Returns:
        The reward; `pred` has the program.

    Raises:
        SandboxError: the sandbox failed.
    """
    return grade(response, ground_truth, **_options(locals()))[0]


def _options(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name in _DEFAULTS}


def grade(response: str, ground_truth: str, **options: Any) -> tuple[Score, Grade]:
    """Return the score of a response, and what became of its program.

    Raises:
        SandboxError: the sandbox failed.
    """
    options = {**_DEFAULTS, **options}
    fraction = options.pop("reward") == "fraction"
    nothing = Grade(passed=0, run=0, total=0)
    try:
        problem = read_problem(ground_truth)
    except ProblemError:
        return Score.wrong("", Status.BAD_GROUND_TRUTH), nothing
    program = program_of(response, problem.settings["language"], problem.entry_point)
    if not program:
        return Score.wrong("", Status.NO_ANSWER), nothing
    result = _grade(problem, program, Grading(fraction=fraction, **options))
    if result.is_right:
        return Score.right(program), result
    value = result.passed / result.total if fraction else 0.0
    return Score.wrong(program, Status.TIMEOUT if result.timeout else Status.WRONG, value), result


def _grade(problem: Problem, program: str, grading: Grading) -> Grade:
    if grading.backend == "sandbox_fusion":
        from rewardkit.programs.fusion import grade_remotely  # only here an HTTP client is needed

        return grade_remotely(problem, program, grading)
    if (language := problem.settings["language"]) != "python":
        raise UsageError(
            f"programs in {language} do not run here: set backend=sandbox_fusion and sandbox_url."
        )
    return grade_locally(problem, program, grading)


_DEFAULTS: Mapping[str, Any] = dict(score.__kwdefaults__ or {})


def explain_program(
    scorer: Scorer, response: str, ground_truth: str
) -> tuple[Score, tuple[tuple[str, str], ...]]:
    """Return the score of a response, and what became of its program, with the first failing test."""
    result, verdict = grade(response, ground_truth, **bound_options(scorer))
    facts = {"tests": f"{verdict.passed} passed, {verdict.run} run, {verdict.total} in all"}
    return result, tuple({**facts, "sandbox": verdict.level, **verdict.failure}.items())


#: Returns why a ground truth cannot be scored; "" if it can.
explain_gold = partial(reading_fault, read_problem, ProblemError)


def check_backend(options: Mapping[str, Any]) -> None:
    """Raise `UsageError` if the address of the sandbox is missing, wrong or not used."""
    if options.get("backend") == "sandbox_fusion":
        from rewardkit.programs.fusion import server_of

        server_of(options.get("sandbox_url", ""))
    elif options.get("sandbox_url"):
        raise UsageError(
            "sandbox_url is set, but programs run here: set backend=sandbox_fusion too."
        )


def find_faults(
    ground_truth: str, prompt: str, solution: str, options: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the tests of a row; see `programs.faults`."""
    from rewardkit.programs import faults  # only where rows are checked

    problem = read_problem(ground_truth)
    language = problem.settings["language"]
    if options.get("backend") == "sandbox_fusion":
        from rewardkit.programs.fusion import obstacle

        if reason := obstacle(problem):
            yield "bad_gold", f"backend=sandbox_fusion cannot grade this row: {reason}"
            return

    def grade_program(program: str) -> Grade:
        fence = "`" * (max(map(len, re.findall("`+", program)), default=0) + 3)
        return grade(f"{fence}{language}\n{program}\n{fence}", ground_truth, **options)[1]

    yield from faults.find_faults(problem, prompt, solution, grade_program)


def blank_metrics(_options: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a sample whose program is not run."""
    return dict.fromkeys(("tests_passed", "tests_run", "sandbox_level"), 0.0)


def compute_score(
    data_source: Any, solution_str: Any, ground_truth: Any, extra_info: Any = None, **kwargs: Any
) -> dict[str, float | str]:
    """Score a sample for verl and return the dictionary that verl logs. Never raises."""
    sample = (data_source, solution_str, ground_truth, extra_info)
    return verl_result_with_metrics(score, _judge, sample, kwargs)


def _judge(
    response: str, ground_truth: str, _info: object, **options: Any
) -> tuple[Score, Mapping[str, float]]:
    result, verdict = grade(response, ground_truth, **options)
    if verdict.level:
        log_once(("code", verdict.level), f"scorer 'code': programs run with {verdict.level}.")
    level = verdict.level.count("+") + (verdict.level not in ("", "unsafe"))
    return result, {
        "tests_passed": float(verdict.passed),
        "tests_run": float(verdict.run),
        "sandbox_level": float(level),
    }


SPEC = ScorerSpec(
    score,
    __doc__,
    respond,
    explain_gold=explain_gold,
    check_options=check_backend,
    blank_metrics=blank_metrics,
    verl_function=compute_score,
    find_faults=find_faults,
)
