"""The statements of a script in their order: each kind has a function that evaluates it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from rewardkit.launch.script_import.shell.scope import ShellScope
from rewardkit.launch.script_import.shell.tree import line_of, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

#: The exit status of a statement; None if only a run can tell.
Status = int | None
Handler = Callable[["Node", ShellScope], Status]

_HANDLERS: dict[str, Handler] = {}


class Leave(Exception):  # noqa: N818 - no error: it ends a loop, a function or the script
    """A statement that ends a loop, a function or the script.

    Attributes:
        kind: "break", "continue", "return" or "exit".
        levels: loops that it ends.
        status: the exit status.
    """

    def __init__(self, kind: str, levels: int = 1, status: Status = 0) -> None:
        self.kind, self.levels, self.status = kind, levels, status


def statement(*kinds: str) -> Callable[[Handler], Handler]:
    """Register a function as the one that evaluates statements of these kinds."""

    def register(handler: Handler) -> Handler:
        _HANDLERS.update(dict.fromkeys(kinds, handler))
        return handler

    return register


def run(node: Node, scope: ShellScope) -> Status:
    """Evaluate a statement, and return its exit status, None if only a run can tell."""
    scope.step()
    if not scope.conditions:
        scope.causes.clear()
    scope.line = scope.line if scope.is_text else line_of(node)
    handler = _HANDLERS.get(node.type)
    status = handler(node, scope) if handler else 0
    if status and scope.exits_on_error and not scope.conditions and _is_command(node):
        raise Leave("exit", status=status)
    return status


def _is_command(node: Node) -> bool:
    """Whether `set -e` ends the script if a statement fails, which it does not for a list or `{ }`."""
    if node.type == "redirected_statement":
        return _is_command(node.children[0])
    is_arithmetic = node.type == "compound_statement" and text_of(node).startswith("((")
    return is_arithmetic or node.type in {"command", "pipeline", "subshell", "test_command"}


def run_all(nodes: Iterable[Node], scope: ShellScope) -> Status:
    """Evaluate statements in their order, and return the status of the last one."""
    status: Status = 0
    for node in nodes:
        status = run(node, scope)
    return status


@statement("program", "variable_assignments")
def run_children(node: Node, scope: ShellScope) -> Status:
    """Evaluate the statements inside a node."""
    return run_all(node.named_children, scope)
