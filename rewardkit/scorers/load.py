"""Load a scorer by name, or from a user's file, and check the options meant for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.util import find_spec
from typing import Any

from rewardkit import registry
from rewardkit.errors import UnknownNameError, UsageError
from rewardkit.scorers.base import Scorer
from rewardkit.scorers.call import as_scorer
from rewardkit.scorers.options import (
    annotation,
    check_values,
    option_names,
    takes,
    unwrapped,
    wrong_value_of,
)


def load_scorer(name: str, /, **options: Any) -> Scorer:
    """The scorer of that name with `options` bound.

    Args:
        name: a registered scorer, or `my_reward.py:function`. The function may be a scorer, or
            have verl's signature (`data_source, solution_str, ground_truth, extra_info`).
        options: of the scorer, e.g. `method="robust"`.

    Returns:
        `scorer(response, ground_truth, extra_info) -> Score`. The verl signature's `data_source`
        is taken from `extra_info["data_source"]`.

    Raises:
        UnknownNameError: no such scorer, or it has no such option.
        UsageError: an option does not take its value, the file does not import, or it lacks the
            function.
    """
    scorer = as_scorer(registry.load("scorers", name))
    check_options(name, scorer, options)
    return partial(scorer, **options) if options else scorer


def check_options(name: str, scorer: Scorer, options: Mapping[str, Any]) -> None:
    """Refuse options that a scorer of that name does not have, and values that they do not take.

    Raises:
        UnknownNameError: an option is unknown; the message suggests the nearest.
        UsageError: a value does not fit; the message says what does.
    """
    if name == "auto":
        _check_options_of_auto(options)
        return
    names = option_names(scorer)
    if names is not None:
        _refuse_unknown(name, names, options)
    check_values(scorer, options, f"scorer {name!r}")


def passed_on(scorer: Scorer, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `auto` without those that are meant for other scorers than this one.

    A file may have rows of several scorers: `mode="robust"` is for `math_dapo` and not for `mcq`.
    What no scorer takes stays, so that it is found.
    """
    return {
        option: value
        for option, value in options.items()
        if takes(scorer, option, value)
        or not any(takes(other, option, value) for other in _built_in())
    }


def _check_options_of_auto(options: Mapping[str, Any]) -> None:
    """`auto` may pass on whatever a built-in scorer takes."""
    known = frozenset(option for each in _built_in() for option in option_names(each) or ())
    _refuse_unknown("auto", known, options)
    for option, value in options.items():
        having = [each for each in _built_in() if option in (option_names(each) or ())]
        if not any(takes(scorer, option, value) for scorer in having):
            kinds = [annotation(scorer, option) for scorer in having]
            raise wrong_value_of(kinds, option, value, "scorer 'auto'")


@cache
def _built_in() -> tuple[Scorer, ...]:
    """The built-in scorers with options: those that `auto` may pass options on to."""
    return tuple(registry.load("scorers", name) for name in registry.SCORERS if name != "auto")


def _refuse_unknown(name: str, known: frozenset[str], options: Mapping[str, Any]) -> None:
    names = sorted(known)
    for option in options.keys() - known:
        raise UnknownNameError(
            f"scorer {name!r} has no option {option!r}.{registry.did_you_mean(option, names)} "
            f"Its options: {', '.join(names) or 'none'}."
        )


def location(name: str, *, pkg: bool = False) -> str:
    """What verl is given for a registered scorer: its file's path, or `pkg://module`."""
    module = registry.target("scorers", name).partition(":")[0]
    if pkg:
        return f"pkg://{module}"
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise UsageError(f"scorer {name!r}: its module {module} is not installed.")
    return spec.origin


def summary(name: str) -> str:
    """The first line of a registered scorer's module, or why it does not load."""
    try:
        module = getattr(registry.load("scorers", name), "__globals__", {})
    except UsageError as error:
        return f"broken: {error}"
    return str(module.get("__doc__") or "").partition("\n")[0]


def respond_of(scorer: Scorer) -> Callable[[str], str] | None:
    """The `respond` beside a scorer: the shortest well-formed response with an answer, or None."""
    namespace: Mapping[str, Any] = getattr(unwrapped(scorer), "__globals__", {})
    respond: Callable[[str], str] | None = namespace.get("respond")
    return respond
