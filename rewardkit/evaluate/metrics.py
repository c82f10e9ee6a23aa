"""Figures of judged responses: mean@n, pass@k, maj@k, lengths, each with how sure it is.

- `mean@n`: the mean over questions of the share of right responses.
- `pass@k`: `estimators.pass_at_k` (Chen et al. 2021), for every k up to n.
- `maj@k`: `estimators.majority`: ties are shared, responses without an answer do not vote.
- `verl_best@N`: verl's `best@N/mean`, with replacement: biased low, for comparison with its logs.

The 95 % intervals are over questions (`statistics.mean_interval`): responses to one question are alike.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from statistics import fmean
from typing import Any, NamedTuple

from rewardkit.evaluate.estimators import best_at_n, majority, pass_at_k
from rewardkit.evaluate.judge import Outcome
from rewardkit.responses.completions import REFUSED, TRUNCATED, UNUSABLE
from rewardkit.responses.tally import count_no_answer
from rewardkit.scorers.base import Status
from rewardkit.statistics import mean_interval, percentile


class Answered(NamedTuple):
    """A question with its responses: how many, how many are right, and `majority` of them.

    `majority` is empty where a response is right and the scorer does not say with which answer.
    """

    n: int
    right: int
    majority: array[float]


@dataclass
class Group:
    """Questions of one kind, summed up as they come.

    Attributes:
        questions: each with its responses.
        statuses: of responses.
        finishes: why responses ended.
        truncated_right: responses that were cut off and are right all the same.
        score: the sum of the rewards.
        characters: of each response.
        tokens: of each response whose number is known.
    """

    questions: list[Answered] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    finishes: Counter[str] = field(default_factory=Counter)
    truncated_right: int = 0
    score: float = 0.0
    characters: array[int] = field(default_factory=lambda: array("q"))
    tokens: array[int] = field(default_factory=lambda: array("q"))

    def add(self, answered: Answered, outcomes: Iterable[Outcome]) -> None:
        """Count a question."""
        self.questions.append(answered)
        for each in outcomes:
            self.statuses[each.status] += 1
            self.finishes[each.finish] += 1
            self.truncated_right += each.right and each.finish == TRUNCATED
            self.score += each.score
            self.characters.append(each.characters)
            if each.tokens is not None:
                self.tokens.append(each.tokens)

    @property
    def n(self) -> tuple[int, int]:
        """The least and the most responses to a question; there is at least one."""
        counts = [each.n for each in self.questions]
        return min(counts), max(counts)

    @property
    def truncated_share(self) -> float | None:
        """The share of responses that were cut; None if no response says why it ended."""
        responses = len(self.characters)
        return None if self.finishes[""] == responses else self.finishes[TRUNCATED] / responses

    @property
    def no_answer_share(self) -> float:
        """The share of responses without an answer, as `rewardkit score` counts them."""
        return count_no_answer(self.statuses) / len(self.characters)

    @property
    def unusable(self) -> dict[str, int]:
        """How many responses are not the model's own, by finish_reason; they count as wrong."""
        found = [(finish, n) for finish, n in self.finishes.items() if finish in UNUSABLE]
        return dict(sorted(found, key=lambda each: (-each[1], each[0])))

    def unusable_note(self) -> str:
        """A sentence about them, "" if there are none."""
        if not (found := self.unusable):
            return ""
        each = ", ".join(f"{finish} {n:,}" for finish, n in found.items())
        n, responses = sum(found.values()), len(self.characters)
        return f"no usable response for {n:,} of {responses:,} ({each}); they count as wrong."

    def mean(self) -> tuple[float, tuple[float, float]]:
        """mean@n with its interval; there is at least one question."""
        values = [each.right / each.n for each in self.questions]
        return fmean(values), mean_interval(values, len(self.characters))

    def summary(self) -> dict[str, Any]:
        """The figures, as plain values; a figure with an interval is `value` and `interval`."""
        responses = len(self.characters)
        if not responses:
            return {"questions": 0, "responses": 0}
        n = self.n[0]
        return {
            "questions": len(self.questions),
            "responses": responses,
            "n": list(self.n),
            "mean": self.at(lambda each: each.right / each.n),
            "mean_score": self.score / responses,
            "pass@k": self._each_k(n, lambda k: lambda each: pass_at_k(each.n, each.right, k)),
            "maj@k": self._majorities(n),
            "verl_best@N": {
                str(k): fmean(best_at_n(each.n, each.right, k) for each in self.questions)
                for k in _verl_sizes(n)
            },
            "truncated": {**self._share(self.finishes[TRUNCATED]), "right": self.truncated_right},
            "finish_reason_unknown": self.finishes[""],
            "no_answer": self._share(count_no_answer(self.statuses)),
            "refused": self.finishes[REFUSED],
            "unusable": self.unusable,
            "failed": self.statuses[Status.FAILED.value],
            "statuses": dict(self.statuses.most_common()),
            "characters": _lengths(self.characters),
            "tokens": _lengths(self.tokens),
        }

    def at(self, value: Callable[[Answered], float], k: int = 1) -> dict[str, Any]:
        """The mean of a value of k responses, with its interval; n hold n / k independent draws."""
        values = [value(each) for each in self.questions]
        return {"value": fmean(values), "interval": mean_interval(values, len(self.characters) / k)}

    def _each_k(
        self, n: int, of_k: Callable[[int], Callable[[Answered], float]]
    ) -> dict[str, dict[str, Any]]:
        return {str(k): self.at(of_k(k), k) for k in range(1, n + 1)}

    def _majorities(self, n: int) -> dict[str, dict[str, Any]]:
        """For every k where all questions have it; else of all responses of each.

        None if the scorer calls responses right without naming their answer.
        """
        if not all(each.majority for each in self.questions):
            return {}
        if all(len(each.majority) >= n for each in self.questions):
            return self._each_k(n, lambda k: lambda each: each.majority[k - 1])
        return {str(n): self.at(lambda each: each.majority[-1], n)}

    def _share(self, part: int) -> dict[str, Any]:
        return {"n": part, "share": part / len(self.characters)}


@dataclass
class Figures:
    """Groups of questions, by data source, subject and level.

    Attributes:
        total: all questions.
        sources: by data source.
        subjects: by data source, then subject, of the rows that name one.
        levels: by data source, then level.
    """

    total: Group = field(default_factory=Group)
    sources: dict[str, Group] = field(default_factory=dict)
    subjects: dict[str, dict[str, Group]] = field(default_factory=dict)
    levels: dict[str, dict[str, Group]] = field(default_factory=dict)

    def summary(self) -> dict[str, Any]:
        """All figures as plain values."""
        return {
            "total": self.total.summary(),
            "by_data_source": {name: group.summary() for name, group in self.sources.items()},
            "by_subject": _nested(self.subjects),
            "by_level": _nested(self.levels),
        }

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """Count a question by all its responses."""
        of_question = answered(outcomes)
        source, subject, level = outcomes[0].group
        groups = [self.total, self.sources.setdefault(source, Group())]
        for kind, name in ((self.subjects, subject), (self.levels, level)):
            if name:
                groups.append(kind.setdefault(source, {}).setdefault(name, Group()))
        for group in groups:
            group.add(of_question, outcomes)


def figures(outcomes: Iterable[Outcome]) -> Figures:
    """Figures of judged responses, those to one question one after the other."""
    found = Figures()
    for _, responses in groupby(outcomes, lambda each: each.question):
        found.add(list(responses))
    return found


def answered(outcomes: Sequence[Outcome]) -> Answered:
    """The responses to one question, at least one, counted."""
    votes: dict[str, list[bool]] = {}
    for each in outcomes:
        votes.setdefault(each.vote, []).append(each.right)
    silent = votes.pop("", [])
    shares = [(len(rights), sum(rights) / len(rights)) for rights in votes.values()]
    right = sum(each.right for each in outcomes)
    chances = [] if any(silent) else majority(shares, len(silent))
    return Answered(len(outcomes), right, array("d", chances))


def _verl_sizes(n: int) -> list[int]:
    """The N of verl's validation metrics: powers of 2 below n, and n."""
    return [*(1 << i for i in range(1, n.bit_length()) if 1 << i < n), *([n] if n > 1 else [])]


def _lengths(values: array[int]) -> dict[str, Any]:
    """Mean, and the values that so many per cent of responses do not exceed (nearest rank)."""
    if not values:
        return {"known": 0}
    ordered = sorted(values)
    ranks = {f"p{part}": percentile(ordered, part) for part in (50, 95)}
    return {"known": len(ordered), "mean": fmean(ordered), **ranks, "max": ordered[-1]}


def _nested(groups: dict[str, dict[str, Group]]) -> dict[str, dict[str, Any]]:
    return {
        source: {name: group.summary() for name, group in sorted(named.items())}
        for source, named in groups.items()
    }
