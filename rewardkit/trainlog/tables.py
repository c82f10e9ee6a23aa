"""A run's summary and findings as tables of plain text."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rewardkit.pages.text import brief as shorten
from rewardkit.trainlog.conditions import NotEnoughData, RuleEvidence, span_text
from rewardkit.trainlog.hacking_examples import examples_of
from rewardkit.trainlog.rules import LogFinding, OnsetCheck
from rewardkit.trainlog.run_comparison import CurveDifference, MeanInterval, RunComparison
from rewardkit.trainlog.series import sparkline
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

#: Phases of a step whose share of the time is listed.
MAX_PHASES = 8

#: Topics in the line of a step, and their names there.
_SHORT_NAMES = {
    "reward": "reward", "loss": "loss", "entropy": "entropy", "kl": "KL", "length": "length",
    "clip": "cut", "grad_norm": "grad", "step_time": "s",
}  # fmt: skip

_COLUMNS = ("first", "last", "lowest", "highest", "trend", "curve")


@dataclass(frozen=True)
class TextTable:
    """A title, columns and rows of text.

    Attributes:
        title: a line above the table; "" for none.
        columns: header of each column.
        rows: cells of each row.
        wrap: columns of prose, which may be wrapped.
        below: columns whose cells may stand below their row.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    wrap: frozenset[str] = frozenset()
    below: frozenset[str] = frozenset()


def run_tables(
    summary: RunSummary,
    findings: Sequence[LogFinding],
    *,
    lang: str = "en",
    marks: str = BLOCKS,
    brief: bool = False,
    checks: Sequence[OnsetCheck] = (),
) -> list[TextTable]:
    """Return the tables that describe a run: facts, curves, validations and findings.

    Args:
        summary: summary of the run, in the same language.
        findings: findings of the run.
        lang: `en` or `zh`.
        marks: characters of the sparklines, from low to high.
        brief: use one line per finding instead of one table.
        checks: results of the rules on the onset of reward hacking, if they are shown.
    """
    words = translations("tables", lang)
    facts = tuple(_run_facts(summary, words))
    tables = [TextTable(summary.run.name, (words["run"], ""), facts, wrap=frozenset([""]))]
    columns = tuple(words[name] for name in _COLUMNS)
    for title, name, curves in (
        ("curves", "metric", summary.curves),
        ("validation", "source", summary.validations),
        ("rewards", "metric", summary.rewards),
    ):
        if rows := tuple(_curve_cells(curve, marks, words) for curve in curves):
            below = frozenset([words["curve"]])
            tables.append(TextTable(words[title], (words[name], *columns), rows, below=below))
    if checks:
        tables.append(_check_table(checks, lang))
    if brief and findings:
        lines = tuple(
            (words[item.rule.severity], _headline(item, lang), item.evidence.facts[0].text(lang))
            for item in findings
        )
        prose = (words["problem"], words["evidence"])
        return [*tables, TextTable(words["findings"], ("", *prose), lines, wrap=frozenset(prose))]
    return [*tables, *(_finding_table(finding, summary.run, lang) for finding in findings)]


def verdict(summary: RunSummary, findings: Sequence[LogFinding], lang: str) -> str:
    """Return the result of the rules in a sentence: how many findings of each severity there are."""
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


def comparison_tables(comparison: RunComparison) -> list[TextTable]:
    """Return the tables of a comparison: differences of curves, and of settings."""
    rows = tuple(map(difference_cells, comparison.differences))
    unit = "steps" if comparison.align == "step" else "times"
    title = f"{comparison.other} compared with {comparison.base}, at the same {comparison.align}"
    columns = ("curve", unit, "first", "other", "other - first (95%)", "in the last fifth (95%)")
    tables = [TextTable(title, columns, rows)]
    if comparison.not_finite:
        counts = tuple((m.name, f"{m.base:,}", f"{m.other:,}") for m in comparison.not_finite)
        title = "steps with NaN or infinity, which are not compared"
        tables.append(TextTable(title, ("curve", "first", "other"), counts))
    if comparison.settings:
        settings = tuple(
            (item.name, *(shorten(str(value), 60) for value in (item.base, item.other)))
            for item in comparison.settings[:MAX_SETTINGS]
        )
        more = len(comparison.settings) - len(settings)
        title = "settings that differ" + (f" (and {more:,} more, see --json)" if more else "")
        names = ("key", "first", "other")
        tables.append(TextTable(title, names, settings, wrap=frozenset(names[1:])))
    return tables


def difference_cells(item: CurveDifference) -> tuple[str, ...]:
    """Return a difference as cells: curve, number of steps, both means, the difference, and its end."""
    numbers = f"{item.n:,}", format_number(item.base), format_number(item.other)
    return (item.title, *numbers, _format_interval(item.whole), _format_interval(item.end))


def _format_interval(interval: MeanInterval) -> str:
    mean, *ends = (x if x is None else format_signed(x) for x in vars(interval).values())
    if None in ends:
        return f"{mean} (too few)"
    return f"{mean} ({ends[0]} to {ends[1]}){' *' if interval.excludes_zero else ''}"


def format_signed(value: float) -> str:
    """Format a number with its sign."""
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
        yield words["phases"], words["comma"].join(f"{name} {share:.1%}" for name, share in phases)
    if run.unread:
        first = f"{run.examples[0].where}: {run.examples[0].reason}"
        lines = words["unread_lines"].format(n=run.unread, first=first)
        yield words["unread"], first if run.unread == 1 else lines


def _curve_cells(curve: CurveSummary, marks: str, words: Mapping[str, str]) -> tuple[str, ...]:
    trend = words["too_few"] if curve.trend is None else "="
    ends = [format_number(end[1]) if end else "none" for end in (curve.first, curve.last)]
    extremes = [
        f"{format_number(end[1])} @{end[0]:,}" if end else "none" for end in (curve.low, curve.high)
    ]
    trend = format_signed(curve.trend) if curve.trend else trend
    line = sparkline(curve.points, SPARKLINE_WIDTH, marks)
    return (curve.title, *ends, *extremes, trend, line)


def _check_table(checks: Sequence[OnsetCheck], lang: str) -> TextTable:
    words = translations("hacking", lang)
    rows = tuple(
        (check.rule.title[lang], words[check.status], check_text(check, lang)) for check in checks
    )
    columns = (words["problem"], words["status"], words["onset"])
    return TextTable(words["title"], columns, rows, wrap=frozenset(columns))


def check_text(check: OnsetCheck, lang: str) -> str:
    """Return the onset that a check names, or why it names none."""
    if isinstance(check.result, NotEnoughData):
        return check.result.text(lang)
    return onset_text(check.result, lang) if check.result else ""


def onset_text(evidence: RuleEvidence, lang: str) -> str:
    """Return the step at which a problem began, with its interval: `step 57 (55-60)`."""
    onset, words = evidence.onset, translations("hacking", lang)
    if onset is None:
        return ""
    return words["interval"].format(step=onset.step, low=onset.low, high=onset.high)


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


def _finding_table(finding: LogFinding, run: TrainingRun, lang: str) -> TextTable:
    rule, words = finding.rule, translations("tables", lang)
    onset = onset_text(finding.evidence, lang)
    facts = words["semicolon"].join(fact.text(lang) for fact in finding.evidence.facts)
    rows = [
        *([(translations("hacking", lang)["onset"], onset)] if onset else []),
        (words["evidence"], facts),
        *example_rows(run, finding.evidence, lang),
        (words["rule"], with_note(rule.when[lang], rule.source[lang], lang)),
        (words["meaning"], rule.meaning[lang]),
        (words["advice"], rule.advice[lang]),
        *((words["key"] if i == 0 else "", key) for i, key in enumerate(rule.keys)),
    ]
    columns = (words[rule.severity], _headline(finding, lang))
    return TextTable("", columns, tuple(rows), wrap=frozenset(columns[1:]))


def _headline(finding: LogFinding, lang: str) -> str:
    span = span_text(finding.evidence.steps, lang)
    title = with_note(finding.rule.title[lang], finding.rule.id, lang)
    return f"{title}{translations('tables', lang)['comma']}{span}"
