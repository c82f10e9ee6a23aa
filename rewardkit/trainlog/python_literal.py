"""The configuration that verl prints as a Python literal over several lines."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

#: Lines and characters of a literal; verl prints no longer ones.
MAX_LINES, MAX_CHARACTERS = 20_000, 2_000_000

#: Characters of a line that are read; a literal over several lines has short lines.
MAX_LINE_CHARACTERS = 20_000

#: Characters without a comma outside strings: 400,000 of `1+1+1...` overflow the C stack of Python
#: 3.10.
MAX_UNSEPARATED_CHARACTERS = 20_000

_CLOSER = {"(": ")", "[": "]", "{": "}"}

_STRING = r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\""
_TEXTS = re.compile(rf"\s*(?:{_STRING})\s*")
_TOKENS = re.compile(rf"{_STRING}|[\[({{]|[\])}}]")

#: The time stamp that a log collector puts before each line.
_TIME = re.compile(
    r"\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[\d.,:+Z-]*\]?\s*(?:std(?:out|err) [FP] )?"
)

#: Ray's prefix: `(TaskRunner pid=20910, ip=10.0.0.1) `.
_RAY = re.compile(r"\(([^()]* pid=\d+)[^()]*\) ?")


def split_processes(text: str) -> Iterator[tuple[str, str]]:
    """Split a line into pairs of a process ("" if Ray does not name it) and its text.

    There are several pairs if the output of one process breaks into another's line.
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
    """Collects a literal from the lines of one process; pprint indents all of its lines but the first.

    Attributes:
        process: the process; lines of others, which Ray puts between them, are left out.
        lines: its lines so far.
    """

    process: str
    lines: list[str] = field(default_factory=list)
    _count: int = 0
    _length: int = 0

    def feed(self, process: str, text: str) -> bool:
        """Add a process's text of a line; True when the literal has ended or is too long."""
        self._count += 1
        if process == self.process:
            if self.lines and not text.startswith(" "):
                return True
            self.lines.append(text)
            self._length += len(text)
        return self._count > MAX_LINES or self._length > MAX_CHARACTERS


def literal_value(text: str) -> Any:
    """Evaluate a literal; None if the text is not one."""
    if len(text) > MAX_UNSEPARATED_CHARACTERS and any(
        len(part) > MAX_UNSEPARATED_CHARACTERS for part in _TEXTS.sub("''", text).split(",")
    ):
        return None
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def close_literal(text: str) -> str:
    """Return the start of a literal with its open brackets closed; Ray drops lines that repeat others."""
    open_brackets: list[str] = []
    for token in _TOKENS.findall(text):
        if token in _CLOSER:
            open_brackets.append(token)
        elif open_brackets and token == _CLOSER[open_brackets[-1]]:
            open_brackets.pop()
    return text.rstrip().rstrip(",") + "".join(_CLOSER[one] for one in reversed(open_brackets))


def flatten(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Flatten a nested dictionary into dotted keys and values; lists are values."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from flatten(inner, f"{prefix}.{key}" if prefix else str(key))
    elif prefix:
        yield prefix, value
