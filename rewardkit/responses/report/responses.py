"""The responses of a report: read with their scores, sampled for the list, and prepared to be shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from heapq import heappush, heappushpop
from random import Random
from typing import IO, Any, TypeAlias

from rewardkit.errors import call_catching
from rewardkit.isolate.loading import LOAD_TIMEOUT_SECONDS
from rewardkit.pages.text import clean
from rewardkit.responses.samples import (
    Sample,
    SkippedRow,
    finite_number,
    read_samples,
    row_result,
    rule_of_files,
)
from rewardkit.responses.tally import prompt_group, prompt_key, prompt_text, step_of
from rewardkit.scorers.base import Score, Scorer, Status, options_for
from rewardkit.scorers.call import call_scorer_or_stop, failure_reason
from rewardkit.scorers.explain import Explanation, explain
from rewardkit.scorers.isolated import (
    CALL_TIMEOUT_SECONDS,
    IsolatedScorer,
    learn_rule,
    open_scorer,
)
from rewardkit.scorers.math import score as math_score
from rewardkit.scorers.reward_result import RightRule
from rewardkit.scorers.row_scorer import scorer_for


@dataclass(frozen=True, kw_only=True)
class ScoredResponse:
    """A scored response.

    Attributes:
        where: file:line.
        prompt: the prompt as text; "" if the row does not have it.
        text: the response.
        gold: the gold answer.
        pred: the answer that the scorer read.
        status: of the score.
        score: the reward.
        correct: whether the response is correct; None if it is not known.
        source: the data source; "" if unknown.
        step: the training step, if known.
        group: a number that all responses to one prompt share.
        is_math: whether its scorer is `math`, which can explain the score.
    """

    where: str
    prompt: str
    text: str
    gold: str
    pred: str
    status: Status
    score: float
    correct: bool | None
    source: str
    step: int | None
    group: int
    is_math: bool


def read_scored_responses(
    files: Iterable[str],
    scorer: str = "auto",
    options: Mapping[str, Any] | None = None,
    response_key: str | None = None,
    gold_key: str | None = None,
    seconds: float = CALL_TIMEOUT_SECONDS,
    load_seconds: float = LOAD_TIMEOUT_SECONDS,
    right_score: float | None = None,
    announce: Callable[[str], object] = lambda _: None,
) -> Iterator[ScoredResponse | SkippedRow]:
    """Yield the responses of files in order.

    Args:
        files: jsonl or parquet.
        scorer: scores rows without a score; a custom one also says which scores of the rows are right.
        options: options of the scorer.
        response_key: the field with the response; see `read_samples`.
        gold_key: the field with the ground truth.
        seconds: timeout per response for a custom scorer.
        load_seconds: timeout for importing a custom scorer.
        right_score: the lowest right score; None to learn it (`scorers.reward_result`).
        announce: called with a sentence about which scores are right, unless the rows state it.

    Raises:
        DataError: a file cannot be read, or a custom scorer fails on all of its first responses.
        UnknownNameError: the scorer is unknown, or one of its options.
    """
    files = list(files)
    rule = rule_of_files(files, response_key, gold_key, right_score)
    with open_scorer(scorer, options or {}, seconds, load_seconds) as loaded_scorer:
        if isinstance(loaded_scorer, IsolatedScorer):
            samples = read_samples(files, response_key, gold_key)
            golds = ((s.ground_truth, s.extra_info) for s in samples if isinstance(s, Sample))
            learned = learn_rule(loaded_scorer, golds, right_score)[1]
            rule = rule if rule.is_known else learned
        if rule.sentence:
            announce(rule.sentence)
        total = scored = between = 0
        for sample in read_samples(files, response_key, gold_key):
            if isinstance(sample, SkippedRow):
                yield sample
                continue
            response = _scored_response(sample, rule, scorer, loaded_scorer)
            yield response
            if isinstance(response, ScoredResponse):
                total += 1
                scored += response.status is Status.SCORED
                between += rule.is_between(response.score)
        for line in rule.doubts(scored, between, total):
            announce(line)


def _scored_response(
    sample: Sample, rule: RightRule, scorer_name: str, scorer: Scorer
) -> ScoredResponse | SkippedRow:
    source = str(sample.extra_info.get("data_source") or "")
    result: Score | Exception | None = _row_score(sample.fields, rule, source)
    if result is None and isinstance(score := sample.fields.get("score"), (int, float)):
        return SkippedRow(sample.where, f"its score is {str(score)[:40]}")
    if result is None:
        result = call_scorer_or_stop(
            scorer, sample.response, sample.ground_truth, sample.extra_info
        )
    if isinstance(result, Exception):
        return SkippedRow(sample.where, failure_reason(result))
    prompt = prompt_text(sample)
    return ScoredResponse(
        where=sample.where,
        prompt=prompt,
        text=sample.response,
        gold=sample.ground_truth,
        pred=result.pred,
        status=result.status,
        score=result.score,
        correct=result.correct,
        source=source,
        step=step_of(sample.fields),
        group=prompt_key(prompt_group(sample, prompt)),
        is_math=_is_math(sample, scorer_name),
    )


def _row_score(fields: Mapping[str, Any], rule: RightRule, source: str) -> Score | None:
    """Return the score of a row with its verdict, if it has one."""
    if any(
        finite_number(value) is None
        for name in ("score", "acc")
        if (value := fields.get(name)) is not None
    ):
        return None
    result = row_result(fields)
    if result is None:
        return None
    pred = fields.get("pred")
    score = rule.judge(result.as_score(), source)._replace(pred="" if pred is None else str(pred))
    return score._replace(status=_status(fields, score))


def _status(fields: Mapping[str, Any], score: Score) -> Status:
    """Return the status of a row, or that of its verdict where the row has none or another one."""
    status = call_catching(Status, fields.get("status"))
    is_same = (status is Status.CORRECT) is (score.correct is True)
    if isinstance(status, Status) and is_same and status is not Status.SCORED:
        return status
    flags = (
        ("error", Status.BAD_GROUND_TRUTH),
        ("timeout", Status.TIMEOUT),
        ("no_answer", Status.NO_ANSWER),
    )
    statuses = (status for name, status in flags if finite_number(fields.get(name)))
    return next(statuses, score.status)


def _is_math(sample: Sample, scorer_name: str) -> bool:
    if scorer_name != "auto":
        return scorer_name == "math"
    find = partial(scorer_for, sample.extra_info.get("data_source"), sample.extra_info)
    return call_catching(find) is math_score


#: The size of the sample divided by this is reserved for each status, however rare it is.
STATUS_DIVISOR = 40

#: A negative random number, and the first byte and the size of a response in the spool.
_Ticket: TypeAlias = tuple[float, int, int]


@dataclass
class ShownResponses:
    """A sample of responses, in a file: memory does not grow with their length.

    Each response draws a random number. The sample has the lowest numbers of all responses and of
    those with each status.

    Attributes:
        max_responses: size of the sample.
        spool: a binary file to write to and read from.
        n: number of responses that were added.
    """

    max_responses: int
    spool: IO[bytes]
    n: int = 0
    _random: Random = field(default_factory=lambda: Random(0))  # noqa: S311 - a reproducible sample
    _all: list[_Ticket] = field(default_factory=list)
    _by_status: dict[Status, list[_Ticket]] = field(default_factory=dict)

    @property
    def reserved(self) -> int:
        """The number of responses of each status in the sample, if there are as many."""
        return max(1, self.max_responses // STATUS_DIVISOR)

    def add(self, response: ScoredResponse) -> None:
        """Add a response, which may replace another in the sample."""
        self.n += 1
        number = -self._random.random()
        same_status = self._by_status.setdefault(response.status, [])
        heaps = [(self._all, self.max_responses), (same_status, self.reserved)]
        if not any(len(heap) < size or number > heap[0][0] for heap, size in heaps):
            return
        ticket = (number, *self._write(response))
        for heap, size in heaps:
            heappush(heap, ticket) if len(heap) < size else heappushpop(heap, ticket)

    def __iter__(self) -> Iterator[ScoredResponse]:
        """Yield the responses of the sample, in the order in which they were added."""
        sample = {ticket for heap in self._by_status.values() for ticket in heap}
        for ticket in sorted(self._all, reverse=True):
            if len(sample) >= self.max_responses:
                break
            sample.add(ticket)
        for _, start, size in sorted(sample, key=lambda ticket: ticket[1]):
            self.spool.seek(start)
            yield _parse(self.spool.read(size))

    def _write(self, response: ScoredResponse) -> tuple[int, int]:
        line = json.dumps(vars(response)).encode()
        start = self.spool.tell()
        self.spool.write(line)
        return start, len(line)


def _parse(line: bytes) -> ScoredResponse:
    fields = json.loads(line)
    return ScoredResponse(**{**fields, "status": Status(fields["status"])})


#: Characters of a text on a page: half from its start, half from its end.
MAX_TEXT_CHARACTERS = 20_000

#: Characters of an answer, and of the tree that it was parsed to.
MAX_ANSWER_CHARACTERS = 1000

#: Length of a response from which its reasoning is folded.
MIN_FOLDED_CHARACTERS = 400

#: Marks that precede an answer, in the order they are tried, and the characters searched after them.
ANSWER_MARKS = ("boxed{", "fbox{", "<answer>", "####", "nswer", "答案")
MARK_REACH_CHARACTERS = 2000

#: Characters that may stand inside an answer in the text: `$1,764` was read as `1764`.
_IGNORED = frozenset(" \t\n$,，、{}!\\")


@dataclass(frozen=True, kw_only=True)
class ResponseView:
    """The texts of a response on a page, and places in its `text`, in characters.

    Attributes:
        where: file:line.
        prompt: the prompt.
        text: the response.
        gold: the gold answer.
        pred: the answer that the scorer read.
        why: the scorer's explanation of its score; "" without one.
        fold: the end of the reasoning; 0 if nothing is folded.
        start: the start of the answer in the text.
        end: the end of the answer; `start` and `end` are 0 if it is not found.
    """

    where: str
    prompt: str
    text: str
    gold: str
    pred: str
    why: str
    fold: int
    start: int
    end: int


def view_response(
    response: ScoredResponse, options: Mapping[str, Any] | None = None
) -> ResponseView:
    """Return the view of a response; `options` are those of its scorer."""
    text, pred = display_text(response.text), display_text(response.pred, MAX_ANSWER_CHARACTERS)
    start, end = answer_span(text, pred)
    return ResponseView(
        where=display_text(response.where),
        prompt=display_text(response.prompt),
        text=text,
        gold=display_text(response.gold, MAX_ANSWER_CHARACTERS),
        pred=pred,
        why=explain_score(response, options or {}),
        fold=reasoning_end(text, start if end else len(text)),
        start=start,
        end=end,
    )


def display_text(text: str, max_characters: int = MAX_TEXT_CHARACTERS) -> str:
    """Return a text without control characters (see `clean`); a long one without its middle."""
    if len(text) > max_characters:
        half = max_characters // 2
        gap = f"\n[… {len(text) - max_characters:,} characters left out …]\n"
        text = text[:half] + gap + text[-half:]
    lines = text.split("\n")  # `clean` is fast on a text that is printable as a whole
    return "\n".join(line if line.isprintable() else clean(line) for line in lines)


def answer_span(text: str, pred: str) -> tuple[int, int]:
    """Return the start and end of the answer in a text; (0, 0) if it is not found."""
    if not pred:
        return 0, 0
    think_end = text.rfind("</think>") + 1
    for mark in ANSWER_MARKS:
        at = text.rfind(mark, think_end)
        if at >= 0 and (
            span := _find_first(text, pred, at + len(mark), at + MARK_REACH_CHARACTERS)
        ):
            return span
    return _find_last(text, pred, think_end) or _find_ignoring_marks(text, pred)


def _find_first(text: str, pred: str, start: int, end: int) -> tuple[int, int] | None:
    at = text.find(pred, start, end)
    while at >= 0 and not _is_whole_word(text, at, at + len(pred)):
        at = text.find(pred, at + 1, end)
    return (at, at + len(pred)) if at >= 0 else None


def _find_last(text: str, pred: str, start: int) -> tuple[int, int] | None:
    at = text.rfind(pred, start)
    while at >= 0 and not _is_whole_word(text, at, at + len(pred)):
        at = text.rfind(pred, start, at + len(pred) - 1)
    return (at, at + len(pred)) if at >= 0 else None


def _is_whole_word(text: str, start: int, end: int) -> bool:
    """Whether a span of a text is not inside a longer word or number."""
    before, after = text[start - 1 : start] if start else "", text[end : end + 1]
    begins = before.isalnum() and text[start].isalnum()
    return not begins and not (after.isalnum() and text[end - 1].isalnum())


def _find_ignoring_marks(text: str, pred: str) -> tuple[int, int]:
    """Return the last place of the answer if spaces, commas and similar characters are ignored."""
    begin = max(0, len(text) - MARK_REACH_CHARACTERS)
    places = [i for i in range(begin, len(text)) if text[i] not in _IGNORED]
    answer = "".join(c for c in pred if c not in _IGNORED)
    at = "".join(text[i] for i in places).rfind(answer) if answer else -1
    if at < 0:
        return 0, 0
    start, end = places[at], places[at + len(answer) - 1] + 1
    return (start, end) if _is_whole_word(text, start, end) else (0, 0)


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


def explain_score(response: ScoredResponse, options: Mapping[str, Any]) -> str:
    """Return which rung of `math` decided; "" if its status differs from that in the row."""
    if not response.is_math:
        return ""
    math_options = options_for(math_score, options) if options else {}
    explanation = call_catching(explain, "math", response.text, response.gold, None, **math_options)
    if isinstance(explanation, Exception) or explanation.score.status is not response.status:
        return ""
    return display_text(" · ".join(_sentences(explanation)))


def _sentences(explanation: Explanation) -> Iterator[str]:
    if explanation.where:
        yield f"answer found in: {explanation.where}"
    if explanation.rungs:
        rung, outcome = explanation.rungs[-1]
        yield f"decided by {rung}: {outcome}"
        if rung == "value":
            trees = (("answer", explanation.pred_tree), ("gold", explanation.gold_tree))
            yield from (f"{name} read as {tree[:MAX_ANSWER_CHARACTERS]}" for name, tree in trees)
