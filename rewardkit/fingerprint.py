"""What tells an input file from another version of it, without reading all of it."""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

#: Bytes at each end of a file that are hashed.
END_BYTES = 1 << 20


class Fingerprint(NamedTuple):
    """A file's size in bytes, its time of change in nanoseconds, and a hash of its two ends."""

    size: int
    changed: int
    digest: str


def fingerprint(path: Path | str) -> Fingerprint:
    """What `path` holds now, in a form that JSON keeps.

    The digest covers the first and the last MiB. A copy tool may keep size and time though the
    content differs; a change in the middle of a larger file is seen by its time only.

    Raises:
        OSError: the file cannot be read.
    """
    digest = blake2b(digest_size=16)
    with Path(path).open("rb") as file:
        digest.update(file.read(END_BYTES))
        stat = os.fstat(file.fileno())
        if stat.st_size > END_BYTES:
            file.seek(max(END_BYTES, stat.st_size - END_BYTES))
            digest.update(file.read(END_BYTES))
    return Fingerprint(stat.st_size, stat.st_mtime_ns, digest.hexdigest())
