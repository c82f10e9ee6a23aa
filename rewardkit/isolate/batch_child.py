"""The child's end of `batch_process`: loads a user's file, and calls it for each request of a batch.

Replies wait for others for at most `FLUSH_SECONDS`, so that a fast function costs few messages and
a slow one that is killed loses none.
"""

from __future__ import annotations

from collections.abc import Callable
from signal import ITIMER_PROF, setitimer
from time import monotonic, perf_counter_ns
from typing import Any, TypeVar

from rewardkit.errors import RewardkitError, call_catching
from rewardkit.isolate.child import Channel

T = TypeVar("T")

#: Seconds that a reply may wait for others to be sent with it.
FLUSH_SECONDS = 0.05


def load_and_report(
    channel: Channel, seconds: float, load: Callable[[], T], greet: Callable[[T], Any]
) -> T | None:
    """Load a user's file under a deadline, and send its greeting, or why it cannot be used.

    Returns:
        What was loaded; None if a RewardkitError says that it cannot be used.
    """
    with channel.load_deadline(seconds):
        loaded = call_catching(load)
    if isinstance(loaded, RewardkitError):
        channel.send([str(loaded), None])
        return None
    if isinstance(loaded, Exception):
        raise loaded
    channel.send(["", greet(loaded)])
    return loaded


def serve_batches(
    channel: Channel, call: Callable[[Any], list[Any]], cpu_seconds: float = 0.0
) -> None:
    """Answer batches for as long as there is a caller.

    Args:
        channel: the connection to the caller.
        call: returns a list of JSON values for a request; must not raise.
        cpu_seconds: CPU time per call, after which the kernel ends the process; 0.0 for no limit.
    """
    while True:
        _answer_batch(channel, call, cpu_seconds, *channel.receive())


def _answer_batch(
    channel: Channel,
    call: Callable[[Any], list[Any]],
    cpu_seconds: float,
    batch: int,
    requests: list[Any],
) -> None:
    """Send the replies of a batch in order, each message with the place of its first."""
    replies: list[Any] = []
    first, sent_at = 0, monotonic()
    for place, request in enumerate(requests):
        if replies and monotonic() - sent_at > FLUSH_SECONDS:
            channel.send([batch, first, replies])
            first, sent_at, replies = place, monotonic(), []
        channel.set_mark(place)
        if cpu_seconds:
            setitimer(ITIMER_PROF, cpu_seconds)
        start = perf_counter_ns()
        reply = call(request)
        replies.append([perf_counter_ns() - start, *reply])
    if cpu_seconds:
        setitimer(ITIMER_PROF, 0)
    channel.send([batch, first, replies])
