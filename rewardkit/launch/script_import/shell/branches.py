"""Branches, loops and lists of a script: `if`, `case`, `for`, `while`, `&&`, `|`, `( ... )`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from rewardkit.errors import DataError
from rewardkit.launch.script_import.shell.alternatives import (
    choose,
    join_leaving,
    take_causes,
    undecided,
)
from rewardkit.launch.script_import.shell.builtins import BUILTINS
from rewardkit.launch.script_import.shell.conditions import (
    evaluate_condition,
    match_word,
    words_of_test,
)
from rewardkit.launch.script_import.shell.expansions import compute
from rewardkit.launch.script_import.shell.scope import (
    MARK,
    ShellScope,
    Unknown,
    is_unknown,
    plain,
)
from rewardkit.launch.script_import.shell.statements import (
    Leave,
    Status,
    run,
    run_all,
    run_children,
    statement,
)
from rewardkit.launch.script_import.shell.tree import line_of, text_of
from rewardkit.launch.script_import.shell.words import fields_of, value_of

if TYPE_CHECKING:
    from tree_sitter import Node

#: Turns of a loop.
MAX_TURNS = 1_000


@statement("compound_statement")
def _run_compound(node: Node, scope: ShellScope) -> Status:
    if text_of(node.children[0]) != "((":
        return run_children(node, scope)
    value = compute(text_of(node)[2:-2], scope)
    return None if value is None else int(value == 0)


@statement("subshell")
def _run_subshell(node: Node, scope: ShellScope) -> Status:
    inner = scope.copy()
    try:
        return run_all(node.named_children, inner)
    except Leave as leave:
        return leave.status
    finally:
        scope.commands, scope.output = inner.commands, inner.output


@statement("list")
def _run_list(node: Node, scope: ShellScope) -> Status:
    """Evaluate `a && b` or `a || b`."""
    left, operator, *rest = node.children
    with scope.condition():
        status = run(left, scope)
    is_and = text_of(operator) == "&&"
    right = [child for child in rest if child.is_named]
    if status is not None:
        return run_all(right, scope) if (status == 0) == is_and else status
    causes = take_causes(scope, text_of(left))
    status = choose(scope, causes, [lambda s: run_all(right, s), lambda _: int(is_and)])
    if status is None:  # a test around the list asks why as well
        scope.causes += [cause for cause in causes if cause not in scope.causes]
    return status


@statement("pipeline")
def _run_pipeline(node: Node, scope: ShellScope) -> Status:
    """Evaluate `a | b`: each command reads what the one before prints."""
    status: Status = 0
    text: Callable[[], str] | None = scope.stdin
    commands = node.named_children
    for i, command in enumerate(commands):
        inner = scope.copy()
        is_last = i == len(commands) - 1
        inner.stdin, inner.output = text, scope.output if is_last else []
        try:
            status = run(command, inner)
        except Leave as leave:
            status = leave.status
        scope.commands = inner.commands
        if is_last:
            scope.output = inner.output
        else:
            output = "".join(inner.output or ())
            text = lambda output=output: output  # noqa: E731 - bound per turn
    return status


@statement("negated_command")
def _run_negated(node: Node, scope: ShellScope) -> Status:
    with scope.condition():
        status = run_children(node, scope)
    return None if status is None else int(status == 0)


@statement("test_command")
def _run_test(node: Node, scope: ShellScope) -> Status:
    if text_of(node.children[0]) == "[[" and node.named_children:
        truth = evaluate_condition(node.named_children[0], scope)
        return None if truth is None else int(not truth)
    return BUILTINS["test"](words_of_test(node, scope), scope)


@statement("if_statement")
def _run_if(node: Node, scope: ShellScope) -> Status:
    clauses = [c for c in node.named_children if c.type in {"elif_clause", "else_clause"}]
    return _run_clause(node, clauses, scope)


def _run_clause(node: Node, clauses: list[Node], scope: ShellScope) -> Status:
    """Evaluate an `if`, `elif` or `else`; the clauses behind it stand in the `if`'s tree."""
    if node.type == "else_clause":
        return run_children(node, scope)
    children = [c for c in node.children if c.type not in {"elif_clause", "else_clause"}]
    then = next((i for i, child in enumerate(children) if child.type == "then"), len(children))
    condition = [child for child in children[:then] if child.is_named]
    body = [child for child in children[then:] if child.is_named]

    def otherwise(inner: ShellScope) -> Status:
        return _run_clause(clauses[0], clauses[1:], inner) if clauses else 0

    return _decide(condition, body, otherwise, scope)


def _decide(
    condition: list[Node],
    body: list[Node],
    otherwise: Callable[[ShellScope], Status],
    scope: ShellScope,
) -> Status:
    scope.causes.clear()
    with scope.condition():
        status = run_all(condition, scope)
    if status is None:
        text = " ".join(map(text_of, condition))
        scope.line = line_of(condition[0]) if condition else scope.line
        return choose(scope, take_causes(scope, text), [lambda s: run_all(body, s), otherwise])
    return run_all(body, scope) if status == 0 else otherwise(scope)


@statement("case_statement")
def _run_case(node: Node, scope: ShellScope) -> Status:
    subject = node.child_by_field_name("value")
    items = [child for child in node.named_children if child.type == "case_item"]
    scope.causes.clear()
    word = value_of(subject, scope)
    return _run_items(items, word, scope)


def _run_items(items: list[Node], word: str, scope: ShellScope) -> Status:
    """Evaluate the first item of a `case` that matches, with those it falls through to."""
    for i, item in enumerate(items):
        patterns = item.children_by_field_name("value")
        results = [match_word(word, pattern, scope) for pattern in patterns]
        if True in results:
            return _run_item(items[i:], scope)
        if None in results:
            scope.line = line_of(item.parent) if item.parent else scope.line
            causes = take_causes(scope, plain(word, scope))
            taken, others = partial(_run_item, items[i:]), partial(_run_items, items[i + 1 :], word)
            return choose(scope, causes, [taken, others])
    return 0


def _run_item(items: list[Node], scope: ShellScope) -> Status:
    status: Status = 0
    for item in items:
        values = {child.id for child in item.children_by_field_name("value")}
        body = [child for child in item.named_children if child.id not in values]
        status = run_all(body, scope)
        end = item.child_by_field_name("fallthrough")
        if end is None or text_of(end) != ";&":
            break
    return status


@statement("for_statement")
def _run_for(node: Node, scope: ShellScope) -> Status:
    name = text_of(node.child_by_field_name("variable") or node)
    values = node.children_by_field_name("value")
    has_list = any(child.type == "in" for child in node.children)
    words = [text for text, _ in fields_of(values, scope)] if has_list else list(scope.arguments)
    body = node.child_by_field_name("body")

    def turns() -> Iterator[bool]:
        for word in words:
            scope.set(name, [word])
            yield True

    is_known = text_of(node.children[0]) == "for" and not any(map(_is_list, words))
    if body is None:
        return 0
    if is_known:
        return _run_turns(turns(), body, scope)
    scope.blame(*words)
    causes = take_causes(scope, " ".join(words))
    mark = scope.unknown(f"${name}", name)
    return choose(scope, causes, [lambda s: _run_once(name, mark, body, s), lambda _: 0])


def _is_list(word: str) -> bool:
    return is_unknown(word) and not MARK.sub("", word)


def _run_once(name: str, value: str, body: Node, scope: ShellScope) -> Status:
    scope.set(name, [value])
    return _run_turns(iter([True]), body, scope)


def _run_turns(turns: Iterator[bool], body: Node, scope: ShellScope) -> Status:
    """Evaluate a loop while it has turns, and none of them leaves it."""
    status: Status = 0
    for number, _ in enumerate(turns):
        if number >= MAX_TURNS:
            raise DataError(f"line {line_of(body)}: a loop of more than {MAX_TURNS:,} turns.")
        try:
            status = run_all(body.named_children, scope)
        except Leave as leave:
            if leave.kind not in {"break", "continue"}:
                raise
            if leave.levels > 1:
                raise Leave(leave.kind, leave.levels - 1) from None
            if leave.kind == "break":
                break
        join_leaving("continue", scope)
    join_leaving("break", scope)
    return status


@statement("c_style_for_statement")
def _run_c_style_for(node: Node, scope: ShellScope) -> Status:
    head = text_of(node).partition("((")[2].partition("))")[0]
    first, condition, after = (*head.split(";"), "", "")[:3]
    body = node.child_by_field_name("body")
    compute(first, scope) if first.strip() else None

    def turns() -> Iterator[bool]:
        while True:
            truth = compute(condition, scope) if condition.strip() else 1
            if truth is None:
                raise DataError(
                    undecided("how often a loop runs", take_causes(scope, head), scope.line)
                )
            if not truth:
                return
            yield True
            compute(after, scope) if after.strip() else None

    return _run_turns(turns(), body, scope) if body else 0


@statement("while_statement")
def _run_while(node: Node, scope: ShellScope) -> Status:
    """Evaluate a `while` or `until`; a loop that changes nothing and never ends is left."""
    conditions = [c for c in node.children_by_field_name("condition") if c.is_named]
    body = node.child_by_field_name("body")
    is_until = text_of(node.children[0]) == "until"
    if body is None:
        return 0
    unknown: list[Unknown] = []

    def turns() -> Iterator[bool]:
        before = None
        while True:
            scope.causes.clear()
            with scope.condition():
                status = run_all(conditions, scope)
            if status is None:
                unknown.extend(take_causes(scope, " ".join(map(text_of, conditions))))
                return
            state = (dict(scope.variables), list(scope.arguments), list(scope.output or ()))
            if (status == 0) == is_until or state == before:
                return
            before = state
            yield True

    status = _run_turns(turns(), body, scope)
    if unknown:
        once = [lambda s: _run_turns(iter([True]), body, s), lambda _: 0]
        return choose(scope, unknown, once)
    return status
