"""The text of a query: its first word, its outermost ORDER BY, and the gold of a row."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Characters of a query.
MAX_QUERY = 50_000
#: Characters of the statements that make a database.
MAX_SCHEMA = 1_000_000

#: The words with which a query begins.
_FIRST_WORDS = frozenset(("select", "with", "values"))
#: Comments, texts and names in quotes, words and signs. Each alternative has one way to match.
_TOKEN = re.compile(
    r"""--[^\n]*|/\*.*?(?:\*/|\Z)|'(?:[^']|'')*'?|"(?:[^"]|"")*"?|`[^`]*`?|\[[^]]*\]?|\w+|\S""",
    re.DOTALL,
)


class GoldError(ValueError):
    """A ground truth has no query or no database; the message says why, as the end of a sentence."""


@dataclass(frozen=True)
class Task:
    """The gold of a row.

    Attributes:
        query: the gold's query.
        name: the database's name in the folder of databases; "" if `schema` makes it.
        schema: the statements that make the database.
    """

    query: str
    name: str = ""
    schema: str = ""


def read_task(ground_truth: str) -> Task:
    """Return the gold of a ground truth.

    Raises:
        GoldError: it is not one.
    """
    try:
        value = json.loads(ground_truth)
    except (ValueError, RecursionError):
        raise GoldError("it is not JSON") from None
    if not isinstance(value, dict):
        raise GoldError("it is not a JSON object")
    query = _text(value, "query", "SQL", "sql")
    name, schema = _text(value, "db_id", "database"), _text(value, "schema", "sql_context")
    if not is_query(query):
        raise GoldError("its query is not a SELECT" if query else "it has no query")
    if len(query) > MAX_QUERY or len(schema) > MAX_SCHEMA:
        raise GoldError(
            f"its query has more than {MAX_QUERY:,} or its schema more than {MAX_SCHEMA:,} characters"
        )
    if bool(name) == bool(schema):
        raise GoldError("it needs db_id, the name of a database, or schema, which makes one")
    if name and (set("\0\\") & set(name) or {"", ".", ".."} & set(name.split("/"))):
        raise GoldError("its db_id leads out of the folder of databases")
    return Task(query, name, schema)


def _text(value: Mapping[str, Any], *keys: str) -> str:
    text = next((value[key] for key in keys if value.get(key)), "")
    if not isinstance(text, str):
        raise GoldError(f"its {keys[0]} is not text")
    return text.strip()


def is_query(text: str) -> bool:
    """Whether a text begins as a query, after comments."""
    for token in _TOKEN.finditer(text):
        if not token[0].startswith(("--", "/*")):
            return token[0].lower() in _FIRST_WORDS
    return False


def with_ties_in_order(query: str, columns: int) -> tuple[str, str] | None:
    """Return a query with the rows that tie in ascending and in descending order of all columns.

    The result is None if the outermost query does not order its rows.
    """
    depth, is_ordered, end, previous = 0, False, 0, ""
    for token in _TOKEN.finditer(query):
        word = token[0].lower()
        if word.startswith(("--", "/*")):
            continue
        depth += (word == "(") - (word == ")")
        if depth == 0 and (previous, word) == ("order", "by"):
            is_ordered = True
        elif is_ordered and depth == 0 and word in ("limit", ";"):
            break
        previous, end = word, token.end()
    if not is_ordered:
        return None
    orders = (", ".join(f"{n + 1} {way}" for n in range(columns)) for way in ("ASC", "DESC"))
    up, down = (f"{query[:end]}, {order} {query[end:]}" for order in orders)
    return up, down
