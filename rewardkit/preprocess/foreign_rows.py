"""Convert a row of any verl parquet to our schema.

verl files in use differ in their types: `index` is an int64 in one and a uuid in another, golds are
numbers, scripts leave columns behind. `datasets.concatenate_datasets` rejects such files together.
The fields for tools, interactions and the agent loop are kept. Other fields that our schema does not
have are left out and reported. If verl reads such a field, it is an error instead, because leaving
it out would change the training.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from types import NoneType
from typing import Any

import pyarrow as pa

from rewardkit.errors import DataError
from rewardkit.preprocess.column_map import UnreadableValueError, options_by_letter
from rewardkit.row import AGENT_NAME, IMAGES, SCHEMA, TURN_FIELDS, Row, build_row

#: Fields that verl 0.9.1 reads and our schema does not have (`utils/dataset/rl_dataset.py`).
VERL_FIELDS = ("videos", "audios")

#: Fields of `extra_info` that are copied as text.
_STRINGS = tuple(item.name for item in SCHEMA.field("extra_info").type if item.type == pa.string())

#: Key of the golden answers in the golds of verl's script for Search-R1.
SEARCH_GOLD = "target"


def to_schema_row(row: Mapping[str, Any], row_index: int) -> tuple[Row, frozenset[str]]:
    """Return the row in our schema, and the dotted names of the fields that were left out.

    `row_index` becomes `extra_info.index` if the row has no integer there.
    """
    info, model = _struct(row, "extra_info"), _struct(row, "reward_model")
    _require_unset(row, "", VERL_FIELDS)
    data_source = _text(row.get("data_source"))
    if not data_source:
        raise DataError("data_source is missing: verl chooses the reward by it. Add the column.")
    index = _whole(info.get("index"))
    strings: dict[str, Any] = {name: _text(info.get(name)) or "" for name in _STRINGS}
    if index is None and not strings["source_id"]:
        strings["source_id"] = _text(info.get("index")) or ""
    schema_row = build_row(
        data_source=data_source,
        prompt=_messages(row.get("prompt")),
        ability=_text(row.get("ability")) or "",
        ground_truth=_gold(model.get("ground_truth")),
        index=row_index if index is None else index,
        options=_options(info.get("options")),
        **strings,
    )
    schema_row["reward_model"]["style"] = _text(model.get("style")) or "rule"
    images, agent = _images(row.get(IMAGES.name)), _text(row.get(AGENT_NAME.name))
    schema_row |= {IMAGES.name: images} if images else {}
    schema_row |= {AGENT_NAME.name: agent} if agent else {}
    schema_row["extra_info"].update(_turn_values(info))
    return schema_row, frozenset(_omitted_fields(row, schema_row))


def describe_changes(row: Mapping[str, Any], schema_row: Row) -> Iterator[str]:
    """Yield a phrase for each value that `to_schema_row` changed."""
    if isinstance(row["prompt"], str):
        yield "prompt was text: written as the user's message"
    gold = row["reward_model"]["ground_truth"]
    if isinstance(gold, Mapping):
        yield "reward_model.ground_truth was a struct: its answers are written as a JSON list"
    elif not isinstance(gold, str):
        yield f"reward_model.ground_truth was {type(gold).__name__}: written as text"
    index = (row.get("extra_info") or {}).get("index")
    if is_blank(index):
        yield "extra_info.index was missing: set to the row's index in its file"
    elif _whole(index) is None and _text(index) == schema_row["extra_info"]["source_id"]:
        yield f"extra_info.index was {type(index).__name__}: kept as source_id"


def is_blank(value: Any) -> bool:
    """Return whether a value is null, NaN, empty, or consists of such values, as Arrow's structs may."""
    if isinstance(value, (Mapping, list, tuple)):
        return all(map(is_blank, value.values() if isinstance(value, Mapping) else value))
    if isinstance(value, (str, bytes)):
        return not value
    return value is None or bool(value != value)  # noqa: PLR0124 - NaN


def _omitted_fields(row: Mapping[str, Any], schema_row: Row) -> Iterator[str]:
    info, schema_info = row.get("extra_info") or {}, schema_row["extra_info"]
    for prefix, before, after in (
        ("", row, schema_row),
        ("reward_model.", row["reward_model"], schema_row["reward_model"]),
        ("extra_info.", info, schema_info),
    ):
        for name, value in before.items():
            if not is_blank(value) and is_blank(after.get(name)):
                yield prefix + name
    index = info.get("index")
    if _whole(index) is None and _text(index) != schema_info["source_id"] and not is_blank(index):
        yield "extra_info.index"


def _struct(fields: Mapping[str, Any], name: str, prefix: str = "") -> Mapping[str, Any]:
    value = fields.get(name)
    if not isinstance(value, (Mapping, NoneType)):
        raise DataError(
            f"{prefix}{name} is {_kind(value)}, but verl reads a struct. Write a struct."
        )
    return value or {}


def _require_unset(fields: Mapping[str, Any], prefix: str, names: Sequence[str]) -> None:
    for name in names:
        if not is_blank(fields.get(name)) and fields[name] is not False:
            raise DataError(
                f"{prefix}{name} is set: verl reads it, but our schema does not have it. Leave the "
                "file out of the mix, or drop the field if the training does not need it."
            )


def _messages(prompt: Any) -> list[dict[str, str]]:
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}]
    if not isinstance(prompt, list) or not prompt:
        value = "missing or empty" if is_blank(prompt) else _kind(prompt)
        raise DataError(f"prompt is {value}. Write a chat: a list of {{role, content}}.")
    messages = []
    for message in prompt:
        if not isinstance(message, Mapping):
            raise DataError(f"prompt has {_kind(message)}, not a message. Write {{role, content}}.")
        for name in ("role", "content"):
            if not isinstance(message.get(name), str):
                raise DataError(f"prompt[].{name} is {_kind(message.get(name))}. Write text.")
        # verl passes the whole message to the model's chat template
        _require_unset(message, "prompt[].", [n for n in message if n not in ("role", "content")])
        messages.append({"role": message["role"], "content": message["content"]})
    return messages


def _gold(value: Any) -> str:
    if isinstance(value, (list, tuple)) and len(value) == 1:
        value = value[0]
    if isinstance(value, Mapping) and (answers := _options(value.get(SEARCH_GOLD))):
        return json.dumps(answers, ensure_ascii=False)
    text = _text(value)
    if text or isinstance(value, str):
        return text or ""
    description = "missing" if is_blank(value) else _kind(value)
    raise DataError(
        f"reward_model.ground_truth is {description}. Write one answer as text, or drop the "
        "row (rewardkit check --drop-bad drops rows without a gold)."
    )


def _turn_values(info: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    tools = _struct(info, "tools_kwargs", "extra_info.")
    _struct(info, "interaction_kwargs", "extra_info.")
    for name in TURN_FIELDS:
        value = info.get(name)
        if name == "tools_kwargs":  # a tool whose arguments are all null is a tool of the row, too
            value = {tool: entry for tool, entry in tools.items() if entry is not None}
        if value or not is_blank(value):
            yield name, value


def _whole(value: Any) -> int | None:
    """Return a value as an int64, or None. pandas turns an index with gaps into floats."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    is_whole = -(2**63) <= value < 2**63 and int(value) == value
    return int(value) if is_whole else None


def _options(value: Any) -> list[str]:
    """Return the options as strings, [] if they are of another type; a struct has them by letter."""
    if isinstance(value, Mapping):
        with suppress(UnreadableValueError):
            value = options_by_letter(value)
    options = [_text(option) for option in value] if isinstance(value, list) else []
    return [option for option in options if option is not None] if None not in options else []


def _images(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, (list, type(None))):
        raise DataError(f"images is {_kind(value)}. Write a list of {{bytes, path}}.")
    images = []
    for image in value or ():
        struct = image if isinstance(image, Mapping) else {"bytes": image}
        content = struct.get("bytes")
        if not isinstance(content, bytes) or not content:
            raise DataError(
                f"images[].bytes is {_kind(content)}. Write the bytes of the image file there."
            )
        # verl passes the whole struct to the processor; min_pixels, say, changes what the model sees
        _require_unset(struct, "images[].", [n for n in struct if n not in ("bytes", "path")])
        images.append({"bytes": content, "path": _text(struct.get("path")) or None})
    return images


def _text(value: Any) -> str | None:
    """Return text, or the text of a number; "" for null and NaN, None for other values."""
    if isinstance(value, (str, int, float, Decimal, NoneType)):
        return "" if is_blank(value) else str(value)
    return None


def _kind(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}"
    return "missing" if value is None else f"of type {type(value).__name__}"
