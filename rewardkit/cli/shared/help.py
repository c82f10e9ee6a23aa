"""How `--help` looks: commands under headings, and examples at the end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from typer.core import TyperGroup

from rewardkit.cli.shared.old_spellings import require_current_spelling
from rewardkit.errors import UsageError


def examples(*lines: str) -> str:
    r"""Return the examples that end a command's help. The \b keeps click from joining the lines."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


class PanelGroup(TyperGroup):
    """A group of commands whose help lists them under the headings of their panels.

    Typer draws panels with rich only, which doubles the time that `--help` takes and joins the
    lines of examples.
    """

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one section for each panel, in the order of the commands."""
        width = max(map(len, self.commands))
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.commands[name]
            if command.hidden:
                continue
            panel = getattr(command, "rich_help_panel", None) or "Commands"
            summary = command.get_short_help_str(formatter.width - width - 4)
            panels.setdefault(panel, []).append((name.ljust(width), summary))
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl(rows)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the arguments name.

        Raises:
            UsageError: they are spelled as in an earlier release (the message has today's
                spelling), or an option stands where the value of another is missing.
        """
        if ctx.resilient_parsing:  # the shell completes an unfinished command line
            return super().resolve_command(ctx, args)
        require_current_spelling(args)
        name, command, rest = super().resolve_command(ctx, args)
        require_values(command.get_params(ctx) if command else (), rest)
        return name, command, rest


def require_values(params: Iterable[Any], words: Sequence[str]) -> None:
    """Require that no option takes the option after it as its value, as click would let it.

    Args:
        params: the options and arguments of the command.
        words: its command line. A value that begins with two hyphens is written behind a `=`.

    Raises:
        UsageError: an option without its value is followed by another option.
    """
    options = [param for param in params if param.param_type_name == "option"]
    spellings = {name: param for param in options for name in (*param.opts, *param.secondary_opts)}
    for word, following in pairwise(words):
        if word == "--":
            return
        param = spellings.get(word)
        if param is None or param.is_flag or param.count:
            continue
        if following in spellings or re.match("--[A-Za-z]", following):
            raise UsageError(
                f"{word} has no value: the option {following.partition('=')[0]} follows it. Write "
                f"{word} VALUE, or {word}={following} if that is the value."
            )
