"""The curves that people look at first, under the names of all releases."""

import re
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, TypeAlias

from rewardkit.trainlog.series import finite
from rewardkit.trainlog.training_run import V1, TrainingRun
from rewardkit.trainlog.translations import translations

_MEAN = re.compile(r"val-(?P<kind>core|aux)/(?P<source>.+)/(?P<variable>[^/]+)/mean@(?P<n>\d{1,9})")
_OLD = re.compile(r"(?:val/)?test_score/(.+)")
_PART = re.compile(r"timing(?:_s)?/(\w+)")

#: Phases that are part of another phase, or the whole step.
_WITHIN = {"step", "generate_sequences", "reshard", "start_profile", "stop_profile"}

#: Phases that some releases time after the step, the first one first.
_OUTSIDE = ("testing", "save_checkpoint")

#: By how much the phases may exceed the step: a fraction of the step, and seconds.
ROUNDING = 0.01

#: Topics whose fraction 0.9 measures against the longest of the batch.
_RELATIVE_TO_LONGEST = {"clip", "prompt_clip"}

#: Which values of a curve are better; "" where neither are.
Better: TypeAlias = Literal["higher", "lower", ""]


@dataclass(frozen=True)
class Topic:
    """A curve that people look at first, and metrics that show it, the best first.

    Its titles are in `translations.yaml`.
    """

    id: str
    names: tuple[str, ...]
    better: Better = ""


TOPICS = (
    Topic(
        "reward",
        ("critic/rewards/mean", "critic/score/mean", "score/mean", "rewards/score/mean"),
        "higher",
    ),
    Topic("loss", ("train/loss",), "lower"),
    Topic("entropy", ("actor/entropy", "actor/entropy_loss")),
    Topic("kl", ("actor/kl_loss", "actor/reward_kl_penalty", "critic/kl")),
    Topic(
        "length",
        ("response_length/mean", "response_characters/mean", "rewards/response_characters/mean"),
    ),
    Topic("clip", ("response_length/clip_ratio",), "lower"),
    Topic("prompt_clip", ("prompt_length/clip_ratio",), "lower"),
    Topic("pg_clip", ("actor/pg_clipfrac",)),
    Topic("grad_norm", ("actor/grad_norm", "train/grad_norm")),
    Topic("probs_diff", ("training/rollout_probs_diff_mean",), "lower"),
    Topic("flat_groups", ("groups/zero_variance",), "lower"),
    Topic("throughput", ("perf/throughput",), "higher"),
    Topic("step_time", ("timing_s/step", "perf/time_per_step"), "lower"),
)

REWARD, STEP_TIME = TOPICS[0], TOPICS[-1]


def topic_title(topic: Topic, run: TrainingRun, lang: str) -> str:
    """Return the title of a topic.

    For fractions of responses cut it says that 0.9 measures against the longest of the batch. A source
    that does not tell its release may be of 0.9.
    """
    titles = translations("topics", lang)
    is_relative = topic.id in _RELATIVE_TO_LONGEST and run.era in {V1, ""}
    return f"{titles[topic.id]}{titles['or_longest']}" if is_relative else titles[topic.id]


def metric_of_title(title: str) -> str | None:
    """Return the metric of the topic with this title, in English or Chinese; None if none has it."""
    for lang in ("en", "zh"):
        for topic in TOPICS:
            if translations("topics", lang)[topic.id].lower() == title.lower():
                return topic.names[0]
    return None


def validations(run: TrainingRun) -> dict[str, list[tuple[int, float]]]:
    """Return the mean score of validations as (step, value), by data source.

    Up to 0.3 a source has one score, `test_score/SOURCE`; since then `val-core` and `val-aux` have
    `SOURCE/VARIABLE/mean@N`. The variable is the one in `val-core` (SOURCE/VARIABLE if there are
    several), else `acc`, `reward` or the first variable. verl takes a mean@N over the prompts with
    exactly N responses (`verl/trainer/ppo/metric_utils.py`) and calls the largest N core, even if
    only a few prompts have it because they are in the data twice. So the configured N counts, else
    the smallest.
    """
    scores: dict[str, dict[int, float]] = {}
    means: dict[str, list[re.Match[str]]] = {}
    for metric in run.table:
        if old := _OLD.fullmatch(metric):
            scores.setdefault(old[1], {}).update(run.series(metric))
        elif match := _MEAN.fullmatch(metric):
            means.setdefault(match["source"], []).append(match)
    configured = str(run.setting("actor_rollout_ref.rollout.val_kwargs.n"))
    for source, metrics in means.items():
        core = {match["variable"] for match in metrics if match["kind"] == "core"}
        names = [match["variable"] for match in metrics]
        first = next((name for name in ("acc", "reward") if name in names), names[0])
        metrics.sort(key=lambda match: (match["n"] != configured, int(match["n"])), reverse=True)
        for match in metrics:
            if match["variable"] in (core or {first}):
                name = f"{source}/{match['variable']}" if len(core) > 1 else source
                scores.setdefault(name, {}).update(run.series(match[0]))
    if series := run.series("val/loss"):
        scores["loss"] = dict(series)
    return {name: sorted(values.items()) for name, values in scores.items() if values}


def reward_metrics(run: TrainingRun) -> list[str]:
    """Return the metrics of the reward's records that are drawn: means, and the speed of calls.

    Of several data sources only the score is drawn; the page can add the rest.
    """
    return [
        name
        for name in run.table
        if (
            name.startswith(("rewards/", "rewards-val/"))
            and (name.endswith("/mean") or name == "rewards/calls_per_second")
        )
        or (name.startswith("rewards@") and name.endswith("/score/mean"))
    ]


def time_parts(run: TrainingRun) -> dict[str, list[tuple[int, float]]]:
    """Return the phases of a step by name: (step, seconds)."""
    parts = {}
    for metric in run.table:
        match = _PART.fullmatch(metric)
        if match and match[1] not in _WITHIN:
            parts[match[1]] = run.series(metric)
    return parts


def step_seconds(run: TrainingRun) -> list[tuple[int, float]]:
    """Return seconds of each step, with a validation and a checkpoint after it.

    `timing_s/step` leaves out the validation from 0.6.1 on, and the checkpoint in 0.6.1 and 0.7.0
    (`verl/trainer/ppo/ray_trainer.py`): they are added where the step is too short to hold them, the
    validation first. Where the whole is not logged (0.1), it is the sum of its phases.
    """
    parts = {name: dict(series) for name, series in time_parts(run).items()}
    inside: dict[int, float] = {}
    for seconds in parts.values():
        for step in seconds:
            inside[step] = inside.get(step, 0.0) + seconds[step]
    if not (series := run.series(*STEP_TIME.names)):
        return sorted(inside.items())
    totals = []
    for step, whole in series:
        total, rest = whole, inside.get(step, 0.0)
        for name in _OUTSIDE:
            after = parts.get(name, {}).get(step, 0.0)
            if after > 0 and rest > whole * (1 + ROUNDING) + ROUNDING:
                total, rest = total + after, rest - after
        totals.append((step, total))
    return totals


def elapsed_hours(run: TrainingRun) -> list[float] | None:
    """Return when each step ended, in hours from the start; None if the run logs no times.

    The time stamps of the steps count, else the sum of their durations.
    """
    times = [time for time in run.clock if time is not None]
    if times and len(times) == len(run.steps):
        return [(time - times[0]) / 3600 for time in times]
    seconds = dict(finite(step_seconds(run)))
    ends = list(accumulate(seconds.get(step, 0.0) / 3600 for step in run.steps))
    return ends if any(ends) else None
