"""Reader of verl's console output of every release since 0.1.

Only lines with a step matter, and the configuration, which verl prints as a Python literal over several
lines. (verl also prints validation metrics as a dictionary, and logs the same as a step:
`verl/trainer/ppo/ray_trainer.py`.)

A line with a step is `step:N - key:value - key:value` after any prefix: Ray's, colours, a timestamp, a
progress bar. Keys may contain `/`, `@`, `(1e-4)`, spaces, colons or ` - `: a pair ends where ` - `
follows a number. (A key with a colon before a ` - ` looks like a value that is not a number.)

Up to 0.4 every value has three decimals; later ones are `pprint.pformat` of a Python or NumPy
scalar (`verl/utils/logger/aggregate_logger.py`), which under NumPy 2 reads `np.float64(0.5)`.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from sys import intern
from typing import Any, ClassVar

from rewardkit.trainlog.files import LogReader
from rewardkit.trainlog.training_run import FIXED, FULL, V1, TrainingRun

#: Bytes of a line; all metrics that a table may have take two MiB.
MAX_LINE_BYTES = 4 << 20

#: Lines and characters of a literal, and characters of its lines; verl prints no longer ones.
MAX_LITERAL_LINES, MAX_LITERAL_CHARACTERS, MAX_LINE_CHARACTERS = 20_000, 2_000_000, 20_000

#: Characters without a comma outside strings: 400,000 of `1+1+1...` overflow the C stack of Python
#: 3.10.
MAX_UNSEPARATED_CHARACTERS = 20_000

_STEP, _CONFIG = b"step:", b"{'actor_rollout_ref':"

#: Start of the pairs of a step line. A file is searched for its first bytes.
STEP = re.compile(rb"(?:(?<![\w/.-])|(?<=\x1b\[\dm)|(?<=\x1b\[\d\dm))step:(\d{1,12}) - ")

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")

#: Ray's note on lines that other processes printed too.
_REPEATED = re.compile(r"\[repeated \d+x across cluster\].*$")

#: Start of another process's output within a line.
_OTHER = re.compile(r"\([\w.:-]+ pid=\d+(?:, ip=[\w.:]+)?\)")

_BETWEEN = " - "

#: A value: a plain number or a truth value, or the repr of a NumPy scalar.
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|inf|nan)"
_PLAIN = rf"{_NUMBER}|(?:np\.)?True_?|(?:np\.)?False_?"
_VALUE = re.compile(rf"(?:np|numpy)\.\w+\(({_NUMBER}|True|False)\)|({_PLAIN})")

#: A pair that more text follows, and the usual form of a value.
_PAIR = re.compile(rf"(.+?):({_VALUE.pattern})(?=[\s(])", re.DOTALL)
_DECIMAL = re.compile(r"-?[0-9]+\.[0-9]+(?:e[+-][0-9]+)?").fullmatch

#: Digits of an integer; Python refuses to parse thousands of them.
_MAX_DIGITS = 300

#: Up to 0.4 every value has three decimals, so such a value is not the start of a longer one.
_COMPLETE = re.compile(rb"\.\d{3}\s*$")

_STAMP = re.compile(rb"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?")

#: The time stamp that a log collector puts before each line.
_TIME = re.compile(
    r"\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[\d.,:+Z-]*\]?\s*(?:std(?:out|err) [FP] )?"
)

#: Ray's prefix: `(TaskRunner pid=20910, ip=10.0.0.1) `.
_RAY = re.compile(r"\(([^()]* pid=\d+)[^()]*\) ?")

_CLOSER = {"(": ")", "[": "]", "{": "}"}

_STRING = r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\""
_STRINGS = re.compile(rf"\s*(?:{_STRING})\s*")
_TOKENS = re.compile(rf"{_STRING}|[\[({{]|[\])}}]")


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
    at = raw.find(_STEP)
    while at >= 0:
        if STEP.match(raw, at) and not raw.endswith(b" - ", 0, at):
            starts.append(at)
        at = raw.find(_STEP, at + len(_STEP))
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


@dataclass
class ConsoleReader(LogReader):
    """Reader of a console log."""

    source: ClassVar[str] = "console"
    limit: ClassVar[int] = MAX_LINE_BYTES

    _is_fixed: bool = True
    _is_v1: bool = False
    #: The open literal: its lines and characters, the process that prints it, where it began, and the
    #: lines of all processes since.
    _literal: list[str] = field(default_factory=list)
    _characters: int = 0
    _process: str = ""
    _opened: str = ""
    _count: int = 0

    def feed(self, data: bytes) -> None:
        """Read the next bytes of the log; an incomplete last line waits for the next call."""
        # Most pieces of a large log have neither a step nor the configuration.
        self._read_lines(self._lines.feed(data, () if self._literal else (_STEP, _CONFIG)))

    def run(self, name: str, path: str) -> TrainingRun:
        """Return the run as far as it has been read."""
        era = V1 if self._is_v1 else FIXED if self._is_fixed else FULL
        return self.builder.run(name=name, path=path, source=self.source, era=era)

    def _read_line(self, line: bytes) -> None:
        if not (self._literal or _STEP in line or _CONFIG in line):
            return
        where = f"line {self._lines.number:,}"
        parts = line.rstrip(b"\r").split(b"\r")
        for part in parts:
            if self._literal or _CONFIG in part:
                self._read_literal(part, where)
            steps = split_steps(part) if _STEP in part else []
            for raw in steps:
                is_last = part is parts[-1] and raw is steps[-1]
                self._read_step(raw, where, cut=self._is_cut and is_last)

    def _read_step(self, raw: bytes, where: str, *, cut: bool) -> None:
        if cut and self._is_fixed and self.builder.rows:
            cut = not _COMPLETE.search(raw)
        line = parse_step_line(raw, cut=cut)
        if line is None:
            return
        self._is_v1 = self._is_v1 or b"np." in raw or b"TaskRunnerV1" in raw
        if line.rest or not line.metrics:
            why = "the file ends in this line" if cut else "no 'key:number' pair"
            self.builder.skip(where, f"{why}: {line.rest or decode_line(raw).strip()!r}")
        if not line.metrics:
            return
        if not any("/" in key for key in line.metrics):
            self.builder.skip(where, f"text, not metrics: {next(iter(line.metrics))!r} has no '/'")
            return
        self._is_fixed = self._is_fixed and line.has_fixed_decimals
        self.builder.add(line.step, line.metrics, where, _clock(raw))

    def _read_literal(self, line: bytes, where: str) -> None:
        """Read a line that belongs to the configuration; pprint indents all of its lines but the first.

        Lines of other processes, which Ray puts between them, are left out.
        """
        for process, text in _split_processes(decode_line(line)):
            if self._literal:
                self._count += 1
                is_next = process == self._process and text.startswith(" ")
                if is_next:
                    self._literal.append(text)
                    self._characters += len(text)
                is_long = (
                    self._count > MAX_LITERAL_LINES or self._characters > MAX_LITERAL_CHARACTERS
                )
                if is_long or (process == self._process and not is_next):
                    self._end()
            if not self._literal and (at := text.find(_CONFIG.decode())) >= 0:
                self._process, self._opened, self._count, self._characters = process, where, 0, 0
                self._literal = [text[at:]]
                self.builder.is_launched = True

    def _end(self) -> None:
        """Read the open literal."""
        text, self._literal = "\n".join(self._literal), []
        if not text:
            return
        if settings := dict(flatten(_literal_value(text))):
            self.builder.config = settings
            return
        settings = dict(flatten(_literal_value(_close_literal(text))))
        self.builder.config = {**self.builder.config, **settings}
        reason = f"the configuration is incomplete; {len(settings):,} settings were read"
        self.builder.skip(self._opened, reason)


def flatten(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Flatten a nested dictionary into dotted keys and values; lists are values."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from flatten(inner, f"{prefix}.{key}" if prefix else str(key))
    elif prefix:
        yield prefix, value


def _clock(raw: bytes) -> float | None:
    """Return the time stamp before the step, in seconds; time zones do not matter for durations."""
    match = _STAMP.search(raw[: raw.find(_STEP)])
    if match is None:
        return None
    date, time, fraction = (part.decode() for part in match.groups(b""))
    try:
        return datetime.fromisoformat(f"{date}T{time}.{fraction:0<6}+00:00").timestamp()
    except ValueError:
        return None


def _split_processes(text: str) -> Iterator[tuple[str, str]]:
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


def _literal_value(text: str) -> Any:
    """Evaluate a literal; None if the text is not one."""
    if len(text) > MAX_UNSEPARATED_CHARACTERS and any(
        len(part) > MAX_UNSEPARATED_CHARACTERS for part in _STRINGS.sub("''", text).split(",")
    ):
        return None
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _close_literal(text: str) -> str:
    """Return the start of a literal with its open brackets closed; Ray drops lines that repeat others."""
    open_brackets: list[str] = []
    for token in _TOKENS.findall(text):
        if token in _CLOSER:
            open_brackets.append(token)
        elif open_brackets and token == _CLOSER[open_brackets[-1]]:
            open_brackets.pop()
    return text.rstrip().rstrip(",") + "".join(_CLOSER[one] for one in reversed(open_brackets))
