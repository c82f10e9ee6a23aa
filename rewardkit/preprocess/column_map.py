r"""Which columns of a raw row hold a problem: the `columns` of a card whose rows need no code.

    columns:
      question: problem
      gold: solution | boxed
      level: difficulty
      subject: = algebra

A value names a column, or a dotted path into structs and lists (`prompt.0.content`); transforms
follow it, each after ` | `; a constant follows `= `. A list of columns is joined with blank lines as
a question, and its values are the options as `options`. Several layouts are a list of such mappings;
`where` in one of them has conditions for the rows of this layout. docs/data.md has the transforms, which
are a closed set. A value that one of them cannot read drops the row.
"""

import json
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from math import isfinite
from string import ascii_uppercase
from typing import Any, TypeAlias

from rewardkit.answers.extract import boxes
from rewardkit.errors import DataError, UsageError
from rewardkit.programs.extract import program_of
from rewardkit.registry import did_you_mean

#: Maximum number of characters of a JSON list; the longest golds of a public set have some hundred.
MAX_JSON = 20_000

#: A statement that Python 3 does not have.
_PYTHON_2 = re.compile(
    r"(?m)^[ \t]*(?:print[ \t]+[^\s(=]|exec[ \t]+[\"']|except[^:\n(]*,[^:\n]*:)|\braw_input\(|\bxrange\("
)

_INTEGER = re.compile(r"([+-]?[0-9]{1,18})(?:\.0+)?(?:\s*\^\s*\{?\\circ\}?)?")
_LABEL = re.compile(r"\s*[(（]?([A-Z])[)）.．:：、]\s*")
_RANGE = re.compile(r"(-?[0-9]{1,18}) to (-?[0-9]{1,18})")

#: Floats of these sizes are written without an exponent.
MIN_DECIMAL, MAX_DECIMAL = 1e-15, 1e21

_CONDITION = re.compile(r"([^<>=!]+?)\s*(<=|>=|!=|==?|<|>)(?![<>=])\s*(.*)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}(?:\.[0-9]{1,18}|/[0-9]{1,9})?")
_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

Transform: TypeAlias = "Callable[[Any], Any]"

#: The parts of a problem that columns hold.
PARTS = tuple(
    (
        "question gold solution id subject level kind options images tests entry_point prelude "
        "prompt starter checker time_limit memory_limit language site"
    ).split()
)

#: The parts that may be several columns.
_LISTS = ("question", "gold", "options", "tests", "solution")


def as_list(value: Any) -> list[Any]:
    """Return a list unchanged, and any other value in a list."""
    return value if isinstance(value, list) else [value]


class UnreadableValueError(ValueError):
    """A value from which no problem can be made; the row is dropped with this reason."""


def value_at_path(value: Any, path: str) -> Any:
    """Return the value at a dotted path (`extra_info.index`, `row.0.value`), or None."""
    if isinstance(value, Mapping) and path in value:
        return value[path]
    for part in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, (list, tuple)) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def as_plain_text(value: Any) -> str:
    """Return a text, or the text of a number; "" for null.

    A whole number is one without a point, because a column of integers with a null has floats.
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
        raise TypeError(f"{type(value).__name__} is neither text nor a finite number")
    if value == 0:  # also -0.0
        return "0"
    if isinstance(value, int) or not MIN_DECIMAL <= abs(value) < MAX_DECIMAL:
        return str(value).removesuffix(".0")
    return format(Decimal(repr(value)), "f").removesuffix(".0")


@dataclass(frozen=True)
class Condition:
    """A condition on one column of a raw row: `difficulty >= 5`, `source = olympiads|aops_forum`.

    Two values compare as numbers if both are numbers; `4/8`, a pass rate as some sets write it, is
    one. Otherwise only `=` and `!=` apply, and compare strings; a list is equal to a value that it
    contains. A null and an empty text are equal to `null`.
    """

    column: str
    sign: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.column} {self.sign} {'|'.join(self.values)}"

    def holds(self, raw: Mapping[str, Any]) -> bool:
        """Return whether a raw row meets the condition; a null meets only `!=` and `= null`."""
        value = value_at_path(raw, self.column)
        items = value if isinstance(value, (list, tuple)) else [value]
        if self.sign in _ORDER:
            number, limit = _number(value), _number(self.values[0])
            return number is not None and bool(_ORDER[self.sign](number, limit))
        is_equal = any(_are_equal(item, each) for item in items for each in self.values)
        return is_equal == (self.sign == "=")


def parse_condition(text: str) -> Condition:
    """Return the condition that a text describes."""
    match = _CONDITION.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"{text!r} is not a condition. Write COLUMN SIGN VALUE, as in 'difficulty >= 5' or "
            "'source = olympiads|amc_aime'."
        )
    column, sign, value = match[1].strip(), match[2].replace("==", "="), match[3].strip()
    if sign in _ORDER and _number(value) is None:
        raise UsageError(f"{text!r}: {value!r} is not a number, so use = or != with it.")
    values = (value,) if sign in _ORDER else tuple(each.strip() for each in value.split("|"))
    return Condition(column, sign, values)


def conditions_of_card(conditions: Any, where: str) -> tuple[Condition, ...]:
    """Return the conditions in a card, a text or a list of texts; `where` names the card."""
    try:
        return tuple(parse_condition(str(text)) for text in as_list(conditions))
    except UsageError as error:
        raise DataError(f"{where}: where: {error}") from error


def _are_equal(value: Any, text: str) -> bool:
    if value is None or value == "":
        return text in ("", "null")
    if isinstance(value, bool):
        return text.lower() == str(value).lower()
    number, other = _number(value), _number(text)
    if number is not None and other is not None:
        return number == other
    return str(value).strip() == text


def _number(value: Any) -> Fraction | None:
    text = "" if isinstance(value, bool) else str(value).strip()
    try:
        return Fraction(text) if _NUMBER.fullmatch(text) else None
    except ZeroDivisionError:
        return None


@dataclass(frozen=True)
class Field:
    """A part of a problem: a column with its transforms, or a constant."""

    column: str
    transforms: tuple[Transform, ...] = ()
    constant: str = ""
    names_option: bool = False

    def value(self, raw: Mapping[str, Any]) -> Any:
        """Return the value in a raw row."""
        if not self.column:
            return self.constant
        value = value_at_path(raw, self.column)
        for transform in self.transforms:
            value = transform(value)
        return value


@dataclass(frozen=True)
class ColumnMap:
    """The columns of one layout of a dataset, by the part of a problem that they hold.

    The strings of several question columns are joined with blank lines. `options` are one field with a
    list, or a field for each option; the cases of several columns of `tests` are together the tests of
    the row, whose `solution` may be in several columns, too. Several columns of `gold` are an object.
    Any other part has at most one field.
    `where` has conditions that a row of this layout must meet; the others are dropped.
    """

    parts: Mapping[str, Sequence[Field]]
    where: tuple[Condition, ...] = ()

    def __getitem__(self, part: str) -> Sequence[Field]:
        return self.parts.get(part, ())

    @property
    def columns(self) -> tuple[str, ...]:
        """The top-level columns that a file must have, in the order of the parts."""
        columns = [field.column for part in PARTS for field in self[part] if field.column]
        columns += [condition.column for condition in self.where]
        return tuple(dict.fromkeys(map(top_level, columns)))


def top_level(path: str) -> str:
    """Return the column that a dotted path leads into."""
    return path.partition(".")[0]


def parse_columns(
    values: Any, where: str, conditions: tuple[Condition, ...] = ()
) -> tuple[ColumnMap, ...]:
    """Return the layouts that the `columns` of a card describe; () if they are lists of names.

    `conditions` are those of rows of all layouts; `where` names the card in messages.
    """
    layouts = as_list(values)
    if not all(isinstance(layout, dict) for layout in layouts):
        return ()
    return tuple(_column_map(layout, f"{where}: columns", conditions) for layout in layouts)


def _column_map(
    layout: Mapping[str, Any], where: str, conditions: tuple[Condition, ...]
) -> ColumnMap:
    names = [*PARTS, "where"]
    parts: dict[str, Sequence[Field]] = {}
    for name, value in layout.items():
        if name not in names:
            near = did_you_mean(str(name), names) or f" Use {', '.join(names)}."
            raise DataError(f"{where} has the unknown part {name!r}.{near}")
        columns = as_list(value)
        if not columns or not all(isinstance(each, str) and each.strip() for each in columns):
            raise DataError(f"{where}: {name}: name a column, as in {name}: problem.")
        if name == "where":
            conditions += conditions_of_card(columns, where)
        elif len(columns) > 1 and name not in _LISTS:
            raise DataError(f"{where}: {name}: name one column, not {len(columns)}.")
        else:
            parts[name] = [_field(text, f"{where}: {name}") for text in columns]
    for needed in ({"question"}, {"gold", "tests"}):
        if parts.keys().isdisjoint(needed):
            raise DataError(f"{where}: {' or '.join(sorted(needed))} is missing. Name its column.")
    if "tests" not in parts and len(parts.get("solution", ())) > 1:
        raise DataError(f"{where}: solution: name one column.")
    return ColumnMap(parts, conditions)


def _field(text: str, where: str) -> Field:
    if text.startswith("= "):
        return Field("", constant=text[2:].strip())
    column, *names = (part.strip() for part in text.split(" | "))
    if names_option := names[-1:] == ["letter of option"]:
        names.pop()
    if "letter of option" in names:
        raise DataError(f"{where}: 'letter of option' must be the last transform.")
    return Field(column, tuple(_transform(name, where) for name in names), "", names_option)


def _transform(text: str, where: str) -> Transform:
    if text in _TRANSFORMS:
        return _TRANSFORMS[text]
    name, _, argument = text.partition(" ")
    if argument and name in _WITH_ARGUMENT:
        return _WITH_ARGUMENT[name](argument.strip())
    names = [*_TRANSFORMS, *(f"{name} TEXT" for name in _WITH_ARGUMENT), "letter of option"]
    near = did_you_mean(text, names) or f" Use {', '.join(names)}."
    raise DataError(f"{where}: there is no transform {text!r}.{near}")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} is not text")
    return value


def _last_box(value: Any) -> str:
    contents = boxes(_text(value))
    if not contents:
        raise UnreadableValueError("no box in the solution")
    return contents[-1]


def _after(mark: str, value: Any) -> str:
    _, present, rest = _text(value).rpartition(mark)
    if not present:
        raise UnreadableValueError(f"no {mark!r} in the text")
    return rest.strip()


def _until(mark: str, value: Any) -> str:
    before, present, rest = _text(value).rpartition(mark)
    return (before if present else rest).strip()


def _with_question_mark(value: Any) -> str:
    text = _text(value).strip()
    return text if text.endswith(("?", "？")) or not text else f"{text}?"


def _json_list(value: Any) -> list[Any]:
    text = _text(value)
    if len(text) > MAX_JSON:
        raise UnreadableValueError("a list of too many characters")
    try:
        items = json.loads(text)
    except (ValueError, RecursionError):
        items = None
    if not isinstance(items, list):
        raise UnreadableValueError("not a JSON list")
    return items


def _json(path: str, value: Any) -> Any:
    """Return the value at a path in JSON text, or in a struct; the whole value for an empty path."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = None
    return value_at_path(value, path) if path else value


def _each(name: str, value: Any) -> list[Any]:
    return [value_at_path(item, name) for item in value] if isinstance(value, list) else []


def _python_3(value: Any) -> str:
    """Return the first program of a list, or of JSON text with one, that is not for Python 2."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = _json("", value) or value
    programs = [program_of(item) for item in as_list(value) if isinstance(item, str)]
    return next((each for each in programs if not _PYTHON_2.search(each)), "")


def _examples(value: Any) -> str:
    """Return pairs of input and output as text."""
    if not isinstance(value, list):
        return ""
    pairs = [(as_plain_text(each["input"]), as_plain_text(each["output"])) for each in value]
    return "\n\n".join(
        f"Example input:\n{i.strip()}\nExample output:\n{o.strip()}" for i, o in pairs
    )


def _only_item(value: Any) -> str:
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"{type(value).__name__} is not a list")
    if len(value) > 1:
        raise UnreadableValueError("several answers")
    return as_plain_text(value[0] if value else None)


def _integer(value: Any, lowest: int | None = None, highest: int | None = None) -> str:
    match = _INTEGER.fullmatch(as_plain_text(value).strip())
    number = int(match[1]) if match else None
    if number is None or (lowest is not None and not lowest <= number <= (highest or 0)):
        limits = "" if lowest is None else f" from {lowest} to {highest}"
        raise UnreadableValueError(f"the answer is not an integer{limits}")
    return str(number)


def _integer_in_range(argument: str) -> Transform:
    limits = _RANGE.fullmatch(argument)
    if limits is None:
        raise DataError(f"integer {argument}: write integer 0 to 999.")
    return partial(_integer, lowest=int(limits[1]), highest=int(limits[2]))


def _index_as_letter(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "".join(sorted({_index_as_letter(item) for item in value}))
    text = as_plain_text(value)
    if not (text.isascii() and text.isdecimal() and int(text[:9]) < len(ascii_uppercase)):
        raise UnreadableValueError("the answer is not the index of an option")
    return ascii_uppercase[int(text)]


def _without_letters(value: Any) -> Any:
    if not isinstance(value, (list, tuple)):
        return value
    matches = [_LABEL.match(as_plain_text(option)) for option in value]
    letters = "".join(match[1] for match in matches if match)
    if letters != ascii_uppercase[: len(value)]:
        return value
    return [match.string[match.end() :] for match in matches if match]


_TRANSFORMS: Mapping[str, Transform] = {
    "boxed": _last_box,
    "if boxed": lambda value: value if isinstance(value, str) and boxes(value) else "",
    "question mark": _with_question_mark,
    "without commas": lambda value: _text(value).replace(",", ""),
    "json list": _json_list,
    "only item": _only_item,
    "float as integer": as_plain_text,
    "integer": _integer,
    "index as letter": _index_as_letter,
    "without letters": _without_letters,
    "python 3": _python_3,
    "examples": _examples,
    "json text": lambda value: json.dumps(value, ensure_ascii=False) if value else "",
}

_WITH_ARGUMENT: Mapping[str, Callable[[str], Transform]] = {
    "after": lambda mark: partial(_after, mark),
    "until": lambda mark: partial(_until, mark),
    "integer": _integer_in_range,
    "json": lambda path: partial(_json, path),
    "each": lambda name: partial(_each, name),
}


def options_by_letter(value: Mapping[str, Any]) -> list[Any]:
    """Return the options of a struct that has them by letter, where later ones may be null."""
    letters = [letter for letter in sorted(value) if value[letter] is not None]
    if letters != list(ascii_uppercase[: len(letters)]):
        raise UnreadableValueError("the options are not A, B, C, ...")
    return [value[letter] for letter in letters]


def letter_of_option(gold: str, options: Sequence[str]) -> str:
    """Return the letter of the option with a text; the text itself if there are no options."""
    if not options:
        return gold
    indices = [index for index, option in enumerate(options) if option.strip() == gold.strip()]
    if len(indices) != 1:
        faults = "the gold is not among the options", "several options have the gold's text"
        raise UnreadableValueError(faults[bool(indices)])
    return ascii_uppercase[indices[0]]
