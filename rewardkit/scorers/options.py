"""The options of a scorer, their values, and functions with verl's signature as scorers.

An option is a keyword-only parameter of the scorer, and its annotation says which values it accepts:
`Literal["a", "b"]`, `bool`, `int`, `float`, `str`, `None`, a union of these, or
`Annotated[float, Range(0, 1)]`. An option with no annotation, or with another one, accepts any
value. Everything that loads or calls a scorer validates options here.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from inspect import Parameter, iscoroutine, isfunction, signature
from math import inf
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from rewardkit.errors import UsageError, call_catching
from rewardkit.scorers.score import RewardResult, RightRule, Score, Scorer

#: The parameters in verl's signature, which are not options.
VERL_PARAMETERS = ("data_source", "solution_str", "ground_truth", "extra_info")


class Range(NamedTuple):
    """The finite numbers from `least` to `most`, as in `Annotated[float, Range(0, 1)]`."""

    least: float = -inf
    most: float = inf


def as_scorer(function: Callable[..., Any]) -> Scorer:
    """Return a function with verl's signature as a scorer; return any other function unchanged."""
    if "solution_str" in signature(function).parameters:
        return partial(call_verl_function, function)
    return function


def call_verl_function(
    function: Callable[..., Any],
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    *,
    _rule: RightRule | None = None,
    **options: Any,
) -> Score:
    """Call a reward function with verl's signature and convert its number or dictionary.

    `data_source` is taken from `extra_info["data_source"]`. A coroutine is run to its end, as verl
    0.9 does. `correct` is None if neither the result nor the rule says it; see `score.RightRule`.
    """
    info = dict(extra_info or {})
    source = info.pop("data_source", "")
    result = function(
        data_source=source,
        solution_str=response,
        ground_truth=ground_truth,
        extra_info=info,
        **options,
    )
    if iscoroutine(result):
        import asyncio

        result = asyncio.run(result)
    score = RewardResult.of(result).as_score()
    return score if _rule is None else _rule.judge(score, str(source))


@cache
def option_names(scorer: Any) -> frozenset[str] | None:
    """Return the names of a scorer's options; None if it accepts options of any name.

    The options are the keyword-only parameters. A function with verl's signature has as options all
    named parameters that are not verl's.
    """
    function = inner_function(scorer)
    is_verl_function = function is not scorer and "solution_str" in signature(function).parameters
    parameters = signature(function if is_verl_function else scorer).parameters.values()
    if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters):
        return None
    kinds = [Parameter.KEYWORD_ONLY, *[Parameter.POSITIONAL_OR_KEYWORD] * is_verl_function]
    names = frozenset(parameter.name for parameter in parameters if parameter.kind in kinds)
    return names.difference(VERL_PARAMETERS)


def _unwrap(scorer: Any) -> tuple[Any, dict[str, Any], bool]:
    """Return the function inside a scorer, its bound options, and whether it has verl's signature."""
    options: dict[str, Any] = {}
    is_verl_function = False
    while isinstance(scorer, partial):
        options = {**scorer.keywords, **options}
        is_verl_function |= scorer.func is call_verl_function
        scorer = scorer.args[0] if scorer.func is call_verl_function else scorer.func
    if getattr(scorer, "__qualname__", "") == "ScorerSpec.compute_score":
        scorer = scorer.__self__.score
    return scorer, options, is_verl_function


def inner_function(scorer: Any) -> Any:
    """Return the function inside a scorer with bound options or with verl's signature."""
    return _unwrap(scorer)[0]


def bound_options(scorer: Any) -> dict[str, Any]:
    """Return the options that are bound to a scorer."""
    return _unwrap(scorer)[1]


def is_verl_function(scorer: Any) -> bool:
    """Return whether a scorer is a function with verl's signature, perhaps with bound options."""
    return _unwrap(scorer)[2]


def has_option(scorer: Any, option: str) -> bool:
    """Return whether a scorer has the option."""
    names = option_names(scorer)
    return names is None or option in names


def accepts_option(scorer: Any, option: str, value: Any) -> bool:
    """Return whether a scorer has the option and accepts the value for it."""
    return has_option(scorer, option) and _fits(annotation(scorer, option), value)


def check_values(scorer: Any, options: Mapping[str, Any]) -> None:
    """Require that the options of a scorer have valid values.

    Raises:
        UsageError: a value does not fit the annotation; the message names the valid ones.
    """
    for option, value in options.items():
        if not _fits(annotation(scorer, option), value):
            raise invalid_value_error(scorer, option, value)


def invalid_value_error(
    scorer: Any, option: str, value: Any, others: Iterable[Any] = (), owner: str = ""
) -> UsageError:
    """Return the error for an invalid value of an option of a scorer, and perhaps of others."""
    from rewardkit.registry import did_you_mean

    if not owner:
        code = getattr(inner_function(scorer), "__code__", None)
        owner = f"scorer {Path(code.co_filename).stem if code else '?'!r}"
    kinds = [annotation(each, option) for each in (scorer, *others)]
    choices = [*dict.fromkeys(str(choice) for kind in kinds for choice in _choices(kind))]
    text = repr(value)[:80]
    if choices:
        near, known = did_you_mean(str(value)[:80], choices), ", ".join(choices)
        return UsageError(f"{owner} has no {option} {text}.{near} Its {option}s: {known}.")
    valid = " or ".join(dict.fromkeys(map(_describe, kinds)))
    return UsageError(f"{owner}: {option}={text} is invalid; give {valid}.")


def effective_settings(scorer: Any) -> dict[str, Any]:
    """Return the value of every option of a scorer, bound or by default, in the order of its code."""
    names = option_names(scorer) or frozenset()
    bound = bound_options(scorer)
    parameters = signature(inner_function(scorer)).parameters if names else {}
    return {
        name: bound.get(name, parameter.default)
        for name, parameter in parameters.items()
        if name in names
    }


def other_settings(scorer: Any) -> list[tuple[str, Any]]:
    """Return the choices that are not in effect, as pairs of an option and its value.

    A `Literal` and a `bool` have choices, other options do not.
    """
    return [
        (name, value)
        for name, current in effective_settings(scorer).items()
        for kind in [annotation(scorer, name)]
        for value in ((True, False) if kind is bool else _choices(kind))
        if isinstance(value, (str, int)) and value != current
    ]


@cache
def annotation(scorer: Any, option: str) -> Any:
    """Return the annotation of an option; Any if it has none or one that cannot be evaluated."""
    function = inner_function(scorer)
    if not isfunction(function) or option not in function.__annotations__:
        return Any
    hint = function.__annotations__[option]
    if not isinstance(hint, str):
        return hint
    # Alone, because another annotation may need an import that only type checkers make.
    holder = SimpleNamespace(__annotations__={option: hint})
    hints = call_catching(get_type_hints, holder, function.__globals__, include_extras=True)
    return Any if isinstance(hints, Exception) else hints[option]


def describe_option(scorer: Any, option: str) -> str:
    """Return in words which values an option of a scorer accepts."""
    return _describe(annotation(scorer, option))


def _parts(kind: Any) -> tuple[Any, ...]:
    """Return the annotations of which one has to fit."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _choices(kind: Any) -> list[Any]:
    literals = (part for part in _parts(kind) if get_origin(part) is Literal)
    return [choice for part in literals for choice in get_args(part)]


def _limits(kind: Any) -> tuple[Any, Range | None]:
    """Return an annotation without its `Range`, and the range."""
    if get_origin(kind) is not Annotated:
        return kind, None
    inner, *marks = get_args(kind)
    return inner, next((mark for mark in marks if isinstance(mark, Range)), None)


def _fits(kind: Any, value: Any) -> bool:
    kind, limits = _limits(kind)
    if limits and isinstance(value, _NUMBERS[float]):
        return limits.least <= value <= limits.most and abs(value) < inf and _fits(kind, value)
    if len(parts := _parts(kind)) > 1:
        return any(_fits(part, value) for part in parts)
    if choices := _choices(kind):
        return any(isinstance(value, type(c)) and bool(value == c) for c in choices)
    if kind in _NUMBERS:
        return isinstance(value, _NUMBERS[kind]) and not isinstance(value, bool)
    return kind not in _DESCRIPTIONS or isinstance(value, kind)


def _describe(kind: Any) -> str:
    kind, limits = _limits(kind)
    if len(parts := _parts(kind)) > 1:
        return " or ".join(map(_describe, parts))
    text = ", ".join(map(str, _choices(kind))) or _DESCRIPTIONS.get(kind, "any value")
    least, most = limits or Range()
    if least == -inf:
        return text
    return f"{text} from {least:g} to {most:g}" if most < inf else f"{text} of at least {least:g}"


_NUMBERS: Mapping[Any, Any] = {int: Integral, float: Real}
_DESCRIPTIONS: Mapping[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text, in double quotes if it looks like a number",
    NoneType: "null",
}
