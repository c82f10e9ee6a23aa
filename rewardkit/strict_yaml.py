"""Reads recipes and rubrics as YAML 1.2.

In YAML 1.2 `1e-6` is a number and `no` is text: a learning rate that is text stops verl minutes
after the launch. Numbers are decimal, and dates are text. Repeated keys, aliases and deep nesting
are errors.
"""

from __future__ import annotations

import re
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer, ComposerError
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.nodes import MappingNode, ScalarNode

from rewardkit.errors import DataError

#: Depth of nested mappings and lists that a document may have.
MAX_DEPTH = 40

_DECIMAL = re.compile(r"[-+]?[0-9]{1,1000}")


def read_yaml(text: str, where: str) -> Any:
    """Return the value of a YAML document.

    Args:
        text: the document.
        where: its file, for messages.

    Raises:
        DataError: it is not YAML, has an alias or is nested too deep, or a key is repeated; the
            message has the line.
    """
    parser = YAML(typ="safe", pure=True)
    parser.Composer, parser.Constructor = _BoundedComposer, _PlainConstructor
    try:
        return parser.load(text)
    except MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise DataError(f"{where}{line}: {_problem_text(str(error.problem))}.") from None
    except (YAMLError, ValueError) as error:  # ValueError: a number that Python does not read
        raise DataError(f"{where}: not YAML ({' '.join(str(error).split())[:200]}).") from None


def _problem_text(problem: str) -> str:
    """Return what is wrong with a document; messages of ruamel that are hard to read are replaced."""
    if "\\t" in problem:
        return "a tab; indent YAML with spaces"
    if match := re.match(r'found duplicate key "(.*?)"', problem, re.DOTALL):
        return f"the key {match[1]!r} is set twice"
    return " ".join(problem.split())


class _BoundedComposer(Composer):
    """A composer that limits the depth, and refuses aliases and keys that are not scalars."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        mark = self.parser.peek_event().start_mark
        if self.parser.check_event(AliasEvent):
            raise ComposerError(None, None, "aliases are not read", mark)
        if self.depth > MAX_DEPTH:
            raise ComposerError(None, None, "nested too deep", mark)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        if isinstance(parent, MappingNode) and index is None and not isinstance(node, ScalarNode):
            raise ComposerError(None, None, "a key is a word, not a list or a mapping", mark)
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
