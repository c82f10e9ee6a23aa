"""How `--help` looks: commands under headings, and examples at the end."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

from rewardkit.cli.shared.old_spellings import require_current_spelling


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
            panel = getattr(command, "rich_help_panel", None) or "Commands"
            summary = command.get_short_help_str(formatter.width - width - 4)
            panels.setdefault(panel, []).append((name.ljust(width), summary))
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl(rows)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the arguments name.

        Raises:
            UsageError: they are spelled as in an earlier release; the message has today's spelling.
        """
        if not ctx.resilient_parsing:  # the shell completes an unfinished command line
            require_current_spelling(args)
        return super().resolve_command(ctx, args)
