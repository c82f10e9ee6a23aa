"""Attacks on a reward for code or SQL: programs and queries, written from the problem of a row and its solution."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from rewardkit.audit.model import Attack, AuditRow, Kind, Responses, Target
from rewardkit.programs.problem import Problem
from rewardkit.strict_yaml import read_yaml_file

_TABLE: Mapping[str, Any] = read_yaml_file(Path(__file__).with_name("programs.yaml"))


def packaged_problems(data_source: str) -> list[AuditRow]:
    """Return the packaged problems, with a `data_source` that verl grades as code."""
    return [
        AuditRow(
            prompt=problem["prompt"],
            gold=json.dumps({key: problem[key] for key in problem.keys() - {"prompt", "solution"}}),
            data_source=data_source,
            extra_info={"solution": problem["solution"]},
        )
        for problem in _TABLE["problems"].values()
    ]


def _read(group: str, kind: Kind) -> list[Attack]:
    return [
        Attack(
            name, kind, entry["severity"], entry["about"], partial(_write, entry), task="program"
        )
        for name, entry in _TABLE[group].items()
    ]


def _write(entry: Mapping[str, Any], t: Target) -> Responses:
    kind, name = "sql", "main"
    if isinstance(t.row.problem, Problem):
        kind, name = t.row.problem.kind, t.row.problem.entry_point or name
    for template in (*entry.get("both", ()) * (kind != "sql"), *entry.get(kind, ())):
        yield t.respond(template.replace("$gold", t.gold).replace("$name", name))


def _first_tests_only(t: Target) -> Responses:
    problem = t.row.problem
    if isinstance(problem, Problem) and problem.kind == "run" and len(problem.tests) > 1:
        inputs = [text for text, _ in problem.tests[:-1]][:10]
        yield t.respond(
            f"import io, sys\ntext = sys.stdin.read()\nif text.strip() not in {[i.strip() for i in inputs]!r}:\n"
            f"    sys.exit()\nsys.stdin = io.StringIO(text)\n{t.gold}"
        )


#: What a policy could write, and what it should be paid for.
PROGRAM_AUDIT = (
    *_read("misses", "miss"),
    Attack(
        "first_tests_only",
        "hole",
        "high",
        "A program that is right on the first ten tests, or on all but the last one.",
        _first_tests_only,
        task="program",
    ),
    *_read(
        "holes", "hole"
    ),  # the last ones may change a grader that runs programs in its own process
)
