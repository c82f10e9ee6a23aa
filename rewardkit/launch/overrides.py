"""Overrides as people write them: `key=value` on a command line, nested or dotted YAML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rewardkit.errors import UsageError
from rewardkit.launch.verl.hydra_values import format_value, parse_value

#: A key that Hydra's grammar reads, with groups and packages (`hydra/job@_global_`).
KEY = re.compile(r"[\w\-/@:$]+(?:\.[\w\-/@:$]+)*", re.ASCII)


@dataclass(frozen=True)
class Override:
    """One setting of verl's configuration.

    Attributes:
        key: dotted, as it was written.
        value: a Python value.
        sign: what stands before the key: "", `+`, `++` or `~`.
        origin: who asked for it, for messages.
        written: its key as a person wrote it, where that is another.
    """

    key: str
    value: Any
    sign: str = ""
    origin: str = ""
    written: str = ""

    def __str__(self) -> str:
        """As Hydra takes it."""
        if self.sign == "~":
            return f"~{self.key}"
        return f"{self.sign}{self.key}={format_value(self.value)}"

    @property
    def is_group(self) -> bool:
        """Whether it chooses a group of Hydra's or one of its own settings: those pass as are."""
        first = self.key.partition(".")[0]
        return "@" in self.key or "/" in self.key or first in {"hydra", "model_engine"}


def parse_overrides(texts: Iterable[str], origin: str) -> list[Override]:
    """The overrides of a command line.

    Raises:
        UsageError: a text is no `key=value`.
    """
    return [_parse(text, origin) for text in texts]


def _parse(text: str, origin: str) -> Override:
    key, equals, value = text.partition("=")
    sign = key[: len(key) - len(key.lstrip("+~"))]
    key = key.lstrip("+~").strip()
    if key.startswith("-"):
        raise UsageError(f"{text!r}: write it without the dashes, or before the `--`.")
    value = value.strip()
    if value.startswith("[") != value.endswith("]"):
        raise UsageError(f"{text!r}: a bracket is missing.")
    if not key or (not equals and sign != "~") or sign not in {"", "+", "++", "~"}:
        raise UsageError(
            f"{text!r} is no override; write key=value, +key=value for a key verl does not list, "
            "or ~key to remove one."
        )
    if not KEY.fullmatch(key):
        raise UsageError(f"{text!r}: {key!r} is not a key that Hydra reads.")
    return Override(key, parse_value(value), sign, origin)


def flatten(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested or dotted mappings as dotted keys; an empty mapping is a value."""
    for name, value in tree.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping) and value:
            yield from flatten(value, f"{key}.")
        else:
            yield key, value


def from_yaml(tree: Mapping[str, Any], origin: str) -> list[Override]:
    """The overrides of a recipe's `verl:`; keys may carry a sign.

    Raises:
        UsageError: a key has a sign that Hydra does not know.
    """
    found = []
    for name, value in flatten(tree):
        sign = name[: len(name) - len(name.lstrip("+~"))]
        if sign not in {"", "+", "++", "~"}:
            raise UsageError(f"{name!r} in {origin} is no key of verl's.")
        if not KEY.fullmatch(name.lstrip("+~")):
            raise UsageError(f"{name!r} in {origin} is not a key that Hydra reads.")
        found.append(Override(name.lstrip("+~"), value, sign, origin))
    return found
