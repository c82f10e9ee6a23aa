"""Run graders of other packages behind a pipe: cases in, verdicts out, each with its time.

    echo '{"response": "so 5", "gold": "5"}' | /tmp/peers/bin/python benchmarks/peers/graders.py NAME

A grader runs in the interpreter that has it installed. Its scoring process is a fork of a parent that
has imported it, so that replacing a process after a time-out costs milliseconds. Verdicts are lines of
`[right, nanoseconds, problem]`; `problem` is null, "timeout" or the name of an exception, and a problem
counts as a wrong answer. The first line is the grader's version.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

Case = dict[str, Any]
Grader = Callable[[str, str, bool], bool]

WALL_SECONDS = 5.0
MEMORY_BYTES = 4 << 30


class Verdict(NamedTuple):
    """A peer's verdict on a case, with nanoseconds and the problem."""

    right: bool
    ns: int
    problem: str | None


class Answers(NamedTuple):
    """A peer's version and its verdicts on all cases."""

    version: str
    verdicts: list[Verdict]


# --- this side of the pipe ------------------------------------------------------------------------


def ask(
    python: Path, name: str, cases: Iterable[Case], seconds: float = WALL_SECONDS
) -> Answers | str:
    """Return a peer's verdicts, or the reason why it could not run; a call may take `seconds`."""
    if not Path(python).exists():
        return f"{python} does not exist"
    command = [str(Path(python).absolute()), str(Path(__file__).resolve()), name, str(seconds)]
    lines = "".join(f"{json.dumps(case)}\n" for case in cases)
    with tempfile.TemporaryDirectory() as folder:  # some peers execute the code in an answer
        done = subprocess.run(
            command, input=lines, capture_output=True, text=True, cwd=folder, check=False
        )
    if done.returncode != 0:
        return done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}"
    first, *rest = done.stdout.splitlines()
    return Answers(json.loads(first), [Verdict(*json.loads(line)) for line in rest])


# --- the graders: response, gold, whether the gold is a choice -> right ----------------------------


def math_verify() -> Grader:
    """math_metric as in its README for LaTeX golds; also letters for multiple choice."""
    from math_verify import (
        ExprExtractionConfig,
        LatexExtractionConfig,
        StringExtractionConfig,
        math_metric,
    )

    targets = (LatexExtractionConfig(), ExprExtractionConfig())
    letters = StringExtractionConfig(strings=tuple("ABCDEFGHIJ"))
    plain = math_metric(targets, targets)
    choice = math_metric((letters, *targets), (letters, *targets))

    def grade(response: str, gold: str, is_choice: bool) -> bool:
        if is_choice:
            return choice([gold], [response])[0] == 1
        return plain([_as_latex(gold)], [response])[0] == 1

    return grade


def math_verify_boxed() -> Grader:
    """The same, with boxes preferred and the gold in a box."""
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, math_metric

    gold_target = (LatexExtractionConfig(),)
    target = (LatexExtractionConfig(boxed_match_priority=0), ExprExtractionConfig())
    metric = math_metric(gold_target, target)

    def grade(response: str, gold: str, _: bool) -> bool:
        return metric([gold if "\\boxed" in gold else f"\\boxed{{{gold}}}"], [response])[0] == 1

    return grade


def _as_latex(gold: str) -> str:
    marked = any(mark in gold for mark in ("$", "\\boxed", "\\(", "\\["))
    return gold if marked else f"${gold}$"


def mathruler() -> Grader:
    """Grade the last box, as EasyR1 and verl's geo3k do."""
    from mathruler.grader import extract_boxed_content, grade_answer

    return lambda response, gold, _: grade_answer(extract_boxed_content(response), gold)


def inspect_ai() -> Grader:
    """Await the `math()` scorer as a task does; it needs no model."""
    from inspect_ai.scorer import Target, math

    score = math()
    loop = asyncio.new_event_loop()

    def grade(response: str, gold: str, _: bool) -> bool:
        state = SimpleNamespace(output=SimpleNamespace(completion=response))
        return loop.run_until_complete(score(state, Target(gold))).value == "C"

    return grade


def minerva() -> Grader:
    """Run lm-eval's minerva_math; if its sentence is missing, the last box is used."""
    from lm_eval.tasks.minerva_math import utils

    def grade(response: str, gold: str, _: bool) -> bool:
        answer = utils.get_unnormalized_answer(response)
        if answer == "[invalidanswer]":
            box = utils.last_boxed_only_string(response)
            answer = utils.remove_boxed(box) if box else answer
        normal = utils.normalize_final_answer
        return bool(utils.is_equiv(normal(answer), normal(gold)))

    return grade


def verl_gsm8k() -> Grader:
    from verl.utils.reward_score import gsm8k

    return lambda response, gold, _: gsm8k.compute_score(response, gold) == 1


def verl_gsm8k_dispatched() -> Grader:
    """Call it through `default_compute_score`, as verl's reward manager does."""
    from verl.utils.reward_score import default_compute_score

    return lambda response, gold, _: default_compute_score("openai/gsm8k", response, gold) == 1


def verl_default() -> Grader:
    """Call it with a gold of `[data_source, gold]`; 0.9 is the score of an answer of Geometry3k."""
    from verl.utils.reward_score import default_compute_score

    def grade(response: str, gold: Any, _: bool) -> bool:
        result = default_compute_score(gold[0], response, gold[1])
        return bool(result["acc"]) if isinstance(result, dict) else result >= 0.9

    return grade


def verl_math_dapo() -> Grader:
    from verl.utils.reward_score import math_dapo

    return lambda response, gold, _: bool(math_dapo.compute_score(response, gold)["acc"])


def verl_math_reward() -> Grader:
    from verl.utils.reward_score import math_reward

    return lambda response, gold, _: math_reward.compute_score(response, gold) == 1


def verl_prime_math() -> Grader:
    from verl.utils.reward_score import prime_math

    return lambda response, gold, _: bool(prime_math.compute_score(response, gold)[0])


GRADERS: dict[str, tuple[str, Callable[[], Grader]]] = {
    "math-verify": ("math-verify", math_verify),
    "math-verify boxed": ("math-verify", math_verify_boxed),
    "inspect_ai": ("inspect-ai", inspect_ai),
    "mathruler": ("mathruler", mathruler),
    "lm-eval minerva": ("lm-eval", minerva),
    "verl prime_math": ("verl", verl_prime_math),
    "verl math_reward": ("verl", verl_math_reward),
    "verl math_dapo": ("verl", verl_math_dapo),
    "verl gsm8k": ("verl", verl_gsm8k),
    "verl gsm8k dispatched": ("verl", verl_gsm8k_dispatched),
    "verl default": ("verl", verl_default),
}


# --- the other side -------------------------------------------------------------------------------


def main() -> None:
    package, load = GRADERS[sys.argv[1]]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # graders print
    logging.disable(logging.CRITICAL)
    grader = load()
    child = _GraderProcess(grader, float(sys.argv[2]) if len(sys.argv) > 2 else WALL_SECONDS)
    print(json.dumps(f"{package} {version(package)}"), file=answers)
    try:
        for line in sys.stdin:
            case = json.loads(line)
            call = case["response"], case["gold"], bool(case.get("choice"))
            print(json.dumps(child.judge(call)), file=answers)
    finally:
        child.kill()
    answers.flush()
    os._exit(0)  # without waiting for threads of a grader


class _GraderProcess:
    """The scoring process; it is replaced after a time-out or a crash.

    It is not a daemon, which could not start the processes in which verl's graders run SymPy and
    programs; these are in its group and end with it.
    """

    def __init__(self, grader: Grader, seconds: float) -> None:
        self.grader, self.seconds = grader, seconds
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, child_end = context.Pipe()
        self.process = context.Process(target=_serve, args=(self.grader, child_end))
        self.process.start()
        child_end.close()

    def judge(self, call: tuple[str, str, bool]) -> Verdict:
        self.pipe.send(call)
        try:
            if self.pipe.poll(self.seconds):
                return Verdict(*self.pipe.recv())
            problem = "timeout"
        except (EOFError, ConnectionError):
            problem = "died"
        self.kill()
        self.start()
        return Verdict(False, int(self.seconds * 1e9), problem)

    def kill(self) -> None:
        if pid := self.process.pid:
            with contextlib.suppress(ProcessLookupError):  # it may not have its own group yet
                os.killpg(pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(grader: Grader, pipe: Connection) -> None:
    os.setpgid(0, 0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # a program that is graded may read it
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    while True:
        response, gold, is_choice = pipe.recv()
        problem = None
        started = time.perf_counter_ns()
        try:
            right = bool(grader(response, gold, is_choice))
        except Exception as error:  # noqa: BLE001 - a peer's failure is a wrong verdict, counted
            right, problem = False, type(error).__name__
        pipe.send((right, time.perf_counter_ns() - started, problem))


if __name__ == "__main__":
    main()
