"""Curves of a reward, from its recorder or from verl, and how far they rise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log, sqrt

from rewardkit.trainlog.series import Series, finite, mean, noise
from rewardkit.trainlog.topics import REWARD, validations
from rewardkit.trainlog.training_run import ResponseSample, TrainingRun

#: A level has risen or fallen if it differs by this many standard errors.
LEVEL_ERRORS = 4.0

#: Points whose mean is the level of a curve.
LEVEL_POINTS = 5

#: Metrics of a recorder that are not parts of a reward.
NOT_PARTS = frozenset(
    "score acc no_answer timeout error response_characters distinct_answers several_boxes "
    "copied_prompt seconds calls_per_second".split()
)


def reward_prefixes(run: TrainingRun) -> list[str]:
    """Return the prefixes of a recorder's metrics: of each training source, if there are several."""
    ends = "/score/mean"
    sources = [
        name[: -len(ends) + 1]
        for name in run.table
        if name.startswith("rewards@") and name.endswith(ends)
    ]
    return sources if len(sources) > 1 else ["rewards/"]


def score_curve(run: TrainingRun, prefix: str) -> list[tuple[int, float]]:
    """Return the score that the recorder has under a prefix, else the reward that verl logs."""
    return finite(run.series(f"{prefix}score/mean", *REWARD.names))


def points_before(series: Series, step: int) -> Series:
    """Return the last points up to a step, at least one."""
    return [point for point in series if point[0] <= step][-2 * LEVEL_POINTS :] or series[:1]


def gain_since(series: Series, since: int, errors: float = LEVEL_ERRORS) -> float:
    """Return by how much the end of a curve is above its level at a step; 0 if within noise."""
    before, late = points_before(series, since), series[-LEVEL_POINTS:]
    difference = mean(late) - mean(before)
    error = noise(series) * sqrt(1 / len(before) + 1 / len(late))
    return difference if difference > errors * error else 0.0


def is_score(run: TrainingRun, prefix: str, name: str) -> bool:
    """Whether a metric is the score under another name, as `acc` of most scorers."""
    pairs = zip(run.column(name), run.column(f"{prefix}score/mean"), strict=False)
    both = [(a, b) for a, b in pairs if a is not None and b is not None]
    if len(both) < 3:
        return True
    middle = [sum(values) / len(both) for values in zip(*both, strict=True)]
    xy = sum((a - middle[0]) * (b - middle[1]) for a, b in both)
    xx, yy = (sum((pair[i] - middle[i]) ** 2 for pair in both) for i in (0, 1))
    return bool(xy >= 0 and xy * xy >= 0.9999 * xx * yy)


def correctness_curves(
    run: TrainingRun, prefix: str, keys: Sequence[str]
) -> Iterator[tuple[str, Sequence[tuple[int, float]]]]:
    """Yield the curves that show whether answers are right: parts, then validations."""
    for key in keys:
        name = f"{prefix}{key}/mean"
        if name in run.table and not is_score(run, prefix, name):
            yield name, finite(run.series(name))
    for source, series in validations(run).items():
        if source != "loss":
            yield f"validation {source}", finite(series)
    for key in keys:
        if series := finite(run.series(f"rewards-val/{key}/mean")):
            yield f"rewards-val/{key}/mean", series


def part_curves(
    run: TrainingRun, prefix: str, keys: Sequence[str]
) -> dict[str, list[tuple[int, float]]]:
    """Return the curves of the reward's parts, without those that measure correctness."""
    ends = "/mean"
    return {
        name: finite(run.series(name))
        for name in run.table
        if name.startswith(prefix)
        and name.endswith(ends)
        and name[len(prefix) : -len(ends)] not in NOT_PARTS.union(keys)
    }


def shares_by_step(
    samples: Sequence[ResponseSample], marks: Sequence[bool]
) -> list[tuple[int, float]]:
    """Return the share of marked samples by step."""
    counts: dict[int, tuple[int, int]] = {}
    for sample, mark in zip(samples, marks, strict=True):
        n, m = counts.get(sample.step, (0, 0))
        counts[sample.step] = n + 1, m + mark
    return [(step, m / n) for step, (n, m) in sorted(counts.items())]


def length_correlation(samples: Sequence[ResponseSample], size: int = 24) -> float:
    """Return the correlation of log length and score within blocks of neighbouring samples."""
    xx = xy = yy = 0.0
    for at in range(0, len(samples), size):
        block = samples[at : at + size]
        xs = [log(1 + len(sample.response)) for sample in block]
        ys = [sample.score for sample in block]
        x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
        for x, y in zip(xs, ys, strict=True):
            xx += (x - x_mean) ** 2
            yy += (y - y_mean) ** 2
            xy += (x - x_mean) * (y - y_mean)
    return xy / sqrt(xx * yy) if xx * yy > 0 else 0.0
