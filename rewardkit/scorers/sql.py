r"""SQL queries, run on the row's SQLite database and compared with the gold's by their results.

verl loads this file directly: `rewardkit path sql --verl` prints the override. The ground truth is JSON text:

| ground truth | the database is |
|---|---|
| `{"query": "SELECT ...", "db_id": "pets"}` | `pets/pets.sqlite`, `pets.sqlite` or `pets.db` in the folder `databases`, as Spider and BIRD have it; all of a folder `pets` with several |
| `{"query": "SELECT ...", "schema": "CREATE TABLE ...; INSERT ..."}` | made in memory by these statements |

`SQL` and `sql` are other names of `query`, `sql_context` is one of `schema`. The query of a response is in its last block of `sql`, as
`rewardkit.programs.extract` says; it is one SELECT, also with WITH, or VALUES.

Results are equal as multisets of rows, with columns by position (`rewardkit.sql.compare`). The order counts only
where the outermost query of the gold has ORDER BY; rows that tie there may have any order. BIRD's own
evaluation compares sets, in which repeated rows and all order are lost; Spider's also accepts
columns in another order.

A query may only read. Besides the sandbox of `code`, with its limits of time and memory and without network and
other files, SQLite itself refuses writes, ATTACH, PRAGMA, extensions, a second statement, and `random()`, with
which a verdict would be luck. `now` is allowed: the gold's query is run at the same time.

A result says what a query returns, not how: `SELECT 3` returns a count of 3. With `needs_table` (default) a query
has to read a table if the gold does; `SELECT 3 FROM pets LIMIT 1` still passes, as in every such evaluation. More
databases for a row make such luck rare. A gold without rows is right for every query without rows: `check` names it.

A sandbox or a database that fails does not count as a wrong answer: the sample has `error` 1.0.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from rewardkit.errors import UsageError
from rewardkit.programs.extract import program_of
from rewardkit.scorers.base import Score, Scorer, ScorerSpec, Status, log_once
from rewardkit.scorers.gold import reading_fault
from rewardkit.scorers.options import Range, bound_options
from rewardkit.sql.query import MAX_QUERY, GoldError, is_query, read_task
from rewardkit.sql.run import FOLDER_VARIABLE, Limits, Verdict, gold_faults, judge


def respond(answer: str) -> str:
    """Return a response with the query of a gold, or with a query."""
    with suppress(GoldError):
        answer = read_task(answer).query
    return f"```sql\n{answer}\n```"


def score(
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,  # noqa: ARG001 - every scorer has this signature
    *,
    databases: str = "",
    needs_table: bool = True,
    seconds: Annotated[float, Range(0.1, 3600)] = 6.0,
    memory_mb: Annotated[int, Range(64, 1 << 20)] = 512,
) -> Score:
    """Judge a response by the result of its query.

    Args:
        response: the model's text.
        ground_truth: the gold's query and the database; see above.
        extra_info: not read.
        databases: folder of the databases; by default that in the environment variable REWARDKIT_DATABASES.
        needs_table: whether a query has to read a table if the gold's does.
        seconds: processor time per query.
        memory_mb: memory per query.

    Returns:
        1.0 if the results are equal, otherwise 0.0; `pred` has the query.

    Raises:
        SandboxError: the sandbox failed.
        UsageError: the database cannot be opened.
    """
    return grade(
        response,
        ground_truth,
        databases=databases,
        needs_table=needs_table,
        seconds=seconds,
        memory_mb=memory_mb,
    )[0]


def grade(response: str, ground_truth: str, **options: Any) -> tuple[Score, Verdict]:
    """Return the score of a response, and what became of its query.

    Raises:
        SandboxError: the sandbox failed.
        UsageError: the database cannot be opened.
    """
    options = {**_DEFAULTS, **options}
    no_query = Verdict("there is no query in the response")
    try:
        task = read_task(ground_truth)
    except GoldError:
        return Score.wrong("", Status.BAD_GROUND_TRUTH), no_query
    query = program_of(response, "sql").strip()
    pred = query.encode("utf-8", "replace").decode()  # half a surrogate pair cannot be logged
    if not query:
        return Score.wrong("", Status.NO_ANSWER), no_query
    if not is_query(query):
        return Score.wrong(pred, Status.UNPARSED_ANSWER), no_query
    if len(query) > MAX_QUERY:
        return Score.wrong(pred, Status.TOO_LONG), Verdict("it is too long")
    verdict = judge(
        query, task, options["databases"], _limits(options), needs_table=options["needs_table"]
    )
    if verdict.gold_fault:
        log_once(("sql", verdict.gold_fault), f"scorer 'sql': a gold: {verdict.gold_fault}")
        return Score.wrong(pred, Status.BAD_GROUND_TRUTH), verdict
    if verdict.reason:
        return Score.wrong(pred, Status.TIMEOUT if verdict.is_timeout else Status.WRONG), verdict
    return Score.right(pred), verdict


_DEFAULTS: Mapping[str, Any] = dict(score.__kwdefaults__ or {})


def _limits(options: Mapping[str, Any]) -> Limits:
    options = {**_DEFAULTS, **options}
    return Limits(float(options["seconds"]), int(options["memory_mb"]))


def explain_query(
    scorer: Scorer, response: str, ground_truth: str
) -> tuple[Score, tuple[tuple[str, str], ...]]:
    """Return the score of a response, and how the result of its query differs from the gold's."""
    result, verdict = grade(response, ground_truth, **bound_options(scorer))
    reason = verdict.gold_fault or verdict.reason
    return result, tuple({"reason": reason, **verdict.facts}.items()) if reason else ()


#: Returns why a ground truth cannot be read; "" if it can.
explain_gold = partial(reading_fault, read_task, GoldError)


def check_folder(options: Mapping[str, Any]) -> None:
    """Raise `UsageError` if the folder of databases is missing."""
    folder = options.get("databases") or os.environ.get(FOLDER_VARIABLE, "")
    if folder and not Path(folder).expanduser().is_dir():
        raise UsageError(f"databases: {folder} is not a folder.")


def find_faults(
    ground_truth: str, _prompt: str, _solution: str, options: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the gold of a row: its query fails, or returns nothing."""
    yield from gold_faults(read_task(ground_truth), options.get("databases", ""), _limits(options))


SPEC = ScorerSpec(
    score,
    __doc__,
    respond,
    explain_gold=explain_gold,
    check_options=check_folder,
    find_faults=find_faults,
)

#: What verl calls.
compute_score = SPEC.compute_score
