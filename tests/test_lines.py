"""Lines of foreign files are read in bounded memory, and fingerprints detect changed files."""

import gzip
import io
import os
import tracemalloc

import pytest

from rewardkit.errors import DataError
from rewardkit.jsonl import END_BYTES, LongLine, bounded_lines, checked_lines, fingerprint


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"a\n\nb\n", [b"a\n", b"\n", b"b\n"]),
        (b"12345", [b"12345"]),
        (b"123456", [LongLine(6, 5)]),
        (b"123456\n1\n", [LongLine(6, 5), b"1\n"]),
        (b"1\n1234567890\n\n1234567890", [b"1\n", LongLine(10, 5), b"\n", LongLine(10, 5)]),
    ],
)
def test_a_too_long_line_is_skipped_and_the_others_are_complete(data, lines):
    assert list(bounded_lines(io.BytesIO(data), 5)) == lines


def test_a_too_long_line_is_an_error_with_its_file_and_number():
    stream = io.BytesIO(b"1\n" + b"2" * 2000 + b"\n3\n")
    lines = checked_lines(stream, "data.jsonl", 1000)
    assert next(lines) == (1, b"1\n")
    with pytest.raises(DataError, match=r"data.jsonl:2: the line has 2,000 bytes, .* 1,000"):
        next(lines)


def test_memory_stays_flat_on_a_packed_line_of_any_length(tmp_path):
    path = tmp_path / "bomb.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(64):
            file.write(bytes(1 << 20))
        file.write(b"\nend\n")
    tracemalloc.start()
    with gzip.open(path) as stream:
        assert list(bounded_lines(stream, 1 << 20)) == [LongLine(64 << 20, 1 << 20), b"end\n"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


@pytest.mark.parametrize("place", [0, END_BYTES + 5, -1])
def test_a_fingerprint_detects_a_change_at_the_ends_with_the_same_size_and_time(tmp_path, place):
    path = tmp_path / "file"
    data = bytearray(2 * END_BYTES + 10 if place < 1 else END_BYTES + 10)
    path.write_bytes(data)
    before, stat = fingerprint(path), path.stat()
    assert fingerprint(path) == before
    data[place] = 1
    path.write_bytes(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    after = fingerprint(path)
    assert after[:2] == before[:2]
    assert after.digest != before.digest
