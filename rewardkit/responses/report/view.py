"""The responses of a report page: sampled for its list, and prepared to be shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from heapq import heappush, heappushpop, merge
from pathlib import Path
from random import Random
from tempfile import TemporaryFile
from typing import NamedTuple, TypeAlias
from weakref import finalize

from rewardkit.pages.text import clean
from rewardkit.responses.samples import Sample
from rewardkit.scorers.base import Score

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
    """A scored response of the list; `group` is a number that all responses to one prompt share."""

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


class ResponseTexts(NamedTuple):
    """The texts of a response on a page, in the order in which `report.js` unpacks them."""

    where: str
    prompt: str
    text: str
    gold: str
    pred: str


def response_texts(response: ShownResponse) -> ResponseTexts:
    """Return the texts of a response, as they are shown."""
    return ResponseTexts(
        where=display_text(response.where),
        prompt=display_text(response.prompt),
        text=display_text(response.text),
        gold=display_text(response.gold, MAX_ANSWER_CHARACTERS),
        pred=display_text(response.pred, MAX_ANSWER_CHARACTERS),
    )


class ShownResponses:
    """A sample of responses, in a file: memory does not grow with their length.

    Each response draws a random number. The sample has the lowest numbers of all responses and of
    those with each status.
    """

    def __init__(self, max_responses: int, folder: Path) -> None:
        """Begin a sample of some size, with a temporary file in a folder."""
        self._max = max_responses
        folder.mkdir(parents=True, exist_ok=True)
        self._spool = TemporaryFile(dir=folder)  # noqa: SIM115 - closed with the sample
        finalize(self, self._spool.close)
        self._random = Random(0)  # noqa: S311 - a reproducible sample
        self._by_status: dict[str, list[_Ticket]] = {}

    @property
    def reserved(self) -> int:
        """The number of responses of each status in the sample, if there are as many."""
        return max(1, self._max // STATUS_DIVISOR)

    def add(self, sample: Sample, score: Score, prompt: str, group: int) -> None:
        """Add a response, which may replace another in the sample."""
        number = -self._random.random()
        heap = self._by_status.setdefault(score.status.value, [])
        if len(heap) == self._max and number <= heap[0][0]:
            return
        response = ShownResponse(
            where=sample.where,
            prompt=prompt,
            text=sample.response,
            gold=sample.ground_truth,
            pred=score.pred,
            status=score.status.value,
            score=score.score,
            source=sample.source,
            step=sample.step,
            group=group,
        )
        line, start = json.dumps(response).encode(), self._spool.tell()
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


def display_text(text: str, max_characters: int = MAX_TEXT_CHARACTERS) -> str:
    """Return a text without control characters (see `clean`); a long one without its middle."""
    if len(text) > max_characters:
        half = max_characters // 2
        gap = f"\n[… {len(text) - max_characters:,} characters left out …]\n"
        text = text[:half] + gap + text[-half:]
    lines = text.split("\n")  # `clean` is fast on a text that is printable as a whole
    return "\n".join(line if line.isprintable() else clean(line) for line in lines)


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
