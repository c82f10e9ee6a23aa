"""Parser of the lines of a console log that hold a step.

Such a line is `step:N - key:value - key:value` after any prefix: Ray's, colours, a timestamp, a
progress bar. Keys may contain `/`, `@`, `(1e-4)`, spaces, colons or ` - `: a pair ends where ` - `
follows a number. (A key with a colon before a ` - ` looks like a value that is not a number.)

Up to 0.4 every value has three decimals; later ones are `pprint.pformat` of a Python or NumPy
scalar (`verl/utils/logger/aggregate_logger.py`), which under NumPy 2 reads `np.float64(0.5)`.
"""

import re
from dataclasses import dataclass
from itertools import pairwise
from sys import intern

#: Start of the pairs of a step line. A file is searched for its first bytes.
STEP = re.compile(rb"(?:(?<![\w/.-])|(?<=\x1b\[\dm)|(?<=\x1b\[\d\dm))step:(\d{1,12}) - ")

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")

#: Ray's note on lines that other processes printed too.
_REPEATED = re.compile(r"\[repeated \d+x across cluster\].*$")

#: Start of another process's output within a line.
_OTHER = re.compile(r"\([\w.:-]+ pid=\d+(?:, ip=[\w.:]+)?\)")

_BETWEEN, _WORD = " - ", b"step:"

#: A value: a plain number or a truth value, or the repr of a NumPy scalar.
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|inf|nan)"
_PLAIN = rf"{_NUMBER}|(?:np\.)?True_?|(?:np\.)?False_?"
_VALUE = re.compile(rf"(?:np|numpy)\.\w+\(({_NUMBER}|True|False)\)|({_PLAIN})")

#: A pair that more text follows, and the usual form of a value.
_PAIR = re.compile(rf"(.+?):({_VALUE.pattern})(?=[\s(])", re.DOTALL)
_DECIMAL = re.compile(r"-?[0-9]+\.[0-9]+(?:e[+-][0-9]+)?").fullmatch

#: Digits of an integer; Python refuses to parse thousands of them.
_MAX_DIGITS = 300


@dataclass(frozen=True)
class StepLine:
    """A parsed step line; `rest` is its unreadable text."""

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


def parse_metric(text: str) -> float | None:
    """Parse a value; None if the text is not one.

    Integers stay integers, so that large counts keep all their digits. True is 1.
    """
    match = _VALUE.fullmatch(text)
    if match is None:
        return None
    number = match[1] or match[2]
    if number[-1] in "e_":
        return int("True" in number)
    if not number.lstrip("+-").isdigit():
        return float(number)
    return int(number) if len(number) <= _MAX_DIGITS else None


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
    cut_off = pieces.pop() if cut and not others else ""
    metrics: dict[str, float] = {}
    pending, left, is_fixed = "", [], True
    for piece in pieces:
        if ":" in pending:  # not part of a key but an unreadable value
            left.append(pending)
            pending = ""
        pair = f"{pending}{_BETWEEN}{piece}" if pending else piece
        key, _, value = pair.rpartition(":")
        number = float(value) if _DECIMAL(value) else parse_metric(value)
        if key and number is not None:
            metrics[intern(key)] = number
            is_fixed = is_fixed and (value[-4:-3] == "." or not value[-1].isdigit())
        pending = "" if key and number is not None else pair
    if pending and (last := _PAIR.match(pending)):
        metrics[last[1]] = parse_metric(last[2]) or 0.0
        pending = pending[last.end() :].strip()
    rest = (*left, pending, cut_off, *map(str.strip, others))
    return StepLine(int(match[1]), metrics, _BETWEEN.join(filter(None, rest)), is_fixed)
