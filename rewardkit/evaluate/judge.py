"""Responses with the scores of their rows: what is written, and what figures are made of."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from rewardkit.answers.reading.typography import spelling
from rewardkit.errors import DataError
from rewardkit.evaluate.questions import Question
from rewardkit.parallel import in_order
from rewardkit.responses.chunk_scores import ScoringPlan, plan_scorer
from rewardkit.responses.completions import UNUSABLE
from rewardkit.responses.json_lines import json_line
from rewardkit.responses.response_log import ResponseIndex
from rewardkit.row import batched
from rewardkit.scorers.base import Score, Scorer, Status, to_verl
from rewardkit.scorers.call import call_scorer_or_stop, failure_reason
from rewardkit.scorers.isolated import is_built_in

#: Responses that one process judges at a time; fewer for a scorer that may be slow.
BATCH, BATCH_APART = 256, 16

#: A response of more tokens than this has another number by mistake.
MOST_TOKENS = 1 << 40


class Outcome(NamedTuple):
    """One judged response, without its text.

    Attributes:
        question: the row.
        group: data source, subject and level; "" for what the row does not say.
        right: whether the answer is right.
        score: the reward.
        vote: the answer as votes are counted, "" for none.
        status: of the score.
        finish: why the response ended, "" if that is not known.
        characters: of the response.
        tokens: of it, None if that is not known.
    """

    question: int
    group: tuple[str, str, str]
    right: bool
    score: float
    vote: str
    status: str
    finish: str
    characters: int
    tokens: int | None


def judged(
    plan: ScoringPlan, lines: Iterable[dict[str, Any]], jobs: int
) -> Iterator[tuple[bytes, list[Outcome]]]:
    """Batches of responses with their scores, as jsonl and as outcomes, in order.

    Args:
        plan: the scorer and its options.
        lines: as `joined` gives them.
        jobs: processes.
    """
    others = isinstance(plan.scorer, str) and not is_built_in(plan.scorer)
    batches = batched(lines, BATCH_APART if others else BATCH)
    for _, result in in_order(partial(judge, plan), batches, jobs, 0 if others else 16):
        yield result


def judge(plan: ScoringPlan, lines: Iterable[dict[str, Any]]) -> tuple[bytes, list[Outcome]]:
    """Judge a batch; a response without a verdict counts as wrong, and says why."""
    scorer = plan_scorer(plan)
    by = judged_by(plan)
    done = [{**line, **_score(scorer, line), "scorer": by} for line in lines]
    return "".join(map(json_line, done)).encode(), [outcome(line) for line in done]


def _score(scorer: Scorer, line: Mapping[str, Any]) -> dict[str, Any]:
    info = {**line["extra_info"]}
    info.setdefault("data_source", line["data_source"])
    # What the server broke off may hold the right answer; it is not what the model came to.
    response = "" if line.get("finish_reason") in UNUSABLE else line["response"]
    result = call_scorer_or_stop(scorer, response, line["ground_truth"], info)
    if isinstance(result, Score):
        return {**to_verl(result), "status": result.status.value}
    wrong = Score.wrong("", Status.FAILED)
    return {**to_verl(wrong), "status": wrong.status.value, "reason": failure_reason(result)}


def judged_by(plan: ScoringPlan) -> str:
    """The scorer and its options, as a result says them."""
    options = ",".join(f"{name}={value}" for name, value in sorted(plan.options))
    return f"{plan.scorer}?{options}" if options else str(plan.scorer)


def outcome(line: Mapping[str, Any]) -> Outcome:
    """What figures need of a judged line.

    Raises:
        KeyError, TypeError, ValueError: it is no judged line.
    """
    info, tokens = line["extra_info"], line.get("tokens")
    group = (line["data_source"], info.get("subject"), info.get("level"))
    source, subject, level = ("" if name is None else str(name) for name in group)
    vote = "" if line["no_answer"] else spelling(line["pred"])
    score = float(line["score"])
    if not isfinite(score):
        raise ValueError(f"its score is {score}")
    return Outcome(
        int(line["row"]),
        (source, subject, level),
        line["acc"] > 0,
        score,
        vote,
        Status(line["status"]).value,
        str(line.get("finish_reason") or ""),
        len(line["response"]),
        tokens if type(tokens) is int and 0 <= tokens < MOST_TOKENS else None,
    )


def joined(
    questions: Iterable[Question],
    path: Path,
    kept: ResponseIndex,
    n: int | None = None,
    missing: Mapping[tuple[int, int, int], Mapping[str, Any]] | None = None,
) -> Iterator[dict[str, Any]]:
    """The responses of a file in the order of row and sample, each with what its row says.

    Args:
        questions: of the parquet.
        path: as `ResponseLog` writes it.
        kept: where its responses are.
        n: samples to take of each question; None for all.
        missing: what is said of those that the server did not give; see `generate.Run`.

    Raises:
        DataError: a response answers another prompt than its row's.
    """
    places, not_given = kept.by_row(), _by_row(missing or {})
    with path.open("rb") as file:
        for question in questions:
            if not kept.answers_prompt(question.row, question.digest):
                raise DataError(
                    f"{path}: its responses to row {question.row} are to another prompt than that "
                    "of the parquet; give the parquet that they were made from."
                )
            found: dict[int, dict[str, Any]] = dict(not_given.get(question.row, {}))
            for place in places.get(question.row, ()):
                if n is None or kept.samples[place] < n:
                    file.seek(kept.offsets[place])
                    found[kept.samples[place]] = json.loads(file.readline())
            for sample in sorted(found):
                yield _line(question, sample, found[sample])


def _by_row(
    missing: Mapping[tuple[int, int, int], Mapping[str, Any]],
) -> dict[int, dict[int, dict[str, Any]]]:
    rows: dict[int, dict[int, dict[str, Any]]] = {}
    for (row, first, n), fields in missing.items():
        line = {**fields, "response": "", "tokens": 0}
        rows.setdefault(row, {}).update(dict.fromkeys(range(first, first + n), line))
    return rows


def _line(question: Question, sample: int, response: Mapping[str, Any]) -> dict[str, Any]:
    own = {name: value for name, value in response.items() if name not in ("row", "request")}
    return {
        "row": question.row,
        "sample": sample,
        **own,
        "prompt_sha256": question.digest,
        "data_source": question.data_source,
        "prompt": question.prompt,
        "ground_truth": question.ground_truth,
        "extra_info": question.extra_info,
    }
