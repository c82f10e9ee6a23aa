"""Measure the time per call on real responses, ours and the peers'. Prints tables.

    python benchmarks/speed.py --cases ../shared/cases --peers-python .venv-peers/bin/python

The interpreters are those of accuracy.py. Both sides get the same responses three times, and the
shortest time of a call counts, because other jobs of the machine only add time. Our caches are emptied
before every call, as if no answer occurred twice; the peers keep theirs. A peer that is not installed
is left out and named.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from caches import answer_caches
from peers.graders import ask

from rewardkit.answers.equal import compare, parse_answer
from rewardkit.answers.extract import final_answer, gold_answer
from rewardkit.scorers import gsm8k, math, math_dapo, mcq

PASSES = 3

ANSWERS = (
    "42",
    "-3.75",
    "1,234",
    r"50\%",
    r"10^{-3}",
    r"\frac{3}{4}",
    r"2\sqrt{3}",
    r"\frac{5\pi}{6}",
    "x^2+2x+1",
    "x = 5",
    "(1, 2)",
    r"[0, \infty)",
    r"\{1, 2, 3\}",
    r"\frac{-b+\sqrt{b^2-4ac}}{2a}",
    r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}",
)

#: Texts that make extractors superlinear when they are repeated.
SHAPES = {
    "prose and formulas": "Then $x = \\frac{1}{2}$, so the answer is 4.\n",
    "unclosed boxes": "\\boxed{",
    "hashes": "#### ",
    "answer lines": "Answer: ",
    "dollars": "$",
    "digits": "1,",
    "open tags": "<answer>",
    "blank": " ",
}


class Input(NamedTuple):
    """A call: a response, its gold and the other fields of the row."""

    response: str
    gold: str
    extra: dict[str, Any] | None = None


def main() -> None:
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=Path, required=True, help="folder of the labelled cases")
    parser.add_argument(
        "--peers-python", type=Path, required=True, help="interpreter with math-verify"
    )
    parser.add_argument(
        "--verl-python", type=Path, default=here.parent / ".venv-verl-0.9.1/bin/python"
    )
    options = parser.parse_args()

    logging.disable(logging.CRITICAL)  # a row whose gold is not a number is logged once
    print_calls(options)
    print_limits(options.cases)
    print_rungs(options.cases)


# --- inputs ---------------------------------------------------------------------------------------


def rows(cases: Path, name: str) -> list[dict[str, Any]]:
    lines = (cases / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["solution_str"]]


def long_responses(cases: Path) -> list[dict[str, Any]]:
    """Read the MATH responses of 2 to 5 KB."""
    return [
        r for r in rows(cases, "real_zeroeval_mathl5") if 2000 <= len(r["solution_str"]) <= 5000
    ]


# --- measuring ------------------------------------------------------------------------------------


def our_times(score: Callable[[Input], object], inputs: Sequence[Input]) -> list[float]:
    """Return the microseconds of each input, sorted."""
    score(inputs[0])
    caches = answer_caches()
    passes = [[nanoseconds(score, each, caches) for each in inputs] for _ in range(PASSES)]
    return shortest_times(passes)


def nanoseconds(
    action: Callable[[Any], object], argument: object, caches: Sequence[Any] = ()
) -> int:
    for cached in caches:
        cached.cache_clear()
    started = time.perf_counter_ns()
    action(argument)
    return time.perf_counter_ns() - started


def peer_times(python: Path, name: str, inputs: Sequence[Input]) -> list[float]:
    """Return the microseconds of each input, sorted; empty if the peer is not installed."""
    calls = [
        {"response": each.response, "gold": each.gold} for _ in range(PASSES) for each in inputs
    ]
    answers = ask(python, name, calls)
    if isinstance(answers, str):
        print(f"- {name} is left out: {answers}")
        return []
    times = [verdict.ns for verdict in answers.verdicts]
    return shortest_times([times[i : i + len(inputs)] for i in range(0, len(times), len(inputs))])


def shortest_times(passes: list[list[int]]) -> list[float]:
    return sorted(min(times) / 1000 for times in zip(*passes, strict=True))


# --- the tables -----------------------------------------------------------------------------------


def print_calls(options: argparse.Namespace) -> None:
    long = long_responses(options.cases)
    boxed = [Input(r["solution_str"], r["ground_truth"]) for r in long]
    lines = [
        Input(f"{r['solution_str']}\nAnswer: {r['answer_field']}", r["ground_truth"]) for r in long
    ]
    hashes = [
        Input(r["solution_str"], r["ground_truth"])
        for r in rows(options.cases, "real_gsm8k_openai")
    ]
    choices = rows(options.cases, "real_mcq_mmlupro")
    letters = [
        Input(r["solution_str"], r["ground_truth"], {"options": r["options"]}) for r in choices
    ]

    verl = options.verl_python
    by_hash = peer_times(verl, "verl gsm8k", hashes)
    by_letter = peer_times(verl, "verl math_reward", letters)
    by_line = peer_times(verl, "verl math_dapo", lines)
    by_box = peer_times(verl, "verl math_dapo", boxed)
    called = peer_times(verl, "verl gsm8k dispatched", hashes)
    verified = peer_times(options.peers_python, "math-verify", boxed)
    table = (
        ("`math`, MATH responses of 2 to 5 KB", ours_math, boxed, "math-verify", verified),
        (
            "`math_dapo`, the same with an `Answer:` line",
            ours_dapo,
            lines,
            "verl math_dapo",
            by_line,
        ),
        ("`math_dapo`, the same, boxed only", ours_dapo, boxed, "verl math_dapo", by_box),
        ("`gsm8k`, GSM8K responses", ours_gsm8k, hashes, "verl gsm8k", by_hash),
        ("`gsm8k` robust, the same", ours_robust, hashes, "verl gsm8k", by_hash),
        ("`gsm8k` as verl calls it", ours_called, hashes, "verl's dispatcher", called),
        ("`mcq`, MMLU-Pro responses", ours_mcq, letters, "verl math_reward", by_letter),
        (
            "`mcq` with the row's options",
            ours_mcq_options,
            letters,
            "verl math_reward",
            by_letter,
        ),
    )
    print(
        "\n| what | calls | median us | p99 us | per s | peer | median us | p99 us | per s | ratio |"
    )
    print("|---" * 10 + "|")
    for what, score, inputs, peer, theirs in table:
        ours = our_times(score, inputs)
        ratio = f"{rate(ours) / rate(theirs):.1f}" if theirs else ""
        print(f"| {what} | {len(ours)} | {figures(ours)} | {peer} | {figures(theirs)} | {ratio} |")


def ours_math(each: Input) -> object:
    return math.score(each.response, each.gold)


def ours_dapo(each: Input) -> object:
    return math_dapo.score(each.response, each.gold)


def ours_gsm8k(each: Input) -> object:
    return gsm8k.score(each.response, each.gold)


def ours_robust(each: Input) -> object:
    return gsm8k.score(each.response, each.gold, method="robust")


def ours_called(each: Input) -> object:
    return gsm8k.compute_score("openai/gsm8k", each.response, each.gold)


def ours_mcq(each: Input) -> object:
    return mcq.score(each.response, each.gold)


def ours_mcq_options(each: Input) -> object:
    return mcq.score(each.response, each.gold, each.extra)


def figures(times: list[float]) -> str:
    if not times:
        return " | | "
    return f"{percentile(times, 50)} | {percentile(times, 99)} | {rate(times):,.0f}"


def rate(times: list[float]) -> float:
    """Calls per second over all calls, including the slow ones."""
    return 1e6 * len(times) / sum(times)


def percentile(times: list[float], percent: int) -> str:
    value = times[min(len(times) - 1, len(times) * percent // 100)]
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def print_limits(cases: Path) -> None:
    print("\n| what | figure |")
    print("|---|---|")
    caches = answer_caches()
    parsed = [
        min(nanoseconds(parse_answer, text, caches) for _ in range(200)) / 1000 for text in ANSWERS
    ]
    print(
        f"| parse of a typical answer ({len(ANSWERS)} of them), median | {statistics.median(parsed):.1f} us |"
    )
    print(f"| the slowest of them | {max(parsed):.1f} us |")

    name, ratio, milliseconds = max(map(growth, SHAPES), key=lambda shape: shape[1])
    print(
        f"| extraction, 1 MB to 50 KB, worst of {len(SHAPES)} texts ({name}) | {ratio:.1f} times (20 is linear), {milliseconds:.1f} ms |"
    )

    hostile = rows(cases, "adversarial_inputs")
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        passes = [pool.apply(hostile_times, (hostile,)) for _ in range(PASSES)]
    slowest, which = max(
        (min(times), row["desc"])
        for times, row in zip(zip(*passes, strict=True), hostile, strict=True)
    )
    print(f"| slowest of {len(hostile)} adversarial inputs ({which}) | {slowest / 1e6:.1f} ms |")


def hostile_times(hostile: list[dict[str, Any]]) -> list[int]:
    """Return the CPU nanoseconds of each input, in a process that has not seen it."""
    times = []
    for row in hostile:
        started = time.process_time_ns()
        math.score(row["solution_str"], str(row["ground_truth"]))
        times.append(time.process_time_ns() - started)
    return times


def growth(name: str) -> tuple[str, float, float]:
    """Return the name, the time for 1 MB relative to that for 50 KB, and the milliseconds for 1 MB."""
    small, large = (
        min(nanoseconds(final_answer, SHAPES[name] * (size // len(SHAPES[name]))) for _ in range(5))
        for size in (50_000, 1_000_000)
    )
    return name, large / small, large / 1e6


def print_rungs(cases: Path) -> None:
    rungs = ("text", "number", "words", "value")
    print("\n| answers of | compared |", " | ".join(rungs), "|")
    print("|---" * (2 + len(rungs)) + "|")
    for name in ("real_gsm8k_openai", "real_zeroeval_mathl5", "hardverify"):
        counts: Counter[str] = Counter()
        for row in rows(cases, name):
            if answer := final_answer(row["solution_str"]):
                counts[compare(answer.text, gold_answer(row["ground_truth"])).rung] += 1
        total = counts.total()
        print(f"| {name} | {total} |", " | ".join(f"{counts[r] / total:.1%}" for r in rungs), "|")


if __name__ == "__main__":
    main()
