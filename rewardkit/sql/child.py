"""What the sandbox does with queries: open the row's database, run them, and return their rows.

`sql.run` sends this file as the program of a job, so that it imports the standard library only. SQLite asks
`_Guard` about whatever a query does when it is compiled: a query may read tables and call functions.
"""

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

#: Characters of the results, as JSON.
MAX_CHARACTERS = 2_000_000
#: Bytes of one text or blob, attached databases and bytes of a pattern of LIKE, which takes quadratic time.
_LIMITS = {0: 10_000_000, 7: 0, 8: 1_000}
_PRAGMAS = "temp_store=2 trusted_schema=0 cell_size_check=1 hard_heap_limit={}"
_MAY = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
#: Functions that load code, or whose result is a matter of luck.
_DENIED = frozenset("load_extension fts3_tokenizer random randomblob".split())
_CLOCK = frozenset(
    "date time datetime julianday unixepoch strftime timediff current_date current_time "
    "current_timestamp".split()
)
_ERRORS = (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError)


def run(request: Mapping[str, Any]) -> str:
    """Return why the database or a query failed, and the result of each query before, as JSON text."""
    place = "database"
    try:
        connection = _open(request)
        guard = _Guard(connection)
        place = "query"
        results = [guard.rows(query, request["rows"]) for query in request["queries"]]
        text = json.dumps(["", "", results], ensure_ascii=False)
        if len(json.dumps(text)) > MAX_CHARACTERS:
            raise ValueError(f"the result has more than {MAX_CHARACTERS:,} characters")
    except _ERRORS as error:
        reason = str(error) or "more memory than allowed"
        return json.dumps([place, reason[:1_000], []], ensure_ascii=False)
    return text


def _open(request: Mapping[str, Any]) -> sqlite3.Connection:
    """Return the database of a file, which cannot be written, or of the statements of a schema."""
    place = request["uri"] or ":memory:"
    connection = sqlite3.connect(place, uri=True, isolation_level=None)
    for pragma in _PRAGMAS.format(request["heap_bytes"]).split():
        connection.execute(f"PRAGMA {pragma}")
    if not request["uri"]:
        attach = (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH)
        connection.set_authorizer(lambda action, *_: int(action in attach))
        connection.executescript(request["schema"])
    if hasattr(connection, "setlimit"):  # Python 3.11
        for name, limit in _LIMITS.items():
            connection.setlimit(name, limit)
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    return connection


class _Guard:
    """Allow queries of a database to read it, and note what they read."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        self.tables = {str(name) for (name,) in rows}
        self.read: set[str] = set()
        self.reads_clock = False
        connection.set_authorizer(self._may)

    def _may(self, action: int, first: Any, second: Any, *_: Any) -> int:
        if action == sqlite3.SQLITE_READ and first in self.tables:
            self.read.add(first)
        elif action == sqlite3.SQLITE_FUNCTION:
            name = str(second).lower()
            self.reads_clock |= name in _CLOCK
            if name in _DENIED:
                return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK if action in _MAY else sqlite3.SQLITE_DENY

    def rows(self, query: str, most: int) -> list[Any]:
        """Run one query. Return its columns, rows, tables, use of the clock, and whether it has more rows."""
        self.read.clear()
        self.reads_clock = False
        cursor = self.connection.execute(query)
        if cursor.description is None:
            raise ValueError("it is not a query")
        rows: list[Any] = []
        room = MAX_CHARACTERS
        for row in cursor:
            if len(rows) == most:
                return self._result(cursor, rows, has_more=True)
            room -= sum(len(v) if isinstance(v, (str, bytes)) else 1 for v in row) + 2
            if room < 0:
                raise ValueError(f"the result has more than {MAX_CHARACTERS:,} characters")
            rows.append([{"b": v.hex()} if isinstance(v, bytes) else v for v in row])
        return self._result(cursor, rows, has_more=False)

    def _result(self, cursor: sqlite3.Cursor, rows: list[Any], *, has_more: bool) -> list[Any]:
        return [len(cursor.description), rows, sorted(self.read), self.reads_clock, has_more]
