"""Lines of jsonl files that people look into."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def json_line(fields: Mapping[str, Any]) -> str:
    """One line of JSON in ASCII, which holds lone surrogates too; of bytes only their number."""
    return json.dumps(fields, ensure_ascii=True, default=_plain) + "\n"


def _plain(value: Any) -> str:
    return f"<{len(value)} bytes>" if isinstance(value, bytes) else str(value)
