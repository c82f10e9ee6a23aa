"""TensorBoard files, written byte by byte: scalars are read back and damage is reported."""

from __future__ import annotations

from math import isnan
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.trainlog.read import read_run
from rewardkit.trainlog.tensorboard import read_events


def varint(value):
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes([*encoded, value])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def scalar(tag, value):
    return field(1, field(1, tag.encode()) + b"\x15" + pack("<f", value))


def tensor(tag, value):
    content = b"\x08\x01" + field(4, pack("<f", value))
    return field(1, field(1, tag.encode()) + field(8, content))


def event(step, *values, clock=1.0):
    return b"\x09" + pack("<d", clock) + b"\x10" + varint(step) + field(5, b"".join(values))


def record(data):
    head = pack("<Q", len(data))
    return head + b"\0\0\0\0" + data + b"\0\0\0\0"


VERSION = record(b"\x09" + pack("<d", 1.0) + field(3, b"brain.Event:2"))


@pytest.fixture
def write(tmp_path):
    def write_records(*records, name="events.out.tfevents.1"):
        (tmp_path / name).write_bytes(VERSION + b"".join(records))
        return tmp_path

    return write_records


TAGS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
ROWS = st.lists(st.dictionaries(TAGS, st.floats(width=32), min_size=1, max_size=5), min_size=1)


@given(ROWS)
def test_any_scalars_are_read_back(tmp_path_factory, scalars):
    folder = tmp_path_factory.mktemp("events")
    records = [
        record(event(step, scalar(key, value)))
        for step, row in enumerate(scalars)
        for key, value in row.items()
    ]
    (folder / "events.out.tfevents.1").write_bytes(VERSION + b"".join(records))
    run = read_run(folder)
    assert run.unread == 0
    for step, row in enumerate(scalars):
        for key, value in row.items():
            restored = run.table[key][step]
            assert restored == value or (isnan(restored) and isnan(value))


def test_a_single_file_is_read_with_tensors_and_the_times_of_its_steps(write):
    records = (record(event(i, tensor("a/b", 0.5 * i), clock=100.0 * i)) for i in (1, 2))
    run = read_run(write(*records) / "events.out.tfevents.1")
    assert (run.steps, run.table, run.clock) == ((1, 2), {"a/b": (0.5, 1.0)}, (100.0, 200.0))


def test_the_second_file_of_a_resumed_run_overrides_the_first(write):
    write(*(record(event(i, scalar("a/b", i))) for i in range(1, 6)))
    again = (record(event(i, scalar("a/b", 10 * i))) for i in (3, 4))
    run = read_run(write(*again, name="events.out.tfevents.2"))
    assert run.table["a/b"] == (1, 2, 30, 40)
    assert run.restarts[0].step == 3


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (record(event(2, scalar("a/b", 2)))[:-9], "the file ends in this record"),
        (b"garbage" * 9, "not a TensorBoard record"),
    ],
)
def test_a_damaged_file_is_read_as_far_as_possible(write, end, reason):
    run = read_run(write(record(event(1, scalar("a/b", 1))), end))
    assert (run.steps, run.unread) == ((1,), 1)
    assert reason in run.examples[0].reason


@given(st.binary(max_size=60))
def test_arbitrary_bytes_in_a_record_are_counted_at_most(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("events") / "events.out.tfevents.1"
    path.write_bytes(VERSION + record(data) + record(event(7, scalar("kept", 1))))
    run = read_events([path], "run", "run")
    assert run.table["kept"][run.steps.index(7)] == 1
