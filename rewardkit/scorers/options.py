"""The options of a scorer: their names, and the values that each of them takes.

An option is a keyword parameter of the scorer, and its annotation says which values it takes:
`Literal["a", "b"]`, `bool`, `int`, `float`, `str`, `None`, a union of these, or
`Annotated[float, Range(0, 1)]`. An option with no annotation, or with any other one, takes any
value. Everything that loads or calls a scorer validates options here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, partial
from inspect import Parameter, isfunction, signature
from math import inf
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from rewardkit.errors import UsageError, call_catching
from rewardkit.scorers.call import call_verl_function

#: The parameters of verl's signature, which are not options.
VERL_PARAMETERS = frozenset({"data_source", "solution_str", "ground_truth", "extra_info"})


class Range(NamedTuple):
    """The finite numbers from `least` to `most`, for `Annotated[float, Range(0, 1)]`."""

    least: float = -inf
    most: float = inf


@cache
def option_names(scorer: Any) -> frozenset[str] | None:
    """The names of a scorer's options; None if it takes options of any name.

    They are its keyword-only parameters, and of a function with verl's signature also those
    parameters beyond verl's that can be given by name.
    """
    function = unwrapped(scorer)
    is_verl_function = function is not scorer and "solution_str" in signature(function).parameters
    parameters = signature(function if is_verl_function else scorer).parameters.values()
    if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters):
        return None
    kinds = [Parameter.KEYWORD_ONLY, *[Parameter.POSITIONAL_OR_KEYWORD] * is_verl_function]
    names = frozenset(parameter.name for parameter in parameters if parameter.kind in kinds)
    return names - VERL_PARAMETERS


def unwrapped(scorer: Any) -> Any:
    """The function behind a scorer with options, or behind one with verl's signature."""
    function = scorer
    while isinstance(function, partial):
        function = function.args[0] if function.func is call_verl_function else function.func
    return function


def takes(scorer: Any, option: str, value: Any) -> bool:
    """Whether a scorer has an option of that name that takes that value."""
    names = option_names(scorer)
    return (names is None or option in names) and _fits(annotation(scorer, option), value)


def check_values(scorer: Any, options: Mapping[str, Any], owner: str = "") -> None:
    """Refuse values that an option of the scorer does not take.

    Args:
        scorer: the function, which may be wrapped.
        options: by name; a name that the scorer does not have is not looked at.
        owner: who has the options, as the message says it; "" for the scorer of its file.

    Raises:
        UsageError: a value does not fit the annotation; the message says what does.
    """
    for option, value in options.items():
        if not _fits(annotation(scorer, option), value):
            raise wrong_value(scorer, option, value, owner)


def wrong_value(scorer: Any, option: str, value: Any, owner: str = "") -> UsageError:
    """The error for a value that an option of the scorer does not take; see `check_values`."""
    owner = owner or f"scorer {_file_name(scorer)!r}"
    return wrong_value_of([annotation(scorer, option)], option, value, owner)


def wrong_value_of(kinds: Iterable[Any], option: str, value: Any, owner: str) -> UsageError:
    """The error for a value that fits none of the annotations that an option has."""
    from rewardkit.registry import did_you_mean

    choices = list(dict.fromkeys(choice for kind in kinds for choice in _choices(kind)))
    shown = repr(value)[:80]
    if choices:
        near = did_you_mean(str(value)[:80], list(map(str, choices)))
        known = ", ".join(map(str, choices))
        return UsageError(f"{owner} has no {option} {shown}.{near} Its {option}s: {known}.")
    wanted = " or ".join(dict.fromkeys(map(describe, kinds)))
    return UsageError(f"{owner}: {option}={shown} does not fit; give {wanted}.")


@cache
def annotation(scorer: Any, option: str) -> Any:
    """The annotation of an option; Any if it has none, or one that cannot be evaluated."""
    function = unwrapped(scorer)
    if not isfunction(function) or option not in function.__annotations__:
        return Any
    written = function.__annotations__[option]
    if not isinstance(written, str):  # ours: no scorer of ours evaluates text, not even its own
        return written
    # Each by itself: an import that only a type checker makes spoils no other annotation.
    alone = SimpleNamespace(__annotations__={option: written})
    hints = call_catching(get_type_hints, alone, function.__globals__, include_extras=True)
    return Any if isinstance(hints, Exception) else hints[option]


def _fits(kind: Any, value: Any) -> bool:
    origin = get_origin(kind)
    if origin is Annotated:
        base, *marks = get_args(kind)
        ranges = [mark for mark in marks if isinstance(mark, Range)]
        return _fits(base, value) and all(_is_in(value, each) for each in ranges)
    if origin is Literal:
        return any(isinstance(value, type(c)) and bool(value == c) for c in get_args(kind))
    if origin in (Union, UnionType):
        return any(_fits(each, value) for each in get_args(kind))
    if kind in _NUMBERS:
        return isinstance(value, _NUMBERS[kind]) and not isinstance(value, bool)
    return isinstance(value, kind) if kind in (bool, str, NoneType) else True


def _is_in(value: Any, allowed: Range) -> bool:
    return bool(allowed.least <= value <= allowed.most and abs(value) < inf)


def _choices(kind: Any) -> tuple[Any, ...]:
    """The values of the `Literal`s in an annotation."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        return parts
    inside = parts[:1] if origin is Annotated else parts if origin in (Union, UnionType) else ()
    return tuple(choice for part in inside for choice in _choices(part))


def describe(kind: Any) -> str:
    """The values that an annotation stands for, in words."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        return ", ".join(map(str, parts))
    if origin is Annotated:
        base, *marks = parts
        bounds = [mark for mark in marks if isinstance(mark, Range) and mark != Range()]
        limits = "".join(f" from {least:g} to {most:g}" for least, most in bounds)
        return f"{describe(base)}{limits}"
    if origin in (Union, UnionType):
        return " or ".join(map(describe, parts))
    return _DESCRIPTIONS.get(kind, "another value")


def _file_name(scorer: Any) -> str:
    code = getattr(unwrapped(scorer), "__code__", None)
    return Path(code.co_filename).stem if code else "?"


_NUMBERS: Mapping[Any, Any] = {int: Integral, float: Real}
_DESCRIPTIONS: Mapping[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text, in double quotes if it looks like a number",
    NoneType: "null",
}
