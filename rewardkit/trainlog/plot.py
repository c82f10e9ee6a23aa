"""The charts as a PNG, for papers and chats, with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from math import ceil
from pathlib import Path
from typing import Any

from rewardkit.errors import UsageError
from rewardkit.output import atomic
from rewardkit.trainlog.charts import COLOURS, Chart, charts, hours, smooth, window_of
from rewardkit.trainlog.model import Run
from rewardkit.trainlog.rules import Finding
from rewardkit.trainlog.translations import CHART_WORDS

#: Fonts with Chinese characters, on the systems people have.
CHINESE = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",  # the name of the whole collection for matplotlib
    "Source Han Sans SC",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "PingFang SC",
    "Microsoft YaHei",
    "SimHei",
)

_BAD = {"error": "#b3401e", "warning": "#e6a117"}


def write_png(
    runs: Sequence[Run],
    findings: Sequence[Sequence[Finding]],
    out: Path,
    *,
    lang: str = "en",
    x: str = "step",
    window: int | None = None,
    overwrite: bool = False,
) -> None:
    """Draw the runs over each other, a chart for each curve that people look at first.

    Args:
        runs: one or several.
        findings: of each run; their steps are shaded.
        out: the picture.
        lang: of its words, `en` or `zh`.
        x: `step` or `hours`.
        window: points to smooth over; chosen by the length of the runs if None, none if 1.
        overwrite: replace `out` if it exists.

    Raises:
        UsageError: matplotlib is not installed, a Chinese font is missing, or a run has no times.
        OutputError: `out` cannot be written.
    """
    plot = _matplotlib(lang)
    drawn = charts(runs, findings, lang)
    places = _places(runs, x)
    window = window_of(drawn) if window is None else window
    columns = min(3, len(drawn))
    lines = ceil(len(drawn) / columns)
    figure, axes = plot.subplots(
        lines, columns, figsize=(4.2 * columns, 2.7 * lines + 0.7), squeeze=False
    )
    try:
        flat = list(axes.flat)
        ends = [at for place in places for at in place.values()]
        room = 0.02 * (max(ends) - min(ends)) or 1.0
        for axis, chart in zip(flat, drawn, strict=False):
            _draw(axis, chart, places, window)
            axis.set_xlim(min(ends) - room, max(ends) + room)
            axis.set_xlabel(CHART_WORDS[lang][x], fontsize=8)
        for axis in flat[len(drawn) :]:
            axis.axis("off")
        _head(figure, runs, lang, window, 2.7 * lines + 0.7)
        with atomic(out, overwrite=overwrite) as temporary:
            figure.savefig(temporary, format="png", dpi=150)
    finally:
        plot.close(figure)


def _matplotlib(lang: str) -> Any:
    """The pyplot module, without a display, with a font for the language."""
    try:
        matplotlib = import_module("matplotlib")
    except ImportError as error:
        raise UsageError("--png needs matplotlib: pip install 'rewardkit[plot]'.") from error
    matplotlib.use("Agg")
    matplotlib.rcParams["axes.unicode_minus"] = False
    if lang == "zh":
        manager = import_module("matplotlib.font_manager").fontManager
        known = {font.name for font in manager.ttflist}
        fonts = [name for name in CHINESE if name in known]
        if not fonts:
            raise UsageError(
                "--lang zh needs a font with Chinese characters for --png; install one, such as "
                "fonts-noto-cjk, or use --html."
            )
        matplotlib.rcParams["font.sans-serif"] = [*fonts, "DejaVu Sans"]
    return import_module("matplotlib.pyplot")


def _places(runs: Sequence[Run], x: str) -> list[dict[int, float]]:
    """Where each run's steps are."""
    found = []
    for run in runs:
        at = hours(run) if x == "hours" else [float(step) for step in run.steps]
        if at is None:
            raise UsageError(f"{run.path}: the log has no times; use --x step.")
        found.append(dict(zip(run.steps, at, strict=True)))
    return found


def _draw(axis: Any, chart: Chart, places: Sequence[dict[int, float]], window: int) -> None:
    for mark in chart.marks:
        steps = [at for step, at in places[mark.run].items() if mark.first <= step <= mark.last]
        if steps:
            axis.axvspan(steps[0], steps[-1], color=_BAD[mark.severity], alpha=0.13, lw=0)
            axis.axvline(steps[0], color=_BAD[mark.severity], lw=1, ls=":")
    for curve in chart.curves:
        colour = COLOURS[curve.run % len(COLOURS)]
        at = [places[curve.run][step] for step, _ in curve.points]
        raw = [value for _, value in curve.points]
        few = "o" if len(raw) <= 30 else None
        means = [value for _, value in smooth(curve.points, window)]
        if means != raw:
            axis.plot(at, raw, color=colour, lw=0.7, alpha=0.3)
        axis.plot(at, means, color=colour, lw=1.5, marker=few, ms=3)
    marks = dict.fromkeys(mark.label for mark in chart.marks)
    title = f"{chart.title}\n! {', '.join(marks)}" if marks else chart.title
    axis.set_title(title, fontsize=9, color="#b3401e" if marks else "black")
    axis.tick_params(labelsize=7)
    axis.grid(visible=True, lw=0.4, alpha=0.5)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def _head(figure: Any, runs: Sequence[Run], lang: str, window: int, height: float) -> None:
    """The legend, and what the smoothing is."""
    words = CHART_WORDS[lang]
    said = words["smooth"].format(n=window) if window > 1 else words["raw"]
    lines = import_module("matplotlib.lines")
    handles = [
        lines.Line2D([], [], color=COLOURS[i % len(COLOURS)], label=run.name[:60])
        for i, run in enumerate(runs)
    ]
    figure.legend(
        handles=handles, loc="upper left", fontsize=9, frameon=False, ncols=min(3, len(runs))
    )
    figure.text(0.995, 0.004, said, ha="right", va="bottom", fontsize=7, color="#59636e")
    figure.tight_layout(rect=(0, 0.02, 1, 1 - 0.45 / height))
