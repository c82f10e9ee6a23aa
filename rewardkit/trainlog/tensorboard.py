"""Reader of the scalars in TensorBoard event files, which needs no TensorBoard.

A file is a sequence of records: the length (8 bytes), a checksum of it (4), the bytes of an
`Event` message and a checksum of these (4). The checksums of the lengths are verified, which
recognises records. The reader uses these fields of the messages, by their numbers in TensorFlow's
`event.proto`, `summary.proto` and `tensor.proto`:

    Event: 1 wall_time, 2 step, 5 summary     Summary: 1 value
    Value: 1 tag, 2 simple_value, 8 tensor    Tensor: 1 dtype, 4 tensor_content, 5 float_val,
                                                      6 double_val
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from struct import error, unpack
from typing import BinaryIO, TypeAlias

from rewardkit.errors import DataError
from rewardkit.trainlog.table_builder import TableBuilder
from rewardkit.trainlog.training_run import TrainingRun

#: Bytes of a record; images and graphs, which are skipped, may be large.
MAX_RECORD_BYTES = 256 << 20

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FLOAT, _DOUBLE = 1, 2

_Field: TypeAlias = tuple[int, int | bytes]


def is_event_file(head: bytes) -> bool:
    """Return whether a file that starts with `head` is an event file."""
    return len(head) >= 12 and unpack("<I", head[8:12])[0] == _masked_checksum(head[:8])


def read_events(files: Iterable[Path], name: str, path: str) -> TrainingRun:
    """Read the run whose scalars the files hold, in the given order.

    Raises:
        DataError: the files have no step.
    """
    builder = TableBuilder()
    for file in files:
        with file.open("rb") as stream:
            for where, record in _records(stream, builder, file.name):
                try:
                    _add_event(record, builder, where)
                except (error, IndexError, UnicodeDecodeError, DataError):
                    builder.skip(where, "not a readable event")
    return builder.run(name=name, path=path, source="tensorboard")


def _records(stream: BinaryIO, builder: TableBuilder, name: str) -> Iterator[tuple[str, bytes]]:
    for i in range(1 << 62):
        head = stream.read(12)
        if not head:
            return
        where = f"{name}, record {i + 1:,}"
        if not is_event_file(head) or (length := unpack("<Q", head[:8])[0]) > MAX_RECORD_BYTES:
            builder.skip(where, "not a TensorBoard record; the rest of the file is not read")
            return
        record = stream.read(length + 4)
        if len(record) < length + 4:
            builder.skip(where, "the file ends in this record")
            return
        yield where, record[:length]


def _add_event(record: bytes, builder: TableBuilder, where: str) -> None:
    clock, step = 0.0, 0
    scalars: dict[str, float] = {}
    for number, value in _fields(record):
        if number == 1 and isinstance(value, bytes):
            clock = unpack("<d", value)[0]
        elif number == 2 and isinstance(value, int):
            step = value
        elif number == 5 and isinstance(value, bytes):
            scalars |= dict(_scalars(value))
    if scalars and step < 1 << 62:  # a negative step is a large number here
        builder.add(step, scalars, where, clock)


def _scalars(summary: bytes) -> Iterator[tuple[str, float]]:
    for number, item in _fields(summary):
        if number != 1 or not isinstance(item, bytes):
            continue
        tag, scalar = "", None
        for inner, value in _fields(item):
            if not isinstance(value, bytes):
                continue
            if inner == 1:
                tag = value.decode()
            elif inner == 2:
                scalar = unpack("<f", value)[0]
            elif inner == 8:
                scalar = _tensor(value)
        if tag and scalar is not None:
            yield tag, scalar


def _tensor(tensor: bytes) -> float | None:
    """Return the value of a tensor of one float, else None."""
    kind, content = 0, b""
    for number, value in _fields(tensor):
        if number == 1 and isinstance(value, int):
            kind = value
        elif number in {4, 5, 6} and isinstance(value, bytes):
            content = value
    layout = {(_FLOAT, 4): "<f", (_DOUBLE, 8): "<d"}.get((kind, len(content)))
    return unpack(layout, content)[0] if layout else None


def _fields(message: bytes) -> Iterator[_Field]:
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        if kind == _BYTES:
            size, at = _varint(message, at)
        elif kind in {_FIXED64, _FIXED32}:
            size = 8 if kind == _FIXED64 else 4
        else:
            raise DataError(f"an event has a field of kind {kind}; the file is damaged.")
        if at + size > len(message):
            raise DataError("a field is longer than its event; the file is damaged.")
        yield key >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise DataError("a number in an event has too many bytes; the file is damaged.")


def _masked_checksum(data: bytes) -> int:
    crc, table = 0xFFFFFFFF, _crc_table()
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


@cache
def _crc_table() -> tuple[int, ...]:
    return tuple(_crc(byte) for byte in range(256))


def _crc(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte
