"""Make wrong answers by changes of marks, units or words, which the reader does not read.

Each edit changes a plain answer of one shape into one with another meaning, certain by the tables of
this module; see `perturb.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from readings import DIMENSIONS, plain_number, quantity, read, surely_differ

Edit: TypeAlias = Callable[[str], Iterator[str]]

_BASE = re.compile(r"([0-9A-F]+)_(?:\{?\(?([2-9]|1[0-6])\)?\}?)")
_RATIO = re.compile(r"(\d+)\s*:\s*(\d+)")
_TIME = re.compile(r"(\d{1,2}):(\d\d)(.*?)([AaPp])(\.?[Mm]\.?)(.*)", re.DOTALL)
_DEGREES = re.compile(r"(-?\d+(?:\.\d+)?)(\^\{?\\circ\}?|°|\\degree)")
_PERCENT = re.compile(r"(-?\d+(?:\.\d+)?)(\\?%)")
_MONEY = re.compile(r"(\\?\$)\s*(\d[\d,]*(?:\.\d\d)?)")
_MODULUS = re.compile(r"(\\pmod\{?\s*|\\bmod\{?\s*|\(mod\s+)(\d+)")
_CASES = re.compile(r"(.*\\begin\{cases\})(.*)(\\end\{cases\}.*)", re.DOTALL)
_TEXT = re.compile(r"(\\text\{\s*)?([A-Za-z]+|[一-鿿]{1,4})(\s*\})?(\.?)")
#: Each word and a word with another meaning.
OTHER_WORDS = dict(
    pair.split("/")
    for pair in [
        "yes/no",
        "no/yes",
        "true/false",
        "false/true",
        "even/odd",
        "odd/even",
        "increasing/decreasing",
        "decreasing/increasing",
        "monday/friday",
        "tuesday/sunday",
        "wednesday/monday",
        "thursday/tuesday",
        "friday/thursday",
        "saturday/sunday",
        "sunday/saturday",
        "convergent/divergent",
        "divergent/convergent",
        "ellipse/parabola",
        "parabola/hyperbola",
        "hyperbola/ellipse",
        "circle/ellipse",
        "red/blue",
        "blue/green",
        "green/red",
        "north/south",
        "south/north",
        "east/west",
        "west/east",
        "是/否",
        "否/是",
        "有解/无解",
        "无解/有解",
        "偶数/奇数",
        "奇数/偶数",
        "正确/错误",
        "错误/正确",
        "星期一/星期二",
        "递增/递减",
    ]
)
_OTHER_UNIT = {"length": "kg", "mass": "cm", "time": "kg", "money": "km", "speed": "kg"}


def another_unit(text: str) -> Iterator[str]:
    if parts := quantity(text):
        yield rf"{parts[0]} \text{{ {_OTHER_UNIT.get(DIMENSIONS[parts[1]], 'cm')}}}"


def number_of_the_unit(text: str) -> Iterator[str]:
    if (parts := quantity(text)) and plain_number(parts[0]) is not None:
        number = re.sub(r"\d(?=\D*$)", lambda m: str((int(m[0]) + 1) % 10), parts[0])
        yield rf"{number} \text{{ {parts[1]}}}{parts[2]}"


def power_of_the_unit(text: str) -> Iterator[str]:
    parts = quantity(text)
    if parts and DIMENSIONS[parts[1]] == "length" and parts[2]:
        yield rf"{parts[0]} \text{{ {parts[1]}}}^{3 if '2' in parts[2] else 2}"


def another_word(text: str) -> Iterator[str]:
    match = _TEXT.fullmatch(text)
    if match and (other := OTHER_WORDS.get(match[2].lower())):
        yield (match[1] or "") + other + (match[3] or "")


def another_choice(text: str) -> Iterator[str]:
    if match := re.fullmatch(r"(\\text\{)?(\(?)([A-E])(\)?)(\})?", text):
        other = "ABCDE"[("ABCDE".index(match[3]) + 1) % 5]
        yield "".join((match[1] or "", match[2], other, match[4], match[5] or ""))
        yield f"{match[3]}, {other}"
        yield rf"{match[3]} \text{{ or }} {other}"


def another_base(text: str) -> Iterator[str]:
    if match := _BASE.fullmatch(text):
        yield f"{match[1]}_{{{int(match[2]) % 16 + 1 if match[2] != '16' else 15}}}"
        digit = "1" if match[1][-1] == "0" else "0"
        yield f"{match[1][:-1]}{digit}_{{{match[2]}}}"


def another_ratio(text: str) -> Iterator[str]:
    if match := _RATIO.fullmatch(text):
        a, b = int(match[1]), int(match[2])
        others = [(b, a), (a + 1, b), (a, b + 1)]
        yield from (f"{c}:{d}" for c, d in others if c * b != a * d and a * b)


def another_time(text: str) -> Iterator[str]:
    if match := _TIME.fullmatch(text):
        hour, minute, *rest = match.groups()
        half = {"a": "p", "A": "P", "p": "a", "P": "A"}[rest[1]]
        yield f"{hour}:{minute}{rest[0]}{half}{rest[2]}{rest[3]}"
        yield f"{int(hour) % 12 + 1}:{minute}{''.join(rest)}"
        yield f"{hour}:{(int(minute) + 1) % 60:02}{''.join(rest)}"


def another_angle_or_share(text: str) -> Iterator[str]:
    for pattern in (_DEGREES, _PERCENT):
        if (match := pattern.fullmatch(text)) and (number := plain_number(match[1])):
            yield f"{float(number) + 1:.10g}{match[2]}"
            yield f"{float(number) * 10:.10g}{match[2]}"


def another_sum_of_money(text: str) -> Iterator[str]:
    if match := _MONEY.fullmatch(text):
        digit = str((int(match[2][0]) % 9) + 1)
        yield match[1] + digit + match[2][1:]
        yield f"{match[2]} euros"


def another_congruence(text: str) -> Iterator[str]:
    if (match := _MODULUS.search(text)) and int(match[2]) > 2:
        yield text[: match.start(2)] + str(int(match[2]) + 1) + text[match.end(2) :]
        residue = re.search(r"(?:\\equiv|≡)\s*(\d+)(?!\d)", text)
        if residue:
            changed = str(int(residue[1]) + 1)
            yield text[: residue.start(1)] + changed + text[residue.end(1) :]


def branches_swapped(text: str) -> Iterator[str]:
    if not (match := _CASES.fullmatch(text)):
        return
    rows = [row.split("&") for row in match[2].split(r"\\") if row.strip()]
    if len(rows) == 2 and all(len(row) == 2 for row in rows):
        (one, when), (two, then) = rows
        if surely_differ(read(one.strip(" ,")), read(two.strip(" ,"))):
            yield rf"{match[1]}{two}&{when}\\{one}&{then}{match[3]}"


SURE: dict[str, Edit] = {
    edit.__name__.replace("_", " "): edit
    for edit in (
        another_unit,
        number_of_the_unit,
        power_of_the_unit,
        another_word,
        another_choice,
        another_base,
        another_ratio,
        another_time,
        another_angle_or_share,
        another_sum_of_money,
        another_congruence,
        branches_swapped,
    )
}
