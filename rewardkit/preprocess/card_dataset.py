"""Datasets whose rows need no code: that of a card, and that of a user's data file.

A question may be a chat: `messages` with roles (OpenAI), or `conversations` with senders (ShareGPT).
"""

import json
import random
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from rewardkit.answers.extract import boxes, final_answer, text_after_thought
from rewardkit.errors import UsageError
from rewardkit.file_kinds import ROW_SUFFIXES, is_row_file, stem_and_suffix
from rewardkit.preprocess.base import Dataset, Dropped, Problem, unmet
from rewardkit.preprocess.card import Card, Split
from rewardkit.preprocess.code_rows import ground_truth, question_with_code, text_of
from rewardkit.preprocess.column_map import (
    ColumnMap,
    Field,
    UnreadableValueError,
    as_plain_text,
    letter_of_option,
    options_by_letter,
    value_at_path,
)

#: The position of an image in a question, as verl reads it.
MARK = "<image>"

#: A mark as the datasets write it, numbered or not.
_MARK = re.compile(r"<image ?([0-9]{0,2})>")

#: A gold of several letters, as the datasets write it: `ACD`, `A C D`.
_SEVERAL_LETTERS = re.compile(r"[A-Z](?: ?[A-Z])+")

#: The last line of a solution as GSM8K writes it. Before anything but a number, `####` may be a heading.
_HASH_LINE = re.compile(
    r"(?:\A|\n)[ \t]*####[ \t]*(-?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?)\Z"
)

#: Senders of ShareGPT's messages, by OpenAI's roles.
_ROLES = {"human": "user", "gpt": "assistant", "chatgpt": "assistant", "model": "assistant"}


def dataset_of_card(card: Card, options_seed: int = 0) -> Dataset:
    """Return the dataset that a card describes."""
    to_problem = partial(read_problem, card=card, options_seed=options_seed)
    return Dataset(card.name, to_problem, repeats=card.repeats, dedup=card.dedup, card=card)


def dataset_from_file(
    path: Path,
    *,
    question_key: str | Sequence[str] = "question",
    answer_key: str = "answer",
    image_key: str | None = None,
    data_source: str | None = None,
    split: str = "train",
) -> Dataset:
    r"""Return a dataset for the rows of one file; pass it to `prep` together with `source=path`.

    Args:
        path: a file that `prep` reads, or a folder: one that `datasets` has saved, or one with the
            split in the names of its files.
        question_key: column of the question, which is text or a chat; the texts of several columns
            are joined with blank lines. A dotted path leads into structs and lists (`row.0.value`;
            a row that is itself a list is the column `row`).
        answer_key: column of the gold answer: text, a number, or a list of alternatives; a solution
            that ends with a line `#### 18` or has a box; or a chat, whose last message has the answer.
        image_key: column of the images: lists of bytes or of `{bytes, path}`.
        data_source: verl's reward key; None for the file's name without its suffixes.
        split: value of `extra_info.split` in the rows; a `DatasetDict` has splits of its own.

    Raises:
        UsageError: the file has another suffix.
    """
    from rewardkit.row_files import saved_splits

    if not is_row_file(path) and not path.is_dir():
        raise UsageError(f"{path}: not a {', '.join(ROW_SUFFIXES)} file.")
    questions = [question_key] if isinstance(question_key, str) else list(question_key)
    keys = [*questions, answer_key, *filter(None, [image_key])]
    gold = Field(answer_key, (_answer_in_solution,))
    layout = ColumnMap(
        {"question": [*map(Field, questions)], "gold": [gold]}
        | ({"images": [Field(image_key)]} if image_key else {})
    )
    stem = path.name if path.is_dir() else stem_and_suffix(path)[0]
    files = () if path.is_dir() else (path.name,)
    card = Card(
        name=stem,
        title=path.name,
        data_source=data_source or stem,
        ability="math",
        template="boxed",
        scorer="math",
        licence="the user's",
        # the name of a column may contain a dot
        columns=(tuple(dict.fromkeys(keys)), layout.columns),
        splits={name: Split(0, files) for name in saved_splits(path) or [split]},
        maps=(layout,),
    )
    return dataset_of_card(card)


def read_problem(raw: Mapping[str, Any], *, card: Card, options_seed: int = 0) -> Problem | Dropped:
    """Return the problem in a raw row, or the reason to drop it."""
    layout = _layout(raw, card.maps)
    try:
        return unmet(layout.where, raw) or _problem(raw, layout, card, options_seed)
    except UnreadableValueError as error:
        return Dropped(*map(str, error.args))


def has_system_message(raw: Mapping[str, Any], card: Card) -> bool:
    """Return whether a question is a chat with a system message, which rows do not get."""
    fields = _layout(raw, card.maps)["question"] if card.maps else ()
    chats = (messages_in(value_at_path(raw, field.column)) for field in fields)
    return any(role == "system" for chat in chats for role, _ in chat)


def messages_in(value: Any) -> list[tuple[str, Any]]:
    """Return role and content of the messages in a list; [] for another value.

    A content that is a list of texts, as OpenAI's parts are, is their text; null is "", as in a
    message that calls tools.
    """
    messages = []
    for item in value if isinstance(value, (list, tuple)) else ():
        if isinstance(item, Mapping):
            role = item.get("role") or item.get("from")
            content = item.get("content") if "content" in item else item.get("value")
            has_content = not item.keys().isdisjoint(("content", "value", "tool_calls"))
            if isinstance(role, str) and has_content and item.get("ground_truth") is None:
                if isinstance(content, list) and all(
                    isinstance(part, Mapping) and isinstance(part.get("text"), str)
                    for part in content
                ):
                    content = "\n".join(part["text"] for part in content)
                name = _ROLES.get(role.lower(), role.lower())
                messages.append((name, "" if content is None else content))
    return messages


def is_chat(value: Any) -> bool:
    """Return whether a value is a list of messages and nothing else."""
    return isinstance(value, list) and bool(value) and len(messages_in(value)) == len(value)


def answer_in_chat(value: Any) -> str:
    """Return the answer that the last message of a chat states in a form that scorers read.

    The form is a box, `<answer>`, `Answer:`, `####`, or nothing but the answer.
    """
    role, text = messages_in(value)[-1]
    if role != "assistant" or text == "":
        raise UnreadableValueError("the chat does not end with the assistant's answer")
    if not isinstance(text, str):
        raise TypeError(f"the answer is {type(text).__name__}, not text")
    answer = final_answer(text, text)
    is_one_line = "\n" not in text_after_thought(text).strip()
    if answer is None or answer.mark == "sentence" or (answer.mark == "line" and not is_one_line):
        raise UnreadableValueError(
            "the assistant's message states no answer in a box, <answer>, `Answer:` or `####`"
        )
    return answer.text


def _answer_in_solution(value: Any) -> Any:
    """Return the answer of a chat, or of a solution: its last boxes, or the number after `####`.

    Any other value is unchanged. Thousands separators are left out, as verl's preparation of GSM8K
    does (`examples/data_preprocess/gsm8k.py`).
    """
    if is_chat(value):
        return answer_in_chat(value)
    if not isinstance(value, str):
        return value
    match = _HASH_LINE.search(value.rstrip())
    return match[1].replace(",", "") if match else ", ".join(boxes(value)) or value


def _layout(raw: Mapping[str, Any], maps: Sequence[ColumnMap]) -> ColumnMap:
    """Return the first layout whose columns the row has, as the files are read."""
    if len(maps) == 1:
        return maps[0]
    return next((each for each in maps if raw.keys() >= set(each.columns)), maps[-1])


def _problem(raw: Mapping[str, Any], layout: ColumnMap, card: Card, options_seed: int) -> Problem:
    questions = [_question(field.value(raw)) for field in layout["question"]]
    question = questions[0] if len(questions) == 1 else "\n\n".join(filter(None, questions))
    if layout["tests"]:
        return _coding_problem(question, raw, layout)
    options = _options(raw, layout["options"])
    if shuffles := card.shuffle_options and bool(options):
        # the order depends on the question, not on the row's index in the file
        random.Random(f"{options_seed}:{question}").shuffle(options)  # noqa: S311 - not a secret
    golds = layout["gold"]
    gold = _gold(golds[0], raw, options) if len(golds) == 1 else _gold_object(golds, raw)
    if tuple(options) != tuple(ascii_uppercase[: len(options)]):
        # options that only repeat their letters are in the image
        lines = map("{}. {}".format, ascii_uppercase, options)
        question = "\n".join([question, *lines])
    images = _images(layout["images"][0].value(raw)) if layout["images"] else None
    kind = ("multiple" if _SEVERAL_LETTERS.fullmatch(gold) else "single") if options else ""
    return Problem(
        question if images is None else _with_marks(question, len(images)),
        gold,
        answer=_text(layout["solution"], raw),
        source_id=_text(layout["id"], raw),
        subject=_text(layout["subject"], raw),
        level=_text(layout["level"], raw),
        kind=_text(layout["kind"], raw) if layout["kind"] else kind,
        options=tuple(options),
        images=images,
        columns={"options_seed": options_seed} if shuffles else {},
    )


def _coding_problem(question: str, raw: Mapping[str, Any], layout: ColumnMap) -> Problem:
    gold, entry_point = ground_truth(raw, layout)
    name = text_of(layout, "entry_point", raw) or entry_point
    return Problem(
        question_with_code(question.replace("\r\n", "\n"), text_of(layout, "starter", raw), name),
        gold,
        answer=text_of(layout, "solution", raw, ""),
        source_id=_text(layout["id"], raw),
        subject=_text(layout["subject"], raw),
        level=_text(layout["level"], raw),
        kind=_text(layout["kind"], raw),
    )


def _text(part: Sequence[Field], raw: Mapping[str, Any]) -> str:
    """Return the text of a part that a card may lack; several texts are joined."""
    value = part[0].value(raw) if part else ""
    return ", ".join(map(as_plain_text, value if isinstance(value, (list, tuple)) else [value]))


def _question(value: Any) -> str:
    if isinstance(value, list):
        contents = [content for role, content in messages_in(value) if role == "user"]
        if len(contents) > 1:
            raise UnreadableValueError(f"the question is a chat with {len(contents)} user messages")
        if len(value) == 1 and isinstance(value[0], str):
            contents = value
        value = contents[0] if contents else None
    if value is not None and not isinstance(value, str):
        raise TypeError(f"the question is {type(value).__name__}, neither text nor a chat")
    return value or ""


def _gold(field: Field, raw: Mapping[str, Any], options: Sequence[str]) -> str:
    """Return the gold; several alternatives are the text of a JSON list."""
    value = field.value(raw)
    golds = value if isinstance(value, (list, tuple)) else [value]
    golds = [as_plain_text(gold).strip() for gold in golds]
    if not any(golds):
        raise UnreadableValueError("no gold answer")
    gold = golds[0] if len(golds) == 1 else json.dumps(golds, ensure_ascii=False)
    return letter_of_option(gold, options) if field.names_option else gold


def _gold_object(fields: Sequence[Field], raw: Mapping[str, Any]) -> str:
    """Return the gold of several columns: the JSON text of an object, without nulls."""
    values = {field.column.rpartition(".")[2]: _without_nulls(field.value(raw)) for field in fields}
    if not all(values.values()):
        raise UnreadableValueError("no gold answer")
    return json.dumps(values, ensure_ascii=False)


def _without_nulls(value: Any) -> Any:
    """Return a text or a list; the fields of objects in a list that are null are left out."""
    if isinstance(value, str):
        return value.strip()
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"{type(value).__name__} is neither text nor a list")
    return [
        {key: each for key, each in item.items() if each is not None}
        if isinstance(item, Mapping)
        else item
        for item in value
    ]


def _options(raw: Mapping[str, Any], part: Sequence[Field]) -> list[str]:
    value = [field.value(raw) for field in part]
    value = value[0] if len(value) == 1 else value
    if isinstance(value, Mapping):
        value = options_by_letter(value)
    if value is None:
        return []
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"the options are {type(value).__name__}, not a list")
    if len(value) > len(ascii_uppercase):
        raise UnreadableValueError("more options than letters")
    return [as_plain_text(option).strip() for option in value]


def _images(value: Any) -> tuple[bytes, ...]:
    from rewardkit.row import image_contents  # it imports pyarrow, which `list` does not need

    single = [] if value is None else [value]
    contents = image_contents({"images": value if isinstance(value, (list, tuple)) else single})
    if not all(contents):
        raise UnreadableValueError("an image is not in the file")
    return contents


def _with_marks(text: str, images: int) -> str:
    """Return a question and its options with one `<image>` for each image.

    A text without marks begins with them. Numbered marks name the images in order. If there are
    several and one image, it shows all figures, each under its own mark `<image2>`, as MATH-V's
    do: then the text begins with the image and keeps the marks, which name its parts.
    """
    numbers = [match[1] for match in _MARK.finditer(text)]
    if not numbers or (images == 1 < len(numbers) and all(numbers)):
        return MARK * images + text
    if len(numbers) != images:
        raise UnreadableValueError("marks and images differ in number")
    if any(number and int(number) != index for index, number in enumerate(numbers, 1)):
        raise UnreadableValueError("the marks are not in the order of the images")
    return _MARK.sub(MARK, text)
