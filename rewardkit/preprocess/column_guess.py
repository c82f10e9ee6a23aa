"""Which columns of a user's file hold the questions and the answers: a guess for a message.

A guess is never used to read rows. It is printed in a command that the user checks and pastes.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from rewardkit.answers.extract import boxes
from rewardkit.errors import DataError, call_catching
from rewardkit.file_kinds import parquet_fault, read_prefix, table_kind, text_fault
from rewardkit.preprocess.dropped_rows import BrokenRow, full_rows
from rewardkit.preprocess.raw_rows import READERS, RawRow
from rewardkit.preprocess.value_path import value_at_path
from rewardkit.registry import did_you_mean

#: Rows at the start of a file that are looked at, and characters of each value.
SAMPLE_ROWS = 50
MAX_CHARS = 4000
#: Depth of structs and lists, and items of a list, in which columns are searched.
MAX_DEPTH = 5
MAX_ITEMS = 3
#: Most paths of a row that are looked at.
MAX_PATHS = 200
#: Columns of a file that a message lists.
MAX_COLUMNS = 20

#: Names of columns without case and signs, the likeliest first.
_QUESTION_NAMES = (
    "question", "problem", "题目", "问题", "题干", "prompt", "query", "instruction", "input", "ask", "q",
    "conversations0value", "messages", "user", "title", "text", "content",
)  # fmt: skip
_ANSWER_NAMES = (
    "answer", "groundtruth", "gold", "gts", "答案", "finalanswer", "correctanswer", "expectedanswer",
    "target", "reference", "ref", "label", "final", "result", "solution", "解答", "解析", "a",
    "conversations1value", "response", "output", "completion",
)  # fmt: skip
#: Names of columns that describe a row and answer nothing.
_OTHER_NAMES = frozenset(
    "id idx index uid uuid url source datasource split level difficulty type kind subject topic category "
    "domain language licence license author date time role style ability scorer".split()
)

#: Names of columns with the options of a choice question, without case and signs.
_OPTION_NAMES = frozenset({"choices", "options", "选项", "a", "b", "c", "d"})

#: Names of columns with responses of a model, and with the golds that `rewardkit score` reads.
_RESPONSE_NAMES = frozenset({"response", "responses", "output", "solution_str", "completion"})
_SCORED_GOLD_NAMES = frozenset({"ground_truth", "gts", "gold"})

#: The columns of a file that verl reads as it is.
_VERL_COLUMNS = frozenset({"data_source", "prompt", "reward_model"})


@dataclass(frozen=True)
class ColumnGuess:
    """The likely columns of a file, as dotted paths; "" where none is likely."""

    question: str
    answer: str


def sample_rows(file: Path) -> list[RawRow]:
    """Return the first rows of a file with all their columns; [] if it cannot be read.

    Values that are not a row, and rows that do not fit the header of a CSV file, are left out.
    """
    rows = call_catching(lambda: list(full_rows([file], range(SAMPLE_ROWS))))
    if isinstance(rows, Exception):
        return []
    return [row for row in rows if isinstance(row, dict) and not isinstance(row, BrokenRow)]


def guess_columns(rows: Sequence[RawRow]) -> ColumnGuess:
    """Return the likely columns of the question and of the answer, by their names and values."""
    paths = dict.fromkeys(path for row in rows for path in islice(_paths(row), MAX_PATHS))
    values = {path: [value_at_path(row, path) for row in rows] for path in paths}
    questions = {path: _question_points(path, column) for path, column in values.items()}
    question = _best(questions)
    user, assistant = _places_of_turns(values.get(question, ()))
    answers = {
        path: _answer_points(path, column)
        for path, column in values.items()
        if path != question and column != values.get(question)
    }
    answer = _best(answers)
    if user < 0:
        return ColumnGuess(question, answer)
    if not answer or _name_points(answer, _ANSWER_NAMES) <= 0:
        answer = f"{question}.{assistant}.content"
    return ColumnGuess(f"{question}.{user}.content", answer)


def require_columns(
    file: Path, question_key: str, answer_key: str, image_key: str | None, out: Path
) -> None:
    """Require that the first rows of a user's file have the columns that are named.

    Args:
        file: the user's file. One that cannot be read is left to the reader, which says why.
        question_key: the column of the question.
        answer_key: the column of the answer.
        image_key: the column of the pictures, if there are any.
        out: the parquet to write, for the command in the message.

    Raises:
        DataError: a column is missing. The message has the file's columns and a command with the
            likely ones.
    """
    rows = sample_rows(file)
    keys = {"--question-key": question_key, "--answer-key": answer_key}
    if image_key:
        keys["--image-key"] = image_key
    missing = {option: key for option, key in keys.items() if not _has_column(rows, key)}
    if not rows or not missing:
        return
    names = list(dict.fromkeys(name for row in rows for name in row))
    if set(names) >= _VERL_COLUMNS:
        raise DataError(
            f"{file}: this is a verl parquet already. Check it with `rewardkit check "
            f"{shlex.quote(str(file))}`, or join it to others with rewardkit mix."
        )
    absent = " and no column ".join(f"{key!r}" for key in missing.values())
    near = "".join(did_you_mean(key, names) for key in missing.values() if key not in _DEFAULT_KEYS)
    column_list = ", ".join(names[:MAX_COLUMNS]) + (", ..." if len(names) > MAX_COLUMNS else "")
    guess = guess_columns(rows)
    _require_rows(file, rows, guess.question)
    likely = {"--question-key": guess.question, "--answer-key": guess.answer, "--image-key": ""}
    keys_of_command = {
        option: likely[option] if option in missing else key for option, key in keys.items()
    }
    command = prep_command(file, out, keys_of_command)
    raise DataError(
        f"{file}: there is no column {absent}.{near} Its columns: {column_list or 'none'}.\n"
        f"Name the columns with {' and '.join(missing)}. A likely command:\n  {command}"
    )


_DEFAULT_KEYS = ("question", "answer")


def unread_options(file: Path, question_key: str, answer_key: str) -> list[str]:
    """Return the columns of a user's file that by their names have options, which no prompt shows."""
    names = dict.fromkeys(name for row in sample_rows(file) for name in row)
    found = {
        name: word
        for name in names
        if name not in (question_key, answer_key)
        and (word := "".join(filter(str.isalnum, name.casefold()))) in _OPTION_NAMES
    }
    letters = [name for name, word in found.items() if word in ("a", "b", "c", "d")]
    return [name for name in found if name not in letters or len(letters) > 2]


def prep_command(file: Path, out: Path, keys: Mapping[str, str]) -> str:
    """Return the command that prepares a user's file.

    Args:
        file: the user's file.
        out: the parquet to write.
        keys: the columns by their options, "" for unknown ones.
    """
    options = [
        part
        for option, key in keys.items()
        if key != option.strip("-").removesuffix("-key")
        for part in (option, shlex.quote(key) if key else "COLUMN")
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
    suffix = file.suffix.lower()
    if suffix == ".parquet" or suffix not in READERS or not file.is_file():
        return
    if suffix != ".arrow" and (fault := text_fault(file)):
        raise DataError(f"{file}: {fault}")
    if not file.stat().st_size:
        raise DataError(f"{file}: {parquet_fault(file)}")
    kind = table_kind(file, read_prefix(file))
    rows = sample_rows(file)
    names = {name for row in rows for name in row}
    if names & _RESPONSE_NAMES and names & _SCORED_GOLD_NAMES:
        raise DataError(
            f"{file}: this is {kind} with responses, not a parquet of rows. Run this:\n"
            f"  rewardkit score {shlex.quote(str(file))}"
        )
    guess = guess_columns(rows)
    _require_rows(file, rows, guess.question)
    keys = {"--question-key": guess.question, "--answer-key": guess.answer}
    command = prep_command(file, file.with_suffix(".parquet"), keys)
    raise DataError(f"{file}: this is {kind}, not parquet. Run this first:\n  {command}")


def _require_rows(file: Path, rows: Sequence[RawRow], question: str) -> None:
    """Require that a row of JSON is one problem: it may be an object around all of them.

    Raises:
        DataError: the likely question is one of several in a list or an object of the first row.
    """
    if not rows or file.suffix.lower() not in (".json", ".jsonl", ".ndjson"):
        return
    row, names = rows[0], question.split(".")
    for depth, name in enumerate(names):
        holder = value_at_path(row, ".".join(names[:depth])) if depth else row
        items = list(holder.values()) if isinstance(holder, Mapping) else holder
        is_list = isinstance(items, list) and len(items) > 1
        if name.isdigit() and is_list and all(map(_is_row, items)):
            place = "".join(f'."{outer}"' for outer in names[:depth]) or "."
            out = file.with_name(f"{file.stem}-rows.jsonl")
            raise DataError(
                f"{file}: its rows lie in a list or an object of one row. Write each on a line of "
                "its own, and use the new file:\n"
                f"  jq -c {shlex.quote(f'{place}[]')} {shlex.quote(str(file))} > {shlex.quote(str(out))}"
            )


def _is_row(item: Any) -> bool:
    """Whether an item of a list may be a problem: it is an object, and no message of a chat."""
    return isinstance(item, Mapping) and not {"role", "from"} & item.keys()


def _places_of_turns(column: Sequence[Any]) -> tuple[int, int]:
    """Return the places of the question and its answer in chats of one turn; (-1, -1) for others."""
    roles = {
        tuple(str(item.get("role")) for item in chat if isinstance(item, Mapping))
        for chat in column
        if isinstance(chat, list)
    }
    turns = roles.pop() if len(roles) == 1 else ()
    is_one_turn = turns[-2:] == ("user", "assistant") and turns.count("user") == 1
    return (len(turns) - 2, len(turns) - 1) if is_one_turn else (-1, -1)


def _has_column(rows: Sequence[RawRow], key: str) -> bool:
    return any(key in row or value_at_path(row, key) is not None for row in rows)


def _paths(row: Mapping[str, Any], before: str = "", depth: int = 1) -> Iterator[str]:
    """Yield the dotted paths of the values in a row; a chat is one value."""
    for name, value in row.items():
        path = f"{before}{name}"
        is_chat = isinstance(value, list) and all(
            isinstance(item, Mapping) and {"role", "content"} <= item.keys() for item in value
        )
        if isinstance(value, list) and value and not is_chat:
            items = {str(place): item for place, item in enumerate(value[:MAX_ITEMS])}
            if depth < MAX_DEPTH and any(isinstance(item, (Mapping, list)) for item in value):
                yield from _paths(items, f"{path}.", depth + 1)
                continue
        if isinstance(value, Mapping) and depth < MAX_DEPTH:
            yield from _paths(value, f"{path}.", depth + 1)
        else:
            yield path


def _best(points: Mapping[str, float]) -> str:
    best = max(points, key=lambda path: points[path], default="")
    return best if best and points[best] > 0 else ""


def _question_points(path: str, column: Sequence[Any]) -> float:
    texts = [_text(value) for value in column]
    if sum(map(bool, texts)) < len(texts) / 2 or not any(map(str.strip, texts)):
        return -1
    length = sum(map(len, texts)) / len(texts)
    distinct = len(set(texts)) / len(texts)
    asks = sum(text.rstrip().endswith(("?", "？", "。", ".")) for text in texts) / len(texts)
    return _name_points(path, _QUESTION_NAMES) + min(length, 200) / 10 + 20 * distinct + 10 * asks


def _answer_points(path: str, column: Sequence[Any]) -> float:
    texts = [_gold_text(value) for value in column]
    if sum(map(bool, texts)) < len(texts) / 2:
        return -1
    length = sum(map(len, texts)) / len(texts)
    marks = sum(bool(boxes(text)) or "####" in text for text in texts) / len(texts)
    is_constant = len(texts) > 2 and len(set(texts)) == 1
    points = _name_points(path, _ANSWER_NAMES) + 20 * (1 if length <= 60 else marks)
    # A model may have written a response: it is the answer only if no column is named as one.
    is_response = path.rpartition(".")[2].casefold() in _RESPONSE_NAMES
    return points - 60 * is_response - 100 * is_constant


def _name_points(path: str, names: Sequence[str]) -> float:
    """Return up to 100 points for a name that is known, and up to 50 for one that has it in it."""
    parts = ["".join(filter(str.isalnum, part.casefold())) for part in path.split(".")]
    whole, last = "".join(parts), next((p for p in reversed(parts) if not p.isdigit()), "")
    if last in _OTHER_NAMES:
        return -100
    for number, name in enumerate(names):
        if name in (whole, last):
            return 100 - number
    inside = (
        n for n, name in enumerate(names) if (len(name) > 3 or not name.isascii()) and name in whole
    )
    return max((50.0 - number for number in inside), default=0.0)


def _text(value: Any) -> str:
    """Return a text, or the text of a chat's user."""
    if isinstance(value, list):
        chat = [item for item in value if isinstance(item, Mapping) and item.get("role") == "user"]
        value = chat[-1].get("content") if chat else None
    return value[:MAX_CHARS] if isinstance(value, str) else ""


def _gold_text(value: Any) -> str:
    """Return the text of a text, a number, or a list of them."""
    if isinstance(value, (list, tuple)) and value and not isinstance(value[0], (Mapping, list)):
        value = value[0]
    is_plain = isinstance(value, (str, int, float)) and not isinstance(value, bool)
    return str(value)[:MAX_CHARS] if is_plain else ""
