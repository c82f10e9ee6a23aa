"""Reads the YAML of users, such as recipes, rubrics, cards and configurations of runs, as YAML 1.2; writes YAML.

In YAML 1.2 `1e-6` is a number and `no` is text: a learning rate that is text stops verl minutes
after the launch. Numbers are decimal, and dates are text. Repeated keys, deep nesting, tags and
aliases are errors: a few lines of aliases stand for gigabytes.
"""

from __future__ import annotations

import io
import re
import sys
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer, ComposerError
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.nodes import MappingNode, ScalarNode
from ruamel.yaml.representer import SafeRepresenter

from rewardkit.errors import DataError, UsageError, unreadable_file

if TYPE_CHECKING:
    from pydantic import ConfigDict

M = TypeVar("M")

#: Depth of nested mappings and lists that a document may have.
MAX_DEPTH = 40

#: Size of a document, in bytes: ten times verl's complete configuration. The parser takes 0.1 ms for
#: a value.
MAX_BYTES = 1 << 18

#: Values of a document, keys included; verl's complete configuration has 2,000.
MAX_VALUES = 20_000

_DECIMAL = re.compile(r"[-+]?[0-9]{1,1000}")


def read_yaml_file(path: Path) -> Any:
    """Return the value of a YAML or JSON file, as `read_yaml` does."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)  # a device has no end
    except OSError as error:
        raise unreadable_file(path, error) from None
    return read_yaml(text, str(path))


def read_yaml(text: str | bytes, where: str) -> Any:
    """Return the value of a YAML document; `where` is its file, for messages.

    A DataError has the line where it is not YAML in UTF-8, is too large or nested too deep, has an alias or a
    tag, or a key is repeated.
    """
    if len(text) > MAX_BYTES:
        raise DataError(f"{where}: longer than {MAX_BYTES:,} bytes. Leave out what is not needed.")
    try:
        text = text if isinstance(text, str) else text.decode("utf-8")
    except UnicodeDecodeError:
        raise DataError(f"{where}: not UTF-8; save it as UTF-8.") from None
    parser = YAML(typ="safe", pure=True)
    parser.Composer, parser.Constructor = _BoundedComposer, _PlainConstructor
    try:
        return parser.load(text)
    except MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise DataError(f"{where}{line}: {_problem_text(str(error.problem))}.") from None
    except (YAMLError, ValueError, OverflowError) as error:  # a number that Python does not read
        raise DataError(f"{where}: not YAML ({' '.join(str(error).split())[:200]}).") from None


def _problem_text(problem: str) -> str:
    """Return what is wrong with a document; messages of ruamel that are hard to read are replaced."""
    if "\\t" in problem:
        return "a tab; indent YAML with spaces"
    if match := re.match(r'found duplicate key "(.*?)"', problem, re.DOTALL):
        return f"the key {match[1]!r} is set twice"
    return " ".join(problem.split())


class _BoundedComposer(Composer):
    """A composer with limits, which refuses aliases, tags and keys that are not scalars."""

    depth = values = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.parser.peek_event()
        self.values += 1
        problem = ""
        if isinstance(event, AliasEvent):
            problem = "aliases are not read; write the value itself"
        elif getattr(event, "tag", None):
            problem = "tags are not read; write the value without its tag"
        elif self.depth > MAX_DEPTH:
            problem = f"nested too deep; at most {MAX_DEPTH} levels are read"
        elif self.values > MAX_VALUES:
            problem = f"more than {MAX_VALUES:,} values. Leave out what is not needed"
        if problem:
            raise ComposerError(None, None, problem, event.start_mark)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        if isinstance(parent, MappingNode) and index is None and not isinstance(node, ScalarNode):
            raise ComposerError(
                None, None, "a key is a word, not a list or a mapping", event.start_mark
            )
        return node


class _PlainConstructor(SafeConstructor):
    """A constructor of decimal numbers only, which reads dates as text."""

    def construct_plain_int(self, node: Any) -> int | str:
        return int(node.value) if _DECIMAL.fullmatch(node.value) else str(node.value)

    def construct_plain_text(self, node: Any) -> str:
        return str(node.value)


_PlainConstructor.add_constructor("tag:yaml.org,2002:int", _PlainConstructor.construct_plain_int)
for _tag in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value"):
    _PlainConstructor.add_constructor(_tag, _PlainConstructor.construct_plain_text)


@cache
def read_table(module: str, name: str) -> Any:
    """Return one of our own tables: a YAML file beside a module's file, which may have aliases."""
    return YAML(typ="safe", pure=True).load(Path(module).with_name(name))


class _Representer(SafeRepresenter):
    """Writes text so that YAML 1.1 and 1.2 read it as text, and no aliases."""

    in_line = False

    def ignore_aliases(self, _: Any) -> bool:
        return True

    def represent_text(self, text: str) -> ScalarNode:
        is_plain = re.sub(r"[\n\t]", "", text).isprintable()
        style = None
        if not is_plain or ("\n" in text and self.in_line):
            style = '"'
        elif "\n" in text:
            style = "|"
        elif text[:1] in tuple("+-.0123456789") or text.lower() in {"y", "n"}:
            style = "'"
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Representer.add_representer(str, _Representer.represent_text)


def dump(tree: Any, *, in_line: bool = False) -> str:
    """Return YAML with the same meaning in YAML 1.1 and 1.2: texts that look like numbers are quoted.

    Texts of several lines become blocks unless all is to be in one line.
    """
    writer: Any = YAML(typ="safe", pure=True)
    stream = io.StringIO()
    writer.Representer, writer.version = _Representer, (1, 1)
    writer.default_flow_style, writer.width = in_line, sys.maxsize
    writer.sort_base_mapping_type_on_output = False
    writer.representer.in_line = in_line
    writer.dump({"x": tree} if in_line else tree, stream)
    text = re.sub(r"\A%YAML 1\.1\n---\s", "", stream.getvalue())
    return text.removeprefix("{x: ").removesuffix("}\n") if in_line else text


#: The configuration of a model of the values that a person writes.
STRICT: ConfigDict = {"extra": "forbid", "strict": True, "frozen": True}

#: The errors of pydantic about a key that a model or a dataclass does not have.
_UNKNOWN_KEY = ("extra_forbidden", "unexpected_keyword_argument")

#: What to write in place of a value of the wrong type, by pydantic's name of the error.
_TYPES = {
    **dict.fromkeys(("model_type", "dict_type", "dataclass_type"), "give `key: value` pairs"),
    **dict.fromkeys(("list_type", "tuple_type"), "give a list"),
    **dict.fromkeys(("float_type", "finite_number"), "give a number"),
    **dict.fromkeys(("int_type", "int_parsing"), "give a whole number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "give true or false"),
    "string_type": "give text",
}


def validate(model: type[M], value: Any, where: str) -> M:
    """Return the model, or the dataclass that forbids extra keys, of plain values that a person wrote at a place.

    A UsageError has the first key that is unknown or missing, or whose value is invalid.
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(model).validate_python(value)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        fault = next((each for each in errors if each["type"] in _UNKNOWN_KEY), errors[0])
        raise UsageError(fault_text(model, fault, where)) from None


def _fields_of(model: Any) -> dict[str, Any]:
    """Return the types of the fields of a model or a dataclass; {} for another type."""
    if is_dataclass(model):
        hints = get_type_hints(model)
        return {field.name: hints[field.name] for field in fields(model) if field.repr}
    return {name: field.annotation for name, field in getattr(model, "model_fields", {}).items()}


def fault_text(model: Any, fault: Any, where: str) -> str:
    """Return one of pydantic's errors about a model in one line."""
    from rewardkit.registry import did_you_mean

    value, kind, loc = fault["input"], fault["type"], fault["loc"]
    parts = loc[:-2] if loc[-1:] == ("[key]",) else loc
    names = [str(part) if str(part).isprintable() else repr(part) for part in parts]
    key = names.pop() if kind in _UNKNOWN_KEY else ""
    place = f"{where}: {'.'.join(names)}" if names else where
    if kind in _UNKNOWN_KEY:
        for part in loc[:-1]:
            model = _fields_of(model).get(part) or get_args(model)[-1]
            model = get_args(model)[0] if NoneType in get_args(model) else model
        known = list(_fields_of(model))
        return f"{place}: unknown key {key!r}.{did_you_mean(key, known)} Known: {', '.join(known)}."
    if kind == "value_error":
        return f"{place}: {fault['ctx']['error']}"
    if kind == "literal_error":
        choices = re.findall(r"'([^']*)'", fault["ctx"]["expected"])
        near = did_you_mean(str(value), choices)
        return f"{place}: {value!r}; give {', '.join(choices)}.{near}"
    if kind == "missing":
        return f"{place}: it is missing."
    shown = repr(value) if isinstance(value, str | int | float) else type(value).__name__
    message = _TYPES.get(kind) or f"{fault['msg'][0].lower()}{fault['msg'][1:]}"
    return f"{place}: {message}, not {shown}."
