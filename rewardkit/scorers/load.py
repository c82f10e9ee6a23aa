"""Load a scorer by name, from a user's file or for a row, and check its options.

Its functions are cached, so that they are in no scorer's file: verl's reward manager `remote` pickles that,
and a cached function pickles only where its module can be imported.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar

from rewardkit import registry
from rewardkit.errors import SourceError, UnknownNameError, UsageError
from rewardkit.redact import process_redactor
from rewardkit.scorers.base import Scorer, as_text, spec_of
from rewardkit.scorers.options import (
    accepts_option,
    as_scorer,
    effective_settings,
    has_option,
    invalid_value_error,
    option_names,
)

T = TypeVar("T")
R = TypeVar("R")


def load_scorer(name: str, /, **options: Any) -> Scorer:
    """Return a scorer with its options bound.

    Args:
        name: the name of a registered scorer, or `my_reward.py:function`. The function may be a
            scorer or have verl's signature (`data_source, solution_str, ground_truth, extra_info`).
        options: options of the scorer, such as `method="robust"`.

    Returns:
        `scorer(response, ground_truth, extra_info) -> Score`. The `data_source` of verl's signature
        is taken from `extra_info["data_source"]`.

    Raises:
        UnknownNameError: the scorer does not exist or has no such option.
        UsageError: an option has an invalid value, the file cannot be imported, it lacks the
            function, or the function has other parameters.
    """
    scorer = as_scorer(registry.load("scorers", name))
    check_options(name, scorer, options)
    bound = partial(scorer, **options) if options else scorer
    try:
        signature(bound).bind("", "", {})
    except TypeError as error:
        raise UsageError(
            f"{name} has the parameters {signature(scorer)}: {error}. verl calls a reward with the "
            "keywords data_source, solution_str, ground_truth and extra_info: name them."
        ) from error
    return bound


def check_options(name: str, scorer: Scorer, options: Mapping[str, Any]) -> None:
    """Require that a scorer, or one that `auto` may choose, has the options and accepts their values.

    Raises:
        UnknownNameError: an option is unknown; the message suggests similar ones.
        UsageError: a value is invalid, and the message names the valid ones; or a package is missing.
    """
    if options:
        process_redactor().learn(options)  # an exception of the scorer may say them
    scorers = _configurable_scorers() if name == "auto" else (scorer,)
    for option, value in options.items():
        owners = [each for each in scorers if has_option(each, option)]
        if not owners:
            names = sorted(frozenset().union(*(option_names(each) or () for each in scorers)))
            raise UnknownNameError(
                f"scorer {name!r} has no option {option!r}.{registry.did_you_mean(option, names)} "
                f"Its options: {', '.join(names) or 'none'}."
            )
        if not any(accepts_option(each, option, value) for each in owners):
            raise invalid_value_error(owners[0], option, value, owners[1:], f"scorer {name!r}")
    if check := spec_of(scorer).check_options:
        check(options)


def own_options(scorer: Scorer, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of `auto` that are meant for one of the scorers that it may choose.

    A file may have rows for several scorers: `mode="robust"` is meant for `math_dapo`, not for
    `mcq`. Options that no scorer accepts stay, so that the scorer reports them.
    """
    return {
        option: value
        for option, value in options.items()
        if accepts_option(scorer, option, value)
        or not any(accepts_option(other, option, value) for other in _configurable_scorers())
    }


@cache
def _configurable_scorers() -> tuple[Scorer, ...]:
    return tuple(registry.load("scorers", name) for name in registry.SCORERS if name != "auto")


def scorer_for(data_source: Any, extra_info: Mapping[str, Any]) -> Scorer:
    """Return the scorer of a row.

    Raises:
        UnknownNameError: neither `extra_info.scorer` nor `data_source` is known; the message lists
            the known names and says how to add one.
    """
    if name := as_text(extra_info.get("scorer")):
        return _row_scorer("scorers", name)
    return _row_scorer("data_sources", as_text(data_source))


@cache
def _row_scorer(group: str, name: str) -> Scorer:
    names = registry.known(group)
    if group == "data_sources" and name not in names and name.startswith("aime"):
        name = "aime*"
    fault = ""
    if group == "scorers" and (name == "auto" or registry.is_path(name)):
        fault = f"extra_info.scorer is {name!r}: a row can only name a registered scorer."
    elif not name:
        fault = (
            "the row has no data_source, which selects the scorer. Name a scorer with --scorer or in "
            "extra_info.scorer."
        )
    elif group == "data_sources" and name not in names:
        fault = (
            f"no scorer is known for data_source {name!r}.{registry.did_you_mean(name, names)} Name a "
            "scorer with --scorer or in extra_info.scorer, or register the data_source as an entry "
            f"point of the group 'rewardkit.data_sources'. Known: {', '.join(sorted(names))}."
        )
    if fault:
        raise UnknownNameError(fault)
    return as_scorer(registry.load(group, name))


def location(name: str, *, pkg: bool = False) -> str:
    """Return the location of a scorer for verl: the absolute path of its file, or `pkg://module`.

    Raises:
        UsageError: the scorer is not known, or a file has no package.
        SourceError: its module is not installed.
    """
    if registry.is_path(name):
        if pkg:
            raise UsageError(f"{name} is a file; leave --pkg out.")
        return str(Path(name.partition(":")[0]).expanduser().absolute())
    module = registry.target("scorers", name).partition(":")[0]
    if pkg:
        return f"pkg://{module}"
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise SourceError(f"scorer {name!r}: its module {module} is not installed.")
    return spec.origin


def call_each(scorer: Any, call: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Yield the result of `call(item)` for each item: in threads if the scorer waits for a server."""
    if not spec_of(scorer).asks_server:
        yield from map(call, items)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(int(effective_settings(scorer).get("concurrency", 1))) as threads:
        yield from threads.map(call, items)
