"""Statements of a script, evaluated in their order with what is known. Nothing is run.

A test that cannot be evaluated makes alternatives: each is followed on a copy of the scope. Where they
differ afterwards, the value is unknown and says which test decides it. An alternative that ends the
script is dropped, and one that starts a trainer is preferred to one that does not: what is looked
for is the start of a run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from rewardkit.errors import DataError
from rewardkit.launch.script_import.shell_builtins import BUILTINS, ordinary
from rewardkit.launch.script_import.shell_scope import (
    MARK,
    MAX_CALLS,
    ShellScope,
    TrainerCommand,
    Unknown,
    is_unknown,
    plain,
)
from rewardkit.launch.script_import.shell_tests import (
    evaluate_condition,
    match_word,
    words_of_test,
)
from rewardkit.launch.script_import.shell_tree import line_of, parse_bytes, text_of
from rewardkit.launch.script_import.shell_values import (
    body_of,
    compute,
    fields_of,
    value_of,
)
from rewardkit.launch.script_import.trainer_command import (
    OVERRIDE,
    assigned_by_env,
    find_module,
    module_name,
    other_script,
    shell_texts,
)

if TYPE_CHECKING:
    from tree_sitter import Node

#: Turns of a loop.
MAX_TURNS = 1_000

Status = int | None

_REDIRECTS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})
_WORDS = frozenset("concatenation expansion number raw_string simple_expansion string word".split())
_KEYWORDS = frozenset("if elif else case esac for while until do done then fi function".split())
_BELOW = "settings below the end of the command: bash does not pass them."


class Leave(Exception):
    """A statement that ends a loop, a function or the script.

    Attributes:
        kind: "break", "continue", "return" or "exit".
        levels: loops that it ends.
        status: the exit status.
    """

    def __init__(self, kind: str, levels: int = 1, status: Status = 0) -> None:
        self.kind, self.levels, self.status = kind, levels, status


def run_script(root: Node, scope: ShellScope) -> None:
    """Evaluate a script; the scope then has the commands that start a trainer.

    Raises:
        DataError: the script is not bash as far as can be read, runs for too long, or which trainer
            it starts depends on a test that cannot be evaluated.
    """
    scope.substitute = substitute
    try:
        run(root, scope)
    except Leave:
        scope.record.exits.append(scope.line)


def substitute(node: Node, scope: ShellScope) -> str:
    """Return the output of `$(...)`, without the line ends behind it."""
    inner = scope.copy()
    inner.output = []
    try:
        run_all(node.named_children, inner)
    except Leave:
        pass
    scope.commands = inner.commands
    output = "".join(inner.output or ())
    if not is_unknown(output):
        return output.rstrip("\n")
    if re.fullmatch("(?:\0\\d+\0)*", output.strip()):  # nothing else: the whole is not known
        names = [name for unknown in inner.unknowns_in(output) for name in unknown.names]
        unset = all(unknown.is_unset for unknown in inner.unknowns_in(output))
        return scope.unknown(text_of(node), *dict.fromkeys(names), is_unset=unset)
    return output.rstrip("\n")


def run_all(nodes: Iterable[Node], scope: ShellScope) -> Status:
    """Evaluate statements in their order, and return the status of the last one."""
    status: Status = 0
    for node in nodes:
        status = run(node, scope)
    return status


def run(node: Node, scope: ShellScope) -> Status:
    """Evaluate a statement, and return its exit status, None if only a run can tell."""
    scope.step()
    scope.line = scope.line if scope.is_text else line_of(node)
    handler = _STATEMENTS.get(node.type)
    return handler(node, scope) if handler else 0


def _run_children(node: Node, scope: ShellScope) -> Status:
    return run_all(node.named_children, scope)


def _run_error(node: Node, scope: ShellScope) -> Status:
    """Read what the grammar does not know as far as it has no branches."""
    for child in node.children:
        if child.type in _KEYWORDS or child.type in {"case_item", "elif_clause", "else_clause"}:
            raise DataError(f"line {line_of(child)} is not bash as far as can be read.")
    words = [child for child in node.children if child.type in _WORDS]
    status = _run_command(words, scope)
    return run_all((c for c in node.named_children if c.type not in _WORDS), scope) or status


def _run_compound(node: Node, scope: ShellScope) -> Status:
    if text_of(node.children[0]) != "((":
        return _run_children(node, scope)
    value = compute(text_of(node)[2:-2], scope)
    return None if value is None else int(value == 0)


def _run_subshell(node: Node, scope: ShellScope) -> Status:
    inner = scope.copy()
    try:
        return run_all(node.named_children, inner)
    except Leave as leave:
        return leave.status
    finally:
        scope.commands, scope.output = inner.commands, inner.output


def _run_list(node: Node, scope: ShellScope) -> Status:
    """Evaluate `a && b` or `a || b`."""
    left, operator, *rest = node.children
    status = run(left, scope)
    is_and = text_of(operator) == "&&"
    right = [child for child in rest if child.is_named]
    if status is not None:
        return run_all(right, scope) if (status == 0) == is_and else status
    causes = _take_causes(scope, text_of(left))
    return choose(scope, causes, [lambda s: run_all(right, s), lambda _: int(is_and)])


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
            text = lambda output=output: output  # type: ignore[misc]  # noqa: E731 - bound per turn
    return status


def _run_negated(node: Node, scope: ShellScope) -> Status:
    status = _run_children(node, scope)
    return None if status is None else int(status == 0)


def _run_test(node: Node, scope: ShellScope) -> Status:
    if text_of(node.children[0]) == "[[" and node.named_children:
        truth = evaluate_condition(node.named_children[0], scope)
        return None if truth is None else int(not truth)
    return BUILTINS["test"](words_of_test(node, scope), scope)


def _take_causes(scope: ShellScope, text: str) -> list[Unknown]:
    """Return what keeps a test from being evaluated, and forget it."""
    causes = list(scope.causes) or [Unknown(text[:80], scope.line)]
    scope.causes.clear()
    return causes


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
        raise DataError(_undecided("which command starts the run", causes, line))
    if starting and len(starting) < len(ends):
        text = (
            f"starts the run only where the test ({_texts(causes)}) says so; the import assumes it."
        )
        scope.record.problems.add(line, text, breaks=False)
    ends = starting or ends
    going_on = [end for end in ends if end[2] is None]
    if not going_on:
        join(scope, [end[0] for end in ends], at_line(causes, line))
        raise ends[0][2] or Leave("exit")
    join(scope, [end[0] for end in going_on], at_line(causes, line))
    for inner, _, leave in ends:
        scope.leaving += inner.leaving
        if leave:
            inner.causes = at_line(causes, line)
            scope.leaving.append((leave.kind, inner))
    statuses = {end[1] for end in going_on}
    return statuses.pop() if len(statuses) == 1 else None


def _signature(commands: list[TrainerCommand]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((c.module, tuple(text for text, _ in c.arguments)) for c in commands)


def _texts(causes: list[Unknown]) -> str:
    return ", ".join(dict.fromkeys(cause.text for cause in causes))[:200]


def at_line(causes: list[Unknown], line: int) -> list[Unknown]:
    """Return causes with the line of the test that they decide; those of branches keep theirs."""
    return [cause if cause.is_branch else replace(cause, line=line) for cause in causes]


def _undecided(what: str, causes: list[Unknown], line: int) -> str:
    names = [name for cause in causes for name in cause.names]
    hint = " ".join(f"--env {name}=..." for name in dict.fromkeys(names))
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
        joined[name] = [scope.env[name] if name in scope.env else mark]
    scope.variables = joined
    scope.exported = set().union(*(end.exported for end in ends))
    scope.functions = {n: b for end in ends for n, b in end.functions.items()}
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


def _join_leaving(kind: str, scope: ShellScope) -> None:
    """Join the scopes that may have left a loop or a function, where it ends."""
    ends = [inner for left_by, inner in scope.leaving if left_by == kind]
    scope.leaving = [entry for entry in scope.leaving if entry[0] != kind]
    ends = [inner for inner in ends if _signature(inner.commands) == _signature(scope.commands)]
    if ends:
        causes = ends[0].causes
        join(scope, [scope.copy(), *ends], causes)


def _run_if(node: Node, scope: ShellScope) -> Status:
    clauses = [c for c in node.named_children if c.type in {"elif_clause", "else_clause"}]
    return _run_clause(node, clauses, scope)


def _run_clause(node: Node, clauses: list[Node], scope: ShellScope) -> Status:
    """Evaluate an `if`, `elif` or `else`; the clauses behind it stand in the `if`'s tree."""
    if node.type == "else_clause":
        return _run_children(node, scope)
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
    status = run_all(condition, scope)
    if status is None:
        text = " ".join(map(text_of, condition))
        scope.line = line_of(condition[0]) if condition else scope.line
        return choose(scope, _take_causes(scope, text), [lambda s: run_all(body, s), otherwise])
    return run_all(body, scope) if status == 0 else otherwise(scope)


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
            causes = _take_causes(scope, plain(word, scope))
            rest = items[i + 1 :]
            return choose(
                scope,
                causes,
                [lambda s: _run_item(items[i:], s), lambda s: _run_items(rest, word, s)],
            )
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
    causes = _take_causes(scope, " ".join(words))
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
        _join_leaving("continue", scope)
    _join_leaving("break", scope)
    return status


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
                    _undecided("how often a loop runs", _take_causes(scope, head), scope.line)
                )
            if not truth:
                return
            yield True
            compute(after, scope) if after.strip() else None

    return _run_turns(turns(), body, scope) if body else 0


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
            status = run_all(conditions, scope)
            if status is None:
                unknown.extend(_take_causes(scope, " ".join(map(text_of, conditions))))
                return
            state = (dict(scope.variables), list(scope.arguments), scope.output)
            if (status == 0) == is_until or state == before:
                return
            before = ({n: list(i) for n, i in state[0].items()}, state[1], state[2])
            yield True

    status = _run_turns(turns(), body, scope)
    if unknown:
        once = [lambda s: _run_turns(iter([True]), body, s), lambda _: 0]
        return choose(scope, unknown, once)
    return status


def _run_function_definition(node: Node, scope: ShellScope) -> Status:
    name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    if name is not None and body is not None:
        scope.functions[text_of(name)] = body
    return 0


def _assign(node: Node, scope: ShellScope) -> str:
    """Set a variable or an item of an array, and return its name."""
    target, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if target is None:
        return ""
    is_sum = node.children[1].type == "+="
    if target.type == "subscript":
        return _assign_item(target, value, is_sum, scope)
    name = text_of(target)
    before = scope.variables.get(name, []) if is_sum else []
    if value is not None and value.type == "array":
        words = [child for child in value.named_children if child.type != "comment"]
        if any(re.match(r"\[[^\]=]+\]=", text_of(word)) for word in words):
            return _assign_map(name, words, scope)
        scope.set(name, before + [text for text, _ in fields_of(words, scope)])
        return name
    text = value_of(value, scope)
    scope.set(name, [before[0] + text, *before[1:]] if before else [text])
    return name


def _assign_map(name: str, words: list[Node], scope: ShellScope) -> str:
    """Set `name=([key]=value ...)`."""
    for text, _ in fields_of(words, scope):
        key, bracket, value = text.partition("]=")
        if bracket and key.startswith("["):
            scope.set(f"{name}{key}]", [value])
    scope.set(name, [scope.unknown(f"${{{name}[@]}}", name)])
    return name


def _assign_item(target: Node, value: Node | None, is_sum: bool, scope: ShellScope) -> str:
    name = text_of(target.child_by_field_name("name") or target)
    index = target.child_by_field_name("index")
    key = value_of(index, scope) if index else ""
    text = value_of(value, scope)
    items = list(scope.variables.get(name, []))
    number = compute(key, scope) if f"{name}[{key}]" not in scope.variables else None
    if number is None or not 0 <= number <= len(items):
        old = scope.variables.get(f"{name}[{key}]", [""])[0] if is_sum else ""
        scope.set(f"{name}[{key}]", [old + text])
        return name
    old = items[number] if is_sum and number < len(items) else ""
    items[number : number + 1] = [old + text]
    scope.set(name, items)
    return name


def _run_assignment(node: Node, scope: ShellScope) -> Status:
    had = len(scope.record.unknowns)
    _assign(node, scope)
    value = node.child_by_field_name("value")
    is_command = value is not None and value.type == "command_substitution"
    return None if is_command and len(scope.record.unknowns) > had else 0


def _run_declaration(node: Node, scope: ShellScope) -> Status:
    keyword, *rest = node.children
    for child in rest:
        if child.type == "variable_assignment":
            if text_of(keyword) in {"local", "declare", "typeset"}:
                _keep_local(text_of(child.child_by_field_name("name") or child), scope)
            name = _assign(child, scope)
        elif child.type in {"variable_name", "word"} and not text_of(child).startswith("-"):
            name = text_of(child)
            if text_of(keyword) == "local":
                _keep_local(name, scope)
                scope.variables.setdefault(name, [""])
        elif child.type in {"concatenation", "simple_expansion", "expansion", "string"}:
            name = _export_text(child, scope)
        else:
            continue
        if text_of(keyword) == "export" or "-x" in [text_of(word) for word in rest]:
            scope.exported.add(name)
    return 0


def _export_text(node: Node, scope: ShellScope) -> str:
    """Set a variable by `export "NAME=value"`, and return its name."""
    text = next((field for field, _ in fields_of([node], scope)), "")
    name, equals, value = text.partition("=")
    if equals and not is_unknown(name):
        scope.set(name, [value])
    return name


def _keep_local(name: str, scope: ShellScope) -> None:
    """Remember the value that a variable has outside the function that is called."""
    items = scope.variables.get(name)
    scope.local.setdefault(name, None if items is None else list(items))


def _run_unset(node: Node, scope: ShellScope) -> Status:
    for text, _ in fields_of(node.named_children, scope):
        scope.variables.pop(text, None)
        scope.exported.discard(text)
    return 0


def _run_redirected(node: Node, scope: ShellScope) -> Status:
    """Evaluate a statement with redirections; arguments may stand behind their targets."""
    body, *redirects = node.children
    with _redirected(redirects, scope):
        status = (
            _run_command([*body.children, *redirects], scope)
            if body.type == "command"
            else run(body, scope)
        )
    for redirect in redirects:
        if redirect.type == "heredoc_redirect":
            status = _run_behind_heredoc(redirect, status, scope)
    return status


def _run_behind_heredoc(node: Node, status: Status, scope: ShellScope) -> Status:
    """Evaluate what stands behind `<<EOF` on its line, as in `cat <<EOF | tee file`."""
    skip = {"heredoc_start", "heredoc_body", "heredoc_end", "file_redirect"}
    for child in node.named_children:
        if child.type not in skip and child.type not in _WORDS:
            status = run(child, scope)
    return status


@contextmanager
def _redirected(redirects: list[Node], scope: ShellScope) -> Iterator[None]:
    """Give a statement its input, and let it print elsewhere."""
    output, stdin, moves = scope.output, scope.stdin, False
    for redirect in redirects:
        if redirect.type == "file_redirect" and _moves_output(redirect):
            scope.output, moves = None if output is None else [], True
        elif redirect.type == "file_redirect" and "<" in text_of(redirect)[:2]:
            scope.stdin = lambda: scope.unknown("$(cat file)")
        elif redirect.type == "heredoc_redirect":
            scope.stdin = _document(redirect, scope)
        elif redirect.type == "herestring_redirect" and redirect.named_children:
            word = redirect.named_children[-1]
            scope.stdin = lambda word=word: value_of(word, scope) + "\n"  # type: ignore[misc]
    try:
        yield
    finally:
        scope.stdin = stdin
        scope.output = output if moves else scope.output


def _moves_output(node: Node) -> bool:
    """Whether a redirection sends what a command prints to another place."""
    match = re.match(r"(\d*)(&>>?|>>|>\||>&|>)", text_of(node))
    return bool(match) and match[1] in {"", "1"} if match else False


def _document(node: Node, scope: ShellScope) -> Callable[[], str]:
    start = next((c for c in node.children if c.type == "heredoc_start"), None)
    body = next((c for c in node.children if c.type == "heredoc_body"), None)
    is_raw = start is not None and re.search("['\"\\\\]", text_of(start)) is not None

    def read() -> str:
        if body is None:
            return ""
        return text_of(body) if is_raw else body_of(body, scope)

    return read


def _run_plain_command(node: Node, scope: ShellScope) -> Status:
    return _run_command(node.children, scope)


def _run_command(nodes: list[Node], scope: ShellScope) -> Status:
    assignments, words = _split_command(nodes)
    if not words:
        for node in assignments:
            _assign(node, scope)
        return 0
    fields = [(text, scope.line if scope.is_text else at) for text, at in fields_of(words, scope)]
    if not fields:
        return 0
    if not assignments:
        return run_fields(fields, scope, {})
    inner = scope.copy()
    names = [_assign(node, inner) for node in assignments]
    temporary = {name: (inner.variables.get(name) or [""])[0] for name in names}
    before = {name: scope.variables.get(name) for name in temporary}
    scope.variables.update({name: [value] for name, value in temporary.items()})
    try:
        return run_fields(fields, scope, temporary)
    finally:
        for name, items in before.items():
            scope.variables.pop(name, None)
            scope.variables.update({name: items} if items is not None else {})


def _split_command(nodes: list[Node]) -> tuple[list[Node], list[Node]]:
    """Return the assignments before a command, and its words without redirections."""
    assignments: list[Node] = []
    words: list[Node] = []
    for node in nodes:
        if node.type == "file_redirect":
            targets = [n for n in node.named_children if n.type != "file_descriptor"]
            words += targets[1:]
        elif node.type == "heredoc_redirect":
            words += [n for n in node.named_children if n.type in _WORDS]
        elif node.type == "variable_assignment":
            assignments.append(node)
        elif node.type not in _REDIRECTS and node.type != "comment":
            words.append(node)
    return assignments, words


def run_fields(
    fields: list[tuple[str, int]], scope: ShellScope, temporary: dict[str, str]
) -> Status:
    """Evaluate a command whose words are expanded."""
    texts = [text for text, _ in fields]
    name, arguments = texts[0], texts[1:]
    if (
        name in {"exec", "command", "builtin", "time", "nohup"}
        and arguments[:1] != ["-v"]
        and arguments
    ):
        return run_fields(fields[1:], scope, temporary)
    if name in _LEAVING:
        raise _leave(name, arguments)
    if name in {"source", "."}:
        text = "reads another file, whose variables are unknown here."
        scope.record.problems.add(fields[0][1], text, breaks=False)
        return 0
    if name == "eval":
        return run_text(" ".join(arguments), scope)
    if name in scope.functions:
        return _call(name, arguments, scope)
    if place := find_module(texts):
        return _start(fields, place, scope, temporary)
    if OVERRIDE.match(name):
        before = [(f"{key}={value}", fields[0][1]) for key, value in temporary.items()]
        return _add_settings([*before, *fields], scope)
    status: Status = None
    inner = list(shell_texts(texts))
    for text in inner:
        status = _run_shell(text, scope)
    if inner:
        return status
    if name in {"bash", "sh"} and not arguments and scope.stdin:
        return _run_shell(scope.stdin(), scope)
    if script := other_script(texts):
        scope.record.other_scripts.append((script, fields[0][1]))
    builtin = BUILTINS.get(name)
    return builtin(arguments, scope) if builtin else ordinary(arguments, scope, name=name)


_LEAVING = frozenset({"break", "continue", "return", "exit"})


def _leave(name: str, arguments: list[str]) -> Leave:
    number = int(arguments[0]) if arguments and arguments[0].isdigit() else None
    if name in {"break", "continue"}:
        return Leave(name, levels=number or 1)
    return Leave(name, status=number if number is not None else None if arguments else 0)


def run_text(text: str, scope: ShellScope) -> Status:
    """Evaluate a text as shell in this scope, as `eval` does."""
    if is_unknown(text):
        text = MARK.sub(lambda m: f"${{rewardkit_unknown_{m[1]}}}", text)
        for number in re.findall(r"rewardkit_unknown_(\d+)", text):
            scope.variables[f"rewardkit_unknown_{number}"] = [f"\0{number}\0"]
    root = parse_bytes(text.encode("utf-8", "replace"))
    if root.has_error:
        raise DataError(f"line {scope.line} runs a text that is not bash as far as can be read.")
    if scope.calls >= MAX_CALLS:
        raise DataError(f"more than {MAX_CALLS} levels of texts that are run as shell.")
    scope.calls += 1
    try:
        with scope.reading_text():
            return run_all(root.children, scope)
    finally:
        scope.calls -= 1


def _run_shell(text: str, scope: ShellScope) -> Status:
    """Evaluate a text in a shell of its own, which has the exported variables."""
    inner = scope.copy()
    try:
        return run_text(text, inner)
    except Leave as leave:
        return leave.status
    finally:
        scope.commands = inner.commands


def _call(name: str, arguments: list[str], scope: ShellScope) -> Status:
    """Evaluate a function; its local variables have their old values afterwards."""
    if scope.calls >= MAX_CALLS:
        raise DataError(f"more than {MAX_CALLS} levels of functions: {name} calls itself.")
    outer = scope.arguments, scope.local, scope.line, scope.is_text
    scope.arguments, scope.local, scope.is_text = arguments, {}, False
    scope.calls += 1
    try:
        status = run(scope.functions[name], scope)
    except Leave as leave:
        if leave.kind != "return":
            raise
        status = leave.status
    finally:
        _join_leaving("return", scope)
        for local, items in scope.local.items():
            scope.variables.pop(local, None)
            scope.variables.update({local: items} if items is not None else {})
        scope.arguments, scope.local, scope.line, scope.is_text = outer
        scope.calls -= 1
    return status


def _start(
    fields: list[tuple[str, int]], place: int, scope: ShellScope, temporary: dict[str, str]
) -> Status:
    """Remember a command that starts a trainer."""
    env = scope.environment({**temporary, **assigned_by_env([text for text, _ in fields[:place]])})
    module = module_name(fields[place][0])
    command = TrainerCommand(module, tuple(fields[place + 1 :]), env, fields[0][1])
    scope.commands.append(command)
    return 0


def _add_settings(fields: list[tuple[str, int]], scope: ShellScope) -> Status:
    """Take lines of settings that belong to the command above them, or that stand alone."""
    if scope.commands:
        last = scope.commands[-1]
        if last.module:
            scope.record.problems.add(fields[0][1], _BELOW)
        scope.commands[-1] = replace(last, arguments=(*last.arguments, *fields))
    else:
        env = scope.environment({})
        scope.commands.append(TrainerCommand("", tuple(fields), env, fields[0][1]))
    return 0


_STATEMENTS: dict[str, Callable[[Node, ShellScope], Status]] = {
    "ERROR": _run_error,
    "c_style_for_statement": _run_c_style_for,
    "case_statement": _run_case,
    "command": _run_plain_command,
    "compound_statement": _run_compound,
    "declaration_command": _run_declaration,
    "for_statement": _run_for,
    "function_definition": _run_function_definition,
    "if_statement": _run_if,
    "list": _run_list,
    "negated_command": _run_negated,
    "pipeline": _run_pipeline,
    "program": _run_children,
    "redirected_statement": _run_redirected,
    "subshell": _run_subshell,
    "test_command": _run_test,
    "unset_command": _run_unset,
    "variable_assignment": _run_assignment,
    "variable_assignments": _run_children,
    "while_statement": _run_while,
}
