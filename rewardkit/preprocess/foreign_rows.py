"""One foreign verl row as a row of our schema.

verl files in the wild disagree on types: an int64 `index` here and a uuid there, golds that are
numbers, columns that a script forgot to drop. `datasets.concatenate_datasets` refuses such files
side by side. What our schema has no place for is left out and named, unless verl reads it: leaving
that out would change the training without a word, so it is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from numbers import Integral, Real
from string import ascii_uppercase
from typing import Any

from rewardkit.errors import DataError
from rewardkit.row import IMAGES, Row, build_row

#: What verl 0.9.1 reads of a row beside what our schema has: the agent loop and the tools of
#: the row, and its other media (`utils/dataset/rl_dataset.py`, `experimental/agent_loop`).
READ_BY_VERL = ("agent_name", "videos", "audios")
READ_OF_EXTRA_INFO = ("tools_kwargs", "interaction_kwargs", "need_tools_kwargs", "tool_selection")

#: Fields of `extra_info` that are text as they stand.
_TEXTS = ("split", "question", "answer", "scorer", "subject", "level", "kind")

_STYLE = "rule"


def to_schema_row(row: Mapping[str, Any], place: int) -> tuple[Row, frozenset[str]]:
    """A row of our schema, and the dotted names of the fields that were left out of it.

    Args:
        row: of any verl parquet.
        place: of the row in its file; its `extra_info.index` if it has no whole number there.

    Raises:
        DataError: a field verl needs is missing or cannot be written as our schema has it, or one
            that verl reads has no place in it. The message names the field, not the file.
    """
    info, model = _struct(row, "extra_info"), _struct(row, "reward_model")
    _refuse(row, "", READ_BY_VERL)
    _refuse(info, "extra_info.", READ_OF_EXTRA_INFO)
    index, source_id = _index(info, place)
    texts: Mapping[str, Any] = {name: _text(info.get(name)) or "" for name in _TEXTS}
    made = build_row(
        data_source=_data_source(row),
        prompt=_messages(row.get("prompt")),
        ability=_text(row.get("ability")) or "",
        ground_truth=_gold(model.get("ground_truth")),
        index=index,
        source_id=source_id,
        options=_options(info.get("options")),
        **texts,
    )
    made["reward_model"]["style"] = _text(model.get("style")) or _STYLE
    if images := _images(row.get(IMAGES.name)):
        made[IMAGES.name] = images
    return made, frozenset(_left_out(row, made))


def describe_changes(row: Mapping[str, Any], made: Row) -> Iterator[str]:
    """What `to_schema_row` wrote otherwise than the row had it, a phrase each."""
    if isinstance(row["prompt"], str):
        yield "prompt was text: made the user's message"
    gold = row["reward_model"]["ground_truth"]
    if not isinstance(gold, str):
        yield f"reward_model.ground_truth was {type(gold).__name__}: written as text"
    index = (row.get("extra_info") or {}).get("index")
    if is_blank(index):
        yield "extra_info.index was missing: the row's place in its file"
    elif _whole(index) is None and _text(index) == made["extra_info"]["source_id"]:
        yield f"extra_info.index was {type(index).__name__}: kept as source_id"


def is_blank(value: Any) -> bool:
    """Whether a value says nothing: null, NaN, empty, or made of such. Arrow fills structs so."""
    if isinstance(value, Mapping):
        return all(map(is_blank, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(is_blank, value))
    if isinstance(value, (str, bytes)):
        return not value
    return value is None or bool(value != value)  # noqa: PLR0124 - NaN


def _left_out(row: Mapping[str, Any], made: Row) -> Iterator[str]:
    info = row.get("extra_info") or {}
    yield from _lost(row, made, "")
    yield from _lost(row["reward_model"], made["reward_model"], "reward_model.")
    yield from _lost(info, made["extra_info"], "extra_info.")
    index = info.get("index")
    kept = _whole(index) is not None or _text(index) == made["extra_info"]["source_id"]
    if not kept and not is_blank(index):
        yield "extra_info.index"


def _lost(given: Mapping[str, Any], kept: Mapping[str, Any], prefix: str) -> Iterator[str]:
    """Fields that say something where what was kept says nothing."""
    for name, value in given.items():
        if not is_blank(value) and is_blank(kept.get(name)):
            yield prefix + name


def _struct(row: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = row.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise DataError(f"{name} is {_kind(value)}, and verl reads a struct; write it as one.")
    return value


def _refuse(given: Mapping[str, Any], prefix: str, names: Sequence[str]) -> None:
    for name in names:
        # need_tools_kwargs = False asks for nothing
        if not is_blank(given.get(name)) and given[name] is not False:
            raise DataError(
                f"{prefix}{name} is set: verl reads it and our schema has no place for it. Leave "
                "the file out of the mix, or drop the field if the training does not need it."
            )


def _data_source(row: Mapping[str, Any]) -> str:
    text = _text(row.get("data_source"))
    if not text:
        raise DataError("data_source is missing: verl chooses the reward by it; add the column.")
    return text


def _messages(prompt: Any) -> list[dict[str, str]]:
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}]
    if not isinstance(prompt, list) or not prompt:
        found = "missing or empty" if is_blank(prompt) else _kind(prompt)
        raise DataError(f"prompt is {found}; write it as a chat: a list of {{role, content}}.")
    return list(map(_message, prompt))


def _message(message: Any) -> dict[str, str]:
    if not isinstance(message, Mapping):
        raise DataError(f"prompt has {_kind(message)}, not a message; write {{role, content}}.")
    for name in ("role", "content"):
        if not isinstance(message.get(name), str):
            raise DataError(f"prompt[].{name} is {_kind(message.get(name))}; write it as text.")
    # the whole message goes into the model's chat template
    _refuse(message, "prompt[].", [name for name in message if name not in ("role", "content")])
    return {"role": str(message["role"]), "content": str(message["content"])}


def _gold(value: Any) -> str:
    if isinstance(value, (list, tuple)) and len(value) == 1:
        value = value[0]
    text = _text(value)
    if isinstance(value, str):
        return str(value)
    if not text:
        what = "missing" if is_blank(value) else _kind(value)
        raise DataError(
            f"reward_model.ground_truth is {what}; write one answer as text, or drop the row "
            "(rewardkit check --drop-bad drops rows without a gold)."
        )
    return text


def _index(info: Mapping[str, Any], place: int) -> tuple[int, str]:
    """The row's index and source id; an index that is no whole number is an id."""
    value, source_id = info.get("index"), _text(info.get("source_id")) or ""
    whole = _whole(value)
    if whole is not None:
        return whole, source_id
    return place, source_id or _text(value) or ""


def _whole(value: Any) -> int | None:
    """A whole number that int64 holds. pandas makes a float of an index that has gaps."""
    if isinstance(value, bool) or not isinstance(value, (Integral, float)):
        return None
    number = int(value) if isinstance(value, Integral) or value.is_integer() else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def _options(value: Any) -> list[str]:
    """The options as a list of texts, [] if they are none; a struct has them by letter."""
    if isinstance(value, Mapping):
        letters = [name for name in sorted(value) if not is_blank(value[name])]
        in_order = letters == list(ascii_uppercase[: len(letters)])
        value = [value[name] for name in letters] if in_order else None
    if not isinstance(value, list):
        return []
    texts = [_text(option) for option in value]
    return [] if None in texts else [text for text in texts if text is not None]


def _images(value: Any) -> list[dict[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise DataError(f"images is {_kind(value)}; write a list of {{bytes, path}}.")
    return list(map(_image, value))


def _image(value: Any) -> dict[str, Any]:
    struct = value if isinstance(value, Mapping) else {"bytes": value}
    content = struct.get("bytes")
    if not isinstance(content, bytes) or not content:
        raise DataError(f"images[].bytes is {_kind(content)}; write the picture's file there.")
    # the whole struct goes to the processor: min_pixels and its like change what the model sees
    _refuse(struct, "images[].", [name for name in struct if name not in ("bytes", "path")])
    return {"bytes": content, "path": _text(struct.get("path")) or None}


def _text(value: Any) -> str | None:
    """Text, or a number's text; "" for null and NaN, None for what is no scalar."""
    if hasattr(value, "dtype") and not isinstance(value, Real) and not value.shape:
        value = value.item()  # np.bool_ is no Real
    if isinstance(value, (str, Real, Decimal)):
        return "" if is_blank(value) else str(value)
    return "" if value is None else None


def _kind(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}"
    return "missing" if value is None else f"of type {type(value).__name__}"
