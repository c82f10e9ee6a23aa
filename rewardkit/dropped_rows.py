"""`OUT.dropped.jsonl`: the rows that were dropped, complete and with the reasons."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rewardkit.output import atomic, atomic_side_file, json_value, require_absent, require_side_file

#: How the file begins; `select` writes more keys between the reasons and the row.
_START = re.compile(rb'\{"index": \d+, "reasons": \[')


def dropped_path(out: Path) -> Path:
    """Return the path of the rows that were dropped on the way to `out`."""
    return out.with_name(f"{out.name}.dropped.jsonl")


def require_dropped_path(out: Path, *, overwrite: bool) -> None:
    """Raise `OutputError` if the dropped rows of `out` would replace a file of the user's."""
    require_side_file(dropped_path(out), _START, overwrite=overwrite)


@contextmanager
def atomic_with_dropped(out: Path, *, overwrite: bool) -> Iterator[tuple[Path, Path]]:
    """Yield temporary files for `out` and for its dropped rows; see `output.atomic`.

    The dropped rows get their name first. So an output of a killed run is complete, and dropped rows
    without an output are not a result: the next run replaces them.
    """
    with (
        atomic(out, overwrite=overwrite) as temporary,
        atomic_side_file(dropped_path(out), _START, overwrite=overwrite) as rejects,
    ):
        yield temporary, rejects
        require_absent(out, overwrite=overwrite)  # another run may have written both meanwhile


def dropped_line(index: int, reasons: list[str], row: Mapping[str, Any]) -> str:
    """Return a line of `OUT.dropped.jsonl`: the row's index, the reasons and the row itself."""
    entry = json_value({"index": index, "reasons": reasons, "row": row})
    line = json.dumps(entry, ensure_ascii=False)
    try:
        line.encode()
    except UnicodeEncodeError:  # a lone surrogate
        line = json.dumps(entry)
    return f"{line}\n"
