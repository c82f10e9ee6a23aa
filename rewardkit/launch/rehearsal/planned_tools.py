"""The tools of a plan, and the tools that its rows name."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class PlannedTools:
    """The tools of a plan as verl loaded them.

    Attributes:
        names: the names of the tools that load.
        errors: why the others do not.
    """

    names: tuple[str, ...]
    errors: tuple[str, ...]


def read_tools(file: Path) -> PlannedTools | None:
    """Return the tools that `rehearsal_tools.py` loaded; None if the plan has none."""
    if not file.is_file():
        return None
    fields = json.loads(file.read_text(encoding="utf-8"))
    return PlannedTools(tuple(fields["names"]), tuple(fields["errors"]))


def check_tools(tools: PlannedTools, files: Iterable[Path]) -> tuple[bool, str]:
    """Check that all tools load, and that the rows name no other tool.

    Args:
        tools: the tools.
        files: parquet files of rows.
    """
    if tools.errors:
        return False, f"a tool does not load: {'; '.join(tools.errors)}"
    counts = _tools_of_rows(files)
    named = Counter(name for names in counts for name in names)
    names = ", ".join(filter(None, tools.names)) or "no tool with a schema"
    # A tool without a schema in the file has its name in its class, which is not created here.
    unknown = [] if "" in tools.names else sorted(named.keys() - set(tools.names))
    if unknown:
        texts = ", ".join(f"{name} in {named[name]:,} of {len(counts):,}" for name in unknown)
        return False, f"rows name tools that the plan lacks: {texts}; the plan has {names}"
    own = sum(map(bool, counts))
    return True, f"{names}: loaded, not called; {own:,} of {len(counts):,} rows name a tool"


def _tools_of_rows(files: Iterable[Path]) -> list[list[str]]:
    """Return the tools that each row names in `extra_info.tools_kwargs`."""
    import pyarrow.parquet as pq

    rows: list[list[str]] = []
    for file in files:
        table = pq.read_table(file)
        has_info = "extra_info" in table.column_names
        infos = table.column("extra_info").to_pylist() if has_info else [None] * table.num_rows
        rows.extend(map(_tool_names, infos))
    return rows


def _tool_names(info: Any) -> list[str]:
    tools = info.get("tools_kwargs") if isinstance(info, Mapping) else None
    if not isinstance(tools, Mapping):
        return []
    return [str(name) for name, settings in tools.items() if settings is not None]
