"""Measure what a judge adds to rules, and what it costs, on labelled answers. Prints a table.

    python benchmarks/judge.py --cases ../shared/cases
    python benchmarks/judge.py --cases ../shared/cases --base-url http://127.0.0.1:8000/v1 --model NAME

Without `--base-url` no model takes part: a server in this process answers from the labels
(`label_server.py`), with the errors of `--judges`. `0.9/0.1` calls 90 % of the right answers right, and
10 % of the wrong ones. Such a table says how good a judge has to be; it says nothing about any model.
Prompts, requests and the parser of replies are the real ones.

A judge's column has the accuracy, then the shares of right and of wrong answers that are paid. The
columns before it are of the first judge: the share of responses that it is asked about and the share
of those without a verdict, then questions and tokens for a thousand responses, the cost, which is in
tokens and that of the judge alone is 1, and with a model the seconds for a thousand responses.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cases import HALVES, extra_info_of, half_of
from label_server import Chances, LabelServer, serving

from rewardkit.scorers import compose, judge

#: The sets, and the judge's rubric for each.
SETS = {"redteam": "math", "hardverify": "math", "qa_evouna": "qa"}

#: The keys of `compose` for each way to score, beside the rules; None for the judge alone.
WAYS: dict[str, dict[str, Any] | None] = {
    "rules": {},
    "judge": None,
    "`ask: undecided`": {"ask": "undecided"},
    "`ask: wrong`": {"ask": "wrong"},
    "`ask: wrong`, `confirm`": {"ask": "wrong", "confirm": True},
}


class Sample(NamedTuple):
    """A labelled response, and the rules for it."""

    id: str
    response: str
    gold: Any
    label: bool
    half: str
    scorer: str
    options: str
    extra_info: Mapping[str, Any]


#: Scores a sample for verl.
Reward = Callable[[Sample], Mapping[str, Any]]


class Figures(NamedTuple):
    """Sums over the responses of a half of a set, and the seconds that they took."""

    right: int
    wrong: int
    right_paid: int
    wrong_paid: int
    judged: int
    failed: int
    questions: int
    tokens: int
    seconds: float

    @property
    def count(self) -> int:
        """Number of responses."""
        return self.right + self.wrong

    def verdicts(self) -> str:
        """Return the accuracy, and the shares of right and of wrong answers that are paid."""
        accuracy = (self.right_paid + self.wrong - self.wrong_paid) / max(1, self.count)
        right, wrong = self.right_paid / max(1, self.right), self.wrong_paid / max(1, self.wrong)
        return f"{accuracy:.3f} ({right:.3f}, {wrong:.3f})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=Path, required=True, help="folder of the labelled cases")
    parser.add_argument(
        "--rows", type=int, default=1000, help="responses of a half of a set, drawn by a hash"
    )
    parser.add_argument(
        "--judges",
        nargs="+",
        type=Chances.parse,
        default=[Chances.parse(text) for text in ("1/0", "0.95/0.05", "0.9/0.1", "0.8/0.2")],
        help="shares of right and of wrong answers that a judge without a model calls right",
    )
    parser.add_argument("--base-url", default="", help="URL of the judge's server")
    parser.add_argument("--model", default="", help="model name sent to the server")
    parser.add_argument("--concurrency", type=int, default=8, help="responses judged at a time")
    options = parser.parse_args()
    halves = [
        (name, half, samples)
        for name in SETS
        for half, samples in read_halves(options.cases / f"{name}.jsonl", options.rows).items()
    ]
    if options.base_url:
        rows = ((*half, ways_with_model(*half, options)) for half in halves)
        print_table([options.model or "judge"], rows, has_model=True)
        return
    with serving() as server:
        judges = options.judges
        rows = ((*half, ways_with_labels(*half, server, judges)) for half in halves)
        print_table([str(chances) for chances in judges], rows, has_model=False)


def read_halves(path: Path, rows: int) -> dict[str, list[Sample]]:
    """Read the responses of a set, at most `rows` of each half."""
    lines = path.read_text(encoding="utf-8").split("\n")
    samples = [to_sample(json.loads(line)) for line in lines if line]
    samples.sort(key=lambda sample: hashlib.sha256(sample.id.encode()).digest())
    return {half: [s for s in samples if s.half == half][:rows] for half in HALVES}


def to_sample(row: Mapping[str, Any]) -> Sample:
    """Convert a row of any of the sets."""
    return Sample(
        id=str(row["id"]),
        response=row["solution_str"],
        gold=row["ground_truth"],
        label=bool(row["label"]),
        half=half_of(row),
        scorer=row.get("scorer") or ("qa" if row["kind"].startswith("qa") else "math"),
        options=json.dumps(row.get("options_of_scorer") or {}),
        extra_info=extra_info_of(row),
    )


def reward_of(way: str, rubric: str, url: str, model: str) -> Reward:
    """Return the reward of one way to score, with the judge of a server."""
    server = {"rubric": rubric, "base_url": url, "model": model}
    keys = WAYS[way]

    if keys is None:
        return lambda sample: judge.compute_score(
            rubric, sample.response, sample.gold, sample.extra_info, **server
        )

    @cache
    def composed(scorer: str, options: str) -> compose.Reward:
        second = {"second": "judge", "second_options": server} if keys else {}
        parts = {"correct": 1.0}
        rules = {"scorer": scorer, "options": json.loads(options), "parts": parts}
        return compose.build({**rules, **second, **keys})

    return lambda sample: composed(sample.scorer, sample.options).compute_score(
        rubric, sample.response, sample.gold, sample.extra_info
    )


def with_labels(reward: Reward, server: LabelServer, chances: Chances) -> Reward:
    """Return a reward that tells the server of labels which case is next."""

    def score(sample: Sample) -> Mapping[str, Any]:
        server.chances, server.case = chances, (sample.id, sample.label)
        return reward(sample)

    return score


def ways_with_model(
    name: str, half: str, samples: Sequence[Sample], options: argparse.Namespace
) -> dict[str, list[Figures]]:
    """Measure every way to score with the model of a server."""
    print(f"{name}, {half} ...", file=sys.stderr)
    return {
        way: [
            measure(
                samples,
                reward_of(way, SETS[name], options.base_url, options.model),
                options.concurrency,
                confirms=confirms(way),
            )
        ]
        for way in WAYS
    }


def ways_with_labels(
    name: str, half: str, samples: Sequence[Sample], server: LabelServer, judges: Sequence[Chances]
) -> dict[str, list[Figures]]:
    """Measure every way to score with judges that know the labels; rules need none of them."""
    print(f"{name}, {half} ...", file=sys.stderr)
    columns = {}
    for way in WAYS:
        reward = reward_of(way, SETS[name], server.url, "labels")
        figures = [
            measure(samples, with_labels(reward, server, chances), 1, confirms=confirms(way))
            for chances in (judges[:1] if way == "rules" else judges)
        ]
        columns[way] = figures * (len(judges) // len(figures))
    return columns


def confirms(way: str) -> bool:
    """Return whether a yes of the judge has to be confirmed."""
    return "confirm" in (WAYS[way] or {})


def measure(samples: Sequence[Sample], reward: Reward, workers: int, *, confirms: bool) -> Figures:
    """Score responses and add up the results."""
    started = time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        results = list(pool.map(reward, samples))
    seconds = time.perf_counter() - started
    paid = [(s.label, result["acc"] == 1) for s, result in zip(samples, results, strict=True)]
    return Figures(
        right=sum(sample.label for sample in samples),
        wrong=sum(not sample.label for sample in samples),
        right_paid=paid.count((True, True)),
        wrong_paid=paid.count((False, True)),
        judged=sum(map(is_judged, results)),
        failed=sum(bool(result["error"] or result["timeout"]) for result in results),
        questions=sum(questions_of(result, confirms=confirms) for result in results),
        tokens=int(sum(result.get("judge_tokens", 0) for result in results)),
        seconds=seconds,
    )


def is_judged(result: Mapping[str, Any]) -> bool:
    """Return whether the judge gave, or should have given, a verdict."""
    return any(result.get(f"judge_{name}") for name in ("tokens", "cached", "failed"))


def questions_of(result: Mapping[str, Any], *, confirms: bool) -> int:
    """Return the number of questions about a response; the confirming one follows a yes."""
    is_yes = result.get("second_changed") or result.get("second_contradicted")
    return is_judged(result) + bool(confirms and is_yes)


def print_table(judges: list[str], halves: Iterable[tuple[Any, ...]], *, has_model: bool) -> None:
    """Print a row for each way to score each half of a set, as soon as it is measured."""
    names = [*(["s"] if has_model else []), *judges]
    print("| set | half | n | way | judged | failed | questions | tokens | cost |", end=" ")
    print(" | ".join(names), "|")
    print("|---" * (9 + len(names)) + "|")
    for name, half, samples, ways in halves:
        alone = max(1, ways["judge"][0].tokens)
        for way, columns in ways.items():
            first, thousands = columns[0], max(1, len(samples)) / 1000
            cells = [
                *(name, half, str(len(samples)), way),
                f"{first.judged / max(1, first.count):.1%}",
                f"{first.failed / max(1, first.count):.1%}",
                f"{first.questions / thousands:.0f}",
                f"{first.tokens / thousands:,.0f}",
                f"{first.tokens / alone:.2f}",
                *([f"{first.seconds / thousands:.1f}"] if has_model else []),
                *(column.verdicts() for column in columns),
            ]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
