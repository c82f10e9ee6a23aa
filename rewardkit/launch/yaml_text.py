"""YAML as a person means it: `1e-6` is a number, `no` is a word, a key stands once.

PyYAML reads YAML 1.1, where `1e-6` is text, `on` is true and 010 is eight; a learning rate that
is text stops verl minutes after the launch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from rewardkit.errors import DataError

#: Mappings in mappings that a recipe may have.
MAX_DEPTH = 40

_TYPES = {
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "int": (r"[-+]?[0-9]{1,1000}", "-+0123456789"),
    "float": (
        r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan",
        "-+.0123456789",
    ),
}


def read_yaml(text: str, where: str) -> Any:
    """The value of a YAML document.

    Raises:
        DataError: it is no YAML, or a key stands twice in one mapping; with the line.
    """
    import yaml

    try:
        return yaml.load(text, Loader=_loader())  # noqa: S506 - a SafeLoader with fewer types
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "not YAML"
        if "\\t" in problem:
            problem = "a tab; YAML wants spaces"
        raise DataError(f"{where}{line}: {problem}.") from None


def read_scalar(text: str) -> Any:
    """A scalar as YAML reads it: `8` -> 8, `1e-6` -> 1e-06, `True` -> True, `grpo` -> "grpo"."""
    for kind, (pattern, _) in _TYPES.items():
        if re.fullmatch(pattern, text):
            return _CONVERT[kind](text)
    return text


def _number(text: str) -> float:
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))


_CONVERT: Mapping[str, Callable[[str], Any]] = {
    "bool": lambda text: text.lower() == "true",
    "null": lambda _: None,
    "int": int,
    "float": _number,
}


def _constructor(convert: Callable[[str], Any]) -> Callable[[Any, Any], Any]:
    """PyYAML's own ones read 010 as eight."""
    return lambda _, node: convert(node.value)


def _loader() -> Any:
    import yaml

    class Loader(yaml.SafeLoader):
        """SafeLoader with the few types above, and without repeated keys."""

        yaml_implicit_resolvers: dict[str, list[Any]] = {}  # noqa: RUF012 - PyYAML's own attribute

        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]  # PyYAML's stubs
            if self.check_event(yaml.events.AliasEvent):
                raise yaml.constructor.ConstructorError(None, None, "aliases are not read", mark)
            if self.depth > MAX_DEPTH:
                raise yaml.constructor.ConstructorError(None, None, "nested too deep", mark)
            self.depth += 1
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            seen: set[str] = set()
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    raise yaml.constructor.ConstructorError(
                        None, None, "a key is a word, no list or mapping", key.start_mark
                    )
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key.value!r} stands twice", key.start_mark
                    )
                seen.add(key.value)
            return super().construct_mapping(node, deep)

    for kind, (pattern, first) in _TYPES.items():
        tag = f"tag:yaml.org,2002:{kind}"
        Loader.add_constructor(tag, _constructor(_CONVERT[kind]))
        Loader.add_implicit_resolver(tag, re.compile(rf"^(?:{pattern})$"), list(first))
    return Loader
