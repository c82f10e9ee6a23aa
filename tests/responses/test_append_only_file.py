"""Files that grow: an append is complete or absent, and no file has the lines of two runs."""

import pytest

from rewardkit.errors import OutputError
from rewardkit.responses.resumable_output import open_append_only


class HalfWritten:
    """A file that accepts three bytes and then reports a full disk."""

    def __init__(self, file):
        self.file, self.accepts = file, True

    def write(self, text):
        if not self.accepts:
            raise OSError(28, "No space left on device")
        self.accepts = False
        return self.file.write(bytes(text)[:3])

    def truncate(self, size):
        self.file.truncate(size)

    def fileno(self):
        return self.file.fileno()


def append_until_full(path):
    with open_append_only(path, path.with_name("out.jsonl")) as file:
        file.append(b"first\n")
        file.file = HalfWritten(file.file)
        file.append(b"second\n")


def test_a_failed_append_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "log"
    with pytest.raises(OutputError, match=r"out\.jsonl: cannot be written: No space left"):
        append_until_full(path)
    assert path.read_bytes() == b"first\n"


def test_a_file_is_continued_from_its_end(tmp_path):
    path = tmp_path / "log"
    for text in (b"first\n", b"second\n"):
        with open_append_only(path, path) as file:
            file.append(text)
            assert file.size == path.stat().st_size
    assert path.read_bytes() == b"first\nsecond\n"


def test_a_text_is_not_appended_to_what_another_run_has_written(tmp_path):
    """Whatever became of the lock: no file has the lines of two runs."""
    path = tmp_path / "log"
    with open_append_only(path, path) as file, open_append_only(path, path) as other:
        file.append(b"first\n")
        with pytest.raises(OutputError, match=r"log: another run has written to it, too\. Wait"):
            other.append(b"first\n")
    assert path.read_bytes() == b"first\n"
