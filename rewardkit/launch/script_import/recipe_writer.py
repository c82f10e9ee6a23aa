"""A recipe written as YAML, as a person likes to read it; `strict_yaml.read_yaml` reads it back equal."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.representer import SafeRepresenter

#: Columns of a written recipe.
WIDTH = 100

_PLAIN_START = re.compile(r"[\w/.~$+-]")


def write_yaml(tree: Mapping[str, Any], header: Iterable[str] = ()) -> str:
    """Return the YAML of a recipe; `read_yaml` reads it back equal.

    Args:
        tree: mappings, lists, text, numbers, booleans and None.
        header: lines that become comments at the top; long ones are wrapped.
    """
    out = StringIO()
    _writer().dump(_with_flow(tree), out)
    comments = [line for text in header for line in _comment(text)]
    return "\n".join([*comments, out.getvalue()])


class _Flow(dict[str, Any]):
    """A mapping that is written on one line."""


def _with_flow(value: Any, depth: int = 0) -> Any:
    """Mark the mappings that are written on one line: short inner ones without mappings in them."""
    if not isinstance(value, Mapping):
        return value
    nested = {str(key): _with_flow(item, depth + 1) for key, item in value.items()}
    is_flat = not any(isinstance(item, Mapping) and item for item in value.values())
    is_short = depth > 2 and len(str(nested)) <= WIDTH - 20
    return _Flow(nested) if is_flat and is_short else nested


class _PlainRepresenter(SafeRepresenter):
    """Lists on one line, numbers as people write them, and nothing by reference."""

    def ignore_aliases(self, _: Any) -> bool:
        return True

    def represent_flow(self, value: Any) -> Any:
        return self.represent_mapping("tag:yaml.org,2002:map", value, flow_style=True)

    def represent_inline(self, value: Any) -> Any:
        return self.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=True)

    def represent_text(self, value: str) -> Any:
        # ruamel writes some line ends unescaped, and does not read all plain texts that it writes
        style = None if value.isprintable() and _PLAIN_START.match(value) else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    def represent_number(self, value: float) -> Any:
        text = re.sub(r"e([+-]?)0*(\d)", r"e\1\2", repr(value))  # `1e-6`, not `1e-06`
        text = re.sub(r"(inf|nan)", r".\1", text)
        return self.represent_scalar("tag:yaml.org,2002:float", text)


for _type, _represent in {
    _Flow: _PlainRepresenter.represent_flow,
    list: _PlainRepresenter.represent_inline,
    tuple: _PlainRepresenter.represent_inline,
    str: _PlainRepresenter.represent_text,
    float: _PlainRepresenter.represent_number,
}.items():
    _PlainRepresenter.add_representer(_type, _represent)


def _writer() -> Any:
    writer: Any = YAML(typ="safe", pure=True)
    writer.Representer = _PlainRepresenter
    writer.default_flow_style, writer.allow_unicode = False, True
    writer.width = 1 << 30  # ruamel does not read back every text that it wraps
    writer.sort_base_mapping_type_on_output = False
    return writer


def _comment(text: str) -> list[str]:
    """Return a line as comments, with control characters as blanks; wrapped lines are indented."""
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
