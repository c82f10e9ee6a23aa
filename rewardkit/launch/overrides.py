"""Overrides: `key=value` on a command line, nested or dotted keys in YAML."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rewardkit.errors import UsageError
from rewardkit.launch.verl.hydra_values import format_value, parse_value

#: A key of Hydra's grammar, with groups and packages (`hydra/job@_global_`).
KEY = re.compile(r"[\w\-/@:$]+(?:\.[\w\-/@:$]+)*", re.ASCII)

_SIGNS = frozenset({"", "+", "++", "~"})


@dataclass(frozen=True)
class Override:
    """One setting of verl's configuration, with the sign before its key: "", `+`, `++` or `~`.

    `origin` says where it comes from; `written` is the key as the user wrote it, "" if the user did not.
    """

    key: str
    value: Any
    sign: str = ""
    origin: str = ""
    written: str = ""

    def __str__(self) -> str:
        """Return the override as Hydra reads it."""
        if self.sign == "~":
            return f"~{self.key}"
        return f"{self.sign}{self.key}={format_value(self.value)}"

    @property
    def is_group(self) -> bool:
        """Whether the key is Hydra's own or chooses a group; such keys are not translated."""
        first = self.key.partition(".")[0]
        return "@" in self.key or "/" in self.key or first in {"hydra", "model_engine"}


def parse_overrides(arguments: Iterable[str], origin: str) -> list[Override]:
    """Return the overrides of a command line."""
    return [_parse(text, origin) for text in arguments]


def _parse(text: str, origin: str) -> Override:
    name, equals, value = (part.strip() for part in text.partition("="))
    key = name.lstrip("+~").strip()
    sign = name[: len(name) - len(name.lstrip("+~"))]
    if key.startswith("-"):
        raise UsageError(f"{text!r}: write it without the dashes, or before the `--`.")
    if value.startswith("[") != value.endswith("]"):
        raise UsageError(f"{text!r}: a bracket is missing.")
    if not key or (not equals and sign != "~") or sign not in _SIGNS:
        raise UsageError(
            f"{text!r} is not an override; write key=value, +key=value for a key verl does not list, "
            "or ~key to remove one."
        )
    if not KEY.fullmatch(key):
        raise UsageError(f"{text!r}: {key!r} is not a key that Hydra reads.")
    return Override(key, parse_value(value), sign, origin)


def flatten(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted keys and values of a nested mapping; an empty mapping is a value."""
    for name, value in tree.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping) and value:
            yield from flatten(value, f"{key}.")
        else:
            yield key, value


def parse_verl_section(tree: Mapping[str, Any], origin: str) -> list[Override]:
    """Return the overrides of a recipe's `verl:`; a key may begin with a sign."""
    overrides = []
    for name, value in flatten(tree):
        key = name.lstrip("+~")
        sign = name[: len(name) - len(key)]
        if sign not in _SIGNS or not KEY.fullmatch(key):
            raise UsageError(f"{name!r} in {origin} is not a key that Hydra reads.")
        overrides.append(Override(key, value, sign, origin))
    return overrides
