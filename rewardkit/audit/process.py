"""The auditor's end of the process a scorer is audited in: calls with a deadline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from signal import SIGKILL
from threading import Thread
from typing import IO, Any, cast

from rewardkit import errors
from rewardkit.audit.model import MARK, Case, Form

#: For the process to start and to load the scorer, which may import torch.
START_SECONDS = 120.0


@dataclass(frozen=True)
class Outcome:
    """What a call came to.

    Attributes:
        score: the reward; None if there is none, or it is no finite number.
        keys: of the result, if it is a dictionary.
        problem: `raised`, `exited`, `hung`, `died`, `bad` (no number) or `nan`; "" if none.
        detail: the problem in a line.
        seconds: the call took.
        printed: whether it wrote to stdout.
        mutated: whether it changed `extra_info`.
    """

    score: float | None = None
    keys: tuple[str, ...] = ()
    problem: str = ""
    detail: str = ""
    seconds: float = 0.0
    printed: bool = False
    mutated: bool = False

    @property
    def said(self) -> str:
        """What the call came to, in a line."""
        return self.detail if self.problem else f"score {self.score:g}"


class Process:
    """A scorer in a process of its own, which is ended and started again where it hangs.

    Attributes:
        form: the form of answers the scorer asks for, if it says so.
        misfit: why verl cannot call the function with its keywords; "" if it can.
    """

    def __init__(self, spec: str, options: Mapping[str, Any], seconds: float) -> None:
        self.arguments = [spec, json.dumps(dict(options))]
        self.seconds = seconds
        self.form: Form | None = None
        self.misfit = ""
        self.lines: SimpleQueue[bytes] = SimpleQueue()
        self.child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Process:  # noqa: PYI034 - Self needs Python 3.11; there is no subclass
        """Start it, so that a scorer that cannot be loaded is told at once."""
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def call(self, case: Case, response: str | None, gold: str | None, dress: str = "") -> Outcome:
        """Score a response. Nothing the scorer does raises here."""
        call = _call(case, response, gold) | {"dress": dress}
        reply = self._ask({"op": "call", "call": call}, self.seconds)
        return reply if isinstance(reply, Outcome) else _outcome(reply)

    def in_threads(self, calls: list[tuple[Case, str]]) -> list[list[Any]] | Outcome:
        """The scores of calls made by several threads at once, a list for each thread."""
        made = [_call(case, response, case.gold) for case, response in calls]
        scores: list[list[Any]] | Outcome = self._ask(
            {"op": "threads", "calls": made}, 12 * self.seconds
        )
        return scores

    def _ask(self, request: dict[str, Any], seconds: float) -> Any:
        if self.child is None:
            self._start()
        child = cast("subprocess.Popen[bytes]", self.child)
        line = json.dumps(request | {"seconds": seconds}, default=str).encode()
        with suppress(BrokenPipeError):  # it is gone: there will be no reply
            pipe = cast("IO[bytes]", child.stdin)
            pipe.write(line + b"\n")
            pipe.flush()
        try:
            reply = self.lines.get(timeout=seconds)
        except Empty:
            self._end()
            return Outcome(
                problem="hung", detail=f"no verdict within {seconds:g} s", seconds=seconds
            )
        if not reply:
            code = child.wait()
            self._end()
            return Outcome(problem="died", detail=f"the process ended with exit code {code}")
        return json.loads(reply)

    def _start(self) -> None:
        self.lines = SimpleQueue()
        self.child = subprocess.Popen(  # noqa: S603 - our own module; the spec is the user's
            [sys.executable, "-m", "rewardkit.audit.audit_child", *self.arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # so that what the scorer starts can be ended with it
        )
        Thread(target=_read, args=(self.child.stdout, self.lines), daemon=True).start()
        try:
            first = self.lines.get(timeout=START_SECONDS)
        except Empty:
            first = b""
        self.form = self._form(first)

    def _form(self, first: bytes) -> Form | None:
        """The form the scorer asks for, if it says so; raises if it did not start."""
        facts = json.loads(first) if first else {"error": self._no_start(), "kind": "UsageError"}
        if "error" in facts:
            self._end()
            raise getattr(errors, facts["kind"])(facts["error"])
        self.misfit = facts["misfit"]
        before, mark, after = str(facts["form"] or "").partition(MARK)
        return Form("its own", before, after) if mark else None

    def _no_start(self) -> str:
        return f"{self.arguments[0]}: does not load; REWARDKIT_DEBUG=1 shows what it says."

    def _end(self) -> None:
        if self.child is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self.child.pid, SIGKILL)
        cast("IO[bytes]", self.child.stdin).close()
        self.child.wait()
        self.child = None


def _read(pipe: IO[bytes], lines: SimpleQueue[bytes]) -> None:
    """Hand on every reply, and an empty one at the end."""
    with pipe:
        for line in pipe:
            lines.put(line)
    lines.put(b"")


def _call(case: Case, response: str | None, gold: str | None) -> dict[str, Any]:
    return {
        "response": response,
        "gold": gold,
        "data_source": case.data_source,
        "extra_info": dict(case.extra_info),
    }


def _outcome(reply: dict[str, Any]) -> Outcome:
    problem, detail = "", ""
    if "raised" in reply:
        problem, detail = "raised", f"raised {reply['raised']}"
    elif "exited" in reply:
        problem, detail = "exited", "called sys.exit"
    elif "bad" in reply:
        problem, detail = "bad", f"returned {reply['bad']}"
    elif reply["score"] is None:
        problem, detail = "nan", f"returned {reply['repr']}"
    return Outcome(
        score=reply.get("score"),
        keys=tuple(reply.get("keys", ())),
        problem=problem,
        detail=detail,
        seconds=reply["seconds"],
        printed=reply["printed"],
        mutated=reply["mutated"],
    )
