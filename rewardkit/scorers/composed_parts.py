"""The parts of a reward file that `rewardkit compose` wrote, read without running the file."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

#: A larger file is not one that `compose` wrote.
MAX_FILE_BYTES = 1 << 20


def part_weights(file: str | Path) -> dict[str, float]:
    """Return the weight of each part, by its key in the reward's result.

    Empty if the file cannot be read, or if `rewardkit compose` did not write it.
    """
    try:
        path = Path(file).expanduser()
        if not path.is_file() or path.stat().st_size > MAX_FILE_BYTES:
            return {}
        tree = ast.parse(path.read_text(encoding="utf-8"))
        spec = next(filter(None, map(_spec, tree.body)), {})
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return {}
    parts = spec.get("parts")
    return {name: _weight(part) for name, part in parts.items()} if isinstance(parts, dict) else {}


def is_composed(file: str | Path) -> bool:
    """Return whether `rewardkit compose` wrote a file, whose function takes `record`."""
    return bool(part_weights(file))


def _spec(statement: ast.stmt) -> dict[str, Any]:
    """Return the mapping in `REWARD = build({...})`; empty for any other statement."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        return {}
    call = statement.value
    if not isinstance(call.func, ast.Name) or call.func.id != "build" or len(call.args) != 1:
        return {}
    spec = ast.literal_eval(call.args[0])
    return spec if isinstance(spec, dict) else {}


def _weight(part: Any) -> float:
    weight = part.get("weight") if isinstance(part, dict) else part
    if isinstance(weight, int | float) and not isinstance(weight, bool):
        return float(weight)
    return 0.0
