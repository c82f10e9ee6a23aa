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
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewardkit.errors import DataError
from rewardkit.output import atomic
from rewardkit.pages.charts import LinePoint, line_layout, spread
from rewardkit.pages.formulas import find_formulas, find_value, pack_formulas, utf16_length
from rewardkit.pages.html import render
from rewardkit.pages.model import Histogram
from rewardkit.pages.text import brief
from rewardkit.responses.figures import Cell, GradientGroups, prompt_key
from rewardkit.responses.report.view import (
    ResponseTexts,
    ShownResponse,
    ShownResponses,
    answer_span,
    reasoning_end,
    response_texts,
)
from rewardkit.responses.samples import Sample
from rewardkit.responses.score import ScoreReport
from rewardkit.row import batched
from rewardkit.scorers.base import Score
from rewardkit.statistics import percentile_of_counts

#: Default number of responses in the list of a page.
MAX_RESPONSES = 50_000

#: Responses that are compressed, and unpacked, together.
PACK_RESPONSES = 256

#: Characters of texts that are searched for formulas, which takes about a second per million; later
#: responses show LaTeX as it is.
MAX_FORMULA_TEXT_CHARACTERS = 5_000_000

#: Separators of fields and of responses: control characters, which a shown text does not have.
FIELD, RECORD = "\x1f", "\x1e"

#: Characters of an answer, and of a prompt, in the list.
ANSWER_CHARACTERS, PROMPT_CHARACTERS = 40, 90

#: Steps and data sources in a table.
MAX_STEPS, MAX_SOURCES = 200, 30

#: Most bars of scores: one for each value, or bins of equal width if there are more values.
MAX_SCORE_BARS = 12


class ReportPage:
    """The page of a run: gets every response with its score, and is then written.

    Its memory grows with the prompts, not with the responses.

    Attributes:
        cells: counts by step, and then by group of the prompt.
        scores: responses by score, to three decimals.
        lengths: responses by length in characters, of correct and of other responses.
        list: the sample of responses that are listed.
    """

    def __init__(self, out: Path, max_responses: int = MAX_RESPONSES) -> None:
        """Begin the page `out` with a list of some size; the figures count all responses."""
        self.out = out
        self.cells: defaultdict[int | None, dict[int, Cell]] = defaultdict(dict)
        self.scores: Counter[float] = Counter()
        self.lengths: dict[bool, Counter[int]] = {True: Counter(), False: Counter()}
        self.list = ShownResponses(max_responses, out.parent)

    def add(self, sample: Sample, score: Score) -> None:
        """Add a response."""
        prompt = sample.prompt
        group = prompt_key(sample.group(prompt))
        self.cells[sample.step].setdefault(group, Cell()).add(score)
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
        by_step = sorted((int(name), t) for name, t in report.steps.items() if name.isdecimal())
        groups = GradientGroups.of(cell for own in self.cells.values() for cell in own.values())
        prompts = len(set().union(*self.cells.values()))
        points = [LinePoint(step, t.correct / t.n, *t.interval) for step, t in by_step]
        largest = sorted(report.sources.items(), key=lambda item: -item[1].n)
        pieces = render(
            "responses/report/report.html.j2",
            title=_files_name(report),
            script=Path(__file__).with_name("report.js").read_text(encoding="utf-8"),
            facts=[("file", _files_name(report)), ("prompts", f"{prompts:,}")],
            report=report,
            total=total,
            has_verdicts=has_verdicts,
            sources=[(name or "(none)", tally) for name, tally in largest[:MAX_SOURCES]],
            steps=[
                (step, tally, GradientGroups.of(self.cells[step].values()))
                for step, tally in spread(by_step, MAX_STEPS)
            ],
            n_steps=len(by_step),
            groups=groups,
            statuses=[(name.replace("_", " "), n) for name, n in total.statuses.most_common()],
            scores=score_bars(self.scores),
            chart=line_layout("Accuracy", points) if has_verdicts and points[1:] else None,
            lengths=[
                Histogram("correct" if right else "incorrect", counts, "characters", marks)
                for right, counts in self.lengths.items()
                if has_verdicts and (marks := _percentiles(counts))
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


def _percentiles(counts: Mapping[int, int]) -> tuple[tuple[str, int], ...]:
    percents = (5, 50, 95) if counts else ()
    return tuple((f"p{each}", percentile_of_counts(counts, each)) for each in percents)


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
        texts = list(map(response_texts, batch))
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
