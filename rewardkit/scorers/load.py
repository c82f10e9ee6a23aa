"""Load a scorer by name, or from a user's file, and check the options meant for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from inspect import Parameter, signature
from typing import Any

from rewardkit import registry
from rewardkit.errors import UnknownNameError, UsageError
from rewardkit.scorers.base import Score, Scorer, Status, option_names


def load_scorer(name: str, **options: Any) -> Scorer:
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
        UsageError: the file does not import, or lacks the function.
    """
    scorer = registry.load("scorers", name)
    parameters = signature(scorer).parameters
    if "solution_str" in parameters:
        return partial(_call_verl_function, scorer, options)
    if not any(p.kind is Parameter.VAR_KEYWORD for p in parameters.values()):
        _check_options(name, scorer, options)
    return partial(scorer, **options) if options else scorer


def _check_options(name: str, scorer: Scorer, options: Mapping[str, Any]) -> None:
    names = sorted(option_names(scorer))
    for option in options.keys() - set(names):
        raise UnknownNameError(
            f"scorer {name!r} has no option {option!r}.{registry.did_you_mean(option, names)} "
            f"Its options: {', '.join(names) or 'none'}."
        )


def _call_verl_function(
    function: Callable[..., Any],
    options: Mapping[str, Any],
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
) -> Score:
    """Call a reward with verl's signature and read its result: a number, or a dictionary."""
    info = dict(extra_info or {})
    result = function(
        data_source=info.pop("data_source", ""),
        solution_str=response,
        ground_truth=ground_truth,
        extra_info=info,
        **options,
    )
    fields = result if isinstance(result, Mapping) else {"score": result}
    value = float(fields["score"])
    correct = bool(fields.get("acc", value > 0))
    status = Status.CORRECT if correct else Status.WRONG
    return Score(value, correct, str(fields.get("pred") or ""), status)


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
    """The first line of a registered scorer's module, as its summary."""
    module = registry.load("scorers", name).__globals__
    return str(module.get("__doc__") or "").partition("\n")[0]


def respond_of(scorer: Scorer) -> Callable[[str], str] | None:
    """The `respond` beside a scorer: the shortest well-formed response with an answer, or None."""
    function: Any = scorer
    while isinstance(function, partial):
        function = function.args[0] if function.func is _call_verl_function else function.func
    respond: Callable[[str], str] | None = getattr(function, "__globals__", {}).get("respond")
    return respond
