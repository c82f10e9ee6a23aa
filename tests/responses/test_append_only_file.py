"""Files that grow: an append is complete or absent, and only one run writes a file."""

import pytest

from rewardkit.errors import OutputError
from rewardkit.responses.append_only_file import open_append_only


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
    path = tmp_path / "folder" / "log"
    for text in (b"first\n", b"second\n"):
        with open_append_only(path, path) as file:
            file.append(text)
            assert file.size == path.stat().st_size
    assert path.read_bytes() == b"first\nsecond\n"


def test_a_second_run_cannot_open_the_file(tmp_path):
    path = tmp_path / "log"
    with (
        open_append_only(path, path),
        pytest.raises(OutputError, match="another run is writing"),
        open_append_only(path, path),
    ):
        pass
