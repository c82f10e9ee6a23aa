"""`rewardkit explain`."""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rewardkit.cli.shared import options as opt
from rewardkit.cli.shared.console import print_json, print_table, print_wrapped, warn
from rewardkit.cli.shared.options import complete_scorers, examples, option
from rewardkit.errors import DataError, RewardkitError, SourceError, call_catching, unreadable_file
from rewardkit.file_kinds import encoding_fault
from rewardkit.table import Table
from rewardkit.text import brief

if TYPE_CHECKING:
    from rewardkit.scorers.explain import Explanation, MissedAnswer
    from rewardkit.scorers.score import RightRule

EXAMPLES = examples(
    "rewardkit explain --gold '\\frac12' --response answer.txt",
    "rewardkit explain --gold 18 --scorer gsm8k --set method=robust < answer.txt",
)


def command(
    gold: Annotated[str, option("Gold answer to compare with.")],
    response: Annotated[
        Path | None,
        option(
            "File with the response, or with the messages of a conversation as a JSON list; the default "
            "is standard input."
        ),
    ] = None,
    scorer: Annotated[
        str, option("Scorer name, or file.py:function.", autocompletion=complete_scorers)
    ] = "math",
    scoring: opt.ScorerOptions = opt.NO_OPTIONS,
    as_json: opt.JsonFlag = False,
) -> None:
    """Explain step by step how one response gets its score.

    Prints which answer was read, from where in the response, and which comparison decided. For a
    response that is not correct, it also tries the other options of a built-in scorer and, if none reads
    the gold, the scorers whose mark is in the response. It names those that read the gold.
    """
    text = _read(response)
    explanation, miss, rule = _explain(scorer, scoring, text, gold)
    score = explanation.score
    rungs = [f"{rung}: {outcome}" for rung, outcome in explanation.rungs]
    facts = {
        "scorer": explanation.scorer,
        "score": score.score,
        "correct": "not known" if score.correct is None and not as_json else score.correct,
        "rule": rule.sentence,
        "status": score.status.value,
        "pred": score.pred,
        "where": explanation.where,
        "gold": gold,
        "rungs": rungs,
        **dict(explanation.facts),
    }
    if as_json:
        print_json({**facts, **(vars(miss) if miss else {})})
        return
    shown = {**facts, "rungs": "", "comparison": "; ".join(rungs), "gold": brief(gold, 400)}
    rows = [(name, value) for name, value in shown.items() if value != ""]
    print_table(Table(("what", "value"), rows, wrap={"value"}))
    if miss:
        for sentences in filter(None, (miss.reason, miss.advice)):
            print_wrapped(sentences)


def _explain(
    name: str, scoring: opt.ScorerOptions, text: str, gold: str
) -> tuple[Explanation, MissedAnswer | None, RightRule]:
    from rewardkit.scorers.base import failure_reason
    from rewardkit.scorers.conversation import (
        are_messages,
        one_turn,
        text_of_messages,
        text_to_judge,
        with_messages,
    )
    from rewardkit.scorers.explain import explain_miss, explain_verdict
    from rewardkit.scorers.isolated import learn_rule

    info: Mapping[str, Any] = one_turn({})
    messages = call_catching(json.loads, text) if text.lstrip().startswith("[") else None
    if isinstance(messages, list) and are_messages(messages):
        text, info = text_of_messages(messages), with_messages({}, messages)
    with scoring.open(name) as loaded:
        scorer, rule = learn_rule(loaded, [(gold, {})], scoring.right_score)
        explanation = call_catching(explain_verdict, scorer, name, text, gold, info)
        if isinstance(explanation, Exception):
            raise (
                explanation
                if isinstance(explanation, RewardkitError)
                else DataError(f"{name}: {failure_reason(explanation)}.")
            )
        text = text_to_judge(text, info)
        miss = explain_miss(explanation, scoring.of_scorer, scorer, text, gold)
    return explanation, miss, rule


def _read(response: Path | None) -> str:
    if response is None:
        if sys.stdin.isatty():
            warn("Type or paste the response, then press Ctrl-D on a line of its own.")
        return sys.stdin.read()
    try:
        if fault := encoding_fault(response):
            raise DataError(f"{response}: {fault}")
        return response.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENAMETOOLONG):
            raise SourceError(
                f"{response}: no such file. To give the text itself, pipe it: "
                "echo TEXT | rewardkit explain ..."
            ) from error
        raise unreadable_file(response, error) from error
