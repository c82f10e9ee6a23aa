"""What runs in the process of an `IsolatedScorer`: it loads the scorer and scores responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewardkit.errors import call_catching
from rewardkit.isolate.serve import Loaded
from rewardkit.scorers.base import spec_of
from rewardkit.scorers.call import call_scorer
from rewardkit.scorers.load import load_scorer
from rewardkit.scorers.options import other_settings
from rewardkit.scorers.right_score import own_form


def load_isolated(name: str, options: Mapping[str, Any]) -> Loaded:
    """Load a scorer; its calls return the fields of a `Score`."""
    scorer = load_scorer(name, **options)
    settings = call_catching(other_settings, scorer)  # compares values of the user's types
    settings = settings if isinstance(settings, list) else []

    def call(request: tuple[str, str, Mapping[str, Any]]) -> list[Any]:
        result = call_scorer(scorer, *request)
        if isinstance(result, Exception):
            raise result
        return [*result]

    return Loaded(call, [spec_of(scorer).summary, settings, own_form(scorer)])
