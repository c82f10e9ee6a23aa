"""Comparisons of runs as values for the page: rows with a bar each, and what they say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rewardkit.pages.model import Badge, Level
from rewardkit.trainlog.run_comparison import CurveDifference, MeanInterval, RunComparison, Verdict
from rewardkit.trainlog.tables import MAX_SETTINGS, format_number, format_signed
from rewardkit.trainlog.translations import translations

_LEVELS: dict[Verdict, Level] = {
    "better": "good", "worse": "error", "higher": "neutral", "lower": "neutral",
    "unclear": "neutral", "too_few": "neutral",
}  # fmt: skip


def view_comparison(comparison: RunComparison, lang: str) -> dict[str, Any]:
    """Return the section of a comparison in `en` or `zh`: differences of curves, and of settings."""
    words = translations("comparison", lang)
    names = {"base": comparison.base, "other": comparison.other}
    settings = comparison.settings[:MAX_SETTINGS]
    notes = []
    if len(settings) < len(comparison.settings):
        total = len(comparison.settings)
        notes.append(words["more_settings"].format(n=len(settings), total=total))
    if any(comparison.unshared_keys):
        base, other = comparison.unshared_keys
        notes.append(words["unshared"].format(base=base, other=other))
    columns = ("curve", "points", "difference", "end", "verdict")
    curve, points, *rest = (words[name] for name in columns)
    return {
        "heading": words["heading"].format(**names),
        "note": f"{words[comparison.align]} {words['note']}",
        "columns": (curve, points, comparison.base, comparison.other, *rest),
        "rows": [_row(item, lang) for item in comparison.differences],
        "settings_heading": words["settings"],
        "settings": [(item.key, str(item.base), str(item.other)) for item in settings],
        "settings_note": " ".join(notes),
    }


def verdict_badges(comparisons: Sequence[RunComparison], lang: str) -> list[Badge]:
    """Return how many curves are better, worse or without an interval, or that none differs."""
    words = translations("comparison", lang)
    counts = Counter(item.verdict for one in comparisons for item in one.differences)
    verdicts: tuple[Verdict, ...] = ("better", "worse", "too_few")
    badges = [
        Badge(words[f"count_{name}"].format(n=counts[name], total=counts.total()), _LEVELS[name])
        for name in verdicts
        if counts[name]
    ]
    return badges or [Badge(words["unclear"], "neutral")]


def _interval_text(interval: MeanInterval) -> str:
    if interval.low is None or interval.high is None:
        return format_signed(interval.mean)
    ends = f"{format_signed(interval.low)}, {format_signed(interval.high)}"
    return f"{format_signed(interval.mean)} [{ends}]"


def _row(item: CurveDifference, lang: str) -> dict[str, Any]:
    """Return the cells of a difference, its badge, and places in percent; 50 is a difference of 0."""
    whole = item.whole
    ends = (whole.mean, whole.mean if whole.low is None else whole.low,
            whole.mean if whole.high is None else whole.high)  # fmt: skip
    reach = max(map(abs, ends)) or 1.0
    mean, low, high = (50 + 46 * end / reach for end in ends)
    cells = (item.title, f"{item.n:,}", format_number(item.base), format_number(item.other))
    return {
        "cells": (*cells, _interval_text(whole), _interval_text(item.end)),
        "badge": Badge(translations("comparison", lang)[item.verdict], _LEVELS[item.verdict]),
        "mean": mean,
        "low": low,
        "high": high,
    }
