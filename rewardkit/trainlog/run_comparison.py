"""Runs against a first one, as in an ablation: where their curves differ, and their settings."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import fsum, sqrt
from statistics import fmean
from typing import Any, Literal, TypeAlias

from rewardkit.errors import DataError, UsageError
from rewardkit.statistics import student_t_quantile
from rewardkit.trainlog.charts import elapsed_hours
from rewardkit.trainlog.series import Series, finite, part
from rewardkit.trainlog.topics import TOPICS, validations
from rewardkit.trainlog.training_run import TrainingRun

Align: TypeAlias = Literal["step", "hours"]

#: Points that an interval needs, and how many independent ones these must be worth.
FEWEST, WORTH = 8, 2.0

#: Places at which runs that are aligned by time are compared.
PLACES = 200

#: Steps in common that a difference needs.
LEAST = 2

#: How much of the end is looked at for itself.
END = 0.8


#: Characters of a setting that is read as a value; a longer one is compared as text.
MAX_SETTING = 10_000


@dataclass(frozen=True)
class MeanInterval:
    """A mean difference with its 95 % interval; None where there are too few points for one."""

    mean: float
    low: float | None = None
    high: float | None = None

    @property
    def clear(self) -> bool:
        """Whether there is an interval, and it leaves out 0."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


@dataclass(frozen=True)
class CurveDifference:
    """A curve of two runs.

    Attributes:
        title: which curve.
        n: places at which both have a value.
        base: the first run's mean over them; `other` the other's.
        whole: other minus base, over all of them.
        end: the same over the last fifth.
    """

    title: str
    n: int
    base: float
    other: float
    whole: MeanInterval
    end: MeanInterval


@dataclass(frozen=True)
class SettingDifference:
    """A configuration key with its value in both runs."""

    key: str
    base: Any
    other: Any


@dataclass(frozen=True)
class RunComparison:
    """A run against the first one.

    Attributes:
        base: name of the first run; `other` of the other.
        align: what is compared: the same `step`, or the same `hours` of training.
        differences: by curve.
        settings: configuration keys that both have, with different values.
        only: how many keys only one of them has: (base, other).
    """

    base: str
    other: str
    align: Align
    differences: tuple[CurveDifference, ...]
    settings: tuple[SettingDifference, ...]
    only: tuple[int, int]

    def plain(self) -> dict[str, Any]:
        """The comparison as plain values for JSON."""
        return {
            "base": self.base,
            "other": self.other,
            "align": self.align,
            "differences": [
                {**vars(item), "whole": vars(item.whole), "end": vars(item.end)}
                for item in self.differences
            ],
            "settings": [vars(item) for item in self.settings],
            "keys_only_in": {"base": self.only[0], "other": self.only[1]},
        }


def compare_runs(runs: Sequence[TrainingRun], align: Align = "step") -> list[RunComparison]:
    """Every run against the first.

    Raises:
        UsageError: there is one run only, or `hours` are asked of a run that logs no time.
        DataError: two runs have no two steps in common.
    """
    if len(runs) < 2:
        raise UsageError("a comparison needs two runs or more: rewardkit logs compare A B.")
    return [_compare(runs[0], other, align) for other in runs[1:]]


def mean_interval(differences: Sequence[float]) -> MeanInterval:
    """The mean, with a 95 % interval where there are points enough.

    Neighbouring steps are alike. So `n` of them are worth `n * (1 - r) / (1 + r)` independent ones,
    `r` being the correlation of neighbours with its bias `(1 + 3 r) / n` (Kendall 1954) taken out,
    and the interval is Student's t of that many. A difference that grows or falls all the way is
    worth hardly one, and has none.
    """
    n, middle = len(differences), fmean(differences)
    if n < FEWEST:
        return MeanInterval(middle)
    off = [value - middle for value in differences]
    spread = fsum(value * value for value in off)
    if spread <= (1e-9 * middle) ** 2 * n:  # one and the same difference throughout
        return MeanInterval(middle, middle, middle)
    alike = fsum(a * b for a, b in pairwise(off)) / spread
    alike = min(max(alike + (1 + 3 * alike) / n, 0.0), 1.0)
    worth = n * (1 - alike) / (1 + alike)
    if worth < WORTH:
        return MeanInterval(middle)
    reach = student_t_quantile(worth - 1) * sqrt(spread / n / (worth - 1))
    return MeanInterval(middle, middle - reach, middle + reach)


def _compare(base: TrainingRun, other: TrainingRun, align: Align) -> RunComparison:
    times = (_times(base, align), _times(other, align))
    found = []
    for title, first, second in _pairs(base, other):
        together = _together(first, second, *times) if align == "hours" else _same(first, second)
        if len(together) >= LEAST:
            found.append(_difference(title, together))
    if not found:
        raise DataError(f"{base.path} and {other.path} have no two steps of one curve in common.")
    settings, only = _settings(base.config, other.config)
    return RunComparison(base.name, other.name, align, tuple(found), settings, only)


def _difference(title: str, together: Sequence[tuple[float, float]]) -> CurveDifference:
    ones, others = zip(*together, strict=True)
    apart = [b - a for a, b in together]
    end = [value for _, value in part(list(enumerate(apart)), END, 1.0)]
    return CurveDifference(
        title, len(together), fmean(ones), fmean(others), mean_interval(apart), mean_interval(end)
    )


def _pairs(base: TrainingRun, other: TrainingRun) -> Iterator[tuple[str, Series, Series]]:
    """The curves that both have."""
    for topic in TOPICS:
        yield topic.title["en"], base.series(*topic.names), other.series(*topic.names)
    first, second = validations(base), validations(other)
    for name in first:
        yield f"validation {name}", first[name], second.get(name, ())


def _same(first: Series, second: Series) -> list[tuple[float, float]]:
    """Both values at the steps that both have."""
    values = dict(finite(second))
    return [(value, values[step]) for step, value in finite(first) if step in values]


def _together(
    first: Series, second: Series, times: Mapping[int, float], others: Mapping[int, float]
) -> list[tuple[float, float]]:
    """Both values at the same times: at each, the last one that had been logged."""
    ones = [(times[step], value) for step, value in finite(first)]
    twos = [(others[step], value) for step, value in finite(second)]
    if not ones or not twos:
        return []
    start, end = max(ones[0][0], twos[0][0]), min(ones[-1][0], twos[-1][0])
    if end <= start:
        return []
    n = min(PLACES, len(ones), len(twos))
    places = [start + (end - start) * i / max(n - 1, 1) for i in range(n)]
    return list(zip(_at(ones, places), _at(twos, places), strict=True))


def _at(points: Sequence[tuple[float, float]], places: Sequence[float]) -> Iterator[float]:
    i = 0
    for place in places:
        while i + 1 < len(points) and points[i + 1][0] <= place:
            i += 1
        yield points[i][1]


def _times(run: TrainingRun, align: Align) -> dict[int, float]:
    if align == "step":
        return {}
    found = elapsed_hours(run)
    if found is None:
        raise UsageError(f"{run.path}: the log has no times; use --x step.")
    return dict(zip(run.steps, found, strict=True))


def _settings(
    base: Mapping[str, Any], other: Mapping[str, Any]
) -> tuple[tuple[SettingDifference, ...], tuple[int, int]]:
    both = sorted(base.keys() & other.keys())
    different = (SettingDifference(key, base[key], other[key]) for key in both)
    found = tuple(item for item in different if _value(item.base) != _value(item.other))
    return found, (len(base.keys() - other.keys()), len(other.keys() - base.keys()))


def _value(setting: Any) -> Any:
    """A setting as the value it is, whether a command line or a configuration says it."""
    if not isinstance(setting, str):
        return setting
    if len(setting) > MAX_SETTING:
        return setting
    words = {"true": True, "false": False, "null": None, "none": None}
    if setting.lower() in words:
        return words[setting.lower()]
    try:
        return ast.literal_eval(setting)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return setting
