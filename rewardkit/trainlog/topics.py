"""What people look at first, whatever a release calls it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rewardkit.trainlog.training_run import V1, TrainingRun

_MEAN = re.compile(r"val-(core|aux)/(.+)/([^/]+)/mean@(\d{1,9})")
_OLD = re.compile(r"(?:val/)?test_score/(.+)")
_PART = re.compile(r"timing(?:_s)?/(\w+)")

#: Parts of a step that are within another one, or around it all.
_WITHIN = {"step", "generate_sequences", "reshard", "start_profile", "stop_profile"}

#: Parts that some releases time after the step, in the order of `_with_outside`.
_OUTSIDE = ("testing", "save_checkpoint")

#: How much more than the step its parts may sum up to: a share of it, and seconds.
ROUNDING = 0.01

#: Topics whose share 0.9 measures against the longest of the batch.
_LONGEST = {"clip", "prompt_clip"}
_OR_LONGEST = {"en": "(0.9: or the batch's longest)", "zh": "(0.9: 或为本批最长)"}


@dataclass(frozen=True)
class Topic:
    """A curve.

    Attributes:
        id: a short name.
        title: in English and Chinese.
        names: the metrics that show it, the best first; see `Run.column`.
    """

    id: str
    title: Mapping[str, str]
    names: tuple[str, ...]


def _topic(topic: str, english: str, chinese: str, *names: str) -> Topic:
    return Topic(topic, {"en": english, "zh": chinese}, names)


TOPICS = (
    _topic("reward", "reward", "奖励", "critic/rewards/mean", "critic/score/mean", "score/mean"),
    _topic("loss", "training loss", "训练损失", "train/loss"),
    _topic("entropy", "entropy", "策略熵", "actor/entropy", "actor/entropy_loss"),
    _topic(
        "kl",
        "KL to the reference",
        "与参考模型的 KL",
        "actor/kl_loss",
        "actor/reward_kl_penalty",
        "critic/kl",
    ),
    _topic(
        "length",
        "response length",
        "回答长度",
        "response_length/mean",
        "response_characters/mean",
    ),
    _topic("clip", "responses cut", "回答截断比例", "response_length/clip_ratio"),
    _topic("prompt_clip", "prompts cut", "提示截断比例", "prompt_length/clip_ratio"),
    _topic("pg_clip", "clipped ratios", "策略比率裁剪比例", "actor/pg_clipfrac"),
    _topic("grad_norm", "gradient norm", "梯度范数", "actor/grad_norm", "train/grad_norm"),
    _topic(
        "probs_diff",
        "rollout-actor probability difference",
        "推理与训练概率差",
        "training/rollout_probs_diff_mean",
    ),
    _topic("flat_groups", "groups of one score", "组内同分比例", "groups/zero_variance"),
    _topic("throughput", "tokens/s per device", "单卡吞吐 (token/s)", "perf/throughput"),
    _topic("step_time", "seconds per step", "单步耗时 (s)", "timing_s/step", "perf/time_per_step"),
)

REWARD, STEP_TIME = TOPICS[0], TOPICS[-1]


def topic_series(run: TrainingRun) -> Iterator[tuple[Topic, list[tuple[int, float]]]]:
    """The topics a run has values for."""
    for topic in TOPICS:
        if series := run.series(*topic.names):
            yield topic, series


def topic_title(topic: Topic, runs: Iterable[TrainingRun], lang: str) -> str:
    """What a topic is called; 0.9's shares of responses cut need more words than those before.

    A source that does not tell its release may be of 0.9.
    """
    longest = topic.id in _LONGEST and any(run.era in {V1, ""} for run in runs)
    return f"{topic.title[lang]} {_OR_LONGEST[lang]}" if longest else topic.title[lang]


def validations(run: TrainingRun) -> dict[str, list[tuple[int, float]]]:
    """Data source -> the mean score of its validations, (step, value).

    Up to 0.3 a source has one score, `test_score/SOURCE`; since then `val-core` and `val-aux` have
    `SOURCE/VARIABLE/mean@N`. The variable is the one in `val-core` (SOURCE/VARIABLE if there are
    several), else `acc`, `reward` or the first there is. verl takes a mean@N over the prompts with
    exactly N responses (`verl/trainer/ppo/metric_utils.py`), and calls the largest N core: of a few
    prompts, if these are in the data twice. So N is the configured one, else the smallest.
    """
    found: dict[str, dict[int, float]] = {}
    means: dict[str, dict[str, dict[int, list[str]]]] = {}
    core: set[tuple[str, str]] = set()
    for metric in run.table:
        if old := _OLD.fullmatch(metric):
            found.setdefault(old[1], {}).update(run.series(metric))
        elif match := _MEAN.fullmatch(metric):
            kind, source, variable, n = match.groups()
            by_n = means.setdefault(source, {}).setdefault(variable, {})
            by_n.setdefault(int(n), []).append(metric)
            if kind == "core":
                core.add((source, variable))
    for source, variables in means.items():
        chosen = _variables(source, variables, core)
        for variable in chosen:
            name = source if len(chosen) == 1 else f"{source}/{variable}"
            found.setdefault(name, {}).update(_smallest(run, variables[variable]))
    if series := run.series("val/loss"):
        found["loss"] = dict(series)
    return {name: sorted(values.items()) for name, values in found.items() if values}


def _variables(source: str, known: Iterable[str], core: Collection[tuple[str, str]]) -> list[str]:
    """What of a source's validation is its score."""
    known = list(known)
    first = next((name for name in ("acc", "reward") if name in known), known[0])
    return [name for name in known if (source, name) in core] or [first]


def _smallest(run: TrainingRun, by_n: Mapping[int, Sequence[str]]) -> dict[int, float]:
    """The values of the configured N, else of the smallest that a step has."""
    configured = str(run.setting("actor_rollout_ref.rollout.val_kwargs.n"))
    values: dict[int, float] = {}
    for n in sorted(by_n, key=lambda n: (str(n) != configured, n), reverse=True):
        for metric in by_n[n]:
            values.update(run.series(metric))
    return values


def time_parts(run: TrainingRun) -> dict[str, list[tuple[int, float]]]:
    """The parts of a step by name: (step, seconds)."""
    parts = {}
    for metric in run.table:
        match = _PART.fullmatch(metric)
        if match and match[1] not in _WITHIN:
            parts[match[1]] = run.series(metric)
    return parts


def step_seconds(run: TrainingRun) -> list[tuple[int, float]]:
    """How long each step took, a validation and a checkpoint after it included.

    `timing_s/step` leaves out the validation from 0.6.1 on, and the checkpoint in 0.6.1 and 0.7.0
    (`verl/trainer/ppo/ray_trainer.py`): they are added where there is no room for them in it. Where
    the whole is not logged (0.1) it is the sum of its parts.
    """
    parts = {name: dict(series) for name, series in time_parts(run).items()}
    totals: dict[int, float] = {}
    for values in parts.values():
        for step, seconds in values.items():
            totals[step] = totals.get(step, 0.0) + seconds
    if not (series := run.series(*STEP_TIME.names)):
        return sorted(totals.items())
    return [(step, _with_outside(step, whole, parts, totals)) for step, whole in series]


def _with_outside(
    step: int, whole: float, parts: Mapping[str, Mapping[int, float]], totals: Mapping[int, float]
) -> float:
    """The step's seconds with those of its parts that it cannot hold.

    The validation goes first: it is outside in every release in which the checkpoint is.
    """
    added, inside = 0.0, totals.get(step, 0.0)
    for name in _OUTSIDE:
        seconds = parts.get(name, {}).get(step, 0.0)
        if seconds > 0 and inside > whole * (1 + ROUNDING) + ROUNDING:
            added, inside = added + seconds, inside - seconds
    return whole + added
