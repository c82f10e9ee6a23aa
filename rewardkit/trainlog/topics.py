"""What people look at first, whatever a release calls it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rewardkit.trainlog.model import Run

_CORE = re.compile(r"val-(?:core|aux)/(.+)/([^/]+)/(mean@\d+)")
_OLD = re.compile(r"(?:val/)?test_score/(.+)")
_PART = re.compile(r"timing(?:_s)?/(\w+)")

#: Parts of a step that are within another one, or around it all.
_WITHIN = {"step", "generate_sequences", "reshard", "start_profile", "stop_profile"}


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


def curves(run: Run) -> Iterator[tuple[Topic, list[tuple[int, float]]]]:
    """The topics a run has values for."""
    for topic in TOPICS:
        if series := run.series(*topic.names):
            yield topic, series


def validations(run: Run) -> dict[str, list[tuple[int, float]]]:
    """Data source and variable -> the mean score of its validations, (step, value).

    Up to 0.3 a source has one score, `test_score/SOURCE`; since then `val-core/SOURCE/VARIABLE/
    mean@N`, of which the largest N is taken. `val-aux` stands in for a source without it.
    """
    found: dict[str, dict[int, float]] = {}
    chosen: dict[str, tuple[bool, int]] = {}
    for metric in run.table:
        if old := _OLD.fullmatch(metric):
            found.setdefault(old[1], {}).update(run.series(metric))
        elif core := _CORE.fullmatch(metric):
            source, rank = core[1], (metric.startswith("val-core"), int(core[3][5:]))
            if rank >= chosen.get(source, (False, -1)):
                chosen[source] = rank
                found[source] = dict(run.series(metric))
    if series := run.series("val/loss"):
        found["loss"] = dict(series)
    return {name: sorted(values.items()) for name, values in found.items() if values}


def time_parts(run: Run) -> dict[str, list[tuple[int, float]]]:
    """The parts of a step by name: (step, seconds)."""
    parts = {}
    for metric in run.table:
        match = _PART.fullmatch(metric)
        if match and match[1] not in _WITHIN:
            parts[match[1]] = run.series(metric)
    return parts


def step_seconds(run: Run) -> list[tuple[int, float]]:
    """How long each step took; the sum of its parts where the whole is not logged (0.1)."""
    if series := run.series(*STEP_TIME.names):
        return series
    totals: dict[int, float] = {}
    for series in time_parts(run).values():
        for step, seconds in series:
            totals[step] = totals.get(step, 0.0) + seconds
    return sorted(totals.items())
