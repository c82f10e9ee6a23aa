"""Options that several commands share, and checks of options that exclude each other."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, is_dataclass
from inspect import Parameter, Signature, signature
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rewardkit.cli.shared.console import show_import
from rewardkit.errors import UsageError

if TYPE_CHECKING:
    from rewardkit.responses.score import ScoringPlan
    from rewardkit.scorers.base import Scorer


def examples(*lines: str) -> str:
    r"""Return the examples that end a command's help. The \b keeps click from joining the lines."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


#: The targets of a launch (`Target` of `launch.recipe`, which would import pydantic).
TARGETS = (
    "local", "ray-job", "script", "slurm", "kuberay", "skypilot", "ascend", "modelarts"
)  # fmt: skip


def complete_set(incomplete: str) -> list[str]:
    """Return the names of datasets and sets that begin as the word does."""
    from rewardkit.preprocess.load import known_names

    return _matching(known_names(incomplete), incomplete)


def complete_sets(incomplete: str) -> list[str]:
    """Return lists of sets, separated by commas, whose last name begins as the word's does."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in complete_set(last)]


def complete_against(incomplete: str) -> list[str]:
    """Return the same for `--against`, which has a name for all evaluation sets."""
    from rewardkit.preprocess.load import ALL

    before, comma, last = incomplete.rpartition(",")
    names = [f"{before}{comma}{ALL}"] if ALL.startswith(last) else []
    return [*complete_sets(incomplete), *names]


def complete_scorers(incomplete: str) -> list[str]:
    """Return the names of scorers that begin as the word does."""
    from rewardkit.registry import known

    return _matching(known("scorers"), incomplete)


def complete_recipes(incomplete: str) -> list[str]:
    """Return the names of built-in recipes that begin as the word does."""
    from rewardkit import launch

    # The recipe's module would import pydantic, which takes longer than a key press may.
    folder = Path(launch.__path__[0]) / "recipes"
    return _matching((path.stem for path in folder.glob("*.yaml")), incomplete)


def complete_targets(incomplete: str) -> list[str]:
    """Return the names of targets that begin as the word does."""
    return _matching(TARGETS, incomplete)


def _matching(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))


def option(text: str, *names: str, **settings: Any) -> Any:
    """Return an option with its help; `settings` are those of `typer.Option`."""
    return typer.Option(*names, help=text, **settings)


def argument(text: str, **settings: Any) -> Any:
    """Return an argument with its help; `settings` are those of `typer.Argument`."""
    return typer.Argument(help=text, **settings)


def require_finite(value: float | None) -> float | None:
    """Raise `BadParameter` for NaN, which is within all limits, and infinity."""
    if value is not None and not isfinite(value):
        raise typer.BadParameter(f"{value} is not a number.")
    return value


def seconds_option(text: str, *, least: float, envvar: str | None = None) -> Any:
    """Return an option in seconds, from `least` to a day, perhaps also an environment variable."""
    return option(text, min=least, max=86_400, callback=require_finite, envvar=envvar)


LanguageCode = Literal["en", "zh"]
Language = Annotated[LanguageCode, option("Language of the text; names and rules stay in English.")]
HubName = Literal["huggingface", "modelscope"]
Hub = Annotated[HubName, option("Hub to download datasets from.")]
JsonFlag = Annotated[bool, option("Print the result as JSON.", "--json")]
Overwrite = Annotated[bool, option("Replace output files that already exist.", "--overwrite")]
HtmlFile = Annotated[
    Path | None, option("Also write the report as an HTML page.", "--html", metavar="FILE")
]
Jobs = Annotated[
    int | None,
    option(
        "Number of worker processes; the default is one per CPU core.",
        min=1,
        envvar="REWARDKIT_JOBS",
    ),
]
Settings = Annotated[
    list[str] | None,
    option("Set an option of the scorer. Repeatable.", "--set", metavar="NAME=VALUE"),
]
ScorerName = Annotated[
    str,
    option(
        "Scorer name or file.py:function; auto uses the scorer of each row.",
        autocompletion=complete_scorers,
    ),
]
ScorerArgument = Annotated[
    str, argument("Scorer name, or file.py:function.", autocompletion=complete_scorers)
]
SecondsPerRow = Annotated[
    float,
    seconds_option(
        "Timeout per response for custom scorers, in seconds.",
        least=0.01,
        envvar="REWARDKIT_SECONDS_PER_ROW",
    ),
]
RightScore = Annotated[
    float | None,
    option(
        "Lowest score of a right answer, for a reward of your own; by default it is learned "
        "from what the first golds get.",
        metavar="SCORE",
        callback=require_finite,
    ),
]
LoadSeconds = Annotated[
    float,
    seconds_option(
        "Timeout for importing a custom scorer or dataset, in seconds.",
        least=0.01,
        envvar="REWARDKIT_LOAD_SECONDS",
    ),
]
ResponseFiles = Annotated[
    list[str],
    argument(
        "Files with responses: jsonl (also .gz, .zst) or parquet, folders or glob patterns; "
        "- reads standard input."
    ),
]
ResponseKey = Annotated[
    str | None, option("Field that holds the response; by default the usual names are tried.")
]
GoldKey = Annotated[
    str | None, option("Field that holds the gold answer; by default the usual names are tried.")
]


@dataclass(frozen=True)
class ScorerOptions:
    """The options of a command that scores with one scorer."""

    settings: Settings = None
    right_score: RightScore = None
    seconds_per_row: SecondsPerRow = 60.0
    load_seconds: LoadSeconds = 60.0

    @property
    def of_scorer(self) -> dict[str, Any]:
        """The options of the scorer itself, by their names."""
        return scorer_options(self.settings)

    @contextmanager
    def open(self, name: str) -> Iterator[Scorer]:
        """Open a scorer as `scorers.isolated.open_scorer` does, and show that a custom one is imported."""
        from rewardkit.scorers.isolated import open_scorer

        limits = self.seconds_per_row, self.load_seconds
        with ExitStack() as stack:
            with show_import(name):
                scorer = stack.enter_context(open_scorer(name, self.of_scorer, *limits))
            yield scorer

    def plan(self, scorer: str) -> ScoringPlan:
        """Return the plan of scoring with a scorer."""
        from rewardkit.responses.score import ScoringPlan

        return ScoringPlan(
            scorer,
            tuple(self.of_scorer.items()),
            seconds=self.seconds_per_row,
            load_seconds=self.load_seconds,
            right_score=self.right_score,
        )


#: The options of a scorer, none of them set.
NO_OPTIONS = ScorerOptions()


def bundled(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command for typer in which a dataclass parameter stands for its fields."""
    parameters: list[Parameter] = []
    bundles: dict[str, Any] = {}
    for parameter in signature(function, eval_str=True).parameters.values():
        own, kind = [parameter], parameter.annotation
        if isinstance(kind, type) and is_dataclass(kind):
            bundles[parameter.name] = kind
            own = list(signature(kind, eval_str=True).parameters.values())
        parameters += [each.replace(kind=Parameter.KEYWORD_ONLY) for each in own]

    def call(**values: Any) -> None:
        for name, kind in bundles.items():
            values[name] = kind(**{each.name: values.pop(each.name) for each in fields(kind)})
        function(**values)

    command: Any = call
    command.__name__, command.__doc__ = function.__name__, function.__doc__
    command.__signature__ = Signature(parameters)
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


VerlVersion = Annotated[
    str | None, option("verl version to plan for, or main; the default is the installed one.")
]
RecipeName = Annotated[
    str, argument("Recipe name, or a .yaml file.", autocompletion=complete_recipes)
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
        try:
            parsed = value == "True" if value in {"True", "False"} else json.loads(value)
        except ValueError:
            parsed = value
        options[name] = value if isinstance(parsed, (dict, list)) else parsed
    return options


def require_unused(ctx: typer.Context, mode: str, used: Collection[str]) -> None:
    """Raise `UsageError` if the user set an option that has no effect in a mode, such as `a recipe`.

    `used` are the parameters that have an effect; `--json` always has one.
    """
    for name, option in _user_options(ctx).items():
        if name not in used and name != "as_json":
            raise UsageError(f"{option} is not used with {mode}: leave it out.")


def require_companion(ctx: typer.Context, companion: str, is_set: object, *names: str) -> None:
    """Raise `UsageError` if the user set one of the parameters `names` without what they depend on.

    `companion` is that, as the user writes it: `--shuffle`.
    """
    set_options = _user_options(ctx)
    for name in names:
        if not is_set and name in set_options:
            raise UsageError(f"{set_options[name]} needs {companion}.")


def option_words(ctx: typer.Context, *besides: str) -> list[str]:
    """Return the options that the user set as words of a command line; not those of some parameters."""
    options = _user_options(ctx)
    words: list[str] = []
    for param in ctx.command.params:
        name = param.name or ""
        if name not in options or name in besides or param.param_type_name != "option":
            continue
        value = ctx.params[name]
        if getattr(param, "is_flag", False):
            words.append(options[name])
        else:
            for each in value if isinstance(value, (list, tuple)) else [value]:
                words += [options[name], str(each)]
    return words


def _user_options(ctx: typer.Context) -> dict[str, str]:
    """The parameters that the user set on the command line, each with the option's spelling."""
    return {
        name: param.opts[0]
        for param in ctx.command.params
        if (source := ctx.get_parameter_source(name := param.name or ""))
        and source.name == "COMMANDLINE"
    }


def require_html_path(
    html: Path | None,
    *,
    overwrite: bool,
    inputs: Iterable[Path] = (),
    scorer: str | None = None,
    **outputs: Path | None,
) -> None:
    """Raise an error if a page cannot be written, before the command does its work.

    `inputs` are files that the command reads, as may be `scorer`; `outputs` the others that it writes,
    by option.

    Raises:
        OutputError: the page exists.
        UsageError: the page is one of the other files, or an output is an input.
    """
    from rewardkit.output import require_absent, require_different, require_not_input

    sources = [*inputs, *([Path(scorer.partition(":")[0])] if scorer else [])]
    if html is not None:
        require_absent(html, overwrite=overwrite)
        require_different(html=html, **outputs)
    for output in (html, *outputs.values()):
        require_not_input(output, *sources)
