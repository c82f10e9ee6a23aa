"""The scorer of a row, by `extra_info.scorer` or by its `data_source`.

It is a module of its own because verl's reward manager `remote` pickles the file of a scorer, and a
cached function pickles only where its module can be imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from rewardkit import registry
from rewardkit.errors import UnknownNameError
from rewardkit.scorers.base import Scorer, as_text
from rewardkit.scorers.call import as_scorer


def scorer_for(data_source: Any, extra_info: Mapping[str, Any]) -> Scorer:
    """Return the scorer of a row.

    Raises:
        UnknownNameError: neither `extra_info.scorer` nor `data_source` is known; the message lists
            the known names and says how to add one.
    """
    name = as_text(extra_info.get("scorer"))
    return _scorer_of_name(name) if name else _scorer_of_data_source(as_text(data_source))


@cache
def _scorer_of_name(name: str) -> Scorer:
    if name == "auto" or registry.is_path(name):
        raise UnknownNameError(
            f"extra_info.scorer is {name!r}: a row can only name a registered scorer."
        )
    return as_scorer(registry.load("scorers", name))


@cache
def _scorer_of_data_source(data_source: str) -> Scorer:
    if not data_source:
        raise UnknownNameError(
            "the row has no data_source, which selects the scorer. Name a scorer with --scorer or in "
            "extra_info.scorer."
        )
    names = registry.known("data_sources")
    if data_source not in names:
        raise UnknownNameError(
            f"no scorer is known for data_source {data_source!r}."
            f"{registry.did_you_mean(data_source, names)} Name a scorer with --scorer or in "
            "extra_info.scorer, or register the data_source as an entry point of the group "
            f"'rewardkit.data_sources'. Known: {', '.join(sorted(names))}."
        )
    return as_scorer(registry.load("data_sources", data_source))
