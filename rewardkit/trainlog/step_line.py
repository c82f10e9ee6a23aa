"""Parser of the lines of a console log that hold a step.

Such a line is `step:N - key:value - key:value` after any prefix: Ray's, colours, a timestamp, a
progress bar. Keys may contain `/`, `@`, `(1e-4)`, spaces, colons or ` - `: a pair ends where ` - `
follows a number. (A key with a colon before a ` - ` looks like a value that is not a number.)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from sys import intern

from rewardkit.trainlog.metric_value import VALUE, parse_metric

#: Start of the pairs of a step line. A file is searched for its first bytes.
STEP = re.compile(rb"(?:(?<![\w/.-])|(?<=\x1b\[\dm)|(?<=\x1b\[\d\dm))step:(\d{1,12}) - ")

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")

#: Ray's note on lines that other processes printed too.
_REPEATED = re.compile(r"\[repeated \d+x across cluster\].*$")

#: Start of another process's output within a line.
_OTHER = re.compile(r"\([\w.:-]+ pid=\d+(?:, ip=[\w.:]+)?\)")

#: A pair that more text follows.
_PAIR = re.compile(rf"(.+?):({VALUE})(?=[\s(])", re.DOTALL)

_BETWEEN, _WORD = " - ", b"step:"

#: The usual form of a value.
_DECIMAL = re.compile(r"-?[0-9]+\.[0-9]+(?:e[+-][0-9]+)?").fullmatch

#: A NumPy 2 scalar, and the number of digits that a float holds exactly.
_SCALAR, _EXACT = re.compile(r"np\.\w+\(([^()]*)\)"), 15

#: Shapes of lines that are remembered: of training, with a validation, ...
MAX_SHAPES = 8


@dataclass(frozen=True)
class StepLine:
    """A parsed step line.

    Attributes:
        step: number of the step.
        metrics: values by metric.
        rest: unreadable text after the last pair; "" if there is none.
        has_fixed_decimals: whether every value has three decimals.
    """

    step: int
    metrics: dict[str, float]
    rest: str
    has_fixed_decimals: bool


def decode_line(raw: bytes) -> str:
    """Decode a line and remove its colours."""
    text = raw.decode("utf-8", "replace")
    return _ANSI.sub("", text) if "\x1b" in text else text


def split_steps(raw: bytes) -> list[bytes]:
    """Split a line before every step but the first: two processes may write into one line.

    A pair named `step` does not start a step.
    """
    starts = []
    at = raw.find(_WORD)
    while at >= 0:
        if STEP.match(raw, at) and not raw.endswith(b" - ", 0, at):
            starts.append(at)
        at = raw.find(_WORD, at + len(_WORD))
    return [raw[a:b] for a, b in pairwise((0, *starts[1:], len(raw)))]


def parse_step_line(raw: bytes, *, cut: bool = False) -> StepLine | None:
    """Parse the step of a line of a log; None if it has none.

    Args:
        raw: the line.
        cut: the file ends in the line, so its last value may lack digits and is left out.
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
    rest, fixed = _parse_pairs(pieces, metrics)
    rest = _BETWEEN.join(filter(None, (rest, cut_off, *map(str.strip, others))))
    return StepLine(int(match[1]), metrics, rest, fixed)


def _parse_pairs(pieces: list[str], metrics: dict[str, float]) -> tuple[str, bool]:
    """Add pairs to `metrics`; return unreadable text, and whether all values have three decimals."""
    pending, left, fixed = "", [], True
    for piece in pieces:
        if pending:
            if ":" in pending:  # not part of a key but an unreadable value
                left.append(pending)
            else:
                piece = f"{pending}{_BETWEEN}{piece}"  # noqa: PLW2901 - the key continues
            pending = ""
        key, _, value = piece.rpartition(":")
        if _DECIMAL(value) and key:
            metrics[intern(key)] = float(value)
            fixed = fixed and value[-4:-3] == "."
            continue
        parsed = parse_metric(value) if key else None
        if parsed is None:
            pending = piece
            continue
        metrics[intern(key)] = parsed
        fixed = fixed and not value[-1].isdigit()
    if pending and (last := _PAIR.match(pending)):
        metrics[last[1]] = parse_metric(last[2]) or 0.0
        pending = pending[last.end() :].strip()
    return _BETWEEN.join([*left, pending] if pending else left), fixed


@dataclass(frozen=True)
class _Shape:
    keys: tuple[str, ...]
    heads: list[str]
    ends: list[int]


@dataclass
class LineShapes:
    """Shapes of the step lines so far.

    A run logs the same metrics in the same order at nearly every step. If a line has a known shape,
    the place of every value is known too, which makes it twice as fast to read.

    Attributes:
        fixed_decimals: accept only lines whose values all have three decimals.
    """

    fixed_decimals: bool = True
    _known: list[_Shape] = field(default_factory=list)
    _seen: set[tuple[str, ...]] = field(default_factory=set)

    def read(self, raw: bytes) -> tuple[int, dict[str, float]] | None:
        """Return step and metrics of a line of a known shape; None for other lines."""
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
                    return self._parse_values(int(match[1]), pieces, shape)
        return None

    def learn(self, line: StepLine) -> None:
        """Remember the shape of a line when it occurs for the second time."""
        keys = tuple(line.metrics)
        if line.rest or len(self._known) >= MAX_SHAPES or any(_BETWEEN in key for key in keys):
            return
        if keys in self._seen:
            heads = [f"{key}:" for key in keys]
            self._known.append(_Shape(keys, heads, list(map(len, heads))))
        elif len(self._seen) < 8 * MAX_SHAPES:
            self._seen.add(keys)

    def _parse_values(
        self, step: int, pieces: Sequence[str], shape: _Shape
    ) -> tuple[int, dict[str, float]] | None:
        values = [piece[end:] for piece, end in zip(pieces, shape.ends, strict=True)]
        if any(len(value) > _EXACT and "." not in value for value in values):
            return None
        if self.fixed_decimals and not all(value[-4:-3] == "." for value in values):
            return None
        try:
            return step, dict(zip(shape.keys, map(float, values), strict=True))
        except ValueError:
            return None
