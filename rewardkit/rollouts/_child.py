"""The process of a scorer that is not ours; `rollouts.apart` starts it.

It is sent what to load, then responses, and sends verdicts, on the socket its first argument names.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Mapping
from multiprocessing.connection import Connection
from time import perf_counter_ns
from typing import Any

from rewardkit.errors import RewardkitError
from rewardkit.parallel import end_with
from rewardkit.scorers.base import Score, Scorer, Status, as_text, guarded
from rewardkit.scorers.load import load_scorer

#: Characters of an exception's message that are told.
TOLD = 500


def main() -> None:
    """Load the scorer, say whether it could be, and judge until there is nothing more."""
    replies = socket.socket(fileno=int(sys.argv[1]))
    requests = Connection(os.dup(replies.fileno()))
    parent, name, options = requests.recv()
    end_with(parent)
    try:
        scorer = load_scorer(name, **options)
    except RewardkitError as error:
        _send(replies, str(error))
    else:
        _send(replies, "")
        _serve(replies, requests, scorer)
    os._exit(0)  # threads of the scorer's may still run


def _serve(replies: socket.socket, requests: Connection, scorer: Scorer) -> None:
    while True:
        try:
            request = requests.recv()
        except (EOFError, ConnectionResetError):  # who asked is gone
            return
        start = perf_counter_ns()
        said = guarded(_judged, scorer, *request)
        taken = perf_counter_ns() - start
        if isinstance(said, Exception):
            reply = {"raised": [type(said).__name__, _message(said)], "taken": taken}
        else:
            reply = {"score": said, "taken": taken}
        _send(replies, reply)


def _judged(scorer: Scorer, response: str, gold: str, info: Mapping[str, Any]) -> list[Any]:
    result = scorer(response, gold, info)
    if not isinstance(result, Score):
        raise TypeError(f"it returned {type(result).__name__}, not a Score")
    status = Status(result.status)
    return [float(result.score), bool(result.correct), as_text(result.pred), status.value]


def _message(error: Exception) -> str:
    said = guarded(str, error)
    return said[:TOLD] if isinstance(said, str) else ""


def _send(replies: socket.socket, value: Any) -> None:
    replies.sendall(json.dumps(value).encode() + b"\n")
