"""Evaluation of a script with what is known: its defaults, and the variables and arguments given.

Nothing is run. A test that cannot be evaluated makes alternatives (`alternatives`); a value that
only a run can tell becomes a mark (`scope`). A new kind of statement is a function with
`@statement` in `branches` or `commands`.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from rewardkit.launch.script_import.shell import branches, commands
from rewardkit.launch.script_import.shell.scope import ShellScope, is_unknown
from rewardkit.launch.script_import.shell.statements import Leave, run, run_all
from rewardkit.launch.script_import.shell.tree import text_of

if TYPE_CHECKING:
    from tree_sitter import Node

#: The modules that register the kinds of statements.
STATEMENTS = (branches, commands)


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
    inner.exits_on_error = False  # bash does not pass `set -e` on
    with suppress(Leave):
        run_all(node.named_children, inner)
    scope.commands = inner.commands
    output = "".join(inner.output or ())
    if not is_unknown(output):
        return output.rstrip("\n")
    if re.fullmatch("(?:\0\\d+\0)*", output.strip()):  # nothing else: the whole is not known
        names = [name for unknown in inner.unknowns_in(output) for name in unknown.names]
        unset = all(unknown.is_unset for unknown in inner.unknowns_in(output))
        return scope.unknown(text_of(node), *dict.fromkeys(names), is_unset=unset)
    return output.rstrip("\n")
