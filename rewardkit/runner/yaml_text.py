"""YAML as a person means it: `1e-6` is a number, `no` is a word, a key stands once.

PyYAML reads YAML 1.1, where `1e-6` is text, `on` is true and 010 is eight; a learning rate that
is text stops verl minutes after the launch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from rewardkit.errors import DataError

_TYPES = {
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "int": (r"[-+]?[0-9]+", "-+0123456789"),
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
        raise DataError(f"{where}{line}: {problem}.") from None


def read_value(text: str) -> Any:
    """A scalar as YAML reads it: `8` -> 8, `1e-6` -> 1e-06, `True` -> True, `grpo` -> "grpo"."""
    for kind, (pattern, _) in _TYPES.items():
        if re.fullmatch(pattern, text):
            return _CONVERT[kind](text)
    return text


def _number(text: str) -> float:
    word = text.lower().lstrip("+-").lstrip(".")
    return (
        float(text.replace(".inf", "inf")) if word == "inf" else float(text.replace(".nan", "nan"))
    )


_CONVERT: Mapping[str, Callable[[str], Any]] = {
    "bool": lambda text: text.lower() == "true",
    "null": lambda _: None,
    "int": int,
    "float": _number,
}


def _loader() -> Any:
    import yaml

    class Loader(yaml.SafeLoader):
        """SafeLoader with the few types above, and without repeated keys."""

        yaml_implicit_resolvers: dict[str, list[Any]] = {}  # noqa: RUF012 - PyYAML's own attribute

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            seen: set[str] = set()
            for key, _ in node.value:
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key.value!r} stands twice", key.start_mark
                    )
                seen.add(key.value)
            return super().construct_mapping(node, deep)

    for kind, (pattern, first) in _TYPES.items():
        tag = f"tag:yaml.org,2002:{kind}"
        Loader.add_implicit_resolver(tag, re.compile(rf"^(?:{pattern})$"), list(first))
    return Loader
