"""Messages about a user's file, each with a command to paste: for missing columns, or no parquet."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rewardkit.errors import DataError
from rewardkit.file_kinds import (
    parquet_fault,
    read_prefix,
    row_suffix,
    stem_and_suffix,
    table_kind,
    text_fault,
)
from rewardkit.preprocess.column_guess import (
    RESPONSE_NAMES,
    are_verl_rows,
    guess_columns,
    sample_rows,
)
from rewardkit.preprocess.file_rows import RawRow, is_row_file
from rewardkit.preprocess.value_path import value_at_path
from rewardkit.registry import did_you_mean

#: Columns of a file that a message lists.
MAX_COLUMNS = 20

#: Names of columns with golds that `rewardkit score` reads.
_SCORED_GOLD_NAMES = frozenset({"ground_truth", "gts", "gold"})


def require_columns(
    file: Path, rows: Sequence[RawRow], keys: Mapping[str, str | None], out: Path
) -> list[str]:
    """Require that the first rows of a user's file have the columns that are named.

    Args:
        file: the user's file or folder.
        rows: its first rows. If it cannot be read, there are none, and the reader says why.
        keys: the columns by their options; None for an option that is not given.
        out: the parquet to write, for the command in the message.

    Returns:
        The columns of the question.

    Raises:
        DataError: a column is missing. The message has the file's columns and a command with the
            likely ones.
    """
    questions = question_columns(rows, keys["--question-key"] or "")
    missing = {
        option: column
        for option, key in keys.items()
        for column in (questions if option == "--question-key" else [key])
        if column and not _has_column(rows, column)
    }
    if not rows or not missing:
        return questions
    names = list(dict.fromkeys(name for row in rows for name in row))
    if are_verl_rows(rows) and file.suffix.lower() == ".parquet":
        raise DataError(
            f"{file}: this is a verl parquet already. Check it with `rewardkit check "
            f"{shlex.quote(str(file))}`, or join it to others with rewardkit mix."
        )
    absent = " and no column ".join(f"{column!r}" for column in missing.values())
    near = "".join(
        did_you_mean(column, names) for column in missing.values() if column not in _DEFAULT_KEYS
    )
    column_list = ", ".join(names[:MAX_COLUMNS]) + (", ..." if len(names) > MAX_COLUMNS else "")
    guess = guess_columns(rows)
    _require_rows(file, rows, guess.question)
    likely = {"--question-key": guess.question, "--answer-key": guess.answer, "--image-key": ""}
    keys_of_command = {
        option: likely[option] if option in missing else key for option, key in keys.items() if key
    }
    command = prep_command(file, out, keys_of_command | _verl_keys(rows))
    unknown = " and ".join(option for option, key in keys_of_command.items() if not key)
    advice = f". A likely command:\n  {command}"
    if unknown:
        advice = f"; no column is likely the one of {unknown}."
    raise DataError(
        f"{file}: there is no column {absent}.{near} Its columns: {column_list or 'none'}.\n"
        f"Name the columns with {' and '.join(missing)}{advice}"
    )


_DEFAULT_KEYS = ("question", "answer")


def question_columns(rows: Sequence[RawRow], key: str) -> list[str]:
    """Return the columns that `--question-key` names: one, or several that are separated by commas."""
    names = [name.strip() for name in key.split(",") if name.strip()]
    return [key] if any(key in row for row in rows) or not names else names


def _verl_keys(rows: Sequence[RawRow]) -> dict[str, str]:
    """Return the options that keep prompts and reward key, if rows are those of verl's own scripts."""
    if not are_verl_rows(rows):
        return {}
    sources = {str(row.get("data_source")) for row in rows}
    return {"--template": "none"} | ({"--data-source": sources.pop()} if len(sources) == 1 else {})


def prep_command(file: Path, out: Path, keys: Mapping[str, str]) -> str:
    """Return the command that prepares a user's file.

    Args:
        file: the user's file.
        out: the parquet to write.
        keys: the columns by their options, "" for unknown ones, which `prep` asks for.
    """
    options = [
        part
        for option, key in keys.items()
        if key and key != option.strip("-").removesuffix("-key")
        for part in (option, shlex.quote(key))
    ]
    return " ".join(
        ["rewardkit prep", shlex.quote(str(file)), *options, f"--out {shlex.quote(str(out))}"]
    )


def require_parquet(name: str) -> None:
    """Require that a name is not that of a file with rows in another format.

    Raises:
        DataError: it is JSON Lines, JSON, CSV or Arrow. The message has the command that prepares it.
    """
    file = Path(name)
    suffix = row_suffix(file)
    if suffix == ".parquet" or not is_row_file(file) or not file.is_file():
        return
    if suffix == file.suffix.lower() != ".arrow" and (fault := text_fault(file)):
        raise DataError(f"{file}: {fault}")
    if not file.stat().st_size:
        raise DataError(f"{file}: {parquet_fault(file)}")
    kind = table_kind(file, read_prefix(file))
    rows = sample_rows(file)
    names = {name for row in rows for name in row}
    if names & RESPONSE_NAMES and names & _SCORED_GOLD_NAMES:
        raise DataError(
            f"{file}: this is {kind} with responses, not a parquet of rows. Run this:\n"
            f"  rewardkit score {shlex.quote(str(file))}"
        )
    guess = guess_columns(rows)
    _require_rows(file, rows, guess.question)
    keys = {"--question-key": guess.question, "--answer-key": guess.answer} | _verl_keys(rows)
    command = prep_command(file, file.with_name(f"{stem_and_suffix(file)[0]}.parquet"), keys)
    raise DataError(f"{file}: this is {kind}, not parquet. Run this first:\n  {command}")


def _require_rows(file: Path, rows: Sequence[RawRow], question: str) -> None:
    """Require that a row of JSON is one problem: it may be an object around all of them.

    Raises:
        DataError: the likely question is one of several in a list or an object of the first row.
    """
    if not rows or row_suffix(file) not in (".json", ".jsonl", ".ndjson"):
        return
    row, names = rows[0], question.split(".")
    for depth, name in enumerate(names):
        holder = value_at_path(row, ".".join(names[:depth])) if depth else row
        items = list(holder.values()) if isinstance(holder, Mapping) else holder
        is_list = isinstance(items, list) and len(items) > 1
        if name.isdigit() and is_list and all(map(_is_row, items)):
            place = "".join(f'."{outer}"' for outer in names[:depth]) or "."
            out = file.with_name(f"{stem_and_suffix(file)[0]}-rows.jsonl")
            source, jq = shlex.quote(str(file)), f"jq -c {shlex.quote(f'{place}[]')}"
            unpack = {".gz": "gzip -dc", ".zst": "zstd -dc"}.get(file.suffix.lower())
            command = f"{unpack} {source} | {jq}" if unpack else f"{jq} {source}"
            raise DataError(
                f"{file}: its rows lie in a list or an object of one row. Write each on a line of "
                f"its own, and use the new file:\n  {command} > {shlex.quote(str(out))}"
            )


def _is_row(item: Any) -> bool:
    """Whether an item of a list may be a problem: it is an object, and no message of a chat."""
    return isinstance(item, Mapping) and not {"role", "from"} & item.keys()


def _has_column(rows: Sequence[RawRow], key: str) -> bool:
    return any(key in row or value_at_path(row, key) is not None for row in rows)
