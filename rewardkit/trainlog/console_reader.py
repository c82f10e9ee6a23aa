"""verl's console output, of every release from 0.1 on, as a stream of bytes.

Few lines of a log are of interest. They are found by searching large pieces of the file for the
few words that they have, which is much faster than looking at every line.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone

from rewardkit.lines import LongLine
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

#: A line longer than this is taken as it is: memory stays flat on a file without line ends.
LONGEST = 32 << 20

#: Bytes of a line with a step at most: as many metrics as a table may have take two MiB.
STEP_LINE = 4 << 20

#: Bytes of a command that are looked at for overrides.
_COMMAND_LINE = 1 << 20

#: Lines of free text, which happen to look like steps, that are kept until the end.
KEPT = 10_000

_STEP, _CONFIG, _VALIDATION = b"step:", b"{'actor_rollout_ref':", b"validation metrics: "

#: The command that started the run, which is looked for at the top of a log only.
_COMMAND, _TOP = b" -m ", 16 << 20

_LAUNCH = re.compile(
    r"\bpython[\d.]*\s.*?-m (?:verl|recipe)\.[\w.]+|\btorchrun\s.*?-m verl\.[\w.]+"
)
_OVERRIDE = re.compile(r"[+~]{0,2}([A-Za-z_][\w./@-]*)=(.*)", re.DOTALL)
_SAID = re.compile(
    r"(\(?['\"])(Initial|Final) validation metrics: |(Initial|Final) validation metrics: (?=\{)"
)

#: A value of three decimals, as every one is up to 0.4, is no part of a longer one.
_WHOLE = re.compile(rb"\.\d{3}\s*$")

_STAMP = re.compile(rb"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?")


@dataclass
class ConsoleReader:
    """A console log that is fed in pieces."""

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
        """Take the next bytes of the log; what follows the last line end is kept for later."""
        self.binary = self.binary or b"\0" in data
        data = self._rest + data
        end = data.rfind(b"\n") + 1
        if not end and len(data) > LONGEST:
            end = len(data)
        self._rest = data[end:]
        self._scan(data[:end])

    def finish(self, name: str, path: str) -> TrainingRun:
        """The run that the log tells of; a last line without a line end is read as far as it goes.

        Raises:
            DataError: there is not one step.
        """
        if self._rest:
            rest, self._rest = self._rest, b""
            self._scan(rest, cut=True)
        self._end_block()
        if self._initial:
            self._fill(self._initial, self._last)
            self._initial = {}
        self._judge_bare()
        return self.run(name, path)

    def run(self, name: str, path: str) -> TrainingRun:
        """The run as far as it has been read."""
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
                self._command(decode_line(data[start : min(end, start + _COMMAND_LINE)]))
            elif not self._block:
                self._opened = here
                self._open(data, start, end, token)
        self._collect(data, fed, len(data))
        self._line = here + data.count(b"\n", counted)

    def _step(self, raw: bytes, where: str, *, cut: bool) -> None:
        if len(raw) > STEP_LINE:
            self.builder.skip(where, LongLine(len(raw), STEP_LINE).reason)
            return
        self._v1 = self._v1 or b"np." in raw or b"TaskRunnerV1" in raw
        if not cut and (like := self._shapes.read(raw)):
            self._add(*like, where, raw)
            return
        if cut and self._slashed and self._fixed:
            cut = not _WHOLE.search(raw)
        line = parse_step_line(raw, cut=cut)
        if line is None:
            return
        if line.rest or not line.metrics:
            why = "the file ends in this line" if cut else "no 'key:number'"
            self.builder.skip(where, f"{why}: {line.rest or decode_line(raw).strip()!r}")
        if not line.metrics:
            return
        if not any("/" in key for key in line.metrics):
            self._set_aside(line, where)
            return
        if self._fixed and not line.fixed:
            self._fixed, self._shapes = False, LineShapes(fixed=False)
        self._shapes.learn(line)
        self._add(line.step, line.metrics, where, raw)

    def _add(self, step: int, found: dict[str, float], where: str, raw: bytes) -> None:
        self._slashed = True
        self.builder.add(step, found, where, _clock(raw))
        self._last = step
        if self._initial:
            self._place_initial(step, found)

    def _set_aside(self, line: StepLine, where: str) -> None:
        if len(self._bare) < KEPT:
            self._bare.append((line.step, line.metrics, where))
        else:
            self.builder.skip(where, "no name with a '/': text, not metrics")

    def _judge_bare(self) -> None:
        """Lines without one metric of verl's kind: a run of other names, or a model's own words."""
        for step, found, where in self._bare:
            if self._slashed:
                self.builder.skip(where, f"text, not metrics: {next(iter(found))!r}")
            else:
                self.builder.add(step, found, where)
        self._bare = []

    def _place_initial(self, step: int, found: dict[str, float]) -> None:
        """The metrics before training, of which the console line may come next, or not at all."""
        initial, self._initial = self._initial, {}
        self._fill(initial, step if initial.keys() & found.keys() else max(step - 1, 0))

    def _fill(self, found: dict[str, float], step: int) -> None:
        row = self.builder.rows.get(step, {})
        missing = {key: value for key, value in found.items() if key not in row}
        if missing:
            self.builder.add(step, missing, "validation metrics")

    def _command(self, text: str) -> None:
        if _LAUNCH.search(text[:MAX_LINE_CHARACTERS]):
            self.builder.launch()
            if found := overrides(text):
                self.builder.config = dict(found)

    def _open(self, data: bytes, start: int, end: int, token: bytes) -> None:
        """Begin to collect a literal at this line."""
        for process, text in split_processes(decode_line(data[start:end])):
            if self._block:
                self._feed(process, text)
            elif token == _CONFIG and (found := text.find(_CONFIG.decode())) >= 0:
                self._kind, self._block = "config", LiteralCollector(process)
                self.builder.launch()
                self._feed(process, text[found:])
            elif token == _VALIDATION and (said := _SAID.search(text)):
                self._kind, self._block = said[2] or said[3], LiteralCollector(process)
                self._feed(process, text[said.start() if said[1] else said.end() :])

    def _collect(self, data: bytes, start: int, stop: int) -> None:
        """Feed the lines from one place to another to the literal, until it is complete."""
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
        if not (found := printed_metrics(text)):
            self._missed("validation metrics without a number")
        elif self._kind == "Initial":
            self._initial = found
        else:
            self._fill(found, self._last)

    def _configure(self, block: LiteralCollector) -> None:
        found = dict(flatten(literal_value(block.text)))
        self.builder.config = found if block.whole and found else {**self.builder.config, **found}
        if not block.whole or not found:
            self._missed(f"the configuration is not whole; {len(found):,} settings of it were read")

    def _missed(self, reason: str) -> None:
        self.builder.skip(f"line {self._opened:,}", reason)


def overrides(text: str) -> dict[str, str]:
    """The `key=value` arguments of a command line; values stay text."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    found = (_OVERRIDE.fullmatch(word) for word in words)
    return {match[1]: match[2] for match in found if match and "." in match[1]}


def _hits(data: bytes, tokens: Sequence[bytes]) -> list[tuple[int, bytes]]:
    """Where lines of interest are, in order, at most one of a kind to a line."""
    found: list[tuple[int, bytes]] = []
    for token in tokens:
        at = data.find(token)
        while at >= 0:
            if token != _STEP or STEP.match(data, at):
                found.append((at, token))
                at = _end(data, at)
            else:
                at += len(token)
            at = data.find(token, at)
    return sorted(found)


def _end(data: bytes, at: int) -> int:
    """Where the line of a place ends; a carriage return ends a line too."""
    end = data.find(b"\n", at)
    end = len(data) if end < 0 else end
    early = data.find(b"\r", at, end)
    return end if early < 0 else early


def _clock(raw: bytes) -> float | None:
    """The time before the step, in seconds; time zones are left aside, for only spans are used."""
    match = _STAMP.search(raw[: raw.find(_STEP)])
    if match is None:
        return None
    try:
        date = datetime.fromisoformat(f"{match[1].decode()}T{match[2].decode()}")
    except ValueError:
        return None
    fraction = float(f"0.{match[3].decode()}") if match[3] else 0.0
    return date.replace(tzinfo=timezone.utc).timestamp() + fraction
