"""Alternatives of a test that cannot be evaluated.

Each alternative is followed on a copy of the scope. Where they differ afterwards, the value is unknown
and says which test decides it. An alternative that ends the script is dropped, and one that starts a
trainer is preferred to one that does not: what is looked for is the start of a run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rewardkit.errors import DataError
from rewardkit.launch.script_import.shell.scope import ShellScope, TrainerCommand, Unknown
from rewardkit.launch.script_import.shell.statements import Leave, Status


def choose(
    scope: ShellScope, causes: list[Unknown], alternatives: list[Callable[[ShellScope], Status]]
) -> Status:
    """Follow all alternatives of a test that cannot be evaluated, and join what they leave behind.

    Raises:
        DataError: they start different trainers.
    """
    line = scope.line
    ends: list[tuple[ShellScope, Status, Leave | None]] = []
    for alternative in alternatives:
        inner = scope.copy()
        try:
            ends.append((inner, alternative(inner), None))
        except Leave as leave:
            if leave.kind == "exit":
                scope.record.exits.append(inner.line)
            else:
                ends.append((inner, leave.status, leave))
    if not ends:
        raise Leave("exit")
    starting = [end for end in ends if end[0].commands != scope.commands]
    if len({_signature(end[0].commands) for end in starting}) > 1:
        raise DataError(undecided("which command starts the run", causes, line))
    if starting and len(starting) < len(ends):
        text = (
            f"starts the run only where the test ({_texts(causes)}) says so; the import assumes it."
        )
        scope.record.problems.add(line, text, breaks=False)
    ends = starting or ends
    going_on = [end for end in ends if end[2] is None]
    if not going_on:
        join(scope, [end[0] for end in ends], _at_line(causes, line))
        raise ends[0][2] or Leave("exit")
    join(scope, [end[0] for end in going_on], _at_line(causes, line))
    for inner, _, left_by in ends:
        scope.leaving += inner.leaving
        if left_by:
            inner.causes = _at_line(causes, line)
            scope.leaving.append((left_by.kind, inner))
    statuses = {end[1] for end in going_on}
    return statuses.pop() if len(statuses) == 1 else None


def take_causes(scope: ShellScope, text: str) -> list[Unknown]:
    """Return what keeps a test from being evaluated, and forget it."""
    causes = list(scope.causes) or [Unknown(text[:80], scope.line)]
    scope.causes.clear()
    return causes


def _signature(commands: list[TrainerCommand]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((c.module, tuple(text for text, _ in c.arguments)) for c in commands)


def _texts(causes: list[Unknown]) -> str:
    return ", ".join(dict.fromkeys(cause.text for cause in causes))[:200]


def _at_line(causes: list[Unknown], line: int) -> list[Unknown]:
    """Return causes with the line of the test that they decide; those of branches keep theirs."""
    return [cause if cause.is_branch else replace(cause, line=line) for cause in causes]


def undecided(what: str, causes: list[Unknown], line: int) -> str:
    """Return why a script is refused: a test decides, and only a run can tell how."""
    names = [name for cause in causes for name in cause.names]
    hint = " ".join(f"--env {name}=VALUE" for name in dict.fromkeys(names))
    ways = f"Pass {hint}" if hint else "Import the command that you run, as a file of its own"
    return f"{what} depends on the test of line {line} ({_texts(causes)}), which only a run can tell. {ways}."


def join(scope: ShellScope, ends: list[ShellScope], causes: list[Unknown]) -> None:
    """Take over what all alternatives have in common; the rest is unknown."""
    first, *others = ends
    names = dict.fromkeys(name for end in ends for name in end.variables)
    joined: dict[str, list[str]] = {}
    for name in names:
        items = first.variables.get(name)
        if all(end.variables.get(name) == items for end in others):
            joined.update({name: items} if items is not None else {})
            continue
        deciders = tuple(dict.fromkeys(n for cause in causes for n in cause.names)) or (name,)
        mark = scope.mark(Unknown(_texts(causes), causes[0].line, deciders, is_branch=True))
        joined[name] = [scope.env.get(name) or mark]
    scope.variables = joined
    scope.removed = set.intersection(*(end.removed for end in ends))
    scope.exported = set().union(*(end.exported for end in ends))
    scope.functions = {
        name: body if all(other.functions.get(name) == body for other in ends) else None
        for end in ends
        for name, body in end.functions.items()
    }
    scope.local = {n: i for end in ends for n, i in end.local.items()}
    scope.commands = first.commands
    if all(end.arguments == first.arguments for end in others):
        scope.arguments = first.arguments
    elif first.arguments:
        scope.arguments = [scope.mark(replace(causes[0], is_branch=True))]
    if scope.output is not None:
        outputs = {"".join(end.output or ()) for end in ends}
        same = outputs.pop() if len(outputs) == 1 else None
        mark = same if same is not None else scope.mark(replace(causes[0], is_branch=True))
        scope.output = [mark]


def join_leaving(kind: str, scope: ShellScope) -> None:
    """Join the scopes that may have left a loop or a function, where it ends."""
    ends = [inner for left_by, inner in scope.leaving if left_by == kind]
    scope.leaving = [entry for entry in scope.leaving if entry[0] != kind]
    ends = [inner for inner in ends if _signature(inner.commands) == _signature(scope.commands)]
    if ends:
        causes = ends[0].causes
        join(scope, [scope.copy(), *ends], causes)
