"""Assignments, functions and commands of a script, and the trainers that its commands start."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from rewardkit.errors import DataError
from rewardkit.launch.script_import.shell.alternatives import join_leaving
from rewardkit.launch.script_import.shell.builtins import BUILTINS, ordinary
from rewardkit.launch.script_import.shell.expansions import compute
from rewardkit.launch.script_import.shell.redirects import redirected
from rewardkit.launch.script_import.shell.scope import (
    MARK,
    MAX_CALLS,
    ShellScope,
    TrainerCommand,
    is_unknown,
)
from rewardkit.launch.script_import.shell.statements import Leave, Status, run, run_all, statement
from rewardkit.launch.script_import.shell.tree import line_of, parse_bytes, text_of
from rewardkit.launch.script_import.shell.words import fields_of, value_of
from rewardkit.launch.script_import.trainer_command import (
    OVERRIDE,
    assigned_by_env,
    find_module,
    launcher_words,
    module_name,
    other_script,
    shell_texts,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_REDIRECTS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})
_WORDS = frozenset("concatenation expansion number raw_string simple_expansion string word".split())
_KEYWORDS = frozenset("if elif else case esac for while until do done then fi function".split())
_LEAVING = frozenset({"break", "continue", "return", "exit"})
_TRANSPARENT = frozenset({"builtin", "command", "exec", "nohup", "time"})
_BELOW = "settings below the end of the command: bash does not pass them."


@statement("ERROR")
def _run_error(node: Node, scope: ShellScope) -> Status:
    """Read what the grammar does not know as far as it has no branches."""
    for child in node.children:
        if child.type in _KEYWORDS or child.type in {"case_item", "elif_clause", "else_clause"}:
            raise DataError(f"line {line_of(child)} is not bash as far as can be read.")
    words = [child for child in node.children if child.type in _WORDS]
    status = _run_command(words, scope)
    return run_all((c for c in node.named_children if c.type not in _WORDS), scope) or status


@statement("function_definition")
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
        if number is not None:  # an array with a gap
            scope.set(name, [*items, scope.unknown(f"${{{name}[@]}}", name)])
        return name
    old = items[number] if is_sum and number < len(items) else ""
    items[number : number + 1] = [old + text]
    scope.set(name, items)
    return name


@statement("variable_assignment")
def _run_assignment(node: Node, scope: ShellScope) -> Status:
    had = len(scope.record.unknowns)
    _assign(node, scope)
    value = node.child_by_field_name("value")
    is_command = value is not None and value.type == "command_substitution"
    return None if is_command and len(scope.record.unknowns) > had else 0


@statement("declaration_command")
def _run_declaration(node: Node, scope: ShellScope) -> Status:
    keyword, *rest = node.children
    options = "".join(text_of(child) for child in rest if text_of(child).startswith("-"))
    is_changed = re.search("[inlu]", options) and text_of(keyword) in {
        "declare",
        "local",
        "typeset",
    }
    for child in rest:
        if is_changed and child.type == "variable_assignment":
            scope.special[text_of(child.child_by_field_name("name") or child)] = "changed"
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
        if text_of(keyword) == "readonly" or "r" in options:
            scope.special[name] = "readonly"
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


@statement("unset_command")
def _run_unset(node: Node, scope: ShellScope) -> Status:
    for text, _ in fields_of(node.named_children, scope):
        name = text.partition("[")[0]
        if name != text and name in scope.variables:  # an array with a gap
            scope.set(name, [scope.unknown(f"${{{name}[@]}}", name)])
        scope.variables.pop(text, None)
        scope.removed.add(text)
        scope.exported.discard(text)
    return 0


@statement("redirected_statement")
def _run_redirected(node: Node, scope: ShellScope) -> Status:
    """Evaluate a statement with redirections; arguments may stand behind their targets."""
    body, *redirects = node.children
    with redirected(redirects, scope):
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


@statement("command")
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
    if name in _TRANSPARENT and arguments and not arguments[0].startswith("-"):
        return run_fields(fields[1:], scope, temporary)
    if name in _LEAVING:
        raise _leave(name, arguments)
    if name == "eval":
        return run_text(" ".join(arguments), scope)
    if name in scope.functions:
        return _call(name, arguments, scope)
    if place := find_module(texts):
        return _start(fields, place, scope, temporary)
    if OVERRIDE.match(name):
        before = [(f"{key}={value}", fields[0][1]) for key, value in temporary.items()]
        return _add_settings([*before, *fields], scope)
    return _run_program(texts, scope)


def _run_program(texts: list[str], scope: ShellScope) -> Status:
    """Evaluate a command that starts no trainer itself."""
    name, arguments = texts[0], texts[1:]
    if name in {"source", "."}:
        text = (
            "reads another file, whose variables are unknown here: pass those that matter by --env."
        )
        scope.record.problems.add(scope.line, text, breaks=False)
        return 0
    if inner := list(shell_texts(texts)):
        return [_run_shell(text, scope) for text in inner][-1]
    if name in {"bash", "sh"} and not arguments and scope.stdin:
        return _run_shell(scope.stdin(), scope)
    if script := other_script(texts):
        scope.record.other_scripts.append((script, scope.line))
    builtin = BUILTINS.get(name)
    return builtin(arguments, scope) if builtin else ordinary(arguments, scope, name=name)


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
    scope.count([text])
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
    body = scope.functions[name]
    if body is None:
        raise DataError(f"line {scope.line} calls {name}, and only a run can tell what {name} is.")
    outer = scope.arguments, scope.knows_arguments, scope.local, scope.line, scope.is_text
    scope.arguments, scope.knows_arguments = arguments, True
    scope.local, scope.is_text = {}, False
    scope.calls += 1
    try:
        status = run(body, scope)
    except Leave as leave:
        if leave.kind != "return":
            raise
        status = leave.status
    finally:
        join_leaving("return", scope)
        for local, items in scope.local.items():
            scope.variables.pop(local, None)
            scope.variables.update({local: items} if items is not None else {})
        scope.arguments, scope.knows_arguments, scope.local, scope.line, scope.is_text = outer
        scope.calls -= 1
    return status


def _start(
    fields: list[tuple[str, int]], place: int, scope: ShellScope, temporary: dict[str, str]
) -> Status:
    """Remember a command that starts a trainer."""
    before = [text for text, _ in fields[:place]]
    env = scope.environment({**temporary, **assigned_by_env(before)})
    module, arguments = module_name(fields[place][0]), fields[place + 1 :]
    if "xargs" in before:
        text = scope.stdin() if scope.stdin else scope.unknown("the input of xargs")
        arguments += [(word, fields[0][1]) for word in text.split()]
    launcher = launcher_words(before)
    command = TrainerCommand(module, tuple(arguments), env, fields[0][1], launcher)
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
