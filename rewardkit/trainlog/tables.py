"""A run's summary and findings as tables of plain text, and its steps as CSV."""

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rewardkit.output import atomic
from rewardkit.table import Table
from rewardkit.text import brief as shorten
from rewardkit.trainlog.conditions import RuleEvidence, span_text
from rewardkit.trainlog.phrases import examples_of
from rewardkit.trainlog.rules import LogFinding
from rewardkit.trainlog.run_comparison import CurveDifference, MeanInterval, RunComparison
from rewardkit.trainlog.series import sparkline, trend
from rewardkit.trainlog.summary import CurveSummary, RunSummary
from rewardkit.trainlog.topics import TOPICS
from rewardkit.trainlog.training_run import TrainingRun
from rewardkit.trainlog.translations import translations, with_note

#: Bars of a sparkline, in terminals without Unicode and in others.
ASCII = "_.-=+*#@"
BLOCKS = "▁▂▃▄▅▆▇█"

#: Characters of a sparkline.
SPARKLINE_WIDTH = 20

#: Settings of a comparison that are listed.
MAX_SETTINGS = 40

#: Characters of an example before the phrase that it has, and after its start.
EXAMPLE_CHARACTERS = 120

#: Phases of a step whose time is listed.
MAX_PHASES = 8

#: Topics in the line of a step, and their names there.
_SHORT_NAMES = {
    "reward": "reward", "loss": "loss", "entropy": "entropy", "kl": "KL", "length": "length",
    "clip": "cut", "grad_norm": "grad", "step_time": "s",
}  # fmt: skip

_COLUMNS = ("first", "last", "lowest", "highest", "trend", "curve")

#: Start of a formula in a spreadsheet, also as full-width characters.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def run_tables(summary: RunSummary, marks: str = BLOCKS) -> list[Table]:
    """Return the tables that describe a run; `marks` draw the sparklines, from low to high."""
    lang = summary.lang
    words, onset_words = translations("tables", lang), translations("hacking", lang)
    tables = [
        Table((words["run"], ""), list(_run_facts(summary, words)), summary.run.name, wrap={""})
    ]
    columns = tuple(words[name] for name in _COLUMNS)
    for title, name, curves in (
        ("curves", "metric", summary.curves),
        ("validation", "source", summary.validations),
        ("rewards", "metric", summary.rewards),
    ):
        if rows := [_curve_cells(curve, marks, words) for curve in curves]:
            below = {words["curve"]}
            tables.append(Table((words[name], *columns), rows, words[title], below=below))
    findings, checks = summary.diagnosis
    if summary.rewards:
        parts = [(it.rule.title[lang], onset_words[it.status], it.text(lang)) for it in checks]
        columns = tuple(onset_words[name] for name in ("problem", "status", "onset"))
        tables.append(Table(columns, parts, onset_words["title"], wrap=columns))
    return [*tables, *(_finding_table(finding, summary.run, lang) for finding in findings)]


def verdict(summary: RunSummary) -> str:
    """Return the result of the rules in a sentence: how many findings of each severity there are."""
    lang, findings = summary.lang, summary.diagnosis.findings
    words = translations("tables", lang)
    if not findings:
        return f"{summary.run.name}{words['colon']}{words['nothing']}"
    counts = Counter(finding.rule.severity for finding in findings)
    parts = [
        f"{n} {words[severity if n == 1 and lang == 'en' else f'{severity}s']}"
        for severity, n in sorted(counts.items())
    ]
    titles = [finding.rule.title[lang] for finding in findings]
    counted, problems = words["comma"].join(parts), words["semicolon"].join(titles)
    return words["colon"].join((summary.run.name, counted, problems))


def comparison_tables(comparison: RunComparison) -> list[Table]:
    """Return the tables of a comparison: differences of curves, and of settings."""
    rows = list(map(difference_cells, comparison.differences))
    unit = "steps" if comparison.align == "step" else "times"
    title = f"{comparison.other} compared with {comparison.base}, at the same {comparison.align}"
    columns = ("curve", unit, "first", "other", "other - first (95%)", "in the last fifth (95%)")
    tables = [Table(columns, rows, title)]
    if comparison.not_finite:
        counts = [(name, f"{a:,}", f"{b:,}") for name, a, b in comparison.not_finite]
        title = "steps with NaN or infinity, which are not compared"
        tables.append(Table(("curve", "first", "other"), counts, title))
    if comparison.settings:
        settings = [
            (name, shorten(str(a), 60), shorten(str(b), 60))
            for name, a, b in comparison.settings[:MAX_SETTINGS]
        ]
        more = len(comparison.settings) - len(settings)
        title = "settings that differ" + (f" (and {more:,} more, see --json)" if more else "")
        names = ("key", "first", "other")
        tables.append(Table(names, settings, title, wrap=names[1:]))
    return tables


def difference_cells(item: CurveDifference) -> tuple[str, ...]:
    """Return a difference as cells: curve, number of steps, both means, the difference, and its end."""
    numbers = f"{item.n:,}", format_number(item.base), format_number(item.other)
    return (item.title, *numbers, _format_interval(item.whole), _format_interval(item.end))


def _format_interval(interval: MeanInterval) -> str:
    if interval.low is None or interval.high is None:
        return f"{_signed(interval.mean)} (too few)"
    mark = " *" if interval.excludes_zero else ""
    return f"{_signed(interval.mean)} ({_signed(interval.low)} to {_signed(interval.high)}){mark}"


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else ''}{format_number(value)}"


def format_step(run: TrainingRun, step: int) -> str:
    """Return one step of a run in progress as one line."""
    at = run.steps.index(step)
    cells = [f"step {step:,}"]
    for topic in TOPICS:
        column = run.column(*topic.names) if topic.id in _SHORT_NAMES else ()
        if column and (value := column[at]) is not None:
            cells.append(f"{_SHORT_NAMES[topic.id]} {format_number(value)}")
    return "  ".join(cells)


def format_number(value: float) -> str:
    """Format a number in about six characters."""
    if value == 0 or 0.001 <= abs(value) < 10_000:
        return f"{value:.4g}"
    return f"{value:,.0f}" if 10_000 <= abs(value) < 1e9 else f"{value:.2e}"


def format_duration(seconds: float) -> str:
    """Format a duration: `48.7 s`, `12 min`, `6 h 35 min`."""
    if seconds < 100:
        return f"{seconds:.3g} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60:,} h {minutes % 60:02d} min"


def _run_facts(summary: RunSummary, words: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    run = summary.run
    ends = {"n": len(run.steps), "first": run.steps[0], "last": run.steps[-1]}
    yield words["log"], words["comma"].join(filter(None, (run.source, words.get(run.era, run.era))))
    if summary.algorithm:
        yield words["algorithm"], summary.algorithm
    if summary.settings:
        settings = (f"{words.get(name, name)} {value}" for name, value in summary.settings.items())
        yield words["settings"], words["comma"].join(settings)
    yield words["steps"], words["step_range"].format(**ends)
    if run.gaps:
        gaps = ", ".join(f"{a:,}-{b:,}" if a < b else f"{a:,}" for a, b in run.gaps[:6])
        yield words["missing"], f"{gaps}, ... ({len(run.gaps)})" if run.gaps[6:] else gaps
    for restart in run.restarts[-3:]:
        dropped = words["dropped_steps"].format(n=restart.dropped) if restart.dropped else ""
        at = words["restart_at"].format(step=restart.step, where=restart.where)
        yield words["restart"], at + dropped
    if run.rewritten:
        yield words["rewritten"], words["rewritten_steps"].format(n=run.rewritten)
    if summary.seconds is not None:
        total, each = map(format_duration, (summary.seconds, summary.seconds / len(run.steps)))
        yield words["time"], words["step_time"].format(total=total, each=each)
    if summary.hours is not None:
        yield words["clock"], format_duration(summary.hours * 3600)
    if summary.phases:
        phases = list(summary.phases.items())[:MAX_PHASES]
        yield words["phases"], words["comma"].join(f"{name} {part:.1%}" for name, part in phases)
    if run.unread:
        first = f"{run.examples[0].where}: {run.examples[0].reason}"
        lines = words["unread_lines"].format(n=run.unread, first=first)
        yield words["unread"], first if run.unread == 1 else lines


def _curve_cells(curve: CurveSummary, marks: str, words: Mapping[str, str]) -> tuple[str, ...]:
    ends = [
        format_number(end[1]) + (f" @{end[0]:,}" if name in ("low", "high") else "")
        if end
        else "none"
        for name, end in curve.ends.items()
    ]
    change = trend(curve.numbers)
    cell = words["too_few"] if change is None else _signed(change) if change else "="
    return (curve.title, *ends, cell, sparkline(curve.points, SPARKLINE_WIDTH, marks))


def example_rows(run: TrainingRun, evidence: RuleEvidence, lang: str) -> list[tuple[str, str]]:
    """Return a response from before the onset and one from after it, each as name and short text."""
    words, rows = translations("hacking", lang), []
    colon = translations("tables", lang)["colon"]
    for name, examples in zip(("before", "after"), examples_of(run, evidence, 1), strict=True):
        for example in examples:
            values = {"step": example.sample.step, "score": format_number(example.sample.score)}
            start = example.before
            if example.phrase and len(start) > EXAMPLE_CHARACTERS:
                start = f"…{start[-EXAMPLE_CHARACTERS:]}"
            text = shorten(f"{start}{example.phrase}{example.after}", 2 * EXAMPLE_CHARACTERS)
            rows.append((words[name], f"{words['example'].format(**values)}{colon}{text}"))
    return rows


def _finding_table(finding: LogFinding, run: TrainingRun, lang: str) -> Table:
    rule, evidence, words = finding.rule, finding.evidence, translations("tables", lang)
    onset = evidence.text(lang)
    rows = [
        *([(translations("hacking", lang)["onset"], onset)] if onset else []),
        (words["evidence"], words["semicolon"].join(fact.text(lang) for fact in evidence.facts)),
        *example_rows(run, evidence, lang),
        (words["rule"], with_note(rule.when[lang], rule.source[lang], lang)),
        (words["meaning"], rule.meaning[lang]),
        (words["advice"], rule.advice[lang]),
        *((words["key"] if i == 0 else "", key) for i, key in enumerate(rule.keys)),
    ]
    title = with_note(rule.title[lang], rule.id, lang)
    headline = f"{title}{words['comma']}{span_text(evidence.steps, lang)}"
    return Table((words[rule.severity], headline), rows, wrap={headline})


def write_csv(runs: Sequence[TrainingRun], out: Path, *, overwrite: bool) -> None:
    """Write runs as CSV, with a `run` column if there are several; missing values are empty.

    `step` and `run` hide metrics of that name. A name that a spreadsheet would read as a formula gets a
    leading apostrophe, as OWASP recommends against CSV injection: names come from a log.

    Raises:
        OutputError: `out` cannot be written, or exists and `overwrite` is False.
    """
    first = ["run", "step"] if len(runs) > 1 else ["step"]
    metrics = [
        key for key in dict.fromkeys(key for run in runs for key in run.table) if key not in first
    ]
    with (
        atomic(out, overwrite=overwrite) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file)
        writer.writerow(map(_escape_formula, [*first, *metrics]))
        for run in runs:
            name = [_escape_formula(run.name)] if len(runs) > 1 else []
            for step, row in zip(run.steps, run.rows(), strict=True):
                writer.writerow([*name, step, *(row.get(metric, "") for metric in metrics)])


def _escape_formula(name: str) -> str:
    return f"'{name}" if name.startswith(FORMULA_STARTS) else name
