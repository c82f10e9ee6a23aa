"""The cache of verdicts: whole entries or none, in several processes, after a kill, within its size."""

import os
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.judging import cache
from rewardkit.judging.cache import cache_key, read_entry, write_entry

WRITER = """
import sys
from rewardkit.judging.cache import cache_key, read_entry, write_entry
folder, start, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for i in range(start, start + n):
    key = cache_key({"number": i % 300})
    reply = read_entry(folder, key)
    assert reply in (None, f"reply {i % 300} " * 50), reply
    write_entry(folder, key, f"reply {i % 300} " * 50)
    print(i, flush=True)
"""


def start_writer(folder, start, n):
    command = [sys.executable, "-c", WRITER, str(folder), str(start), str(n)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@given(st.dictionaries(st.text(max_size=5), st.text()))
def test_equal_contents_have_one_key(content):
    assert cache_key(content) == cache_key(dict(reversed(content.items())))
    assert cache_key({**content, "more": "x"}) != cache_key({**content, "more": "y"})


def test_no_link_that_others_can_plant_in_a_shared_cache_is_followed(tmp_path, monkeypatch):
    """Neither under a name that they could predict nor, if they are lucky, under the real one."""
    victim, key = tmp_path / "victim", cache_key({"number": 1})
    victim.write_text("mine")
    folder = tmp_path / "cache" / key[:2]
    folder.mkdir(parents=True)
    (folder / f"{key}.json").symlink_to(victim)
    host = os.uname().nodename
    for number in range(1000):
        (folder / f".{key[:16]}.{host}.{os.getpid()}.{number}").symlink_to(victim)
    write_entry(str(tmp_path / "cache"), key, "reply")
    assert read_entry(str(tmp_path / "cache"), key) == "reply"
    monkeypatch.setattr(os, "urandom", bytes)
    (folder / f".{key[:16]}.{bytes(8).hex()}").symlink_to(victim)
    write_entry(str(tmp_path / "cache"), key, "other")
    assert victim.read_text() == "mine"


def test_two_processes_write_the_same_entries(tmp_path):
    writers = [start_writer(tmp_path, start, 600) for start in (0, 150)]
    for writer in writers:
        _, errors = writer.communicate(timeout=120)
        assert writer.returncode == 0, errors
    for i in range(300):
        assert read_entry(str(tmp_path), cache_key({"number": i})) == f"reply {i} " * 50


def test_a_killed_process_leaves_no_broken_entry(tmp_path):
    writer = start_writer(tmp_path, 0, 10**9)
    written = [int(writer.stdout.readline()) for _ in range(200)]
    os.kill(writer.pid, signal.SIGKILL)
    writer.communicate()
    for i in written:
        assert read_entry(str(tmp_path), cache_key({"number": i})) == f"reply {i} " * 50
    for path in tmp_path.glob("*/*.json"):
        assert read_entry(str(tmp_path), path.stem)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"key": "x", "reply": "y"}', b"\xff" * 9])
def test_a_broken_or_foreign_file_is_no_entry_and_is_replaced(text, tmp_path):
    folder, key, reply = str(tmp_path), cache_key({"a": 1}), "yes \u2713 \ud800"
    write_entry(folder, key, reply)
    assert (read_entry(folder, key), read_entry(folder, cache_key({"a": 2}))) == (reply, None)
    next(tmp_path.glob("*/*.json")).write_bytes(text)
    assert read_entry(folder, key) is None
    write_entry(folder, key, reply)
    assert read_entry(folder, key) == reply


def test_a_folder_keeps_its_newest_entries(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "MAX_ENTRIES_PER_FOLDER", 16)
    monkeypatch.setattr(cache, "WRITES_PER_COUNT", 1)
    leftover = tmp_path / "00" / ".leftover"
    leftover.parent.mkdir()
    leftover.write_text("x")
    os.utime(leftover, (1, 1))
    keys = [f"00{i:062d}" for i in range(50)]
    for i, key in enumerate(keys):
        write_entry(str(tmp_path), key, "yes")
        os.utime(tmp_path / "00" / f"{key}.json", (time.time() - 1000 + i,) * 2)
    present = [key for key in keys if read_entry(str(tmp_path), key)]
    assert len(present) <= 16
    assert present == keys[-len(present) :]
    assert not leftover.exists()


def test_a_folder_that_cannot_be_written_is_logged_once(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(cache, "_unwritable", set())
    file = tmp_path / "file"
    file.write_text("x")
    for i in range(3):
        write_entry(str(file), cache_key({"a": i}), "yes")
    assert [record.getMessage() for record in caplog.records] == [
        f"judge: cache {file} cannot be written: Not a directory."
    ]
