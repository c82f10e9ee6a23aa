"""Summary of a run: its settings, its duration, its curves, and what the rules say of it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rewardkit.trainlog.phrases import example_values
from rewardkit.trainlog.rules import Diagnosis, diagnose
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
    """A curve by the id of its topic, its data source or its metric; `numbers` are its finite points."""

    id: str
    title: str
    points: Series
    numbers: Series
    metrics: tuple[str, ...] = ()
    better: Better = ""

    @property
    def missing(self) -> int:
        """Number of points that are NaN or infinite."""
        return len(self.points) - len(self.numbers)

    @property
    def ends(self) -> dict[str, tuple[int, float] | None]:
        """The first, last, lowest and highest finite point; None if there is none."""
        first, last = (self.numbers[0], self.numbers[-1]) if self.numbers else (None, None)
        low = min(self.numbers, key=lambda point: point[1], default=None)
        high = max(self.numbers, key=lambda point: point[1], default=None)
        return {"first": first, "last": last, "low": low, "high": high}

    def summary(self) -> dict[str, Any]:
        """Return the curve as plain values for JSON."""
        counts = {"points": len(self.points), "not_a_number": self.missing}
        return {"title": self.title, **counts, **self.ends, "trend": trend(self.numbers)}


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """Summary of a run, and what the rules say of it.

    `seconds` is the sum of the durations of its steps, `hours` goes from the first step's time stamp to the
    last, and `phases` are fractions of the steps' time. There is a validation for each data source, and a
    curve of `rewards` for each metric of the reward's records.
    """

    run: TrainingRun
    lang: str
    algorithm: str
    settings: dict[str, Any]
    seconds: float | None
    hours: float | None
    phases: dict[str, float]
    curves: tuple[CurveSummary, ...]
    validations: tuple[CurveSummary, ...]
    rewards: tuple[CurveSummary, ...]

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """What the rules say of the run."""
        return diagnose(self.run)

    def summary(self) -> dict[str, Any]:
        """Return the summary, the findings and every step as plain values for JSON."""
        run, (findings, onsets) = self.run, self.diagnosis
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
            "curves": {curve.id: curve.summary() for curve in self.curves},
            "validation": {curve.id: curve.summary() for curve in self.validations},
            "rewards": {curve.id: curve.summary() for curve in self.rewards},
            "findings": [
                {**it.summary(self.lang), "examples": example_values(run, it.evidence)}
                for it in findings
            ],
            "hacking": [check.summary(self.lang) for check in onsets],
            "rows": list(run.rows()),
        }


def summarize(run: TrainingRun, lang: str = "en") -> RunSummary:
    """Summarize a run, with titles in `en` or `zh`."""

    def curve(
        name: str,
        points: Series,
        *,
        title: str = "",
        metrics: tuple[str, ...] = (),
        better: Better = "",
    ) -> CurveSummary:
        return CurveSummary(
            id=name,
            title=title or name,
            points=points,
            numbers=finite(points),
            metrics=metrics,
            better=better,
        )

    times = finite(step_seconds(run))
    settings = {name: run.setting(*keys) for name, keys in SETTINGS.items()}
    algorithm = settings.pop("algorithm")
    if not algorithm and "critic/vf_loss" in run.table:
        algorithm = "PPO (has a critic)"
    clock = [time for time in run.clock if time is not None]
    return RunSummary(
        run=run,
        lang=lang,
        algorithm=str(algorithm or ("SFT" if "train/loss" in run.table else "")),
        settings={name: value for name, value in settings.items() if value is not None},
        seconds=sum(seconds for _, seconds in times) if times else None,
        hours=(clock[-1] - clock[0]) / 3600 if len(clock) > 1 else None,
        phases=_phases(run, sum(seconds for _, seconds in times)),
        curves=tuple(
            curve(
                it.id, points, title=topic_title(it, run, lang), metrics=it.names, better=it.better
            )
            for it in TOPICS
            if (points := run.series(*it.names))
        ),
        validations=tuple(
            curve(name, points, better="lower" if name == "loss" else "higher")
            for name, points in validations(run).items()
        ),
        rewards=tuple(
            curve(name, run.series(name), metrics=(name,)) for name in reward_metrics(run)
        ),
    )


def _phases(run: TrainingRun, total: float) -> dict[str, float]:
    """Return the fraction of the time of each phase, the longest first."""
    if total <= 0:
        return {}
    sums = {name: sum(y for _, y in finite(series)) for name, series in time_parts(run).items()}
    rest = total - sum(sums.values())
    if rest > 0.005 * total:
        sums["other"] = rest
    return {name: sums[name] / total for name in sorted(sums, key=lambda name: -sums[name])}
