"""The process of an `IsolatedScorer`: it loads the scorer and scores batches of responses.

Scores wait for others for at most `FLUSH_SECONDS`, so that a fast scorer costs few messages and a
slow one that is killed loses none.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from time import monotonic, perf_counter_ns
from typing import Any

from rewardkit.errors import RewardkitError, call_catching
from rewardkit.isolate.child import Channel
from rewardkit.scorers.base import Scorer
from rewardkit.scorers.call import call_scorer, error_text
from rewardkit.scorers.load import load_scorer, summary_of

#: Seconds that a score may wait for others to be sent with it.
FLUSH_SECONDS = 0.05

#: Characters of an exception's message that are sent.
MAX_MESSAGE_LENGTH = 500


def serve(channel: Channel) -> None:
    """Load the scorer, report its error or its summary, and score for as long as there is a caller."""
    name, options, seconds = channel.receive()
    with channel.load_deadline(seconds):
        scorer = call_catching(load_scorer, name, **options)
    if isinstance(scorer, RewardkitError):
        channel.send([str(scorer), ""])
        return
    if isinstance(scorer, Exception):
        raise scorer
    channel.send(["", summary_of(scorer)])
    while True:
        _score_batch(channel, scorer, *channel.receive())


def _score_batch(channel: Channel, scorer: Scorer, batch: int, requests: list[Any]) -> None:
    """Send the scores of a batch in order, each message with the place of its first."""
    pid = os.getpid()
    replies: list[Any] = []
    first, sent_at = 0, monotonic()
    for place, request in enumerate(requests):
        if replies and monotonic() - sent_at > FLUSH_SECONDS:
            channel.send([batch, first, replies])
            first, sent_at, replies = place, monotonic(), []
        channel.set_mark(place)
        replies.append(_reply(scorer, request))
        _end_copy(pid)
    channel.send([batch, first, replies])


def _end_copy(pid: int) -> None:
    """End this process if it is a copy, which the scorer forked."""
    if os.getpid() != pid:
        os._exit(0)


def _reply(scorer: Scorer, request: tuple[str, str, Mapping[str, Any]]) -> list[Any]:
    """Return the fields of the score, or the exception's name and message; then nanoseconds."""
    start = perf_counter_ns()
    result = call_scorer(scorer, *request)
    nanoseconds = perf_counter_ns() - start
    if isinstance(result, Exception):
        return [type(result).__name__, error_text(result)[:MAX_MESSAGE_LENGTH], nanoseconds]
    return [*result, nanoseconds]
