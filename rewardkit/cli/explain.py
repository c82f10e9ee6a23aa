"""`rewardkit explain`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rewardkit.cli.shared.completion import complete_scorers
from rewardkit.cli.shared.console import print_json, print_table
from rewardkit.cli.shared.help import examples
from rewardkit.cli.shared.options import (
    JsonFlag,
    LoadSeconds,
    SecondsPerRow,
    Settings,
    scorer_options,
)
from rewardkit.cli.shared.user_code import open_scorer_with_status
from rewardkit.errors import DataError, RewardkitError, call_catching

EXAMPLES = examples(
    "rewardkit explain --gold '\\frac12' --response answer.txt",
    "rewardkit explain --gold 18 --scorer gsm8k --set method=robust < answer.txt",
)


def command(
    gold: Annotated[str, typer.Option(help="Gold answer to compare with.")],
    response: Annotated[
        Path | None, typer.Option(help="File with the response; the default is standard input.")
    ] = None,
    scorer: Annotated[
        str,
        typer.Option(autocompletion=complete_scorers, help="Scorer name, or file.py:function."),
    ] = "math",
    settings: Settings = None,
    seconds_per_row: SecondsPerRow = 60.0,
    load_seconds: LoadSeconds = 60.0,
    as_json: JsonFlag = False,
) -> None:
    """Explain step by step how one response gets its score.

    Prints which answer was read, from where in the response, and which comparison decided.
    """
    from rewardkit.scorers.call import failure_reason
    from rewardkit.scorers.explain import explain_verdict

    text = _read(response)
    options = scorer_options(settings)
    with open_scorer_with_status(scorer, options, seconds_per_row, load_seconds) as judge:
        explanation = call_catching(explain_verdict, judge, scorer, text, gold)
    if isinstance(explanation, Exception):
        raise (
            explanation
            if isinstance(explanation, RewardkitError)
            else DataError(f"{scorer}: {failure_reason(explanation)}.")
        )
    rungs = [f"{rung}: {outcome}" for rung, outcome in explanation.rungs]
    facts = {
        "scorer": explanation.scorer,
        "score": explanation.score.score,
        "correct": explanation.score.correct,
        "status": explanation.score.status.value,
        "pred": explanation.score.pred,
        "where": explanation.where,
        "gold": gold,
        "pred_tree": explanation.pred_tree,
        "gold_tree": explanation.gold_tree,
        "rungs": rungs,
        "microseconds": round(explanation.microseconds, 1),
        **dict(explanation.facts),
    }
    if as_json:
        print_json(facts)
        return
    shown = {**facts, "rungs": "; ".join(rungs)}
    print_table(("what", "value"), ((name, value) for name, value in shown.items() if value != ""))


def _read(response: Path | None) -> str:
    if response is None:
        return sys.stdin.read()
    try:
        return response.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise DataError(f"{response}: {error.strerror}.") from error
