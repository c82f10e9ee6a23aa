"""Run queries in the sandbox of `programs`, and judge their results.

A gold's query runs in another process than a response's, and its result never goes there. It is kept for
the other responses to the row, unless it reads the clock.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from rewardkit.errors import UsageError
from rewardkit.programs.inside.wire import WireError, dump, load_tree
from rewardkit.programs.local import Sandbox, SandboxError, in_sandbox
from rewardkit.sql.compare import Row, Rows, first_difference
from rewardkit.sql.query import MAX_SCHEMA, Task, with_ties_in_order

#: The environment variable with the folder of databases, where no option names one.
FOLDER_VARIABLE = "REWARDKIT_DATABASES"
#: Golds whose results are kept.
MAX_GOLDS = 128
#: Databases of one row.
MAX_DATABASES = 200
#: Characters of a row that a difference quotes.
MAX_QUOTE = 300

_SUFFIXES = (".sqlite", ".sqlite3", ".db", ".sql")
_CHILD = Path(__file__).with_name("child.py").read_text("utf-8")
#: Seconds that a query may wait for nothing, such as a slow disk, beside its seconds on the processor.
_IDLE_SECONDS = 5.0
_TIMEOUTS = ("cpu", "idle")


class QueryError(ValueError):
    """A query failed; the second argument says whether it took too long."""


class Database(NamedTuple):
    """The path of a file, or the statements that make a database; the stamp changes with the file."""

    path: str = ""
    schema: str = ""
    stamp: tuple[int, ...] = ()


class Limits(NamedTuple):
    """What a query may take: seconds of the processor, and megabytes of memory."""

    seconds: float = 6.0
    memory_mb: int = 512


class Result(NamedTuple):
    """The result of a query: `tables` are those that it reads, and `has_more` if rows are left out."""

    columns: int
    rows: Rows
    tables: Sequence[str]
    reads_clock: bool
    has_more: bool


@dataclass(frozen=True)
class Verdict:
    """What became of a query: why it is not right, "" if it is; a fault of the gold; a row that differs."""

    reason: str = ""
    is_timeout: bool = False
    gold_fault: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)


def databases_of(task: Task, folder: str) -> list[Database]:
    """Return the databases of a row, several of a folder that has several, as Spider's test suites.

    Where no folder is set, those of the packaged samples are found.

    Raises:
        UsageError: there is no such database.
    """
    if task.schema:
        return [Database(schema=task.schema)]
    folder = folder or os.environ.get(FOLDER_VARIABLE, "")
    root = Path(folder).expanduser() if folder else Path(__file__).with_name("databases")
    place = root / task.name
    paths = [place, *(place.with_name(place.name + suffix) for suffix in _SUFFIXES)]
    paths = [path for path in paths if path.is_file()][:1]
    if not paths and place.is_dir():
        files = sorted(path for path in place.iterdir() if path.suffix in _SUFFIXES)
        paths = [path for path in files if path.suffix != ".sql"] or files
    if not paths and folder:
        raise UsageError(f"{folder}: there is no database {task.name[:80]!r}.")
    if not paths:
        raise UsageError(
            f"the database {task.name[:80]!r} is not known: set databases, or {FOLDER_VARIABLE}, to the "
            "folder of databases."
        )
    return [_database(path.resolve()) for path in paths[:MAX_DATABASES]]


def _database(path: Path) -> Database:
    stat = path.stat()
    if path.suffix != ".sql":
        return Database(str(path), stamp=(stat.st_mtime_ns, stat.st_size))
    if stat.st_size > MAX_SCHEMA:
        raise UsageError(f"{path}: more than {MAX_SCHEMA:,} bytes; make it a SQLite file.")
    return Database(schema=path.read_text("utf-8", "replace"))


def run_queries(
    database: Database, queries: Sequence[str], limits: Limits, most_rows: int = -1
) -> list[Result]:
    """Return the results of queries.

    Raises:
        QueryError: a query failed, or is over a limit.
        UsageError: the database cannot be opened.
        SandboxError: the sandbox failed.
    """
    path = database.path
    request = {
        "uri": f"{Path(path).as_uri()}?mode=ro&immutable=1" if path else "",
        "schema": database.schema,
        "queries": list(queries),
        "rows": most_rows,
        "heap_bytes": (limits.memory_mb << 20) // 2,
    }
    test = {"kind": "call", "cpu_seconds": limits.seconds, "memory_mb": limits.memory_mb}
    test["idle_seconds"] = limits.seconds + _IDLE_SECONDS
    facts = {"entry_point": "run", "prelude": "", "readable": [path]}
    body = dump(((request,), {})).encode("utf-8", "surrogatepass")

    def call(sandbox: Sandbox) -> tuple[dict[str, Any], bytes]:
        if sandbox.failure:
            raise SandboxError(f"queries cannot be confined here: {sandbox.failure}.")
        with sandbox.program(_CHILD, facts) as job:
            return job.test(test, body)

    report, output = in_sandbox(call, queries=True)
    if (status := report["status"]) in _TIMEOUTS:
        raise QueryError(f"more than {limits.seconds:g} seconds", True)
    try:
        place, reason, results = load_tree(load_tree(output.decode()))
    except (WireError, ValueError, TypeError):
        reason = report["stderr"].strip().rpartition("\n")[2] or "more memory than allowed"
        raise QueryError(f"{reason} ({status})", False) from None
    if place == "database":
        raise UsageError(f"{path or 'the schema of the row'}: {reason}.")
    if place:
        raise QueryError(reason, False)
    return [Result(columns, list(map(tuple, rows)), *others) for columns, rows, *others in results]


class Gold(NamedTuple):
    """The result of a gold's query on one database; `fault` says why there is none.

    `variants` has the rows; where the query orders them, also with the rows that tie in ascending and in
    descending order.
    """

    result: Result | None
    variants: Sequence[Rows] = ()
    fault: str = ""


def gold_of(database: Database, query: str, limits: Limits) -> Gold:
    """Return the gold's result on a database; `run_queries` has what it raises."""
    gold = _gold(database, query, limits)
    is_lasting = gold.result is None or not gold.result.reads_clock
    return gold if is_lasting else _gold.__wrapped__(database, query, limits)


@lru_cache(MAX_GOLDS)
def _gold(database: Database, query: str, limits: Limits) -> Gold:
    try:
        (result,) = run_queries(database, [query], limits)
    except QueryError as error:
        return Gold(None, fault=f"its query fails: {error.args[0]}")
    variants = [result.rows]
    if ordered := with_ties_in_order(query, result.columns):
        with suppress(QueryError):  # otherwise the rows that tie keep the order of the gold
            ties = [each.rows for each in run_queries(database, ordered, limits)]
            is_same_length = all(len(rows) == len(result.rows) for rows in ties)
            variants += ties if is_same_length else []
        variants = variants if len(variants) == 3 else variants * 3
    return Gold(result, variants)


def judge(
    query: str, task: Task, folder: str, limits: Limits, *, needs_table: bool = True
) -> Verdict:
    """Return what becomes of a query.

    Raises:
        UsageError: the row's database cannot be opened.
        SandboxError: the sandbox failed.
    """
    for database in databases_of(task, folder):
        result, variants, fault = gold_of(database, task.query, limits)
        if result is None:
            return Verdict(gold_fault=fault)
        try:
            (other,) = run_queries(database, [query], limits, len(result.rows))
        except QueryError as error:
            return Verdict(f"it fails: {error.args[0]}", error.args[1])
        if needs_table and result.tables and not other.tables:
            return Verdict("it reads no table, and the gold does")
        if verdict := _difference(other, result, variants):
            return verdict
    return Verdict()


def _difference(result: Result, gold: Result, variants: Sequence[Rows]) -> Verdict | None:
    """Return the verdict on a result that differs from the gold's; None if it does not."""
    most = len(gold.rows)
    if result.columns != gold.columns:
        return Verdict(f"columns of its result: {result.columns}; of the gold's: {gold.columns}")
    if result.has_more or len(result.rows) < most:
        count = f"more than {most}" if result.has_more else len(result.rows)
        return Verdict(f"rows of its result: {count}; of the gold's: {most}")
    if (place := first_difference(result.rows, variants)) < 0:
        return None
    if (index := first_difference(result.rows, [gold.rows])) < 0:
        reason, expected = f"row {place + 1} of its result is at another place", gold.rows[place]
    else:
        reason = f"row {index + 1} of its result is not in the gold's"
        place, expected = index, gold.rows[first_difference(gold.rows, [result.rows])]
    return Verdict(reason, facts={"expected": _quote(expected), "got": _quote(result.rows[place])})


def _quote(row: Row) -> str:
    return ascii(row)[:MAX_QUOTE]


def gold_faults(task: Task, folder: str, limits: Limits) -> list[tuple[str, str]]:
    """Return the rules that the gold of a row breaks, and how."""
    try:
        golds = [gold_of(each, task.query, limits) for each in databases_of(task, folder)]
    except UsageError as error:
        return [("bad_gold", str(error))]
    if fault := next((gold.fault for gold in golds if gold.fault), ""):
        return [("bad_gold", fault)]
    if all(gold.result and not gold.result.rows for gold in golds):
        return [("wrong_is_right", "its query returns no row: any query without rows is right")]
    return []
