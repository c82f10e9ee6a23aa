"""Options that several commands share, and checks of options that exclude each other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from math import isfinite, isnan
from pathlib import Path
from typing import Annotated, Any

import typer

from rewardkit.cli.shared.chinese import speak
from rewardkit.cli.shared.completion import complete_recipes, complete_scorers
from rewardkit.errors import UsageError


class HubName(str, Enum):
    """Where datasets are downloaded from."""

    huggingface = "huggingface"
    modelscope = "modelscope"


class LanguageCode(str, Enum):
    """Language of texts in output: English or Chinese."""

    en = "en"
    zh = "zh"


def _speak(lang: LanguageCode) -> str:
    speak(lang.value)
    return lang.value  # typer makes it a LanguageCode after this


def _require_number(value: float) -> float:
    if isnan(value):  # it is neither below the least nor above the largest value
        raise typer.BadParameter("nan is not a number of seconds.")
    return value


def seconds_option(text: str, *, least: float) -> Any:
    """Return an option in seconds, of at most a day.

    Args:
        text: its help.
        least: its smallest value.
    """
    return typer.Option(min=least, max=86_400, callback=_require_number, help=text)


#: What a command prints from here on is in this language.
Language = Annotated[
    LanguageCode,
    typer.Option(callback=_speak, help="Language of the text; names and rules stay in English."),
]
Hub = Annotated[HubName, typer.Option(help="Hub to download datasets from.")]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace output files that already exist.")
]
HtmlFile = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Also write the report as an HTML page."),
]
Jobs = Annotated[
    int | None,
    typer.Option(min=1, help="Number of worker processes; the default is one per CPU core."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Set an option of the scorer. Repeatable."),
]
Scorer = Annotated[
    str,
    typer.Option(
        autocompletion=complete_scorers,
        help="Scorer name or file.py:function; auto uses the scorer of each row.",
    ),
]
ScorerArgument = Annotated[
    str,
    typer.Argument(autocompletion=complete_scorers, help="Scorer name, or file.py:function."),
]
SecondsPerRow = Annotated[
    float, seconds_option("Timeout per response for custom scorers, in seconds.", least=0.01)
]


def require_finite(value: float | None) -> float | None:
    """Raise `BadParameter` for a score that is NaN or infinite."""
    if value is not None and not isfinite(value):
        raise typer.BadParameter(f"{value} is not a score.")
    return value


RightScore = Annotated[
    float | None,
    typer.Option(
        metavar="SCORE",
        callback=require_finite,
        help="Lowest score of a right answer, for a reward of your own; by default it is learned "
        "from what the first golds get.",
    ),
]
LoadSeconds = Annotated[
    float,
    seconds_option("Timeout for importing a custom scorer or dataset, in seconds.", least=0.01),
]
ResponseFiles = Annotated[
    list[str],
    typer.Argument(
        help="Files with responses: jsonl (also .gz, .zst) or parquet, folders or glob patterns; "
        "- reads standard input."
    ),
]
ResponseKey = Annotated[
    str | None,
    typer.Option(help="Field that holds the response; by default the usual names are tried."),
]
GoldKey = Annotated[
    str | None,
    typer.Option(help="Field that holds the gold answer; by default the usual names are tried."),
]
VerlVersion = Annotated[
    str | None,
    typer.Option(help="verl version to plan for, or main; the default is the installed one."),
]
RecipeName = Annotated[
    str, typer.Argument(autocompletion=complete_recipes, help="Recipe name, or a .yaml file.")
]


def scorer_options(settings: list[str] | None) -> dict[str, Any]:
    """Return `["method=robust", "x=1"]` as `{"method": "robust", "x": 1}`.

    Values are JSON or text; `True` and `False` are read as Hydra reads them in verl's overrides.

    Raises:
        UsageError: a setting is not of the form NAME=VALUE.
    """
    options: dict[str, Any] = {}
    for setting in settings or ():
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise UsageError(f"--set {setting}: write it as NAME=VALUE.")
        options[name] = _value(value)
    return options


def _value(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return text if isinstance(value, (Mapping, list)) else value


def require_unused(ctx: typer.Context, mode: str, used: AbstractSet[str]) -> None:
    """Raise `UsageError` if the user set an option that has no effect in a mode.

    Args:
        ctx: the command's context.
        mode: what decides which options have an effect, as the message names it: `a recipe`.
        used: the parameters that have an effect; `--json` always has one.
    """
    for name, option in _user_options(ctx).items():
        if name not in used and name != "as_json":
            raise UsageError(f"{option} is not used with {mode}: leave it out.")


def require_companion(ctx: typer.Context, name: str, companion: str, *, is_set: bool) -> None:
    """Raise `UsageError` if the user set an option without the one that it depends on.

    Args:
        ctx: the command's context.
        name: the parameter's name: `seed`.
        companion: the option it depends on, as the user writes it: `--shuffle`.
        is_set: whether that option is set.
    """
    if not is_set and (option := _user_options(ctx).get(name)):
        raise UsageError(f"{option} needs {companion}.")


def _user_options(ctx: typer.Context) -> dict[str, str]:
    """The parameters that the user set on the command line, each with the option's spelling."""
    spellings = {param.name or "": param.opts[0] for param in ctx.command.params}
    return {name: option for name, option in spellings.items() if _is_user_set(ctx, name)}


def _is_user_set(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
