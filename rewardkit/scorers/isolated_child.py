"""The process of an `IsolatedScorer`: it loads the scorer and scores batches of responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewardkit.errors import call_catching
from rewardkit.isolate.batch_child import load_and_report, serve_batches
from rewardkit.isolate.child import Channel
from rewardkit.scorers.base import Scorer
from rewardkit.scorers.call import call_scorer, error_text
from rewardkit.scorers.load import load_scorer, summary_of
from rewardkit.scorers.options import other_settings
from rewardkit.scorers.right_score import own_form

#: Characters of an exception's message that are sent.
MAX_MESSAGE_LENGTH = 500


def serve(channel: Channel) -> None:
    """Load the scorer, report its error or what it is, and score for as long as there is a caller."""
    name, options, seconds = channel.receive()

    def greet(scorer: Scorer) -> list[Any]:
        settings = call_catching(other_settings, scorer)  # compares values of the user's types
        settings = settings if isinstance(settings, list) else []
        return [summary_of(scorer), settings, own_form(scorer)]

    scorer = load_and_report(channel, seconds, lambda: load_scorer(name, **options), greet)
    if scorer is None:
        return

    def reply(request: tuple[str, str, Mapping[str, Any]]) -> list[Any]:
        """Return the fields of the score, or the exception's name and message."""
        result = call_scorer(scorer, *request)
        if isinstance(result, Exception):
            return [type(result).__name__, error_text(result)[:MAX_MESSAGE_LENGTH]]
        return [*result]

    serve_batches(channel, reply)
