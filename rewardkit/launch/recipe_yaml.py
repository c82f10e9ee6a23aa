"""Recipes as YAML, read as a person means them.

YAML 1.2, so that `1e-6` is a number and `no` is text: a learning rate that is text stops verl
minutes after the launch. Numbers are decimal, and dates are text. Keys stand once, and neither
aliases nor deep nesting is read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rewardkit.errors import DataError

if TYPE_CHECKING:
    from ruamel.yaml import YAML

#: Mappings in mappings that a recipe may have.
MAX_DEPTH = 40

_DECIMAL = re.compile(r"[-+]?[0-9]{1,1000}")


def read_yaml(text: str, where: str) -> Any:
    """Return the value of a YAML document.

    Args:
        text: the document.
        where: its file, for messages.

    Raises:
        DataError: it is not YAML, has an alias or is nested too deep, or a key stands twice; the
            message has the line.
    """
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        return _parser().load(text)
    except MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise DataError(f"{where}{line}: {_problem(str(error.problem))}.") from None
    except (YAMLError, ValueError) as error:  # ValueError: a number that Python does not read
        raise DataError(f"{where}: not YAML ({' '.join(str(error).split())[:200]}).") from None


def _problem(problem: str) -> str:
    """Say what is wrong with a document, in our words where ruamel's are hard to read."""
    if "\\t" in problem:
        return "a tab; YAML wants spaces"
    if match := re.match(r'found duplicate key "(.*?)"', problem, re.DOTALL):
        return f"the key {match[1]!r} stands twice"
    return " ".join(problem.split())


def _parser() -> YAML:
    from ruamel.yaml import YAML
    from ruamel.yaml.composer import Composer, ComposerError
    from ruamel.yaml.constructor import SafeConstructor
    from ruamel.yaml.events import AliasEvent
    from ruamel.yaml.nodes import MappingNode, ScalarNode

    class BoundedComposer(Composer):
        """A composer with a limit on depth, without aliases, whose keys are scalars."""

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
            if (
                isinstance(parent, MappingNode)
                and index is None
                and not isinstance(node, ScalarNode)
            ):
                raise ComposerError(None, None, "a key is a word, not a list or a mapping", mark)
            return node

    class PlainConstructor(SafeConstructor):
        """Numbers in decimal, and no dates."""

    def construct_int(_: Any, node: Any) -> int | str:
        return int(node.value) if _DECIMAL.fullmatch(node.value) else str(node.value)

    def construct_text(_: Any, node: Any) -> str:
        return str(node.value)

    PlainConstructor.add_constructor("tag:yaml.org,2002:int", construct_int)
    for tag in ("timestamp", "value"):
        PlainConstructor.add_constructor(f"tag:yaml.org,2002:{tag}", construct_text)
    parser = YAML(typ="safe", pure=True)
    parser.Composer, parser.Constructor = BoundedComposer, PlainConstructor
    return parser
