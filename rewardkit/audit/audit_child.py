"""The process in which a scorer is audited: it may hang, exit, print or crash.

It loads the scorer and calls it. Calls run in a thread other than the main one, as in verl: a scorer
that needs signals fails in both.
"""

from __future__ import annotations

import asyncio
import copy
import io
import logging
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from inspect import iscoroutine, iscoroutinefunction, signature, unwrap
from typing import Any, TypeAlias

from rewardkit import registry
from rewardkit.audit.model import ANSWER_MARK, REQUESTS_AT_ONCE
from rewardkit.errors import RewardkitError, ScorerExitedError, call_catching
from rewardkit.isolate.child import Channel
from rewardkit.scorers.base import Status, as_text, to_verl
from rewardkit.scorers.load import load_scorer, respond_of
from rewardkit.scorers.options import VERL_PARAMETERS, asks_server
from rewardkit.scorers.reward_result import RewardResult

#: Number of threads that make the same calls at once, and number of rounds.
THREADS, ROUNDS = 8, 3

Call: TypeAlias = dict[str, Any]
Entry: TypeAlias = Callable[[Call], Any]


class _Text(str):
    """Stands in for NumPy's text where NumPy is not installed."""

    __slots__ = ()


class _WriteCounter(io.TextIOBase):
    """Stands in for stdout and counts the characters written."""

    def __init__(self) -> None:
        self.characters = 0

    def write(self, text: str) -> int:
        self.characters += len(text)
        return len(text)


class _LogMessages(logging.Handler):
    """Keeps the last message of our log, which says why a result has `error` set."""

    last = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.last = record.getMessage()[:300]


_log_messages = _LogMessages()


def serve(channel: Channel) -> None:
    """Load the scorer, describe it, and make calls for as long as there is a caller."""
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 - a reward beside which verl is started
    sys.stdout = stdout = _WriteCounter()
    logging.getLogger("rewardkit").addHandler(_log_messages)
    spec, options, seconds = channel.receive()
    try:
        with channel.load_deadline(seconds):
            entry, description = _load(spec, options)
    except RewardkitError as error:
        channel.send({"error": str(error), "error_type": type(error).__name__})
        return
    channel.send(description)
    with ThreadPoolExecutor(1) as pool:
        while True:
            request = channel.receive()
            with channel.watching(request["seconds"]):
                reply = pool.submit(_answer, entry, request, stdout).result()
            channel.send(reply)


def _load(spec: str, options: Mapping[str, Any]) -> tuple[Entry, dict[str, Any]]:
    """Return the function to call, and the scorer's form and signature error."""
    scorer = load_scorer(spec, **options)
    function = registry.load("scorers", spec)
    respond = respond_of(scorer)
    description = {
        "form": respond(ANSWER_MARK) if respond else None,
        "signature_error": _signature_error(function, options),
        "asks_server": asks_server(scorer),
        "is_async": iscoroutinefunction(function),
    }
    if "solution_str" in signature(function).parameters:
        return partial(_call_verl, partial(function, **options)), description
    return partial(_call_scorer, scorer), description


def _signature_error(function: Callable[..., Any], options: Mapping[str, Any]) -> str:
    """Return why verl cannot call a function with its keywords and the options; "" if it can."""
    own = signature(function)
    try:
        own.bind(**dict.fromkeys((*sorted(VERL_PARAMETERS), *options)))
    except TypeError as error:
        code = getattr(unwrap(function), "__code__", None)
        place = f"{code.co_filename}:{code.co_firstlineno}: " if code else ""
        return f"{place}{getattr(function, '__name__', '')}{own}: {error}"
    return ""


def _call_verl(function: Callable[..., Any], call: Call) -> Any:
    result = function(
        data_source=call["data_source"],
        solution_str=_text(call, "response"),
        ground_truth=_text(call, "gold"),
        extra_info=call["extra_info"],
    )
    return asyncio.run(result) if iscoroutine(result) else result


def _call_scorer(scorer: Callable[..., Any], call: Call) -> Any:
    info = {"data_source": call["data_source"], **call["extra_info"]}
    before = copy.deepcopy(info)
    result = to_verl(scorer(as_text(_text(call, "response")), as_text(_text(call, "gold")), info))
    if info != before:
        call["extra_info"] = info  # for `_outcome_fields` to notice the change
    return result


def _text(call: Call, name: str) -> Any:
    """Return a text of the call, in NumPy's type if the call asks for it."""
    text = call[name]
    if text is None or not call.get("as_numpy"):
        return text
    try:
        from numpy import str_
    except ImportError:
        return _Text(text)
    return str_(text)


def _answer(entry: Entry, request: dict[str, Any], stdout: _WriteCounter) -> Any:
    if "requests" in request:
        return _call_at_once(entry, request["requests"], request["call_seconds"], stdout)
    if "calls" in request:
        return _call_in_threads(entry, request["calls"])
    return _outcome_fields(entry, request["call"], stdout)


def _outcome_fields(entry: Entry, call: Call, stdout: _WriteCounter) -> dict[str, Any]:
    """Call the scorer and return the fields of a `CallOutcome`."""
    own = copy.deepcopy(call)
    before, start = stdout.characters, time.perf_counter()
    fields: dict[str, Any]
    result = call_catching(entry, own)
    if isinstance(result, ScorerExitedError):
        fields = {"problem": "exit", "detail": "called sys.exit"}
    elif isinstance(result, Exception):
        message = f"{type(result).__name__}: {result}"[:300]
        fields = {"problem": "error", "detail": f"raised {message}"}
    else:
        fields = _result_fields(result)
    fields["seconds"] = time.perf_counter() - start
    fields["has_printed"] = stdout.characters > before
    fields["has_changed_info"] = own["extra_info"] != call["extra_info"]
    return fields


def _result_fields(result: Any) -> dict[str, Any]:
    """Return the score of a result as verl 0.9 reads it: a number, or a mapping with `score`."""
    keys = sorted(map(str, result)) if isinstance(result, Mapping) else []
    read = call_catching(RewardResult.of, result)
    if isinstance(read, Exception):
        return {"keys": keys, "problem": "not_a_number", "detail": str(read)}
    if not math.isfinite(read.score):
        detail = f"returned {read.score}"
        return {"keys": keys, "problem": "not_a_number", "detail": detail}
    numbers = sorted(name for name in keys if isinstance(read.fields.get(name), float))
    fields = {"keys": keys, "numeric_keys": numbers, "score": read.score}
    if read.as_score().status in (Status.FAILED, Status.TIMEOUT):
        fields |= {"has_verdict": False, "detail": _log_messages.last}
    return fields


def _call_at_once(
    entry: Entry, calls: list[Call], seconds: float, stdout: _WriteCounter
) -> list[dict[str, Any]]:
    """Make calls in several threads; return their outcomes, and timeouts of those that hang."""
    pool = ThreadPoolExecutor(REQUESTS_AT_ONCE)
    runs = [pool.submit(_outcome_fields, entry, call, stdout) for call in calls]
    done, _ = wait(runs, seconds)
    pool.shutdown(wait=False, cancel_futures=True)
    late = {"problem": "timeout", "detail": f"no verdict within {seconds:g} s"}
    return [run.result() if run in done else late for run in runs]


def _call_in_threads(entry: Entry, calls: list[Call]) -> list[Any]:
    """Make the same calls in all threads at once; return a list of scores for each thread."""
    ready = threading.Barrier(THREADS)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # makes race conditions likely
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            runs = [pool.submit(_run_calls, entry, calls, ready, i) for i in range(THREADS)]
            return [run.result() for run in runs]
    finally:
        sys.setswitchinterval(interval)


def _run_calls(entry: Entry, calls: list[Call], ready: threading.Barrier, thread: int) -> list[Any]:
    """Make all calls and return their scores; every thread begins with another call."""
    scores: list[Any] = [None] * len(calls)
    ready.wait()
    for _ in range(ROUNDS):
        for i in range(len(calls)):
            at = (i + thread * 5) % len(calls)
            score = _outcome_fields(entry, calls[at], _WriteCounter()).get("score")
            scores[at] = score if scores[at] in (None, score) else "differs"
    return scores
