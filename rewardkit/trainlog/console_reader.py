"""Reader of verl's console output of every release since 0.1, as a stream of bytes.

Only a few lines of a log matter. The reader searches large pieces of the file for the words of these
lines, which is much faster than to parse every line.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone

from rewardkit.jsonl import LongLine
from rewardkit.trainlog.python_literal import (
    MAX_LINE_CHARACTERS,
    LiteralCollector,
    flatten,
    literal_value,
    printed_metrics,
    split_processes,
)
from rewardkit.trainlog.step_line import (
    STEP,
    LineShapes,
    StepLine,
    decode_line,
    parse_step_line,
    split_steps,
)
from rewardkit.trainlog.table_builder import TableBuilder
from rewardkit.trainlog.training_run import FIXED, FULL, V1, TrainingRun

#: A longer line is cut here, so that a file without line ends does not fill memory.
MAX_BUFFER_BYTES = 32 << 20

#: Bytes of a step line; all metrics that a table may have take two MiB.
MAX_STEP_LINE_BYTES = 4 << 20

#: Bytes of a command that are searched for overrides.
_MAX_COMMAND_BYTES = 1 << 20

#: Lines without a metric of verl's kind that are kept until the end.
MAX_BARE_LINES = 10_000

_STEP, _CONFIG, _VALIDATION = b"step:", b"{'actor_rollout_ref':", b"validation metrics: "

#: The command that started the run, searched only at the top of a log.
_COMMAND, _TOP = b" -m ", 16 << 20

_LAUNCH = re.compile(
    r"\bpython[\d.]*\s.*?-m (?:verl|recipe)\.[\w.]+|\btorchrun\s.*?-m verl\.[\w.]+"
)
_OVERRIDE = re.compile(r"[+~]{0,2}([A-Za-z_][\w./@-]*)=(.*)", re.DOTALL)
_VALIDATION_DICT = re.compile(
    r"(\(?['\"])(Initial|Final) validation metrics: |(Initial|Final) validation metrics: (?=\{)"
)

#: Up to 0.4 every value has three decimals, so such a value is not the start of a longer one.
_COMPLETE = re.compile(rb"\.\d{3}\s*$")

_STAMP = re.compile(rb"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?")


@dataclass
class ConsoleReader:
    """Reader of a console log, fed in pieces."""

    builder: TableBuilder = field(default_factory=TableBuilder)
    binary: bool = False
    _rest: bytes = b""
    _line: int = 1
    _seen: int = 0
    _block: LiteralCollector | None = None
    _kind: str = ""
    _opened: int = 0
    _last: int = 0
    _initial: dict[str, float] = field(default_factory=dict)
    _fixed: bool = True
    _v1: bool = False
    _slashed: bool = False
    _shapes: LineShapes = field(default_factory=LineShapes)
    _bare: list[tuple[int, dict[str, float], str]] = field(default_factory=list)

    def feed(self, data: bytes) -> None:
        """Read the next bytes of the log; an incomplete last line waits for the next call."""
        self.binary = self.binary or b"\0" in data
        data = self._rest + data
        end = data.rfind(b"\n") + 1
        if not end and len(data) > MAX_BUFFER_BYTES:
            end = len(data)
        self._rest = data[end:]
        self._scan(data[:end])

    def finish(self, name: str, path: str) -> TrainingRun:
        """Read an incomplete last line as far as possible, and return the run.

        Raises:
            DataError: the log has no step.
        """
        if self._rest:
            rest, self._rest = self._rest, b""
            self._scan(rest, cut=True)
        self._end_block()
        if self._initial:
            self._fill(self._initial, self._last)
            self._initial = {}
        self._add_bare()
        return self.run(name, path)

    def run(self, name: str, path: str) -> TrainingRun:
        """Return the run as far as it has been read."""
        era = V1 if self._v1 else FIXED if self._fixed else FULL
        return self.builder.run(name=name, path=path, source="console", era=era)

    def _scan(self, data: bytes, *, cut: bool = False) -> None:
        counted, here, fed = 0, self._line, 0
        tokens = (_STEP, _CONFIG, _VALIDATION, *([_COMMAND] if self._seen < _TOP else []))
        self._seen += len(data)
        for at, token in _hits(data, tokens):
            here += data.count(b"\n", counted, at)
            counted = at
            start = data.rfind(b"\n", 0, at) + 1
            start = data.rfind(b"\r", start, at) + 1 or start
            end = _end(data, at)
            self._collect(data, fed, end)
            fed = max(fed, end + 1)
            if token == _STEP:
                *first, last = split_steps(data[start:end])
                for raw in first:
                    self._step(raw, f"line {here:,}", cut=False)
                self._step(last, f"line {here:,}", cut=cut and end == len(data))
            elif token == _COMMAND:
                self._command(decode_line(data[start : min(end, start + _MAX_COMMAND_BYTES)]))
            elif not self._block:
                self._opened = here
                self._open(data, start, end, token)
        self._collect(data, fed, len(data))
        self._line = here + data.count(b"\n", counted)

    def _step(self, raw: bytes, where: str, *, cut: bool) -> None:
        if len(raw) > MAX_STEP_LINE_BYTES:
            self.builder.skip(where, LongLine(len(raw), MAX_STEP_LINE_BYTES).reason)
            return
        self._v1 = self._v1 or b"np." in raw or b"TaskRunnerV1" in raw
        if not cut and (like := self._shapes.read(raw)):
            self._add(*like, where, raw)
            return
        if cut and self._slashed and self._fixed:
            cut = not _COMPLETE.search(raw)
        line = parse_step_line(raw, cut=cut)
        if line is None:
            return
        if line.rest or not line.metrics:
            why = "the file ends in this line" if cut else "no 'key:number' pair"
            self.builder.skip(where, f"{why}: {line.rest or decode_line(raw).strip()!r}")
        if not line.metrics:
            return
        if not any("/" in key for key in line.metrics):
            self._set_aside(line, where)
            return
        if self._fixed and not line.has_fixed_decimals:
            self._fixed, self._shapes = False, LineShapes(fixed_decimals=False)
        self._shapes.learn(line)
        self._add(line.step, line.metrics, where, raw)

    def _add(self, step: int, metrics: dict[str, float], where: str, raw: bytes) -> None:
        self._slashed = True
        self.builder.add(step, metrics, where, _clock(raw))
        self._last = step
        if self._initial:
            self._place_initial(step, metrics)

    def _set_aside(self, line: StepLine, where: str) -> None:
        if len(self._bare) < MAX_BARE_LINES:
            self._bare.append((line.step, line.metrics, where))
        else:
            self.builder.skip(where, "text, not metrics: no name has a '/'")

    def _add_bare(self) -> None:
        for step, metrics, where in self._bare:
            if self._slashed:
                self.builder.skip(where, f"text, not metrics: {next(iter(metrics))!r}")
            else:
                self.builder.add(step, metrics, where)
        self._bare = []

    def _place_initial(self, step: int, metrics: dict[str, float]) -> None:
        """Add the metrics before training, whose console line may come next or not at all."""
        initial, self._initial = self._initial, {}
        self._fill(initial, step if initial.keys() & metrics.keys() else max(step - 1, 0))

    def _fill(self, metrics: dict[str, float], step: int) -> None:
        row = self.builder.rows.get(step, {})
        missing = {key: value for key, value in metrics.items() if key not in row}
        if missing:
            self.builder.add(step, missing, "validation metrics")

    def _command(self, text: str) -> None:
        if _LAUNCH.search(text[:MAX_LINE_CHARACTERS]):
            self.builder.mark_launch()
            if settings := overrides(text):
                self.builder.config = dict(settings)

    def _open(self, data: bytes, start: int, end: int, token: bytes) -> None:
        for process, text in split_processes(decode_line(data[start:end])):
            if self._block:
                self._feed(process, text)
            elif token == _CONFIG and (at := text.find(_CONFIG.decode())) >= 0:
                self._kind, self._block = "config", LiteralCollector(process)
                self.builder.mark_launch()
                self._feed(process, text[at:])
            elif token == _VALIDATION and (match := _VALIDATION_DICT.search(text)):
                self._kind, self._block = match[2] or match[3], LiteralCollector(process)
                self._feed(process, text[match.start() if match[1] else match.end() :])

    def _collect(self, data: bytes, start: int, stop: int) -> None:
        while self._block and start < stop:
            end = _end(data, start)
            for process, text in split_processes(decode_line(data[start:end])):
                self._feed(process, text)
            start = end + 1

    def _feed(self, process: str, text: str) -> None:
        if self._block and self._block.feed(process, text):
            self._end_block()

    def _end_block(self) -> None:
        block, self._block = self._block, None
        if block is None:
            return
        if self._kind == "config":
            self._configure(block)
            return
        text = block.text if block.text.startswith("{") else str(literal_value(block.text))
        if not (values := printed_metrics(text)):
            self._skip_block("validation metrics without numbers")
        elif self._kind == "Initial":
            self._initial = values
        else:
            self._fill(values, self._last)

    def _configure(self, block: LiteralCollector) -> None:
        settings = dict(flatten(literal_value(block.text)))
        is_complete = block.is_complete and bool(settings)
        self.builder.config = settings if is_complete else {**self.builder.config, **settings}
        if not is_complete:
            self._skip_block(
                f"the configuration is incomplete; {len(settings):,} settings were read"
            )

    def _skip_block(self, reason: str) -> None:
        self.builder.skip(f"line {self._opened:,}", reason)


def overrides(text: str) -> dict[str, str]:
    """Return the `key=value` arguments of a command line; values stay text."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    matches = (_OVERRIDE.fullmatch(word) for word in words)
    return {match[1]: match[2] for match in matches if match and "." in match[1]}


def _hits(data: bytes, tokens: Sequence[bytes]) -> list[tuple[int, bytes]]:
    """Places of the lines that matter, in order; at most one of each kind per line."""
    hits: list[tuple[int, bytes]] = []
    for token in tokens:
        at = data.find(token)
        while at >= 0:
            if token != _STEP or STEP.match(data, at):
                hits.append((at, token))
                at = _end(data, at)
            else:
                at += len(token)
            at = data.find(token, at)
    return sorted(hits)


def _end(data: bytes, at: int) -> int:
    """End of the line at a place; a carriage return ends a line too."""
    end = data.find(b"\n", at)
    end = len(data) if end < 0 else end
    early = data.find(b"\r", at, end)
    return end if early < 0 else early


def _clock(raw: bytes) -> float | None:
    """Return the time stamp before the step, in seconds; time zones do not matter for durations."""
    match = _STAMP.search(raw[: raw.find(_STEP)])
    if match is None:
        return None
    try:
        date = datetime.fromisoformat(f"{match[1].decode()}T{match[2].decode()}")
    except ValueError:
        return None
    fraction = float(f"0.{match[3].decode()}") if match[3] else 0.0
    return date.replace(tzinfo=timezone.utc).timestamp() + fraction
