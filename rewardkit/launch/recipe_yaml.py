"""A recipe as YAML that a person likes to read, and that `yaml_text.read_yaml` reads back equal."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from rewardkit.launch.yaml_text import read_scalar

WIDTH = 100

_PLAIN = re.compile(r"(?:\w|\.{0,2}/)(?:[\w./$@%+~\-: ]*[\w./$@%+~\-])?")


def recipe_yaml(tree: Mapping[str, Any], header: Iterable[str] = ()) -> str:
    """The YAML of a recipe.

    Args:
        tree: mappings, lists, text, numbers, booleans and None, as `read_yaml` gives them.
        header: lines that become comments at the top; long ones are wrapped.
    """
    comments = [line for text in header for line in _comment(text)]
    return "\n".join([*comments, *(_block(tree, "") or ["{}"])]) + "\n"


def _comment(text: str) -> list[str]:
    """A line as comments, the wrapped ones indented by two more; without control characters."""
    clean = "".join(c if c.isprintable() else " " for c in text)
    indent = " " * (len(clean) - len(clean.lstrip()))
    lines = textwrap.wrap(
        clean.strip(),
        WIDTH - 2,
        initial_indent=f"# {indent}",
        subsequent_indent=f"# {indent}  ",
        break_on_hyphens=False,
        break_long_words=False,
    )
    return lines or ["#"]


def _block(tree: Mapping[str, Any], indent: str) -> list[str]:
    """The lines of a mapping."""
    lines = []
    for name, value in tree.items():
        key = f"{indent}{_text(str(name), flow=True)}:"
        line = f"{key} {_flow(value)}"
        nested = isinstance(value, Mapping) and value
        if not nested or (indent and len(line) <= WIDTH - 20 and _is_flat(value)):
            lines.append(line)
        else:
            lines += [key, *_block(value, f"{indent}  ")]
    return lines


def _is_flat(tree: Mapping[str, Any]) -> bool:
    return not any(isinstance(value, Mapping) and value for value in tree.values())


def _flow(value: Any, *, inside: bool = False) -> str:
    """A value on one line."""
    if isinstance(value, Mapping):
        pairs = (f"{_text(str(k), flow=True)}: {_flow(v, inside=True)}" for k, v in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_flow(item, inside=True) for item in value) + "]"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, float):
        return _float(value)
    return str(value) if isinstance(value, int) else _text(str(value), flow=inside)


def _float(value: float) -> str:
    """`1e-6`, not `1e-06`."""
    text = re.sub(r"e([+-]?)0*(\d)", r"e\1\2", repr(value))
    return re.sub(r"(inf|nan)", r".\1", text)


def _text(text: str, *, flow: bool) -> str:
    """Text, in quotes where YAML would read it as something else."""
    plain = _PLAIN.fullmatch(text) and ": " not in text and isinstance(read_scalar(text), str)
    if plain and not (flow and ":" in text):
        return text
    escaped = (c if c.isprintable() and c not in '"\\' else _escaped(c) for c in text)
    return '"' + "".join(escaped) + '"'


def _escaped(char: str) -> str:
    return f"\\{char}" if char in '"\\' else f"\\U{ord(char):08x}"
