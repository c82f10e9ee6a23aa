"""Python literals that verl prints over several lines of a log: its configuration, and metrics."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rewardkit.trainlog.metric_value import VALUE, parse_value

#: A literal of more lines or characters than this is none of verl's.
MAX_LINES, MAX_CHARACTERS = 20_000, 2_000_000

#: Characters of a line that are looked at; what verl prints over several lines has short ones.
MAX_LINE_CHARACTERS = 20_000

#: Lines of the same process that do not go on with the literal, until it is given up.
MAX_STRANGE_LINES = 50

#: Characters without a comma, texts left out: `1+1+1...` of 400,000 ends Python 3.10 (its C stack).
MAX_UNSEPARATED_CHARACTERS = 20_000

_CLOSER = {"(": ")", "[": "]", "{": "}"}

_STRING = r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\""
_TEXTS = re.compile(rf"\s*(?:{_STRING})\s*")
_TOKENS = re.compile(rf"{_STRING}|[\[({{]|[\])}}]")
_PAIR = re.compile(rf"({_STRING}): ({VALUE})(?=, *['\"]|\}})")

#: What a collector, or whoever watches a file, puts before each line.
_TIME = re.compile(
    r"\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[\d.,:+Z-]*\]?\s*(?:std(?:out|err) [FP] )?"
)

#: Ray's prefix: `(TaskRunner pid=20910, ip=10.0.0.1) `.
_RAY = re.compile(r"\(([^()]* pid=\d+)[^()]*\) ?")


def split_processes(text: str) -> Iterator[tuple[str, str]]:
    """Which process wrote a line ("" if Ray does not say), and what it wrote.

    Several, where the output of one process broke into another's line.
    """
    text = text[:MAX_LINE_CHARACTERS]
    if stamp := _TIME.match(text):
        text = text[stamp.end() :]
    process, at = "", 0
    for ray in _RAY.finditer(text):
        if ray.start() > at:
            yield process, text[at : ray.start()]
        process, at = ray[1], ray.end()
    yield process, text[at:]


@dataclass
class LiteralCollector:
    """A literal that is being collected from the lines of one process.

    Attributes:
        process: whose lines; others, which Ray puts between them, are left out.
        whole: whether its last bracket was found; else the open ones are closed after what is
            there.
    """

    process: str
    whole: bool = False
    _open: list[str] = field(default_factory=list)
    _parts: list[str] = field(default_factory=list)
    _lines: int = 0
    _length: int = 0
    _strange: int = 0

    @property
    def text(self) -> str:
        """What there is of it, as a literal."""
        text = "\n".join(self._parts)
        if not self._open:
            return text
        return text.rstrip().rstrip(",") + "".join(_CLOSER[one] for one in reversed(self._open))

    def feed(self, process: str, text: str) -> bool:
        """Take what a process wrote in a line; True when the literal is complete or given up."""
        self._lines += 1
        if (
            self._lines > MAX_LINES
            or self._length > MAX_CHARACTERS
            or self._strange > MAX_STRANGE_LINES
        ):
            return True
        if process != self.process:
            return False
        if self._parts and not text.startswith(" "):  # pprint indents all lines but the first
            self._strange += 1
            return False
        for token in _TOKENS.finditer(text):
            if token[0] in _CLOSER:
                self._open.append(token[0])
            elif self._open and token[0] == _CLOSER[self._open[-1]]:
                self._open.pop()
                if not self._open:
                    text = text[: token.end()]
                    break
        self._parts.append(text)
        self._length += len(text)
        self.whole = not self._open
        return self.whole


def literal_value(text: str) -> Any:
    """The literal's value; None if it is none."""
    if len(text) > MAX_UNSEPARATED_CHARACTERS and any(
        len(part) > MAX_UNSEPARATED_CHARACTERS for part in _TEXTS.sub("''", text).split(",")
    ):
        return None
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def printed_metrics(text: str) -> dict[str, float]:
    """The numbers of a printed dictionary of metrics, NaN and NumPy scalars among them."""
    found: dict[str, float] = {}
    for match in _PAIR.finditer(text):
        key, value = literal_value(match[1]), parse_value(match[2])
        if isinstance(key, str) and value is not None:
            found[key] = value
    return found


def flatten(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """A nested dictionary as dotted keys and values; lists are values."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from flatten(inner, f"{prefix}.{key}" if prefix else str(key))
    elif prefix:
        yield prefix, value
