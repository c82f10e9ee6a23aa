"""Attacks on scorers whose golds are not answers: function calls, JSON schemas, constraints on a text."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rewardkit.audit.model import Attack, AuditRow, Kind, Responses, Target
from rewardkit.errors import DataError, call_catching
from rewardkit.scorers import function_call, json_schema
from rewardkit.scorers.load import scorer_for
from rewardkit.scorers.options import inner_function
from rewardkit.strict_yaml import read_yaml_file
from rewardkit.structures.calls import BEGIN, END

_TABLE: Mapping[str, Any] = read_yaml_file(Path(__file__).with_name("tasks.yaml"))

#: A response that is wrong for every row of a scorer.
_WRONG = {
    "function_call": f'{BEGIN}\n{{"name": "no.such.function", "arguments": {{}}}}\n{END}',
    "json_schema": "[[[]]]",
}


def packaged_tasks(scorer: str) -> list[AuditRow]:
    """Return the packaged rows of a scorer; none for a scorer of answers."""
    problems = _TABLE[scorer]["problems"] if scorer in _TABLE else {}
    return [
        as_task(
            AuditRow(
                prompt=problem["prompt"],
                gold=problem["gold"],
                data_source=scorer,
                extra_info={**problem, "question": problem["prompt"], "problem": name},
            ),
            scorer,
        )
        for name, problem in problems.items()
    ]


def as_task(row: AuditRow, scorer: str = "") -> AuditRow:
    """Return a row as one of its scorer's task, with a right and a wrong response; others unchanged.

    Raises:
        DataError: the gold does not say what a right response is.
    """
    own = scorer
    if own not in _TABLE:
        judge = call_catching(scorer_for, row.data_source, row.extra_info)
        own = str(getattr(inner_function(judge), "__module__", "")).rpartition(".")[2]
    if own not in _TABLE:
        return row
    info = {"right": "", "wrong": _WRONG.get(own, ""), **row.extra_info}
    if own == "function_call":
        info["right"] = function_call.respond(row.gold)
    elif own == "json_schema" and '"gold"' in row.gold:
        info["right"] = json_schema.respond(row.gold)
    if not info["right"]:
        raise DataError(
            f"audit: a gold of {own} does not say what a right response is. Audit {own} without --data."
        )
    return replace(row, extra_info=info, task=own)


def _read(scorer: str, group: str, kind: Kind) -> list[Attack]:
    return [
        Attack(name, kind, entry["severity"], entry["about"], partial(_write, entry), task=scorer)
        for name, entry in _TABLE[scorer][group].items()
    ]


def _write(entry: Mapping[str, Any], t: Target) -> Responses:
    call = t.gold.replace(f"{BEGIN}\n", "").replace(f"\n{END}", "")
    for template in (*entry.get("all", ()), *entry.get(str(t.row.extra_info.get("problem")), ())):
        yield (template.replace("$right", t.gold).replace("$wrong", t.wrong).replace("$call", call))


#: The attacks on each of these scorers.
TASK_AUDIT = tuple(
    attack
    for scorer in _TABLE
    for group, kind in (("misses", "miss"), ("holes", "hole"))
    for attack in _read(scorer, group, kind)  # type: ignore[arg-type]  # a loop widens literals
)
