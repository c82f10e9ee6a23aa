"""The process of a scorer that is not ours; `rollouts.apart` starts it.

It reads batches of responses from a socket and writes their verdicts to it. Verdicts are collected
for `FLUSH_SECONDS` at the most, so that a fast scorer costs few messages and a slow one loses none.

Two processes share that: the scorer's, and its parent, the guard. The guard waits for the end of the
scorer, or of whoever asks, however that ends. Then it kills the whole process group: the scorer, and
what the scorer started.
"""

from __future__ import annotations

import json
import mmap
import os
import socket
import struct
import sys
from collections.abc import Mapping
from multiprocessing.connection import Connection
from select import select
from signal import SIGKILL
from time import monotonic, perf_counter_ns
from typing import Any, NoReturn

from rewardkit.errors import RewardkitError, call_catching
from rewardkit.scorers.base import Scorer
from rewardkit.scorers.call import call_scorer
from rewardkit.scorers.load import load_scorer

#: What is in shared memory: when the response at hand was begun (`time.monotonic`), and its number.
MARK = struct.Struct("=dq")

#: Behind that: how the scorer's process ended, as `waitpid` says it; -1 while it lives.
STATUS = struct.Struct("=i")

#: Bytes of shared memory.
SHARED_BYTES = MARK.size + STATUS.size

#: Seconds between two looks of the guard at whether the scorer lives.
GUARD_SECONDS = 0.05

#: Verdicts wait for others to be sent with for so long at the most.
FLUSH_SECONDS = 0.05

#: Characters of an exception's message that are sent.
MESSAGE_LENGTH = 500


def main() -> None:
    """Load the scorer, say whether it could be, and judge until nobody asks any more."""
    replies, life, mark = (int(number) for number in sys.argv[1:4])
    for descriptor in (replies, life, mark):
        os.set_inheritable(descriptor, False)  # what the scorer starts must not hold them open
    shared = mmap.mmap(mark, SHARED_BYTES)
    if scorer := os.fork():
        os.close(replies)
        _guard(scorer, life, shared)
    os.close(life)
    _judge_all(socket.socket(fileno=replies), shared)
    os._exit(0)  # threads of the scorer's may still run


def _guard(scorer: int, life: int, shared: mmap.mmap) -> NoReturn:
    """Wait until the scorer ends or the other end of `life` is closed, and end the whole group."""
    ended, status = 0, -1
    while not ended:
        alone = bool(select([life], [], [], GUARD_SECONDS)[0])
        if alone:
            os.kill(scorer, SIGKILL)
        ended, status = os.waitpid(scorer, 0 if alone else os.WNOHANG)
    STATUS.pack_into(shared, MARK.size, status)
    os.killpg(0, SIGKILL)
    os._exit(0)


def _judge_all(connection: socket.socket, mark: mmap.mmap) -> None:
    requests = Connection(os.dup(connection.fileno()))
    name, options = requests.recv()
    pid = os.getpid()
    loaded = call_catching(load_scorer, name, **options)
    if os.getpid() != pid:  # the scorer's file forked while it was imported
        os._exit(0)
    if isinstance(loaded, Exception):
        if not isinstance(loaded, RewardkitError):
            raise loaded
        _send(connection, str(loaded))
    else:
        _send(connection, "")
        _serve(connection, requests, loaded, mark)


def _serve(
    connection: socket.socket, requests: Connection, scorer: Scorer, mark: mmap.mmap
) -> None:
    pid = os.getpid()
    while True:
        try:
            number, samples = requests.recv()
        except (EOFError, ConnectionResetError):  # who asked is gone
            return
        replies: list[Any] = []
        sent, sent_at = 0, monotonic()
        for place, sample in enumerate(samples):
            started = monotonic()
            if started - sent_at > FLUSH_SECONDS and replies:
                _send(connection, [number, sent, replies])
                sent, sent_at, replies = place, started, []
            MARK.pack_into(mark, 0, started, place)
            replies.append(_verdict(scorer, sample))
            if os.getpid() != pid:  # the scorer forked, and this is the copy
                os._exit(0)
        _send(connection, [number, sent, replies])


def _verdict(scorer: Scorer, sample: tuple[str, str, Mapping[str, Any]]) -> list[Any]:
    """Score, correct, pred and status, or the exception's name and message; then nanoseconds."""
    start = perf_counter_ns()
    result = call_scorer(scorer, *sample)
    taken = perf_counter_ns() - start
    if isinstance(result, Exception):
        message = call_catching(str, result)
        text = message[:MESSAGE_LENGTH] if isinstance(message, str) else ""
        return [type(result).__name__, text, taken]
    return [*result, taken]


def _send(connection: socket.socket, value: Any) -> None:
    connection.sendall(json.dumps(value).encode() + b"\n")
