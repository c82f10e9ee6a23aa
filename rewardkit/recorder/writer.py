"""Records what a reward returns: a line of JSON for each call, in a file of each process.

A line is written whole, with one call of the system, before the reward returns: nothing is added up, and a
killed process loses nothing. Whatever fails, the reward goes on; calls that were lost are counted.

| field | value |
|---|---|
| `time`, `seconds` | when the call ended, in seconds since 1970, and how long it took |
| `source`, `validation` | the row's data source; whether the row is not of training |
| `values` | every finite number of the result: `score`, `acc`, flags, parts |
| `characters` | length of the response |
| `gold` | whether the response states the gold, see `gold.py`; absent if that cannot be said |
| `prompt`, `answer` | short hashes, by which the responses to a prompt are compared |
| `response`, `question`, `pred`, `index` | the texts, of a fraction of the calls |
| `lost` | calls that could not be written since the last line |
"""

import errno
import json
import logging
import os
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

from rewardkit.errors import call_catching
from rewardkit.recorder.gold import states_gold

#: Files of records in a folder.
PATTERN = "rewards-*.jsonl"

#: Fraction of the calls whose texts are written.
TEXT_FRACTION = 1 / 8

#: Characters of a response that is written whole; of a longer one, the middle is left out.
MAX_TEXT_CHARACTERS = 16_000

#: Characters of a data source, a key, an answer and an index; numbers of a result.
MAX_NAME_CHARACTERS, MAX_VALUES = 200, 64

#: Numbers beyond this have no square; they count as not finite. Longest believable call, in seconds.
LARGEST, LONGEST = 1e150, 1e6

_GOLDEN_RATIO = 0.6180339887498949
_PLAIN = frozenset({float, int, bool})
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_log = logging.getLogger("rewardkit")


class Recorder:
    """Records the calls of a reward in this process, into a file of a folder.

    Attributes:
        folder: the folder, which is created with the first line.
        share: fraction of the calls whose texts are written; 0 writes no response.
        lost: calls that could not be written since the last line.
    """

    def __init__(
        self, folder: str, *, share: float = TEXT_FRACTION, clock: Callable[[], float] = time.time
    ) -> None:
        self.folder = folder
        self.share = share
        self.lost = 0
        self._clock = clock
        self._name = f"{clock():.0f}-{os.urandom(4).hex()}"
        self._calls = 0
        self._descriptor = -1
        self._is_torn = False
        self._is_failure_logged = False

    def add(
        self,
        result: Mapping[str, float | str],
        *,
        response: str,
        data_source: str,
        ground_truth: str,
        extra_info: Mapping[str, Any],
        seconds: float,
    ) -> None:
        """Record a call. Never raises; takes about 20 microseconds.

        Args:
            result: the dictionary that verl gets.
            response: the response.
            data_source: the row's `data_source`.
            ground_truth: the gold answer, which stands for the prompt if the row has no index.
            extra_info: the row's other fields, of which `split`, `index` and `question` are read.
            seconds: how long the call took.
        """
        self._calls += 1
        call = (result, response, data_source, ground_truth, extra_info)
        # The values of a user's reward may raise anything.
        error = call_catching(self._append, call, seconds)
        if error is not None:
            self.lost += 1
            call_catching(self._log_failure, error)

    def _append(self, call: tuple[Any, ...], seconds: float) -> None:
        """Write a line with one call; what a full disk leaves of it ends with the next line."""
        # Multiples of the golden ratio are spread evenly, whatever the size of a group.
        record = record_of(*call, has_text=self._calls * _GOLDEN_RATIO % 1 < self.share)
        seconds = seconds if 0 <= seconds < LONGEST else 0.0
        line = {"time": self._clock(), "seconds": seconds, **record}
        is_old = self._calls % 8 == 0  # a look at the file takes a microsecond
        if self._descriptor < 0 or (is_old and os.fstat(self._descriptor).st_nlink == 0):
            self._open()  # the first line, or the folder was deleted
        if lost := self.lost:
            line["lost"] = lost
        data = b"\n" * self._is_torn + _encode(line).encode() + b"\n"
        written = os.write(self._descriptor, data)
        self._is_torn = written < len(data)
        if written < len(data) - 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.lost -= lost

    def _open(self) -> None:
        folder = Path(self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        host = re.sub(r"[^\w.-]", "_", os.uname().nodename, flags=re.ASCII)[:100]
        name = f"rewards-{host}-{os.getpid()}-{self._name}.jsonl"  # threads that open it at once share it
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_APPEND | os.O_CLOEXEC
        self._descriptor, self._is_torn = os.open(folder / name, flags, 0o644), False

    def _log_failure(self, error: Exception) -> None:
        if not self._is_failure_logged:
            self._is_failure_logged = True
            _log.error(
                "%s: rewards cannot be recorded: %s. The reward goes on, and so do further attempts; "
                "see to the folder and the disk.",
                self.folder,
                getattr(error, "strerror", None) or error,
            )


def record_of(
    result: Mapping[str, Any],
    response: Any,
    data_source: Any,
    ground_truth: Any,
    extra_info: Any,
    *,
    has_text: bool,
) -> dict[str, Any]:
    """Return what is recorded of a call but its time, with the texts if `has_text`."""
    text = response if type(response) is str else str(response)
    info = extra_info if isinstance(extra_info, Mapping) else {}
    index = info.get("index")
    index = _name(ground_truth if index is None else index)
    pred = _name(result.get("pred"))
    record = {
        "source": _name(data_source),
        "values": _numbers(result),
        "characters": len(text),
        "prompt": hash_of(index),
        "answer": hash_of(pred),
    }
    if (gold := states_gold(text, ground_truth)) is not None:
        record["gold"] = gold
    split = info.get("split")
    if isinstance(split, str) and split != "train":
        record["validation"] = True
    if has_text:
        question = info.get("question")
        record["response"], record["pred"], record["index"] = cut(text), pred, index
        record["question"] = cut(question) if isinstance(question, str) else ""
    return record


def recorder_of(folder: str) -> Recorder:
    """Return the recorder of a folder in this process; made on the first call."""
    return _recorders.get(folder) or _recorders.setdefault(folder, Recorder(folder))


def _numbers(result: Mapping[str, Any]) -> dict[str, float]:
    """Return the finite numbers of a result; those of numpy and torch become plain ones."""
    numbers: dict[str, float] = {}
    for key, value in result.items():
        if type(key) is not str or isinstance(value, str):
            continue
        number = value if type(value) in _PLAIN else call_catching(float, value)
        if isinstance(number, (int, float)) and -LARGEST < number < LARGEST:
            numbers[key[:MAX_NAME_CHARACTERS]] = number
            if len(numbers) == MAX_VALUES:
                break
    return numbers


def _name(value: Any) -> str:
    if type(value) is str:
        return value[:MAX_NAME_CHARACTERS]
    text = "" if value is None else call_catching(str, value)
    return text[:MAX_NAME_CHARACTERS] if isinstance(text, str) else ""


def hash_of(text: str) -> int:
    """Return the short hash by which prompts and answers are compared."""
    return crc32(text.encode("utf-8", "surrogatepass"))


def cut(text: str, most: int = MAX_TEXT_CHARACTERS) -> str:
    """Return a text of at most this many characters, or both ends of a longer one."""
    left_out = len(text) - most
    if left_out <= 0:
        return text
    half = most // 2
    return f"{text[:half]}\n[... {left_out:,} characters left out ...]\n{text[-half:]}"


_recorders: dict[str, Recorder] = {}
