"""The operators of `${name...}` that change a value: cutting, replacing, letters, slices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from rewardkit.launch.script_import.shell.patterns import (
    PatternText,
    read_pattern,
    replace_matches,
    without_prefix,
    without_suffix,
)
from rewardkit.launch.script_import.shell.scope import (
    SIGNS,
    ShellScope,
    is_unknown,
    unsigned,
)


def change_items(items: list[str], operator: str, operand: list[PatternText]) -> list[str] | None:
    """Return the items changed by `#`, `%`, `/`, `^` or `,`; None where the result is not known."""
    if any(is_unknown(part.text) for part in operand):
        return None
    changed = [_change(item, operator, operand) for item in items]
    values = [value for value in changed if value is not None]
    return values if len(values) == len(items) else None


def _change(text: str, operator: str, operand: list[PatternText]) -> str | None:
    has_pattern = any(part.text for part in operand)
    letters = {"^^": str.upper, ",,": str.lower}
    if operator in letters:
        return None if has_pattern else letters[operator](text)
    if operator in {"^", ","}:
        return None if has_pattern else letters[operator * 2](text[:1]) + text[1:]
    sign = text[:1] if text[:1] in SIGNS else ""
    if operator[0] == "/":
        return _replace(text, operator, operand)
    signs = read_pattern(operand)
    if signs is None:
        return None
    is_longest = len(operator) == 2
    if operator[0] == "%":
        cut = without_suffix(text.removeprefix(sign), signs, longest=is_longest)
        return cut and sign + cut
    bare = text.removeprefix(sign)
    cut = without_prefix(bare, signs, longest=is_longest)
    return sign + cut if cut == bare else cut


def _replace(text: str, operator: str, operand: list[PatternText]) -> str | None:
    """Return `${text/pattern/new}`: the first slash without quotes ends the pattern."""
    whole = [PatternText(char, part.is_quoted) for part in operand for char in part.text]
    pattern = list(takewhile(lambda part: part.is_quoted or part.text != "/", whole))
    new = "".join(part.text for part in whole[len(pattern) + 1 :])
    joined: list[PatternText] = []
    for char, is_quoted in pattern:
        if joined and joined[-1].is_quoted == is_quoted:
            joined[-1] = PatternText(joined[-1].text + char, is_quoted)
        else:
            joined.append(PatternText(char, is_quoted))
    signs = read_pattern(joined)
    return None if not signs else replace_matches(text, signs, new, kind=operator)


def slice_items(
    items: list[str],
    numbers: Sequence[int | None],
    *,
    is_list: bool,
    has_name: bool,
    scope: ShellScope,
) -> list[str] | None:
    """Return `${items:start:length}`; None where a number is not known.

    Args:
        items: the items of a variable.
        numbers: start and, if given, length.
        is_list: whether items are counted, and not characters.
        has_name: whether the items are arguments, the first of which is `$0`.
        scope: the scope, which knows `$0`.
    """
    start = numbers[0]
    length = numbers[1] if len(numbers) > 1 else None
    if start is None or len(numbers) > 2 or (len(numbers) > 1 and length is None):
        return None
    whole: Sequence[str] = items if is_list else unsigned("".join(items))
    if is_list and has_name:
        whole = [scope.script, *items]
    begin = start if start >= 0 else len(whole) + start
    if begin < 0:
        return [] if is_list else [""]
    end = len(whole) if length is None else begin + length if length >= 0 else len(whole) + length
    if is_list and length is not None and length < 0:
        return None
    part = whole[begin : max(end, begin)]
    return list(part) if is_list else ["".join(part)]
