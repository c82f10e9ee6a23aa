"""Unfinished outputs: a record is whole or it does not count, and no file has the records of two runs."""

import json
import os
from types import SimpleNamespace

import pytest

from rewardkit.errors import DataError, OutputError
from rewardkit.responses.store import Store, open_store, part_path

RUN = {"files": ["a"], "seed": (1, 2)}


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.jsonl"


def opened(out, run=RUN, *, resume=True, overwrite=False):
    return open_store(out, run, resume=resume, overwrite=overwrite)


def write(out, *bodies, **options):
    with opened(out, **options) as store:
        for body in bodies:
            store.append({"n": len(body)}, body)
        return [(head["n"], body) for head, _, body in store.records()]


def test_a_run_goes_on_behind_the_records_of_an_earlier_one(out):
    assert write(out, b"one\n", b"") == [(4, b"one\n"), (0, b"")]
    assert write(out, b"two\n") == [(4, b"one\n"), (0, b""), (4, b"two\n")]
    with opened(out) as store:
        assert store.count == 3
        store.remove()
    assert not part_path(out).exists()


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_record_that_a_kill_or_a_power_cut_left_in_part_does_not_count(out, cut):
    write(out, b"first\n", b"second\n" * 3)
    path = part_path(out)
    text = path.read_bytes()
    for damaged in (text[:-cut], text[:-cut] + bytes(cut)):
        path.write_bytes(damaged)
        assert write(out, b"next\n")[0] == (6, b"first\n")
        assert [n for n, _ in write(out)][-1] == 5
    path.write_bytes(text.replace(b"second", b"sekond"))
    assert write(out) == [(6, b"first\n")]


@pytest.mark.parametrize(
    "text",
    [b"my notes\n", b"{", b"[1]\n", b'{"row": 0, "sample": 0}\n', b"[" * 100_000, b"\0" * 100],
)
@pytest.mark.parametrize("resume", [False, True])
def test_a_file_that_this_version_did_not_begin_is_replaced_only_with_overwrite(out, text, resume):
    """Also the files of earlier versions, which cannot be continued."""
    part_path(out).write_bytes(text)
    with pytest.raises(DataError, match=r"\.part: is not an unfinished output of this version"):
        write(out, resume=resume)
    assert part_path(out).read_bytes() == text
    assert write(out, b"x", resume=resume, overwrite=True) == [(1, b"x")]


def test_only_a_run_of_the_same_goes_on_and_only_with_resume(out):
    write(out, b"one\n")
    with pytest.raises(DataError, match="had other files; --overwrite starts again"):
        write(out, run={"files": ["b"]})
    with pytest.raises(OutputError, match="--resume continues it, --overwrite starts again"):
        write(out, resume=False)
    assert write(out, resume=False, overwrite=True) == []
    assert not part_path(out).exists()  # nothing is worth to go on from


class FullDisk:
    """A file that accepts three bytes and then reports a full disk."""

    def __init__(self, file):
        self.file, self.accepts = file, True

    def write(self, text):
        if not self.accepts:
            raise OSError(28, "No space left on device")
        self.accepts = False
        return self.file.write(bytes(text)[:3])

    def __getattr__(self, name):
        return getattr(self.file, name)


def test_a_full_disk_leaves_the_whole_records(out):
    def fill():
        with opened(out) as store:
            store.append({"n": 1}, b"1")
            store.file = FullDisk(store.file)
            store.append({"n": 2}, b"22")

    with pytest.raises(OutputError, match=r"out\.jsonl: cannot be written: No space left"):
        fill()
    assert write(out) == [(1, b"1")]


def test_a_record_is_not_appended_to_what_another_run_has_written(out):
    """Whatever became of the lock: no file has the records of two runs."""
    with opened(out) as store:
        store.append({}, b"one")
        with part_path(out).open("ab") as other:
            other.write(b"other")
        with pytest.raises(OutputError, match=r"has written 5 bytes to it, too\. Wait"):
            store.append({}, b"two")
        with pytest.raises(DataError, match=r"has written 5 bytes to it, too\. Wait"):
            list(store.records())


def test_a_run_whose_lock_was_taken_over_ends_before_its_records_count(out, monkeypatch):
    def lost():
        raise OutputError("another run has taken it over")

    monkeypatch.setattr("rewardkit.responses.store.SYNC_SECONDS", 0.0)

    def run():
        with opened(out) as store:
            store._lock = SimpleNamespace(require=lost)
            store.append({}, b"one")

    with pytest.raises(OutputError, match="taken it over"):
        run()


def test_heads_of_any_shape_end_the_file(out):
    write(out, b"one\n")
    good = part_path(out).read_bytes()
    for numbers in ([-1, 0], [1 << 70, 0], [True, 0], [0], ["0", 0], None, {}):
        part_path(out).write_bytes(good + json.dumps({"rewardkit_part": numbers}).encode() + b"\n")
        assert write(out) == [(4, b"one\n")]


def test_records_are_synced_about_once_a_second(out, monkeypatch):
    calls = []
    monkeypatch.setattr(os, "fsync", calls.append)
    monkeypatch.setattr(Store, "sync", lambda store: calls.append(store) or setattr(store, "_sync_time", 1e12))  # fmt: skip
    write(out, *[b"x"] * 50)
    assert 1 <= len(calls) <= 3
