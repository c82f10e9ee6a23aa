"""Groups of commands: headings in their help, and modules that only the chosen command imports."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from rewardkit.cli.shared.options import bundled
from rewardkit.errors import UsageError


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
            command: Any = self.commands[name]
            if command.hidden:
                continue
            summary = command.get_short_help_str(formatter.width - width - 4)
            panel = command.rich_help_panel or "Commands"
            panels.setdefault(panel, []).append((name.ljust(width), summary))
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl(rows)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the arguments name.

        Raises:
            UsageError: an option stands where the value of another is missing.
        """
        name, command, rest = super().resolve_command(ctx, args)
        if command and not ctx.resilient_parsing:  # the shell completes an unfinished command line
            require_values(command.get_params(ctx), rest)
        return name, command, rest


class LazyGroup(PanelGroup):
    """A group of commands whose modules are imported when they are called.

    Attributes:
        panels: the summary of each command, by its panel and its name.
        old: commands of earlier releases, each with what to type instead.
    """

    panels: ClassVar[Mapping[str, Mapping[str, str]]]
    old: ClassVar[Mapping[str, str]]

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for panel, summaries in self.panels.items():
            for name, summary in summaries.items():
                self.add_command(TyperCommand(name, help=summary, rich_help_panel=panel))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; an old name is an error."""
        if cmd_name in self.old:
            raise UsageError(f"`rewardkit {cmd_name}` is now `{self.old[cmd_name]}`.")
        return load_command(cmd_name) if super().get_command(ctx, cmd_name) else None


@cache
def load_command(name: str) -> Any:
    """Import the module of a command: it has an `app`, or a function `command` and its `EXAMPLES`."""
    module = import_module(f"rewardkit.cli.{name.replace('-', '_')}")
    if hasattr(module, "app"):
        command: Any = typer.main.get_group(module.app)
    else:
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(epilog=module.EXAMPLES)(bundled(module.command))
        command = typer.main.get_command(app)
    command.name = name
    return command


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
