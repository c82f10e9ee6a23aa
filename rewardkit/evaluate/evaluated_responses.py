"""Score responses with the scorer of their row, and read scored responses back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from rewardkit.answers.parsing.typography import canonical_spelling
from rewardkit.errors import DataError
from rewardkit.evaluate.questions import Question
from rewardkit.jsonl import json_line
from rewardkit.model_client.completions import UNUSABLE
from rewardkit.parallel import in_order
from rewardkit.responses.chunk_scores import ScoringPlan, plan_scorer
from rewardkit.responses.response_log import ResponseIndex
from rewardkit.row import batched
from rewardkit.scorers.base import Score, Scorer, Status, to_verl
from rewardkit.scorers.call import NO_VERDICT, call_scorer_or_stop, failure_reason
from rewardkit.scorers.concurrent_calls import call_each
from rewardkit.scorers.isolated import is_built_in

#: Responses per batch: with a built-in scorer, and with a custom one, which may be slow.
BATCH_SIZE, CUSTOM_BATCH_SIZE = 256, 16

#: A larger number of tokens is treated as unknown.
MAX_TOKENS = 1 << 40


class EvaluatedResponse(NamedTuple):
    """A scored response without its text.

    Attributes:
        question: row number of its question.
        group: data source, subject and level; "" for each that the row does not have.
        correct: whether the answer is correct.
        score: the reward.
        vote: the normalised answer, by which votes are counted; "" without an answer.
        status: status of the score.
        finish: its `finish_reason`; "" if unknown.
        characters: length of the response.
        tokens: length of the response in tokens; None if unknown.
    """

    question: int
    group: tuple[str, str, str]
    correct: bool
    score: float
    vote: str
    status: str
    finish: str
    characters: int
    tokens: int | None


def score_all(
    plan: ScoringPlan, lines: Iterable[dict[str, Any]], jobs: int
) -> Iterator[tuple[bytes, list[EvaluatedResponse]]]:
    """Yield batches of scored responses in order, as jsonl and without their texts.

    Args:
        plan: the scorer and its options.
        lines: responses as `join_with_rows` yields them.
        jobs: number of processes.
    """
    is_custom = isinstance(plan.scorer, str) and not is_built_in(plan.scorer)
    batches = batched(lines, CUSTOM_BATCH_SIZE if is_custom else BATCH_SIZE)
    for _, batch in in_order(partial(score_batch, plan), batches, jobs, 0 if is_custom else 16):
        yield batch


def score_batch(
    plan: ScoringPlan, lines: Iterable[dict[str, Any]]
) -> tuple[bytes, list[EvaluatedResponse]]:
    """Score a batch. If the scorer fails on a response, it counts as wrong and has a `reason`."""
    scorer, label = plan_scorer(plan), scorer_label(plan)
    lines = list(lines)
    scores = call_each(scorer, partial(_score_line, scorer), lines)
    results = [
        {**line, **score, "scorer": label} for line, score in zip(lines, scores, strict=True)
    ]
    return "".join(map(json_line, results)).encode(), [parse_result_line(line) for line in results]


def _score_line(scorer: Scorer, line: Mapping[str, Any]) -> dict[str, Any]:
    info = {**line["extra_info"]}
    info.setdefault("data_source", line["data_source"])
    # A response that the server broke off may contain the correct answer without being finished.
    response = "" if line.get("finish_reason") in UNUSABLE else line["response"]
    result = call_scorer_or_stop(scorer, response, line["ground_truth"], info)
    if isinstance(result, Score) and result.correct is not None:
        return {**to_verl(result), "status": result.status.value}
    reason = failure_reason(result) if isinstance(result, Exception) else NO_VERDICT
    wrong = Score.wrong("", Status.FAILED)
    return {**to_verl(wrong), "status": wrong.status.value, "reason": reason}


def scorer_label(plan: ScoringPlan) -> str:
    """Return the scorer with its options, as results record it: `gsm8k?method=strict`."""
    settings = dict(plan.options)
    if plan.right_score is not None:
        settings["right_score"] = plan.right_score
    options = ",".join(f"{name}={value}" for name, value in sorted(settings.items()))
    return f"{plan.scorer}?{options}" if options else str(plan.scorer)


def parse_result_line(line: Mapping[str, Any]) -> EvaluatedResponse:
    """Return what metrics need of a line of a result file.

    Raises:
        KeyError, TypeError, ValueError: the line is not a scored response.
    """
    info, tokens = line["extra_info"], line.get("tokens")
    group = (line["data_source"], info.get("subject"), info.get("level"))
    source, subject, level = ("" if name is None else str(name) for name in group)
    score = float(line["score"])
    if not isfinite(score):
        raise ValueError(f"its score is {score}")
    return EvaluatedResponse(
        question=int(line["row"]),
        group=(source, subject, level),
        correct=line["acc"] > 0,
        score=score,
        vote="" if line["no_answer"] else canonical_spelling(line["pred"]),
        status=Status(line["status"]).value,
        finish=str(line.get("finish_reason") or ""),
        characters=len(line["response"]),
        tokens=tokens if type(tokens) is int and 0 <= tokens < MAX_TOKENS else None,
    )


def join_with_rows(
    questions: Iterable[Question],
    path: Path,
    index: ResponseIndex,
    n: int | None = None,
    missing: Mapping[tuple[int, int, int], Mapping[str, Any]] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the responses of a log in the order of row and sample, each joined with its row.

    Args:
        questions: questions of the parquet.
        path: the response log.
        index: index of the log.
        n: samples to take per question; None for all.
        missing: responses that the server refused or withheld; see `GenerationResult`.

    Raises:
        DataError: a response answers another prompt than its row's.
    """
    places, missing_by_row = index.by_row(), _group_by_row(missing or {})
    with path.open("rb") as file:
        for question in questions:
            if not index.answers_prompt(question.row, question.digest):
                raise DataError(
                    f"{path}: its responses to row {question.row} answer another prompt than the "
                    "row has. Name the parquet that the responses were generated from."
                )
            samples: dict[int, dict[str, Any]] = dict(missing_by_row.get(question.row, {}))
            for place in places.get(question.row, ()):
                if n is None or index.samples[place] < n:
                    file.seek(index.offsets[place])
                    samples[index.samples[place]] = json.loads(file.readline())
            for sample in sorted(samples):
                yield _joined_line(question, sample, samples[sample])


def _group_by_row(
    missing: Mapping[tuple[int, int, int], Mapping[str, Any]],
) -> dict[int, dict[int, dict[str, Any]]]:
    rows: dict[int, dict[int, dict[str, Any]]] = {}
    for (row, first, n), fields in missing.items():
        line = {**fields, "response": "", "tokens": 0}
        rows.setdefault(row, {}).update(dict.fromkeys(range(first, first + n), line))
    return rows


def _joined_line(question: Question, sample: int, response: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name: value for name, value in response.items() if name not in ("row", "request")}
    return {
        "row": question.row,
        "sample": sample,
        **fields,
        "prompt_sha256": question.digest,
        "data_source": question.data_source,
        "prompt": question.prompt,
        "ground_truth": question.ground_truth,
        "extra_info": question.extra_info,
    }
