"""Summary of a run: its settings, its duration and its curves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Any

from rewardkit.trainlog.series import Series, finite, trend
from rewardkit.trainlog.topics import (
    reward_metrics,
    step_seconds,
    time_parts,
    topic_series,
    topic_title,
    validations,
)
from rewardkit.trainlog.training_run import TrainingRun

#: Settings that describe a run; the first key that is set counts.
SETTINGS: dict[str, tuple[str, ...]] = {
    "algorithm": ("algorithm.adv_estimator",),
    "project": ("trainer.project_name",),
    "experiment": ("trainer.experiment_name",),
    "model": ("actor_rollout_ref.model.path", "model.partial_pretrain"),
    "responses per prompt": ("actor_rollout_ref.rollout.n",),
    "prompts per step": ("data.train_batch_size",),
    "learning rate": ("actor_rollout_ref.actor.optim.lr", "optim.lr"),
    "max response": ("actor_rollout_ref.rollout.response_length", "data.max_response_length"),
    "KL loss": ("actor_rollout_ref.actor.use_kl_loss",),
    "KL in reward": ("algorithm.use_kl_in_reward",),
}


@dataclass(frozen=True, kw_only=True)
class CurveSummary:
    """Summary of a curve.

    Attributes:
        id: id of the topic, or data source of a validation.
        title: title in the language of the summary.
        first: first finite point; None if there is none, as for the next three.
        last: last finite point.
        low: lowest point.
        high: highest point.
        trend: change from the first fifth of the points to the last; 0 if it is within the noise,
            None for fewer than five points.
        missing: number of points that are NaN or infinite.
        points: all points.
    """

    id: str
    title: str
    first: tuple[int, float] | None
    last: tuple[int, float] | None
    low: tuple[int, float] | None
    high: tuple[int, float] | None
    trend: float | None
    missing: int
    points: tuple[tuple[int, float], ...]


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """Summary of a run.

    Attributes:
        run: the run.
        algorithm: as configured, or as its metrics suggest; "" if unknown.
        settings: further settings by name, see `SETTINGS`.
        seconds: sum of the durations of its steps; None if it logs none.
        hours: hours from the first step's time stamp to the last; None without time stamps.
        phases: share of the steps' time by phase.
        curves: reward, entropy, length, ...
        validations: a curve for each data source.
        rewards: a curve for each metric of the reward's records.
    """

    run: TrainingRun
    algorithm: str
    settings: dict[str, Any]
    seconds: float | None
    hours: float | None
    phases: dict[str, float]
    curves: tuple[CurveSummary, ...]
    validations: tuple[CurveSummary, ...]
    rewards: tuple[CurveSummary, ...]

    def summary(self) -> dict[str, Any]:
        """Return the summary as plain values for JSON."""
        run = self.run
        return {
            "name": run.name,
            "path": run.path,
            "source": run.source,
            "era": run.era,
            "algorithm": self.algorithm,
            "settings": self.settings,
            "steps": {"n": len(run.steps), "first": run.steps[0], "last": run.steps[-1]},
            "gaps": [list(gap) for gap in run.gaps],
            "restarts": [dict(vars(restart)) for restart in run.restarts],
            "rewritten": run.rewritten,
            "unread": {"lines": run.unread, "first": [dict(vars(item)) for item in run.examples]},
            "seconds": self.seconds,
            "hours_by_clock": self.hours,
            "time_split": self.phases,
            "curves": {curve.id: _curve_values(curve) for curve in self.curves},
            "validation": {curve.id: _curve_values(curve) for curve in self.validations},
            "rewards": {curve.id: _curve_values(curve) for curve in self.rewards},
        }


def summarize(run: TrainingRun, lang: str = "en") -> RunSummary:
    """Summarize a run, with titles in `en` or `zh`."""
    times = step_seconds(run)
    settings = {name: run.setting(*keys) for name, keys in SETTINGS.items()}
    return RunSummary(
        run=run,
        algorithm=str(settings.pop("algorithm") or _algorithm_of_metrics(run)),
        settings={name: value for name, value in settings.items() if value is not None},
        seconds=sum(value for _, value in finite(times)) if times else None,
        hours=_logged_hours(run),
        phases=_phase_shares(run, times),
        curves=tuple(
            summarize_curve(topic.id, topic_title(topic, [run], lang), points)
            for topic, points in topic_series(run)
        ),
        validations=tuple(
            summarize_curve(name, name, points) for name, points in validations(run).items()
        ),
        rewards=tuple(
            summarize_curve(name, name, run.series(name)) for name in reward_metrics(run)
        ),
    )


def summarize_curve(name: str, title: str, points: Series) -> CurveSummary:
    """Summarize a curve."""
    numbers = finite(points)
    return CurveSummary(
        id=name,
        title=title,
        first=numbers[0] if numbers else None,
        last=numbers[-1] if numbers else None,
        low=min(numbers, key=lambda point: point[1], default=None),
        high=max(numbers, key=lambda point: point[1], default=None),
        trend=trend(numbers),
        missing=len(points) - len(numbers),
        points=tuple(points),
    )


def _algorithm_of_metrics(run: TrainingRun) -> str:
    if "critic/vf_loss" in run.table:
        return "PPO (has a critic)"
    return "SFT" if "train/loss" in run.table else ""


def _logged_hours(run: TrainingRun) -> float | None:
    times = [time for time in run.clock if time is not None]
    return (times[-1] - times[0]) / 3600 if len(times) > 1 else None


def _phase_shares(run: TrainingRun, times: Iterable[tuple[int, float]]) -> dict[str, float]:
    total = sum(seconds for _, seconds in times if isfinite(seconds))
    if total <= 0:
        return {}
    sums = {
        name: sum(value for _, value in finite(series)) for name, series in time_parts(run).items()
    }
    rest = total - sum(sums.values())
    if rest > 0.005 * total:
        sums["other"] = rest
    return {
        name: seconds / total for name, seconds in sorted(sums.items(), key=lambda item: -item[1])
    }


def _curve_values(curve: CurveSummary) -> dict[str, Any]:
    return {
        "title": curve.title,
        "points": len(curve.points),
        "not_a_number": curve.missing,
        **{name: getattr(curve, name) for name in ("first", "last", "low", "high", "trend")},
    }
