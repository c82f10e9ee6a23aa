"""The process in which a scorer is audited: it may hang, exit, print or die, and only it.

`python -m rewardkit.audit.audit_child SPEC OPTIONS` loads the scorer and answers requests, a JSON line
each. Calls are made in a thread that is not the main one, as verl makes them: a scorer that needs
signals fails here as it would there.
"""

from __future__ import annotations

import asyncio
import copy
import faulthandler
import io
import json
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from inspect import iscoroutine, signature
from typing import Any, TypeAlias

from rewardkit import registry
from rewardkit.audit.model import MARK
from rewardkit.errors import RewardkitError, ScorerExitedError, call_catching
from rewardkit.scorers.base import as_text, to_verl
from rewardkit.scorers.load import load_scorer, respond_of
from rewardkit.scorers.options import VERL_PARAMETERS

#: Threads that make the same calls at once, and how often.
THREADS, ROUNDS = 8, 3

Call: TypeAlias = dict[str, Any]
Entry: TypeAlias = Callable[[Call], Any]


class _Text(str):
    """Stands in for NumPy's text where there is no NumPy."""

    __slots__ = ()


class _Counter(io.TextIOBase):
    """Stands in for stdout and counts what is written."""

    def __init__(self) -> None:
        self.written = 0

    def write(self, text: str) -> int:
        self.written += len(text)
        return len(text)


def main() -> None:
    """Load the scorer, say what it is, and answer requests until there are no more."""
    replies = _take_stdout()
    sys.stdout = counter = _Counter()
    spec, options = sys.argv[1], json.loads(sys.argv[2])
    try:
        entry, facts = _load(spec, options)
    except RewardkitError as error:
        _send(replies, {"error": str(error), "kind": type(error).__name__})
        return
    _send(replies, facts)
    with ThreadPoolExecutor(1) as pool:
        for line in sys.stdin.buffer:
            request = json.loads(line)
            # Should the auditor die, a hanging call must not live on: no signal is needed for it.
            faulthandler.dump_traceback_later(request["seconds"] + 30, exit=True, file=replies)
            _send(replies, pool.submit(_answer, entry, request, counter).result())
            faulthandler.cancel_dump_traceback_later()


def _take_stdout() -> io.TextIOWrapper:
    """The pipe of the replies, moved off descriptor 1, so that no print is taken for one."""
    replies = os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    if os.environ.get("REWARDKIT_DEBUG") != "1":
        os.dup2(nothing, 2)
    return replies


def _send(replies: io.TextIOWrapper, value: Any) -> None:
    replies.write(json.dumps(value) + "\n")
    replies.flush()


def _load(spec: str, options: Mapping[str, Any]) -> tuple[Entry, dict[str, Any]]:
    """The function to call, and what the scorer says of the form it asks for."""
    scorer = load_scorer(spec, **options)
    function = registry.load("scorers", spec)
    respond = respond_of(scorer)
    facts = {"form": respond(MARK) if respond else None, "misfit": _misfit(function, options)}
    if "solution_str" in signature(function).parameters:
        return partial(_call_verl, partial(function, **options)), facts
    return partial(_call_scorer, scorer), facts


def _misfit(function: Callable[..., Any], options: Mapping[str, Any]) -> str:
    """Why verl cannot call a function with its keywords and the options; "" if it can."""
    try:
        signature(function).bind(**dict.fromkeys((*sorted(VERL_PARAMETERS), *options)))
    except TypeError as error:
        return str(error)
    return ""


def _call_verl(function: Callable[..., Any], call: Call) -> Any:
    result = function(
        data_source=call["data_source"],
        solution_str=_dressed(call["response"], call.get("dress")),
        ground_truth=_dressed(call["gold"], call.get("dress")),
        extra_info=call["extra_info"],
    )
    return asyncio.run(result) if iscoroutine(result) else result


def _call_scorer(scorer: Callable[..., Any], call: Call) -> Any:
    response, gold = (_dressed(call[name], call.get("dress")) for name in ("response", "gold"))
    info = {"data_source": call["data_source"], **call["extra_info"]}
    before = copy.deepcopy(info)
    result = to_verl(scorer(as_text(response), as_text(gold), info))
    if info != before:
        call["extra_info"] = info  # `_outcome` sees that it is not what it was
    return result


def _dressed(text: str | None, dress: str | None) -> Any:
    """The text as NumPy hands it over, where that is asked for: of a type of its own."""
    if dress != "numpy" or text is None:
        return text
    try:
        from numpy import str_
    except ImportError:
        return _Text(text)
    return str_(text)


def _answer(entry: Entry, request: dict[str, Any], counter: _Counter) -> Any:
    if request["op"] == "threads":
        return _in_threads(entry, request["calls"])
    return _outcome(entry, request["call"], counter)


def _outcome(entry: Entry, call: Call, counter: _Counter) -> dict[str, Any]:
    """What a call came to: `score`, `keys`, and whatever is wrong with it."""
    own = copy.deepcopy(call)
    written, start = counter.written, time.perf_counter()
    outcome: dict[str, Any]
    result = call_catching(entry, own)
    if isinstance(result, ScorerExitedError):
        outcome = {"exited": True}
    elif isinstance(result, Exception):
        outcome = {"raised": f"{type(result).__name__}: {result}"[:300]}
    else:
        outcome = _described(result)
    outcome["seconds"] = time.perf_counter() - start
    outcome["printed"] = counter.written > written
    outcome["mutated"] = own["extra_info"] != call["extra_info"]
    return outcome


def _described(result: Any) -> dict[str, Any]:
    """A result as verl 0.9 reads it: a number, or a mapping with `score`."""
    keys = sorted(map(str, result)) if isinstance(result, Mapping) else []
    value: Any = result.get("score") if isinstance(result, Mapping) else result
    if isinstance(result, Mapping) and "score" not in result:
        return {"keys": keys, "bad": "a dictionary without 'score'"}
    if not _is_number(value):
        return {"keys": keys, "bad": f"{type(value).__name__}, not a number"}
    score = float(value)
    return {"keys": keys, "score": score if math.isfinite(score) else None, "repr": str(score)}


def _is_number(value: object) -> bool:
    """Whether verl can take it for a reward: float, int, bool or a NumPy scalar."""
    return isinstance(value, (int, float)) or (
        type(value).__module__ == "numpy" and getattr(value, "shape", None) == ()
    )


def _in_threads(entry: Entry, calls: list[Call]) -> list[Any]:
    """The scores of the same calls made by all threads at once: a list for each thread."""
    ready = threading.Barrier(THREADS)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # what may go wrong between two threads goes wrong now
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            runs = [pool.submit(_round, entry, calls, ready, i) for i in range(THREADS)]
            return [run.result() for run in runs]
    finally:
        sys.setswitchinterval(interval)


def _round(entry: Entry, calls: list[Call], ready: threading.Barrier, turn: int) -> list[Any]:
    """Each call's scores, begun at another call in each thread."""
    scores: list[Any] = [None] * len(calls)
    ready.wait()
    for _ in range(ROUNDS):
        for i in range(len(calls)):
            at = (i + turn * 5) % len(calls)
            score = _outcome(entry, calls[at], _Counter()).get("score")
            scores[at] = score if scores[at] in (None, score) else "differs"
    return scores


if __name__ == "__main__":
    main()
