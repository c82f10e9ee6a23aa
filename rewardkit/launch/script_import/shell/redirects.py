"""Redirections of a statement: where it prints, and what it reads from a here-document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rewardkit.launch.script_import.shell.expansions import expand_document
from rewardkit.launch.script_import.shell.scope import ShellScope
from rewardkit.launch.script_import.shell.tree import text_of
from rewardkit.launch.script_import.shell.words import value_of

if TYPE_CHECKING:
    from tree_sitter import Node


@contextmanager
def redirected(redirects: list[Node], scope: ShellScope) -> Iterator[None]:
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
            scope.stdin = lambda word=word: value_of(word, scope) + "\n"
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
    """Return what reads a here-document; the grammar does not have all of its text."""
    start = next((c for c in node.children if c.type == "heredoc_start"), None)
    end = next((c for c in node.children if c.type == "heredoc_end"), None)
    if start is None or end is None:
        return lambda: ""
    source, offset = node.text or b"", node.start_byte
    body = source[start.end_byte - offset : end.start_byte - offset].partition(b"\n")[2].decode()
    if text_of(node).startswith("<<-"):
        body = re.sub(r"^\t+", "", body, flags=re.MULTILINE)
    is_raw = re.search("['\"\\\\]", text_of(start)) is not None
    return lambda: body if is_raw else expand_document(body, scope)
