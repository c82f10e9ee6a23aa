"""Which columns of a user's file hold the questions and the answers: a guess for a message.

A guess is never used to read rows. It is printed in a command that the user checks and pastes.
"""

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

from rewardkit.answers.extract import boxes
from rewardkit.errors import DataError, SourceError, UsageError, call_catching
from rewardkit.file_kinds import (
    is_row_file,
    missing_file,
    parquet_fault,
    row_files_below,
    row_suffix,
    stem_and_suffix,
    table_kind,
    text_fault,
)
from rewardkit.preprocess.base import Dataset
from rewardkit.preprocess.card_dataset import dataset_from_file, is_chat, messages_in
from rewardkit.preprocess.column_map import value_at_path
from rewardkit.preprocess.source import files_in_path
from rewardkit.registry import did_you_mean
from rewardkit.row import Row
from rewardkit.row_files import BrokenRow, rows_at, saved_splits

#: Rows at the start of a file that are looked at, and characters of each value.
SAMPLE_ROWS = 50
MAX_CHARS = 4000
#: Depth of structs and lists, and items of a list, in which columns are searched.
MAX_DEPTH = 5
MAX_ITEMS = 3
#: Most paths of a row that are looked at.
MAX_PATHS = 200

#: Names of columns without case and signs, the likeliest first.
_QUESTION_NAMES = (
    "question", "problem", "题目", "问题", "题干", "prompt", "query", "instruction", "input", "ask", "q",
    "conversations", "messages", "user", "title", "text", "content",
)  # fmt: skip
_ANSWER_NAMES = (
    "answer", "groundtruth", "gold", "gts", "答案", "finalanswer", "correctanswer", "expectedanswer",
    "target", "reference", "ref", "label", "final", "result", "solution", "解答", "解析", "a",
    "response", "output", "completion",
)  # fmt: skip
#: Names of columns that describe a row and answer nothing.
_OTHER_NAMES = frozenset(
    "id idx index uid uuid url source datasource split level difficulty type kind subject topic category "
    "domain language licence license author date time role style ability scorer".split()
)

#: How the names of columns with a system message begin, which asks no question.
_SYSTEM_NAMES = ("system", "sysprompt")

#: Names of columns whose text a question may refer to.
_CONTEXT_NAMES = frozenset(
    "context passage article background document paragraph story premise 材料 背景 文章 上下文".split()
)

#: Names of columns that may be parts of a question; Alpaca's `input` is often empty.
_PART_NAMES = _CONTEXT_NAMES | {"input", "instruction"}

#: Names of columns with the options of a choice question, without case and signs.
_OPTION_NAMES = frozenset({"choices", "options", "选项", "a", "b", "c", "d"})

#: Names of columns with responses of a model.
RESPONSE_NAMES = frozenset({"response", "responses", "output", "solution_str", "completion"})

#: Columns of a file that a message lists, and names of columns with golds that `rewardkit score` reads.
MAX_COLUMNS = 20
_SCORED_GOLD_NAMES = frozenset({"ground_truth", "gts", "gold"})

#: The columns of a file that verl reads as it is.
_VERL_COLUMNS = frozenset({"data_source", "prompt", "reward_model"})


def sample_rows(*files: Path) -> list[Row]:
    """Return the first rows of files with all their columns, up to one that cannot be read.

    Rows that do not fit the header of a CSV file are left out.
    """
    rows: list[Row] = []
    call_catching(rows.extend, (row for _, row in rows_at(files, range(SAMPLE_ROWS))))
    return [row for row in rows if not isinstance(row, BrokenRow)]


def guess_columns(rows: Sequence[Row]) -> tuple[str, str]:
    """Return the likely columns of the question and of the answer as dotted paths; "" for none."""
    values = _columns(rows)
    if are_verl_rows(rows):
        golds = (path for path in values if path.startswith("reward_model.ground_truth"))
        return "prompt", next(golds, "")
    question = _best({path: _question_points(path, column) for path, column in values.items()})
    questions = values.get(question, [])
    answers = {path: _answer_points(path, c) for path, c in values.items() if c != questions}
    answer = _best(answers)
    chats = [messages_in(value) for value in questions if is_chat(value)]
    has_answer = bool(answer) and _name_points(answer, _ANSWER_NAMES) > 0
    if not has_answer and any(chat[-1][0] == "assistant" for chat in chats):
        answer = question
    return ",".join(_question_parts(question, answer, values)), answer


def _columns(rows: Sequence[Row]) -> dict[str, list[Any]]:
    paths = dict.fromkeys(path for row in rows for path in islice(_paths(row), MAX_PATHS))
    return {path: [value_at_path(row, path) for row in rows] for path in paths}


def _question_parts(question: str, answer: str, columns: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return the columns that make up a question: with its context, or with Alpaca's `input`.

    They may be empty in the first rows and have text in later ones.
    """

    def others(names: Collection[str]) -> list[str]:
        return [
            path
            for path, column in columns.items()
            if path not in (question, answer) and _word(path) in names
            if all(value is None or isinstance(value, str) for value in column)
        ]

    before = others(_CONTEXT_NAMES | ({"instruction"} if _word(question) == "input" else set()))
    after = others({"input"}) if _word(question) == "instruction" else []
    return [*before, question, *after]


def are_verl_rows(rows: Sequence[Row]) -> bool:
    """Return whether rows have the columns that verl reads."""
    return bool(rows) and rows[0].keys() >= _VERL_COLUMNS


def own_dataset(
    file: Path,
    out: Path,
    *,
    split: str | None,
    keep: Sequence[str],
    question_key: str,
    answer_key: str,
    image_key: str | None,
    data_source: str | None,
    further_options: Sequence[str],
    warn: Callable[[str], object],
) -> Dataset:
    """Return the dataset of a user's file or folder, and warn about text in it that no row will have.

    `further_options` are words of the command line, for the likely command.

    Raises:
        DataError: the first rows lack a column; the message has the likely command.
    """
    split = split or "train"
    splits = saved_splits(file) or [split]
    rows = sample_rows(*files_in_path(file, split if split in splits else splits[0], ()))
    keys = {"--question-key": question_key, "--answer-key": answer_key, "--image-key": image_key}
    questions = require_columns(file, rows, keys, out, further_options)
    for note in column_notes(rows, questions, answer_key, keep):
        warn(f"{file}: {note}")
    items = [item for row in rows for item in row.items()]
    return replace(
        dataset_from_file(
            file,
            question_key=questions,
            answer_key=answer_key,
            image_key=image_key,
            data_source=data_source,
            split=split,
        ),
        unread_options=tuple(unread_options(rows, [*questions, answer_key])),
        noted_columns=frozenset(
            name
            for name, value in items
            if (value and not isinstance(value, (str, int, float))) or has_text(name, value)
        ),
    )


def column_notes(
    rows: Sequence[Row], questions: Sequence[str], answer_key: str, others: Sequence[str] = ()
) -> list[str]:
    """Return sentences about a user's columns: what no row will have, and where the golds are from."""
    notes = []
    read = (*unread_options(rows, [*questions, answer_key]), *questions, answer_key, *others)
    columns = dict.fromkeys(
        ".".join(takewhile(lambda part: not part.isdigit(), path.split(".")))
        for path, column in _columns(rows).items()
        if _is_text(path, column)
    )
    unread = [
        path
        for path in columns
        if not any(f"{path}.".startswith(f"{key}.") or key.startswith(f"{path}.") for key in read)
    ]
    systems = [path for path in unread if _word(path).startswith(_SYSTEM_NAMES)]
    if systems:
        notes.append(
            f"the system message in {', '.join(systems)} is left out; --system TEXT sets one for all "
            "rows."
        )
    if unread := [path for path in unread if path not in systems]:
        keep = shlex.quote(",".join(unread))
        note = f"the text in {', '.join(unread)} is left out; --keep {keep} keeps it beside the prompt."
        inputs = [path for path in unread if _word(path) == "input"]
        contexts = [path for path in unread if _word(path) in _PART_NAMES - {"input"}]
        if inputs or contexts:
            joined = shlex.quote(",".join([*contexts, *questions, *inputs]))
            note += f" --question-key {joined} joins it to the question."
        notes.append(note)
    if any(is_chat(value_at_path(row, answer_key)) for row in rows):
        notes.append(
            f"the gold is the answer in the last message of {answer_key}: in a box, <answer>, "
            "`Answer:` or `####`, or the whole message. Rows without one are dropped."
        )
    return notes


def has_text(column: str, value: Any) -> bool:
    """Return whether a value of a row has text that a note would name."""
    has_words = bool(value) and not isinstance(value, (int, float))
    return has_words and any(_is_text(*item) for item in _columns([{column: value}]).items())


def _is_text(path: str, column: Sequence[Any]) -> bool:
    """Return whether a column has words, and its name is not one that only describes the row."""
    if _word(path) in _OTHER_NAMES:
        return False
    items = [item for value in column for item in (value if isinstance(value, list) else [value])]
    is_word = str.isalnum if _word(path) in _PART_NAMES else str.isalpha
    has_words = any(isinstance(item, str) and any(map(is_word, item)) for item in items)
    return has_words or any(map(messages_in, column))


def unread_options(rows: Sequence[Row], keys: Sequence[str]) -> list[str]:
    """Return the columns that by their names have options, which no prompt shows."""
    names = [name for name in _columns(rows) if name not in keys and _word(name) in _OPTION_NAMES]
    letters = [name for name in names if len(_word(name)) == 1]
    return [name for name in names if name not in letters or len(letters) > 2]


def _paths(row: Mapping[str, Any], before: str = "", depth: int = 1) -> Iterator[str]:
    for name, value in row.items():
        has_structs = isinstance(value, list) and any(isinstance(v, (Mapping, list)) for v in value)
        inner = value
        if has_structs and not is_chat(value):
            inner = {str(index): item for index, item in enumerate(value[:MAX_ITEMS])}
        if isinstance(inner, Mapping) and depth < MAX_DEPTH:
            yield from _paths(inner, f"{before}{name}.", depth + 1)
        else:
            yield f"{before}{name}"


def _best(points: Mapping[str, float]) -> str:
    best = max(points, key=lambda path: points[path], default="")
    return best if best and points[best] > 0 else ""


def _question_points(path: str, column: Sequence[Any]) -> float:
    strings = [_text(value) for value in column]
    if 2 * sum(map(bool, strings)) < len(strings) or not any(map(str.strip, strings)):
        return -1
    length = sum(map(len, strings)) / len(strings)
    points = 30 + _name_points(path, _QUESTION_NAMES) + min(length, 200) / 10
    if len(strings) > 2 and len(set(strings)) == 1:  # a system message, unless nothing else asks
        return max(points - 95, points / 10)
    return points / 10 if _word(path) in _CONTEXT_NAMES else points


def _answer_points(path: str, column: Sequence[Any]) -> float:
    strings = [_gold_text(value) for value in column]
    if 2 * sum(map(bool, strings)) < len(strings):
        return -1
    length = sum(map(len, strings)) / len(strings)
    marks = sum(bool(boxes(text)) or "####" in text for text in strings) / len(strings)
    is_constant = len(strings) > 2 and len(set(strings)) == 1
    points = _name_points(path, _ANSWER_NAMES) + 20 * (1 if length <= 60 else marks)
    # A model may have written a response: it is the answer only if no column is named as one.
    is_response = path.rpartition(".")[2].casefold() in RESPONSE_NAMES
    return points - 60 * is_response - 100 * is_constant


def _name_points(path: str, names: Sequence[str]) -> float:
    """Return up to 100 points for a name that is known, and up to 50 for one that has it in it."""
    whole, last = "".join(filter(str.isalnum, path.casefold())), _word(path)
    if last in _OTHER_NAMES or last.startswith(_SYSTEM_NAMES):
        return -100
    inside = 0.0
    for number, name in enumerate(names):
        if name in (whole, last):
            return 100 - number
        if name in whole and (len(name) > 3 or not name.isascii()):
            inside = max(inside, 50.0 - number)
    return inside


def _word(path: str) -> str:
    """Return the last name of a dotted path, without numbers, case and signs."""
    words = ("".join(filter(str.isalnum, part.casefold())) for part in reversed(path.split(".")))
    return next((word for word in words if not word.isdigit()), "")


def _text(value: Any) -> str:
    """Return a text, the only text of a list, or the text of a chat's user."""
    if isinstance(value, list):
        messages = [content for role, content in messages_in(value) if role == "user"]
        value = messages[-1] if messages else value[0] if len(value) == 1 else None
    return value[:MAX_CHARS] if isinstance(value, str) else ""


def _gold_text(value: Any) -> str:
    if isinstance(value, (list, tuple)) and value:
        value = value[0]
    is_plain = isinstance(value, (str, int, float)) and not isinstance(value, bool)
    return str(value)[:MAX_CHARS] if is_plain else ""


def require_columns(
    file: Path,
    rows: Sequence[Row],
    keys: Mapping[str, str | None],
    out: Path,
    further_options: Sequence[str] = (),
) -> list[str]:
    """Require that the first rows of a user's file have the columns that options name.

    Return the columns of the question: `--question-key` may name several, separated by commas.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    question_key = keys["--question-key"] or ""
    parts = [name.strip() for name in question_key.split(",") if name.strip()]
    questions = [question_key] if question_key in names or not parts else parts
    missing = {
        option: column
        for option, key in keys.items()
        for column in (questions if option == "--question-key" else [key])
        if column and column not in names
        if all(value_at_path(row, column) is None for row in rows)
    }
    if not rows or not missing:
        return questions
    if are_verl_rows(rows) and file.suffix.lower() == ".parquet":
        raise DataError(
            f"{file}: this is a verl parquet already. Check it with `rewardkit check "
            f"{shlex.quote(str(file))}`, or join it to others with rewardkit mix."
        )
    absent = " and no column ".join(f"{column!r}" for column in missing.values())
    own = (column for column in missing.values() if column not in ("question", "answer"))
    near = "".join(did_you_mean(column, names) for column in own)
    column_list = ", ".join(names[:MAX_COLUMNS]) + (", ..." if len(names) > MAX_COLUMNS else "")
    likely = _likely_keys(file, rows)
    keys_of_command = likely | {
        option: likely.get(option, "") if option in missing else key
        for option, key in keys.items()
        if key
    }
    if unknown := " and ".join(option for option, key in keys_of_command.items() if not key):
        advice = f"; no column is likely the one of {unknown}."
    else:
        command = _prep_command(file, out, keys_of_command, further_options)
        advice = f". A likely command:\n  {command}"
    raise DataError(
        f"{file}: there is no column {absent}.{near} Its columns: {column_list or 'none'}.\n"
        f"Name the columns with {' and '.join(missing)}{advice}"
    )


def _likely_keys(file: Path, rows: Sequence[Row]) -> dict[str, str]:
    """Return the likely options; raise `DataError` if a row of JSON has several problems."""
    question, answer = guess_columns(rows)
    if rows and row_suffix(file) in (".json", ".jsonl", ".ndjson"):
        _require_single_problem(file, rows[0], question)
    keys = {"--question-key": question, "--answer-key": answer}
    if are_verl_rows(rows):  # of verl's own scripts: prompts and reward key stay
        keys["--template"] = "none"
        sources = {str(row.get("data_source")) for row in rows}
        keys |= {"--data-source": sources.pop()} if len(sources) == 1 else {}
    return keys


def _prep_command(
    file: Path, out: Path, keys: Mapping[str, str], further_options: Sequence[str] = ()
) -> str:
    options = "".join(
        f"{option} {shlex.quote(key)} "
        for option, key in keys.items()
        if key and key != option.strip("-").removesuffix("-key")
    )
    options += "".join(f"{shlex.quote(word)} " for word in further_options)
    return f"rewardkit prep {shlex.quote(str(file))} {options}--out {shlex.quote(str(out))}"


def require_parquet(name: str) -> None:
    """Require that a name is not that of a file with rows in another format."""
    file = Path(name)
    suffix = row_suffix(file)
    if suffix == ".parquet" or not is_row_file(file) or not file.is_file():
        return
    if suffix == file.suffix.lower() != ".arrow" and (fault := text_fault(file)):
        raise DataError(f"{file}: {fault}")
    if not file.stat().st_size:
        raise DataError(f"{file}: {parquet_fault(file)}")
    kind, rows = table_kind(file), sample_rows(file)
    names = {name for row in rows for name in row}
    if names & RESPONSE_NAMES and names & _SCORED_GOLD_NAMES:
        raise DataError(
            f"{file}: this is {kind} with responses, not a parquet of rows. Run this:\n"
            f"  rewardkit score {shlex.quote(str(file))}"
        )
    out = file.with_name(f"{stem_and_suffix(file)[0]}.parquet")
    command = _prep_command(file, out, _likely_keys(file, rows))
    raise DataError(f"{file}: this is {kind}, not parquet. Run this first:\n  {command}")


def _require_single_problem(file: Path, row: Row, question: str) -> None:
    """Require that a row of JSON is one problem: it may be an object around all of them."""
    holder: Any = row
    outer = "."
    for name in question.split("."):
        items = list(holder.values()) if isinstance(holder, Mapping) else holder
        is_number = name.isdigit() and isinstance(items, list) and len(items) > 1
        if is_number and all(
            isinstance(i, Mapping) and not {"role", "from"} & i.keys() for i in items
        ):
            out = file.with_name(f"{stem_and_suffix(file)[0]}-rows.jsonl")
            source, jq = shlex.quote(str(file)), f"jq -c {shlex.quote(f'{outer}[]')}"
            unpack = {".gz": "gzip -dc", ".zst": "zstd -dc"}.get(file.suffix.lower())
            command = f"{unpack} {source} | {jq}" if unpack else f"{jq} {source}"
            raise DataError(
                f"{file}: its rows lie in a list or an object of one row. Write each on a line of "
                f"its own, and use the new file:\n  {command} > {shlex.quote(str(out))}"
            )
        holder, outer = value_at_path(holder, name), f'{outer.rstrip(".")}."{name}"'


def parquet_files(paths: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Return the parquets that are named or lie in folders, and the other data files of the folders.

    A folder stands for all parquets in it and in its folders, by name; hidden ones are left out.
    """
    parquets: list[Path] = []
    others: list[Path] = []
    for path in paths:
        if not path.is_dir():
            if path.suffix in (".yaml", ".yml"):
                raise UsageError(f"{path}: a recipe is checked alone, without other files.")
            if not path.exists():
                raise SourceError(missing_file(path))
            require_parquet(str(path))
            parquets.append(path)
            continue
        files = row_files_below(path)
        inside = [file for file in files if file.suffix.lower() == ".parquet"]
        if not inside:
            if saved_splits(path) or (path / "state.json").is_file():
                command = f"rewardkit prep {shlex.quote(str(path))} --out {path.name}.parquet"
                raise DataError(f"{path}: this is Arrow, not parquet. Run this first:\n  {command}")
            for file in files[:1]:
                require_parquet(str(file))
            raise SourceError(f"{path}: no parquet in this folder or below it.")
        parquets += inside
        others += [file for file in files if file.suffix.lower() != ".parquet"]
    counts = Counter(file.resolve() for file in parquets)
    for file in parquets:
        if counts[file.resolve()] > 1:
            raise UsageError(f"{file} is given twice.")
    return parquets, others
