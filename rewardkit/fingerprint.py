"""Tell an input file from another version of it, without reading the whole file."""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

#: Bytes at each end of a file that are hashed.
END_BYTES = 1 << 20


class Fingerprint(NamedTuple):
    """What identifies a version of a file.

    Attributes:
        size: bytes.
        changed: time of the last change, in nanoseconds.
        digest: hash of the first and the last `END_BYTES`.
    """

    size: int
    changed: int
    digest: str


def fingerprint(path: Path | str) -> Fingerprint:
    """Return the fingerprint of a file, in a form that survives JSON.

    The digest helps where a copy tool keeps size and time though the content differs. A change in
    the middle of a file of more than 2 MiB shows only in its time.

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
