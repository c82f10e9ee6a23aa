"""Reader of the scalars in TensorBoard event files, which needs no TensorBoard.

A file is a sequence of records: the length (8 bytes), a checksum of it (4), the bytes of an
`Event` message and a checksum of these (4). The first event has the version of the file, by which such
a file is known. The reader uses these fields of the messages, by their numbers in TensorFlow's
`event.proto`, `summary.proto` and `tensor.proto`:

    Event: 1 wall_time, 2 step, 5 summary     Summary: 1 value
    Value: 1 tag, 2 simple_value, 8 tensor    Tensor: 1 dtype, 4 tensor_content, 5 float_val,
                                                      6 double_val
"""

from collections.abc import Iterable, Iterator
from io import BufferedReader
from pathlib import Path
from struct import error, unpack

from rewardkit.errors import DataError
from rewardkit.trainlog.training_run import TableBuilder, TrainingRun

#: Bytes of a record; images and graphs, which are skipped, may be large.
MAX_RECORD_BYTES = 256 << 20

#: Bytes at the start of a file that have its version.
_HEAD_BYTES = 64

#: Bytes of a value by its kind; the length of others stands before them.
_VARINT, _BYTES, _SIZES = 0, 2, {1: 8, 5: 4}

#: How tensors of one float are packed, by dtype and length.
_LAYOUTS = {(1, 4): "<f", (2, 8): "<d"}


def is_event_file(head: bytes) -> bool:
    """Return whether a file that starts with `head` is an event file."""
    return b"brain.Event:" in head[:_HEAD_BYTES]


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
                except (error, LookupError, UnicodeDecodeError, DataError):
                    builder.skip(where, "not a readable event")
    return builder.run(name=name, path=path, source="tensorboard")


def _records(
    stream: BufferedReader, builder: TableBuilder, name: str
) -> Iterator[tuple[str, bytes]]:
    number = 0
    while head := stream.read(12):
        number += 1
        where = f"{name}, record {number:,}"
        length = int.from_bytes(head[:8], "little")
        if length > MAX_RECORD_BYTES or (number == 1 and not is_event_file(head + stream.peek())):
            builder.skip(where, "not a TensorBoard record; the rest of the file is not read")
            return
        record = stream.read(length + 4)
        if len(record) < length + 4:
            builder.skip(where, "the file ends in this record")
            return
        yield where, record[:length]


def _add_event(record: bytes, builder: TableBuilder, where: str) -> None:
    fields = dict(_fields(record))
    scalars = dict(_scalars(fields.get(5, b"")))
    step, clock = int.from_bytes(fields.get(2, b""), "little"), fields.get(1, bytes(8))
    if scalars and step < 1 << 62:  # a negative step is a large number here
        builder.add(step, scalars, where, unpack("<d", clock)[0])


def _scalars(summary: bytes) -> Iterator[tuple[str, float]]:
    for number, item in _fields(summary):
        value = dict(_fields(item)) if number == 1 else {}
        if 2 in value:
            yield value[1].decode(), unpack("<f", value[2])[0]
        elif 8 in value:
            tensor = dict(_fields(value[8]))
            content = next((tensor[key] for key in (4, 5, 6) if key in tensor), b"")
            layout = _LAYOUTS.get((int.from_bytes(tensor.get(1, b""), "little"), len(content)))
            if layout:
                yield value[1].decode(), unpack(layout, content)[0]


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the bytes of each field; those of an integer are little-endian."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield key >> 3, value.to_bytes(10, "little")
            continue
        if kind == _BYTES:
            size, at = _varint(message, at)
        elif kind in _SIZES:
            size = _SIZES[kind]
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
