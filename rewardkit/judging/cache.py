"""Verdicts by content, on disk, shared by processes and nodes.

Each verdict is a file of its own, named by the hash of what was asked, in one of 256 folders. A file
is written under a temporary name and renamed, which is atomic on local disks and on NFS: a reader
sees a whole file or none, no lock is needed, and a process that is killed leaves no broken entry. An
entry that cannot be read counts as absent. A cache that cannot be written is only logged: it saves
money, and a reward must not fail for it.
"""

import json
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

#: Entries that each of the 256 folders may have; the oldest are removed.
MAX_ENTRIES_PER_FOLDER = 1024

#: A folder is counted once in this number of writes of a process.
WRITES_PER_COUNT = 64

#: Bytes of an entry; a larger file is not ours.
MAX_ENTRY_BYTES = 1 << 17

_log = logging.getLogger("rewardkit")
_number = count()
_unwritable: set[str] = set()


def cache_key(content: Mapping[str, Any]) -> str:
    """Return the name of an entry: a hash of everything that the verdict depends on."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=True)
    return sha256(text.encode()).hexdigest()


def read_entry(folder: str, key: str) -> str | None:
    """Return the reply in an entry; None if there is no entry, or one that cannot be read."""
    try:
        with _path(folder, key).open("rb") as file:
            entry = json.loads(file.read(MAX_ENTRY_BYTES))  # a longer file is cut, and so not read
        reply = entry["reply"] if entry["key"] == key else None
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        return None
    return reply if isinstance(reply, str) else None


def write_entry(folder: str, key: str, reply: str) -> None:
    """Write an entry; a folder that cannot be written is logged once."""
    path = _path(folder, key)
    data = json.dumps({"key": key, "reply": reply}).encode()
    if len(data) > MAX_ENTRY_BYTES:
        return
    # Others may write the folder, too: a name that they could predict might be their link.
    temporary = path.with_name(f".{key[:16]}.{os.urandom(8).hex()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if next(_number) % WRITES_PER_COUNT == 0:
            _remove_oldest(path.parent)
        with temporary.open("xb") as file:
            file.write(data)
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        if folder not in _unwritable:
            _unwritable.add(folder)
            _log.error("judge: cache %s cannot be written: %s.", folder, error.strerror or error)


def _path(folder: str, key: str) -> Path:
    return Path(folder).expanduser() / key[:2] / f"{key}.json"


def _remove_oldest(folder: Path) -> None:
    """Keep a folder below its limit; other processes may remove the same files."""
    ages: dict[Path, float] = {}
    for path in folder.iterdir():
        with suppress(OSError):
            ages[path] = path.stat().st_mtime
    oldest = sorted(ages, key=ages.__getitem__) if len(ages) >= MAX_ENTRIES_PER_FOLDER else []
    for path in oldest[: len(ages) - MAX_ENTRIES_PER_FOLDER * 7 // 8]:
        with suppress(OSError):
            path.unlink()
