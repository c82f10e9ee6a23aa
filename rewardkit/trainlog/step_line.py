"""One line of a console log that has a step in it.

`step:N - key:value - key:value`, whatever stands before it: Ray's prefix, colours, a timestamp,
a progress bar. Keys may hold `/`, `@`, `(1e-4)`, spaces, colons or ` - `: a pair ends where ` - ` follows a
number. (A key with a colon before a ` - ` cannot be told from a value that is no number.)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from sys import intern

from rewardkit.trainlog.metric_value import VALUE, parse_value

#: What a step line has and few others do. Its first bytes are what a file is searched for.
STEP = re.compile(rb"(?:(?<![\w/.-])|(?<=\x1b\[\dm)|(?<=\x1b\[\d\dm))step:(\d{1,12}) - ")

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")

#: Ray's note on lines that other processes printed too.
_REPEATED = re.compile(r"\[repeated \d+x across cluster\].*$")

#: Another process's line that goes on in this one.
_OTHER = re.compile(r"\([\w.:-]+ pid=\d+(?:, ip=[\w.:]+)?\)")

#: A pair with more text after its value.
_PAIR = re.compile(rf"(.+?):({VALUE})(?=[\s(])", re.DOTALL)

_BETWEEN, _WORD = " - ", b"step:"

#: The usual value.
_DECIMAL = re.compile(r"-?[0-9]+\.[0-9]+(?:e[+-][0-9]+)?").fullmatch


#: A NumPy 2 scalar, and digits that a float has all of.
_SCALAR, _EXACT = re.compile(r"np\.\w+\(([^()]*)\)"), 15

#: Shapes of lines that are remembered: of training, with a validation, ...
SHAPES = 8


@dataclass(frozen=True)
class StepLine:
    """What a step line says.

    Attributes:
        step: its step.
        metrics: its pairs.
        rest: what follows the last pair that could be read; "" if nothing does.
        fixed: whether every value has three decimals.
    """

    step: int
    metrics: dict[str, float]
    rest: str
    fixed: bool


def decode_line(raw: bytes) -> str:
    """The text of a line, without colours."""
    text = raw.decode("utf-8", "replace")
    return _ANSI.sub("", text) if "\x1b" in text else text


def split_steps(raw: bytes) -> list[bytes]:
    """A line of a log, cut before each step but its first: two processes may write into one line.

    A pair named `step` is none of them.
    """
    starts = []
    at = raw.find(_WORD)
    while at >= 0:
        if STEP.match(raw, at) and not raw.endswith(b" - ", 0, at):
            starts.append(at)
        at = raw.find(_WORD, at + len(_WORD))
    return [raw[a:b] for a, b in pairwise((0, *starts[1:], len(raw)))]


def parse_step_line(raw: bytes, *, cut: bool = False) -> StepLine | None:
    """The step line in a line of a log; None if there is none.

    Args:
        raw: the line.
        cut: the file ends in it: its last value may lack digits, and is left out.
    """
    match = STEP.search(raw)
    if match is None:
        return None
    text = decode_line(raw[match.end() :]).rstrip()
    if "[repeated " in text:
        text = _REPEATED.sub("", text).rstrip()
    text, *others = _OTHER.split(text, maxsplit=1)
    pieces = text.rstrip().split(_BETWEEN)
    metrics: dict[str, float] = {}
    cut_off = pieces.pop() if cut and not others else ""
    rest, fixed = _pairs(pieces, metrics)
    rest = _BETWEEN.join(filter(None, (rest, cut_off, *map(str.strip, others))))
    return StepLine(int(match[1]), metrics, rest, fixed)


def _pairs(pieces: list[str], metrics: dict[str, float]) -> tuple[str, bool]:
    """Put pairs into `metrics`: what is left over, and whether all values have three decimals."""
    pending, left, fixed = "", [], True
    for piece in pieces:
        if pending:
            if ":" in pending:  # no part of a key: a value that could not be read
                left.append(pending)
            else:
                piece = f"{pending}{_BETWEEN}{piece}"  # noqa: PLW2901 - it goes on
            pending = ""
        key, _, value = piece.rpartition(":")
        if _DECIMAL(value) and key:
            metrics[intern(key)] = float(value)
            fixed = fixed and value[-4:-3] == "."
            continue
        found = parse_value(value) if key else None
        if found is None:
            pending = piece
            continue
        metrics[intern(key)] = found
        fixed = fixed and not value[-1].isdigit()
    if pending and (last := _PAIR.match(pending)):
        metrics[last[1]] = parse_value(last[2]) or 0.0
        pending = pending[last.end() :].strip()
    return _BETWEEN.join([*left, pending] if pending else left), fixed


@dataclass(frozen=True)
class _Shape:
    """The keys of a line with the colons after them, and how long these are."""

    keys: tuple[str, ...]
    heads: list[str]
    ends: list[int]


@dataclass
class LineShapes:
    """What step lines have looked like so far.

    A run logs the same metrics in the same order at nearly every step. In a line like an earlier
    one it is known where each value begins, which makes it twice as fast to read.

    Attributes:
        fixed: only lines whose values all have three decimals are like these.
    """

    fixed: bool = True
    _known: list[_Shape] = field(default_factory=list)
    _seen: set[tuple[str, ...]] = field(default_factory=set)

    def read(self, raw: bytes) -> tuple[int, dict[str, float]] | None:
        """Step and metrics of a line like an earlier one; None if it is like none."""
        match = STEP.search(raw) if self._known else None
        if match is None:
            return None
        text = decode_line(raw[match.end() :]).rstrip()
        if "np." in text:
            text = _SCALAR.sub(r"\1", text)
        pieces = text.split(_BETWEEN)
        for shape in self._known:
            if len(pieces) == len(shape.ends):
                heads = [piece[:end] for piece, end in zip(pieces, shape.ends, strict=True)]
                if heads == shape.heads:
                    return self._numbers(int(match[1]), pieces, shape)
        return None

    def learn(self, line: StepLine) -> None:
        """Remember what a line looks like, once another one has looked so."""
        keys = tuple(line.metrics)
        if line.rest or len(self._known) >= SHAPES or any(_BETWEEN in key for key in keys):
            return
        if keys in self._seen:
            heads = [f"{key}:" for key in keys]
            self._known.append(_Shape(keys, heads, list(map(len, heads))))
        elif len(self._seen) < 8 * SHAPES:
            self._seen.add(keys)

    def _numbers(
        self, step: int, pieces: Sequence[str], shape: _Shape
    ) -> tuple[int, dict[str, float]] | None:
        values = [piece[end:] for piece, end in zip(pieces, shape.ends, strict=True)]
        if any(len(value) > _EXACT and "." not in value for value in values):
            return None
        if self.fixed and not all(value[-4:-3] == "." for value in values):
            return None
        try:
            return step, dict(zip(shape.keys, map(float, values), strict=True))
        except ValueError:
            return None
