"""Scored responses as one HTML page that works without a network.

The figures are plain HTML. The responses are in the page as compressed text in base64, which has no
character that could end an element. `report.js` unpacks those that are shown. The policy of the page
allows this script and no other, and forbids every request.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

from rewardkit.errors import DataError
from rewardkit.output import atomic
from rewardkit.pages.charts import LineLayout, LinePoint, line_layout, spread
from rewardkit.pages.formulas import find_formulas, find_value, pack_formulas, utf16_length
from rewardkit.pages.html import render
from rewardkit.pages.model import Histogram
from rewardkit.pages.text import brief, share
from rewardkit.responses.figures import Cell, GradientGroups, Tally, prompt_key
from rewardkit.responses.report.view import (
    ResponseTexts,
    ShownResponse,
    ShownResponses,
    answer_span,
    reasoning_end,
)
from rewardkit.responses.samples import Sample
from rewardkit.responses.score import ScoreReport
from rewardkit.row import batched
from rewardkit.scorers.base import Score
from rewardkit.statistics import clustered_interval, percentile_of_counts

#: Default number of responses in the list of a page.
MAX_RESPONSES = 50_000

#: Responses that are compressed, and unpacked, together.
PACK_RESPONSES = 256

#: Characters of texts that are searched for formulas, which takes about a second per million; later
#: responses show LaTeX as it is.
MAX_FORMULA_TEXT_CHARACTERS = 5_000_000

#: Separators of fields and of responses: control characters, which a shown text does not have.
FIELD, RECORD = "\x1f", "\x1e"

#: Characters of an answer, and of a prompt, in the list; of a prompt that identifies it.
ANSWER_CHARACTERS, PROMPT_CHARACTERS, HEAD_CHARACTERS = 40, 90, 160

#: Prompts in the list of those that improved, and in that of those that got worse.
MAX_CHANGES = 10

#: Cells of a strip, steps in a table, data sources in a table, and data sources with a chart each.
MAX_STRIP_CELLS, MAX_STEPS, MAX_SOURCES, MAX_CHARTS = 40, 200, 30, 6

#: Most bars of scores: one for each value, or bins of equal width if there are more values.
MAX_SCORE_BARS = 12

K = TypeVar("K")


class ReportPage:
    """The page of a run: gets every response with its score, and is then written.

    Its memory grows with the prompts, not with the responses.

    Attributes:
        cells: counts by data source, step and group of the prompt.
        heads: the beginning of each group's prompt.
        scores: responses by score, to three decimals.
        lengths: responses by length in characters, of correct and of other responses.
        list: the sample of responses that are listed.
    """

    def __init__(
        self,
        out: Path,
        scorer: str = "auto",
        options: Mapping[str, Any] | None = None,
        max_responses: int = MAX_RESPONSES,
    ) -> None:
        """Begin a page.

        Args:
            out: the page to write.
            scorer: the scorer of the responses; `math` explains its scores.
            options: the options of the scorer.
            max_responses: size of the list; the figures count all responses.
        """
        self.out = out
        self.cells: dict[tuple[str, int | None, int], Cell] = {}
        self.heads: dict[int, str] = {}
        self.scores: Counter[float] = Counter()
        self.lengths: dict[bool, Counter[int]] = {True: Counter(), False: Counter()}
        self.list = ShownResponses(max_responses, out.parent, scorer, options or {})

    def add(self, sample: Sample, score: Score) -> None:
        """Add a response."""
        prompt = sample.prompt
        group = prompt_key(sample.group(prompt))
        self.cells.setdefault((sample.source, sample.step, group), Cell()).add(score)
        self.heads.setdefault(group, prompt[:HEAD_CHARACTERS])
        self.scores[round(score.score, 3)] += 1
        self.lengths[bool(score.correct)][len(sample.response)] += 1
        self.list.add(sample, score, prompt, group)

    def write(self, report: ScoreReport, *, overwrite: bool = False) -> dict[str, Any]:
        """Write the page with the figures of a report; return what a summary says of it.

        Raises:
            DataError: there is no response.
            OutputError: the page exists, or it cannot be written.
        """
        total = report.total
        if not total.n:
            first = "".join(f": {row.reason.removesuffix('.')}" for row in report.examples[:1])
            raise DataError(f"{', '.join(report.files[:3])}: no responses{first}.")
        columns, chunks, formulas = _pack(self.list)
        has_verdicts = total.accuracy is not None
        by_group = sorted(self.steps(report).items())
        cells: defaultdict[int | None, list[Cell]] = defaultdict(list)
        for (_, step, _), cell in self.cells.items():
            cells[step].append(cell)
        groups = GradientGroups.of(self.cells.values())
        largest = sorted(report.sources.items(), key=lambda item: -item[1].n)
        pieces = render(
            "responses/report/report.html.j2",
            title=_files_name(report),
            script=Path(__file__).with_name("report.js").read_text(encoding="utf-8"),
            facts=list(self._facts(report, groups)),
            report=report,
            total=total,
            has_verdicts=has_verdicts,
            sources=[(name or "(none)", tally) for name, tally in largest[:MAX_SOURCES]],
            steps=[
                (step, tally, GradientGroups.of(cells[step]))
                for step, tally in spread(by_group, MAX_STEPS)
            ],
            n_steps=len(by_group),
            groups=groups,
            statuses=[(name.replace("_", " "), n) for name, n in total.statuses.most_common()],
            scores=score_bars(self.scores),
            charts=self._charts(report) if has_verdicts else [],
            changes=prompt_changes(self.cells, self.heads) if has_verdicts else None,
            lengths=[
                Histogram(name, counts, "characters", _percentiles(counts))
                for name, counts in (
                    ("correct", self.lengths[True]),
                    ("incorrect", self.lengths[False]),
                )
                if counts and has_verdicts
            ],
            listed=len(columns["status"]),
            reserved=self.list.reserved,
            index=pack(_compact_json(columns)),
            chunks=chunks,
            formulas=formulas,
            with_formulas=min(len(formulas) * PACK_RESPONSES, len(columns["status"])),
            chunk=PACK_RESPONSES,
        )
        with (
            atomic(self.out, overwrite=overwrite) as temporary,
            temporary.open("w", encoding="utf-8", newline="\n") as file,
        ):
            file.writelines(pieces)
            size = file.tell()
        counts = {"bytes": size, "listed": len(columns["status"]), "groups": groups._asdict()}
        return {"page": str(self.out), **counts}

    @staticmethod
    def steps(report: ScoreReport) -> dict[int, Tally]:
        """Return the tallies of the steps that are numbers."""
        names = {name: tally for name, tally in report.steps.items() if name.isdecimal()}
        return {int(name): tally for name, tally in names.items()}

    def _charts(self, report: ScoreReport) -> list[LineLayout]:
        """Return charts of accuracy by step: of all responses, and of each of several sources."""
        points: defaultdict[str, list[LinePoint]] = defaultdict(list)
        for step, tally in sorted(self.steps(report).items()):
            points["all"].append(LinePoint(step, tally.correct / tally.n, *tally.interval))
        if 1 < len(report.sources) <= MAX_CHARTS:
            clusters: defaultdict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
            for (source, number, _), cell in self.cells.items():
                if number is not None:
                    clusters[number, source].append((cell.n, cell.correct))
            for (step, source), pairs in sorted(clusters.items()):
                n, correct = map(sum, zip(*pairs, strict=True))
                point = LinePoint(step, correct / n, *clustered_interval(pairs))
                points[source or "(none)"].append(point)
        return [line_layout(f"Accuracy of {name}", own) for name, own in points.items() if own[1:]]

    def _facts(self, report: ScoreReport, groups: GradientGroups) -> Iterator[tuple[str, str]]:
        total = report.total
        yield "file", _files_name(report)
        if total.accuracy is not None:
            low, high = total.interval
            yield "95% interval", f"{low:.1%} to {high:.1%}"
        yield "mean score", f"{total.score_sum / total.n:.4f}"
        yield "prompts", f"{len(self.heads):,}"
        yield "no answer", share(total.no_answer, total.n)
        if total.bad_golds:
            yield "gold cannot be scored", f"{total.bad_golds:,}"
        if groups.n:
            yield "groups without a gradient", share(groups.without_gradient, groups.n)
        if report.unscored:
            yield "rows without a score", f"{report.unscored:,}"


def _percentiles(counts: Mapping[int, int]) -> tuple[tuple[str, int], ...]:
    return tuple((f"p{each}", percentile_of_counts(counts, each)) for each in (5, 50, 95))


def _files_name(report: ScoreReport) -> str:
    more = f" and {len(report.files) - 1} more" if len(report.files) > 1 else ""
    return f"{report.files[0]}{more}"


def _pack(shown: ShownResponses) -> tuple[dict[str, list[Any]], list[str], list[str]]:
    """Return the columns of the list, the compressed texts, and the compressed formulas."""
    columns: defaultdict[str, list[Any]] = defaultdict(list)
    chunks: list[str] = []
    formulas: list[str] = []
    searched = 0
    for batch in batched(shown, PACK_RESPONSES):
        texts = [shown.texts(response) for response in batch]
        for response, own in zip(batch, texts, strict=True):
            for name, value in _cells(response, own).items():
                columns[name].append(value)
        chunks.append(pack(RECORD.join(map(FIELD.join, texts))))
        if searched < MAX_FORMULA_TEXT_CHARACTERS:
            searched += sum(len(own.prompt) + len(own.text) for own in texts)
            formulas.append(pack(RECORD.join(map(_formulas_of, texts))))
    groups = {group: number for number, group in enumerate(dict.fromkeys(columns["group"]))}
    columns["group"] = [groups[group] for group in columns["group"]]
    return columns, chunks, formulas


def _cells(response: ShownResponse, texts: ResponseTexts) -> dict[str, Any]:
    """Return the properties by which a response is listed, sorted and marked."""
    start, end = answer_span(texts.text, texts.pred)
    fold = reasoning_end(texts.text, start if end else len(texts.text))
    return {
        "status": response.status,
        "score": round(response.score, 4),
        "step": response.step,
        "source": brief(response.source, PROMPT_CHARACTERS),
        "length": len(response.text),
        "group": response.group,
        "pred": brief(response.pred, ANSWER_CHARACTERS),
        "gold": brief(response.gold, ANSWER_CHARACTERS),
        "line": brief(response.prompt or response.text, PROMPT_CHARACTERS),
        "fold": utf16_length(texts.text[:fold]),
        "start": utf16_length(texts.text[:start]),
        "end": utf16_length(texts.text[:end]),
    }


def _formulas_of(texts: ResponseTexts) -> str:
    """Return the formulas of a response's prompt, text, gold and answer as JSON."""
    formulas = [pack_formulas(find_formulas(text), text) for text in (texts.prompt, texts.text)]
    values = [pack_formulas(find_value(text), text) for text in (texts.gold, texts.pred)]
    return _compact_json([*formulas, *values])


def _compact_json(data: object) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def pack(text: str) -> str:
    """Compress a text to letters, digits, `+`, `/` and `=`, always to the same."""
    return b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode("ascii")


def score_bars(counts: Mapping[float, int]) -> list[tuple[str, int]]:
    """Return responses by score, or by bins of equal width if there are many scores."""
    if len(counts) <= MAX_SCORE_BARS:
        return [(f"{value:g}", counts[value]) for value in sorted(counts)]
    low, width = min(counts), (max(counts) - min(counts)) / MAX_SCORE_BARS
    bins: Counter[int] = Counter()
    for value, n in counts.items():
        bins[min(int((value - low) / width), MAX_SCORE_BARS - 1)] += n
    ends = [low + width * i for i in range(MAX_SCORE_BARS + 1)]
    return [(f"{ends[i]:.3g} to {ends[i + 1]:.3g}", bins[i]) for i in range(MAX_SCORE_BARS)]


def prompt_changes(
    cells: Mapping[tuple[str, int | None, int], Cell], heads: Mapping[int, str]
) -> dict[str, Any]:
    """Return the prompts that improved most, and those that got worse most.

    A prompt is measured by its mean accuracy in the second half of its steps minus that in the
    first. A strip has a cell for each step, or for several if there are more than `MAX_STRIP_CELLS`.
    """
    rates: defaultdict[int, dict[int, float]] = defaultdict(dict)
    for (_, step, group), cell in sorted(cells.items(), key=lambda item: item[0][1] or 0):
        if step is not None:
            rates[group][step] = cell.rate
    steps = sorted({step for own in rates.values() for step in own})
    size = -(-len(steps) // MAX_STRIP_CELLS) or 1
    spans = [steps[i : i + size] for i in range(0, len(steps), size)]
    ranking = []
    for group, own in rates.items():
        half, values = len(own) // 2, list(own.values())
        if half and (change := fmean(values[-half:]) - fmean(values[:half])):
            ranking.append((change, group))
    ranking.sort(key=lambda pair: pair[0])

    def strips(pairs: Sequence[tuple[float, int]]) -> list[dict[str, Any]]:
        return [
            {
                "prompt": heads[group],
                "change": change,
                "rates": [
                    _mean([rates[group][s] for s in span if s in rates[group]]) for span in spans
                ],
            }
            for change, group in pairs
        ]

    return {
        "steps": [str(s[0]) if len(s) == 1 else f"{s[0]} to {s[-1]}" for s in spans],
        "worse": strips([pair for pair in ranking if pair[0] < 0][:MAX_CHANGES]),
        "better": strips([pair for pair in reversed(ranking) if pair[0] > 0][:MAX_CHANGES]),
    }


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None
