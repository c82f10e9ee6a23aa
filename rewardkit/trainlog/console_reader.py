"""Reader of verl's console output of every release since 0.1, as a stream of bytes.

Only a few lines of a log matter. The reader searches large pieces of the file for the words of these
lines, which is much faster than to parse every line. (verl also prints validation metrics as a dictionary,
and logs the same as a step: `verl/trainer/ppo/ray_trainer.py`.)
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from rewardkit.jsonl import LongLine
from rewardkit.trainlog.python_literal import (
    LiteralCollector,
    close_literal,
    flatten,
    literal_value,
    split_processes,
)
from rewardkit.trainlog.step_line import STEP, decode_line, parse_step_line, split_steps
from rewardkit.trainlog.training_run import FIXED, FULL, V1, TableBuilder, TrainingRun

#: A longer line is cut here, so that a file without line ends does not fill memory.
MAX_BUFFER_BYTES = 32 << 20

#: Bytes of a step line; all metrics that a table may have take two MiB.
MAX_STEP_LINE_BYTES = 4 << 20

_STEP, _CONFIG = b"step:", b"{'actor_rollout_ref':"

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
    _block: LiteralCollector | None = None
    _opened: int = 0
    _fixed: bool = True
    _v1: bool = False

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
        rest, self._rest = self._rest, b""
        self._scan(rest, cut=True)
        self._end_block()
        return self.run(name, path)

    def run(self, name: str, path: str) -> TrainingRun:
        """Return the run as far as it has been read."""
        era = V1 if self._v1 else FIXED if self._fixed else FULL
        return self.builder.run(name=name, path=path, source="console", era=era)

    def _scan(self, data: bytes, *, cut: bool = False) -> None:
        counted, here, at_block = 0, self._line, 0
        for at, token in sorted((*_places(data, _STEP), *_places(data, _CONFIG))):
            here += data.count(b"\n", counted, at)
            counted = at
            start = data.rfind(b"\n", 0, at) + 1
            start = data.rfind(b"\r", start, at) + 1 or start
            end = _end(data, at)
            self._continue_block(data[at_block:end])
            at_block = max(at_block, end + 1)
            line = data[start:end]
            if token == _STEP:
                steps = split_steps(line)
                is_cut = cut and end == len(data)
                for i, raw in enumerate(steps, 1):
                    self._step(raw, f"line {here:,}", cut=is_cut and i == len(steps))
            elif not self._block:
                self._opened = here
                self._open_block(line)
        self._continue_block(data[at_block:])
        self._line = here + data.count(b"\n", counted)

    def _step(self, raw: bytes, where: str, *, cut: bool) -> None:
        if len(raw) > MAX_STEP_LINE_BYTES:
            self.builder.skip(where, LongLine(len(raw), MAX_STEP_LINE_BYTES).reason)
            return
        self._v1 = self._v1 or b"np." in raw or b"TaskRunnerV1" in raw
        if cut and self._fixed and self.builder.rows:
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
            self.builder.skip(where, f"text, not metrics: {next(iter(line.metrics))!r} has no '/'")
            return
        self._fixed = self._fixed and line.has_fixed_decimals
        self.builder.add(line.step, line.metrics, where, _clock(raw))

    def _open_block(self, line: bytes) -> None:
        for process, text in split_processes(decode_line(line)):
            if self._block:
                self._feed_block(process, text)
            elif (at := text.find(_CONFIG.decode())) >= 0:
                self._block = LiteralCollector(process)
                self.builder.is_launched = True
                self._feed_block(process, text[at:])

    def _continue_block(self, data: bytes) -> None:
        at = 0
        while self._block and at < len(data):
            end = _end(data, at)
            for process, text in split_processes(decode_line(data[at:end])):
                self._feed_block(process, text)
            at = end + 1

    def _feed_block(self, process: str, text: str) -> None:
        if self._block and self._block.feed(process, text):
            self._end_block()

    def _end_block(self) -> None:
        block, self._block = self._block, None
        if block is None:
            return
        text = "\n".join(block.lines)
        if settings := dict(flatten(literal_value(text))):
            self.builder.config = settings
            return
        settings = dict(flatten(literal_value(close_literal(text))))
        self.builder.config = {**self.builder.config, **settings}
        reason = f"the configuration is incomplete; {len(settings):,} settings were read"
        self.builder.skip(f"line {self._opened:,}", reason)


def _places(data: bytes, token: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the places of a word that matters, with the word; at most one in a line."""
    at = data.find(token)
    while at >= 0:
        is_hit = token != _STEP or STEP.match(data, at)
        if is_hit:
            yield at, token
        at = data.find(token, _end(data, at) if is_hit else at + len(token))


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
    date, time, fraction = (part.decode() for part in match.groups(b""))
    try:
        return datetime.fromisoformat(f"{date}T{time}.{fraction:0<6}+00:00").timestamp()
    except ValueError:
        return None
