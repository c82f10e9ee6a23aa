"""Scored responses as one HTML page that works without a network.

The figures are plain HTML. The responses are in the page as compressed text in base64, which has no
character that could end an element. `report.js` unpacks those that are shown. The policy of the page
allows this script and no other, and forbids every request.
"""

import gzip
import json
import re
from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from heapq import heappush, heappushpop, merge
from pathlib import Path
from random import Random
from tempfile import TemporaryFile
from typing import Any, NamedTuple, TypeAlias
from weakref import finalize

from rewardkit.errors import DataError
from rewardkit.pages.charts import LinePoint, line_layout, spread
from rewardkit.pages.formulas import find_formulas, find_value, pack_formulas, utf16_length
from rewardkit.pages.html import render, write_pieces
from rewardkit.pages.model import Histogram
from rewardkit.responses.figures import Cell, GradientGroups, prompt_key
from rewardkit.responses.samples import Sample
from rewardkit.responses.score import ScoreReport
from rewardkit.row import batched
from rewardkit.scorers.base import Score
from rewardkit.statistics import percentile_of_counts
from rewardkit.text import brief, printable

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

#: Characters of a text on a page: half from its start, half from its end.
MAX_TEXT_CHARACTERS = 20_000

#: Characters of an answer, and of the tree that it was parsed to; longer answers are not marked.
MAX_ANSWER_CHARACTERS, MAX_MARKED_CHARACTERS = 1000, 100

#: Length of a response from which its reasoning is folded.
MIN_FOLDED_CHARACTERS = 400

#: Marks that precede an answer, in the order they are tried, and the characters searched after them.
ANSWER_MARKS = ("boxed{", "fbox{", "<answer>", "####", "nswer", "答案")
MARK_REACH_CHARACTERS = 2000

#: The size of the sample divided by this is reserved for each status, however rare it is.
STATUS_DIVISOR = 40

#: A negative random number, and the first byte and the size of a response in the spool.
_Ticket: TypeAlias = tuple[float, int, int]


class ShownResponse(NamedTuple):
    """A scored response of the list; `group` is a number that all responses to one prompt share.

    The first five fields are the texts that `report.js` unpacks.
    """

    where: str
    prompt: str
    text: str
    gold: str
    pred: str
    status: str
    score: float
    source: str
    step: int | None
    group: int

    def as_shown(self) -> "ShownResponse":
        """Return the response with its texts as they are shown."""
        return self._replace(
            where=display_text(self.where),
            prompt=display_text(self.prompt),
            text=display_text(self.text),
            gold=display_text(self.gold, MAX_ANSWER_CHARACTERS),
            pred=display_text(self.pred, MAX_ANSWER_CHARACTERS),
        )

    def cells(self) -> dict[str, Any]:
        """Return the properties by which a shown response is listed, sorted and marked."""
        start, end = answer_span(self.text, self.pred)
        fold = reasoning_end(self.text, start if end else len(self.text))
        marks = {"fold": fold, "start": start, "end": end}
        return {
            "status": self.status,
            "score": round(self.score, 4),
            "step": self.step,
            "source": brief(self.source, PROMPT_CHARACTERS),
            "length": len(self.text),
            "group": self.group,
            "pred": brief(self.pred, ANSWER_CHARACTERS),
            "gold": brief(self.gold, ANSWER_CHARACTERS),
            "line": brief(self.prompt or self.text, PROMPT_CHARACTERS),
            **{name: utf16_length(self.text[:mark]) for name, mark in marks.items()},
        }

    def formulas(self) -> str:
        """Return the formulas of the prompt, text, gold and answer as JSON."""
        finders = find_formulas, find_formulas, find_value, find_value
        pairs = zip(finders, self[1:5], strict=True)
        return _compact_json([pack_formulas(find(text), text) for find, text in pairs])


class ShownResponses:
    """A sample of responses, in a file: memory does not grow with their length.

    Each response draws a random number. The sample has the lowest numbers of all responses and of
    those with each status.
    """

    def __init__(self, max_responses: int, folder: Path) -> None:
        """Begin a sample of some size, with a temporary file in a folder."""
        self._max = max_responses
        #: The number of responses of each status in the sample, if there are as many.
        self.reserved = max(1, max_responses // STATUS_DIVISOR)
        folder.mkdir(parents=True, exist_ok=True)
        self._spool = TemporaryFile(dir=folder)  # noqa: SIM115 - closed with the sample
        finalize(self, self._spool.close)
        self._random = Random(0)  # noqa: S311 - a reproducible sample
        self._by_status: defaultdict[str, list[_Ticket]] = defaultdict(list)

    def add(self, sample: Sample, score: Score, prompt: str, group: int) -> None:
        """Add a response, which may replace another in the sample."""
        number, status = -self._random.random(), score.status.value
        heap = self._by_status[status]
        if len(heap) == self._max and number <= heap[0][0]:
            return
        strings = sample.where, prompt, sample.response, sample.ground_truth, score.pred
        values = status, score.score, sample.source, sample.step, group
        line, start = json.dumps([*strings, *values]).encode(), self._spool.tell()
        self._spool.write(line)
        push = heappush if len(heap) < self._max else heappushpop
        push(heap, (number, start, len(line)))

    def __iter__(self) -> Iterator[ShownResponse]:
        """Yield the responses of the sample, in the order in which they were added."""
        heaps = [sorted(heap, reverse=True) for heap in self._by_status.values()]
        sample = {ticket for heap in heaps for ticket in heap[: self.reserved]}
        for ticket in merge(*heaps, reverse=True):
            if len(sample) >= self._max:
                break
            sample.add(ticket)
        for _, start, size in sorted(sample, key=lambda ticket: ticket[1]):
            self._spool.seek(start)
            yield ShownResponse(*json.loads(self._spool.read(size)))


class ReportPage:
    """The page of a run: gets every response with its score, and is then written.

    Its memory grows with the prompts, not with the responses. `cells` are counts by step, and then by
    group of the prompt, `scores` by score, `lengths` by length, of correct and of other responses.
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
        """Write the page with the figures of a report; return what a summary says of it."""
        total = report.total
        if not total.n:
            first = "".join(f": {row.reason.removesuffix('.')}" for row in report.examples[:1])
            raise DataError(f"{', '.join(report.files[:3])}: no responses{first}.")
        columns, chunks, formulas = _pack(self.list)
        listed = len(columns["status"])
        has_verdicts = total.accuracy is not None
        name = f"{report.files[0]} and {len(report.files) - 1} more".removesuffix(" and 0 more")
        by_step = sorted((int(step), t) for step, t in report.steps.items() if step.isdecimal())
        groups = GradientGroups.of(cell for own in self.cells.values() for cell in own.values())
        prompts = len(set().union(*self.cells.values()))
        points = [LinePoint(step, t.correct / t.n, *t.interval) for step, t in by_step]
        largest = sorted(report.sources.items(), key=lambda item: -item[1].n)
        pieces = render(
            "responses/report/report.html.j2",
            title=name,
            script=Path(__file__).with_name("report.js").read_text(encoding="utf-8"),
            facts=[("file", name), ("prompts", f"{prompts:,}")],
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
                Histogram(
                    "correct" if right else "incorrect",
                    counts,
                    "characters",
                    tuple((f"p{n}", percentile_of_counts(counts, n)) for n in (5, 50, 95)),
                )
                for right, counts in self.lengths.items()
                if has_verdicts and counts
            ],
            listed=listed,
            reserved=self.list.reserved,
            index=pack(_compact_json(columns)),
            chunks=chunks,
            formulas=formulas,
            with_formulas=min(len(formulas) * PACK_RESPONSES, listed),
            chunk=PACK_RESPONSES,
        )
        write_pieces(pieces, self.out, overwrite=overwrite)
        counts = {"bytes": self.out.stat().st_size, "listed": listed, "groups": groups._asdict()}
        return {"page": str(self.out), **counts}


def _pack(shown: ShownResponses) -> tuple[dict[str, list[Any]], list[str], list[str]]:
    """Return the columns of the list, the compressed texts, and the compressed formulas."""
    columns: defaultdict[str, list[Any]] = defaultdict(list)
    chunks: list[str] = []
    formulas: list[str] = []
    searched = 0
    for batch in batched(shown, PACK_RESPONSES):
        responses = [response.as_shown() for response in batch]
        for response in responses:
            for name, value in response.cells().items():
                columns[name].append(value)
        chunks.append(pack(RECORD.join(FIELD.join(response[:5]) for response in responses)))
        if searched < MAX_FORMULA_TEXT_CHARACTERS:
            searched += sum(len(response.prompt) + len(response.text) for response in responses)
            formulas.append(pack(RECORD.join(response.formulas() for response in responses)))
    groups = {group: number for number, group in enumerate(dict.fromkeys(columns["group"]))}
    columns["group"] = [groups[group] for group in columns["group"]]
    return columns, chunks, formulas


def _compact_json(data: object) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def pack(text: str) -> str:
    """Compress a text to letters, digits, `+`, `/` and `=`, always to the same."""
    return b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode("ascii")


def score_bars(counts: Mapping[float, int]) -> list[tuple[str, int]]:
    """Return responses by score, or by bins of equal width if there are many scores."""
    if len(counts) <= MAX_SCORE_BARS:
        return [(f"{value:g}", n) for value, n in sorted(counts.items())]
    low, width = min(counts), (max(counts) - min(counts)) / MAX_SCORE_BARS
    bins = [0] * MAX_SCORE_BARS
    for value, n in counts.items():
        bins[min(int((value - low) / width), MAX_SCORE_BARS - 1)] += n
    ends = [f"{low + width * i:.3g}" for i in range(MAX_SCORE_BARS + 1)]
    return [(f"{ends[i]} to {ends[i + 1]}", n) for i, n in enumerate(bins)]


def display_text(text: str, max_characters: int = MAX_TEXT_CHARACTERS) -> str:
    """Return a text without control characters (see `printable`); a long one without its middle."""
    if len(text) > max_characters:
        half = max_characters // 2
        gap = f"\n[… {len(text) - max_characters:,} characters left out …]\n"
        text = text[:half] + gap + text[-half:]
    lines = text.split("\n")  # `printable` is fast on a text that is printable as a whole
    return "\n".join(line if line.isprintable() else printable(line) for line in lines)


def answer_span(text: str, pred: str) -> tuple[int, int]:
    """Return the start and end of the answer in a text; (0, 0) if it does not occur.

    It may have spaces, commas and dollar signs between its characters, and is not part of a longer
    word or number.
    """
    characters = [character for character in pred if character not in " \t\n,$"]
    if not characters or len(pred) > MAX_MARKED_CHARACTERS:
        return 0, 0
    before = r"(?<![^\W_])" if characters[0].isalnum() else ""
    after = r"(?![^\W_])" if characters[-1].isalnum() else ""
    pattern = re.compile(before + r"[\s,$]{0,9}".join(map(re.escape, characters)) + after)
    think_end = text.rfind("</think>") + 1
    for mark in ANSWER_MARKS:
        start = text.rfind(mark, think_end)
        reach = start + len(mark) + MARK_REACH_CHARACTERS
        if start >= 0 and (match := pattern.search(text, start + len(mark), reach)):
            return match.span()
    spans = [match.span() for match in pattern.finditer(text, think_end)]
    return spans[-1] if spans else (0, 0)


def reasoning_end(text: str, answer: int) -> int:
    """Return the end of the reasoning: `</think>`, else the start of the answer's paragraph.

    All of a text with an open `<think>` is reasoning; a short text has none.
    """
    think_end = text.rfind("</think>")
    if 0 <= think_end < answer:
        return len(text) - len(text[think_end + len("</think>") :].lstrip())
    if "<think>" in text and think_end < 0:
        return len(text)
    last = text.rfind("\n\n", 0, min(answer, len(text.rstrip())))
    return last + 2 if last >= 0 and len(text) > MIN_FOLDED_CHARACTERS else 0
