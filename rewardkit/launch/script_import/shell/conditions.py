"""Tests of bash: `[ ... ]`, `test ...` and `[[ ... ]]`.

A test is true, false or, where it reads what only a run can tell, None; the scope then knows why
(`ShellScope.causes`). No file of the machine is looked at.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rewardkit.launch.script_import.shell.expansions import compute, items_of
from rewardkit.launch.script_import.shell.patterns import match_cost, matches, read_pattern
from rewardkit.launch.script_import.shell.scope import MARK, ShellScope, is_unknown, unsigned
from rewardkit.launch.script_import.shell.tree import parse_bytes, text_of
from rewardkit.launch.script_import.shell.words import fields_of, pattern_of, value_of

if TYPE_CHECKING:
    from tree_sitter import Node

_NUMBER_TESTS = frozenset({"-eq", "-ne", "-gt", "-ge", "-lt", "-le"})
_TEXT_TESTS = frozenset({"=", "==", "!=", "<", ">"})
_FILE_PAIRS = frozenset({"-nt", "-ot", "-ef"})
_BINARY = _NUMBER_TESTS | _TEXT_TESTS | _FILE_PAIRS
_UNARY = frozenset({f"-{letter}" for letter in "abcdefghknoprstuvwxzGLNOSR"})

#: A regular expression that is matched: characters and classes, with up to two repetitions.
_SIMPLE_REGEX = re.compile(r"\^?(?:(?:\[\^?[\w.-]+\]|\\?[\w./:-])[+*?]?)+\$?")
MAX_REPEATS = 2
MAX_REGEX_TEXT = 200

Truth = bool | None


def both(one: Truth, other: Truth) -> Truth:
    """Return `one && other` of two results that may be unknown."""
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def negated(truth: Truth) -> Truth:
    """Return `! truth`."""
    return None if truth is None else not truth


def evaluate_test(words: list[str], scope: ShellScope) -> Truth:
    """Return the result of `test words`; of a test that bash refuses, false."""
    return _Words(words, scope).whole()


class _Words:
    """The words of a test that are not read yet."""

    def __init__(self, words: list[str], scope: ShellScope) -> None:
        self.words = words[:200]
        self.scope = scope
        self.pos = 0

    def whole(self) -> Truth:
        if not self.words:
            return False
        truth = self.any_of()
        return truth if self.pos == len(self.words) else False

    def any_of(self) -> Truth:
        truth = self.all_of()
        while self.takes("-o"):
            truth = negated(both(negated(truth), negated(self.all_of())))
        return truth

    def all_of(self) -> Truth:
        truth = self.one()
        while self.takes("-a"):
            truth = both(truth, self.one())
        return truth

    def takes(self, word: str) -> bool:
        is_next = self.pos < len(self.words) and self.words[self.pos] == word
        self.pos += is_next
        return is_next

    def one(self) -> Truth:
        rest = self.words[self.pos :]
        if len(rest) >= 3 and rest[1] in _BINARY:
            self.pos += 3
            return compare(rest[0], rest[1], rest[2], self.scope)
        if len(rest) > 1 and rest[0] == "!":
            self.pos += 1
            return negated(self.one())
        if len(rest) > 2 and rest[0] == "(":
            self.pos += 1
            truth = self.any_of()
            return truth if self.takes(")") else False
        if len(rest) > 1 and rest[0] in _UNARY:
            self.pos += 2
            return check(rest[0], rest[1], self.scope)
        self.pos += 1
        return check("-n", rest[0], self.scope) if rest else False


def check(operator: str, word: str, scope: ShellScope) -> Truth:
    """Return the result of a test of one word, as in `-z word`."""
    if operator in {"-z", "-n"}:
        empty = _is_empty(word, scope)
        return empty if operator == "-z" else negated(empty)
    if operator == "-v" and not is_unknown(word):
        name, _, index = word.rstrip("]").partition("[")
        return items_of(name, index or None, scope) is not None
    scope.blame(scope.unknown(f"{operator} {word}"))
    return None


def _is_empty(word: str, scope: ShellScope) -> Truth:
    """Whether a word is empty: a variable that nobody sets is."""
    rest = MARK.sub("", word)
    if rest or not word:
        return not word
    unknowns = scope.unknowns_in(word)
    if all(unknown.is_unset for unknown in unknowns):
        for unknown in unknowns:
            given = f"--env {unknown.names[0]}=VALUE" if unknown.names else "--arg VALUE"
            text = f"asks whether {unknown.text} is set: the import takes it as not set ({given})."
            scope.record.problems.add(scope.line, text, breaks=False)
        return True
    scope.blame(word)
    return None


def compare(left: str, operator: str, right: str, scope: ShellScope) -> Truth:
    """Return the result of a test of two words, as in `left = right`."""
    if operator in _FILE_PAIRS:
        scope.blame(scope.unknown(f"{left} {operator} {right}"))
        return None
    if operator in _NUMBER_TESTS:
        return _compare_numbers(left, operator, right, scope)
    if operator in {"<", ">"}:
        if is_unknown(left + right):
            scope.blame(left, right)
            return None
        return left < right if operator == "<" else left > right
    same = _same(left, right, scope)
    return negated(same) if operator == "!=" else same


def _same(left: str, right: str, scope: ShellScope) -> Truth:
    """Whether two words are equal; `x$NAME = x` asks whether a variable is empty."""
    unknowns = scope.unknowns_in(left + right)
    if unknowns and all(unknown.is_unset for unknown in unknowns):
        left, right = (MARK.sub("", word) for word in (left, right))
        if left == right:
            return True
    elif not unknowns:
        return unsigned(left) == unsigned(right)
    scope.causes += [unknown for unknown in unknowns if unknown not in scope.causes]
    return None


def _compare_numbers(left: str, operator: str, right: str, scope: ShellScope) -> Truth:
    if is_unknown(left + right):
        scope.blame(left, right)
        return None
    if not all(re.fullmatch(r"\s*[-+]?\d{1,18}\s*", word, re.ASCII) for word in (left, right)):
        return False  # bash says: integer expression expected
    one, other = int(left), int(right)
    return {
        "-eq": one == other,
        "-ne": one != other,
        "-gt": one > other,
        "-ge": one >= other,
        "-lt": one < other,
        "-le": one <= other,
    }[operator]


def evaluate_condition(node: Node, scope: ShellScope, depth: int = 0) -> Truth:
    """Return the result of the expression inside `[[ ... ]]`."""
    if depth > 40:
        scope.blame(scope.unknown(text_of(node)[:80]))
        return None
    if node.type == "parenthesized_expression" and node.named_children:
        return evaluate_condition(node.named_children[0], scope, depth + 1)
    if node.type == "negated_command" and node.named_children:
        return negated(evaluate_condition(node.named_children[0], scope, depth + 1))
    if node.type == "unary_expression" and len(node.children) == 2:
        operator, operand = node.children
        if text_of(operator) == "!":
            return negated(evaluate_condition(operand, scope, depth + 1))
        return check(text_of(operator), value_of(operand, scope), scope)
    if node.type == "binary_expression" and len(node.children) == 3:
        return _evaluate_pair(node, scope, depth)
    if node.type in {"unary_expression", "binary_expression"} or node.has_error:
        scope.blame(scope.unknown(text_of(node)[:80]))
        return None
    return check("-n", value_of(node, scope), scope)


def _evaluate_pair(node: Node, scope: ShellScope, depth: int) -> Truth:
    left, sign, right = node.children
    operator = text_of(sign)
    if operator in {"&&", "||"}:
        one = evaluate_condition(left, scope, depth + 1)
        if one is (operator == "||"):
            return one
        other = evaluate_condition(right, scope, depth + 1)
        if operator == "&&":
            return both(one, other)
        return negated(both(negated(one), negated(other)))
    word = value_of(left, scope)
    if operator == "=~":
        return _search(value_of(right, scope), word, scope)
    if operator in {"=", "==", "!="}:
        same = match_word(word, right, scope)
        return negated(same) if operator == "!=" else same
    if operator in _NUMBER_TESTS:  # [[ ]] computes its operands
        numbers = [compute(text, scope) for text in (word, value_of(right, scope))]
        if None not in numbers:
            return _compare_numbers(str(numbers[0]), operator, str(numbers[1]), scope)
    return compare(word, operator, value_of(right, scope), scope)


def match_word(word: str, pattern: Node, scope: ShellScope) -> Truth:
    """Whether a word matches a pattern of `[[ ]]` or of `case`."""
    parts = pattern_of(pattern, scope)
    whole = "".join(part.text for part in parts)
    if is_unknown(word + whole):
        return True if whole == "*" else _same(word, whole, scope)
    scope.step(match_cost(len(whole), len(word)))
    signs = read_pattern(parts)
    truth = None if signs is None else matches(signs, unsigned(word))
    if truth is None:
        scope.blame(scope.unknown(text_of(pattern)[:80]))
    return truth


def _search(pattern: str, word: str, scope: ShellScope) -> Truth:
    if is_unknown(pattern + word):
        scope.blame(pattern, word)
        return None
    repeats = len(re.findall(r"[+*?]", pattern))
    is_simple = _SIMPLE_REGEX.fullmatch(pattern[:300]) and repeats <= MAX_REPEATS
    if not is_simple or len(pattern) > 300 or len(word) > MAX_REGEX_TEXT:
        scope.blame(scope.unknown(f"=~ {pattern[:80]}"))
        return None
    scope.step(match_cost(len(pattern), len(word)))
    return re.search(pattern, unsigned(word), re.ASCII) is not None


def words_of_test(node: Node, scope: ShellScope) -> list[str]:
    """Return the words between `[` and `]`."""
    inner = (node.text or b"")[1:-1]
    statements = parse_bytes(b"test " + inner.replace(b"\\\n", b"  ")).children
    if [statement.type for statement in statements] != ["command"]:
        return [scope.unknown(text_of(node)[:80])]
    return [field for field, _ in fields_of(statements[0].children[1:], scope)]
