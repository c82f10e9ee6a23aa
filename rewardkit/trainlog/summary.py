"""Summary of a run: its settings, its duration and its curves."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rewardkit.trainlog.series import Series, finite, trend
from rewardkit.trainlog.topics import (
    TOPICS,
    Better,
    reward_metrics,
    step_seconds,
    time_parts,
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
        id: id of the topic, data source of a validation, or name of the metric.
        title: title in the language of the summary.
        metrics: metrics that show it, as far as rules name them.
        better: which of its values are better.
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
    metrics: tuple[str, ...]
    better: Better
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
            "curves": _curve_values(self.curves),
            "validation": _curve_values(self.validations),
            "rewards": _curve_values(self.rewards),
        }


def summarize(run: TrainingRun, lang: str = "en") -> RunSummary:
    """Summarize a run, with titles in `en` or `zh`."""
    times = finite(step_seconds(run))
    settings = {name: run.setting(*keys) for name, keys in SETTINGS.items()}
    algorithm = settings.pop("algorithm")
    if not algorithm and "critic/vf_loss" in run.table:
        algorithm = "PPO (has a critic)"
    clock = [time for time in run.clock if time is not None]
    return RunSummary(
        run=run,
        algorithm=str(algorithm or ("SFT" if "train/loss" in run.table else "")),
        settings={name: value for name, value in settings.items() if value is not None},
        seconds=sum(seconds for _, seconds in times) if times else None,
        hours=(clock[-1] - clock[0]) / 3600 if len(clock) > 1 else None,
        phases=_phase_shares(run, times),
        curves=tuple(
            summarize_curve(
                topic.id, points, topic_title(topic, run, lang), topic.names, topic.better
            )
            for topic in TOPICS
            if (points := run.series(*topic.names))
        ),
        validations=tuple(
            summarize_curve(name, points, better="lower" if name == "loss" else "higher")
            for name, points in validations(run).items()
        ),
        rewards=tuple(
            summarize_curve(name, run.series(name), metrics=(name,)) for name in reward_metrics(run)
        ),
    )


def summarize_curve(
    name: str, points: Series, title: str = "", metrics: tuple[str, ...] = (), better: Better = ""
) -> CurveSummary:
    """Summarize a curve."""
    numbers = finite(points)
    return CurveSummary(
        id=name,
        title=title or name,
        metrics=metrics,
        better=better,
        first=numbers[0] if numbers else None,
        last=numbers[-1] if numbers else None,
        low=min(numbers, key=lambda point: point[1], default=None),
        high=max(numbers, key=lambda point: point[1], default=None),
        trend=trend(numbers),
        missing=len(points) - len(numbers),
        points=tuple(points),
    )


def _phase_shares(run: TrainingRun, times: Series) -> dict[str, float]:
    total = sum(seconds for _, seconds in times)
    if total <= 0:
        return {}
    sums = {name: sum(y for _, y in finite(series)) for name, series in time_parts(run).items()}
    rest = total - sum(sums.values())
    if rest > 0.005 * total:
        sums["other"] = rest
    return {name: sums[name] / total for name in sorted(sums, key=lambda name: -sums[name])}


def _curve_values(curves: Iterable[CurveSummary]) -> dict[str, dict[str, Any]]:
    ends = ("first", "last", "low", "high", "trend")
    return {
        curve.id: {
            "title": curve.title,
            "points": len(curve.points),
            "not_a_number": curve.missing,
            **{name: getattr(curve, name) for name in ends},
        }
        for curve in curves
    }
