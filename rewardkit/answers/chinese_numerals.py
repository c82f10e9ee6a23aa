"""Numbers in Chinese words: 十二 is 12, 四分之三 is 3/4, 百分之五十 is 50%, 负五 is -5, 五百元 is 500元."""

import re

from rewardkit.answers.parsing.units import UNITS

_DIGITS = dict(zip("零一二三四五六七八九〇两", (*range(10), 0, 2), strict=True))
_SMALL_UNITS = {"十": 10, "百": 100, "千": 1000}
_LARGE_UNITS = {"万": 10**4, "亿": 10**8}
_NUMERAL = "[零〇一二两三四五六七八九十百千万亿]{1,20}"
_NUMBER = re.compile(
    rf"(?P<sign>负?)(?:(?P<percent>百分之)|(?P<below>{_NUMERAL})分之)?"
    rf"(?P<whole>{_NUMERAL})(?:点(?P<places>[零〇一二两三四五六七八九]{{1,20}}))?"
    r"(?P<unit>[^\W\d_a-zA-Z]{0,5})"
)
#: Words between a number and what it counts; 角 and 分 alone are more often an angle and a part.
_MEASURE_WORDS = frozenset("个只条本张枚颗棵件台辆位名次组对套排行列页道根支")
_OTHER_WORDS = frozenset("角分时日月")


def chinese_to_digits(text: str) -> str:
    """Return a text that is one number in Chinese words in digits, also with a unit after it.

    Any other text is returned unchanged.
    """
    match = _NUMBER.fullmatch(text.strip(" $*"))
    if match is None:
        return text
    unit, base = match["unit"], re.sub("^[平立]方", "", match["unit"])
    if unit and unit not in _MEASURE_WORDS and (base not in UNITS or unit in _OTHER_WORDS):
        return text
    if unit and f"{match['whole'][-1]}{unit}" in UNITS:
        return text  # 五千克 is 5 千克 or 5000 克
    number = str(_read_integer(match["whole"]))
    if match["places"]:
        number += "." + "".join(str(_DIGITS[char]) for char in match["places"])
    if match["below"]:
        number = rf"\frac{{{number}}}{{{_read_integer(match['below'])}}}"
    return f"{'-' if match['sign'] else ''}{number}{'%' if match['percent'] else ''}{unit}"


def _read_integer(numeral: str) -> int:
    """Return the value of a numeral: 十二 -> 12, 三万二千 -> 32000; 二〇二四 is read digit by digit."""
    if len(numeral) > 1 and all(char in _DIGITS for char in numeral):
        return int("".join(str(_DIGITS[char]) for char in numeral))
    total, section, digit = 0, 0, 0
    for char in numeral:
        if char in _DIGITS:
            digit = _DIGITS[char]
        elif char in _SMALL_UNITS:
            section, digit = section + (digit or 1) * _SMALL_UNITS[char], 0
        else:
            total, section, digit = (total + section + digit or 1) * _LARGE_UNITS[char], 0, 0
    return total + section + digit
