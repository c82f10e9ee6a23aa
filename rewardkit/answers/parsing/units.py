"""Table of units: SI with its prefixes, everyday and Chinese units, money, time, counts.

A unit has a dimension, which is a product of powers of base units, and a factor to it: `km/h` is
5/18 of metre to the power 1 and second to the power -1. A counted thing (`apples`) is a base unit
of its own. Factors are exact. Sources: the SI brochure (9th edition), the international yard and
pound agreement of 1959.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple


class Unit(NamedTuple):
    """A unit of measurement, or a counted thing.

    Attributes:
        factor: exact factor to the base units.
        dimension: (base unit, exponent) in order.
        name: (spelling, exponent) in order; distinguishes units of one factor and dimension.
    """

    factor: Fraction
    dimension: tuple[tuple[str, int], ...]
    name: tuple[tuple[str, int], ...]

    def multiply(self, other: Unit, exponent: int = 1) -> Unit:
        """Return the product with a power of another unit."""
        return Unit(
            self.factor * other.factor**exponent,
            _combine_powers(self.dimension, other.dimension, exponent),
            _combine_powers(self.name, other.name, exponent),
        )

    def power(self, exponent: int) -> Unit:
        """Return a power of the unit."""
        return NO_UNIT.multiply(self, exponent)


def _combine_powers(
    left: tuple[tuple[str, int], ...], right: tuple[tuple[str, int], ...], exponent: int
) -> tuple[tuple[str, int], ...]:
    powers = dict(left)
    for base, power in right:
        powers[base] = powers.get(base, 0) + power * exponent
    return tuple(sorted((base, power) for base, power in powers.items() if power))


NO_UNIT: Final = Unit(Fraction(1), (), ())

_PREFIXES: Mapping[str, int] = {
    "f": -15, "p": -12, "n": -9, "μ": -6, "u": -6, "m": -3, "c": -2, "d": -1, "h": 2, "k": 3,
    "M": 6, "G": 9, "T": 12,
}  # fmt: skip
_PREFIX_WORDS: Mapping[str, int] = {
    "femto": -15, "pico": -12, "nano": -9, "micro": -6, "milli": -3, "centi": -2, "deci": -1,
    "hecto": 2, "kilo": 3, "mega": 6, "giga": 9, "tera": 12,
}  # fmt: skip

#: SI symbols that take prefixes: factor, words, and powers of base units.
_SI: Mapping[str, tuple[str, str, dict[str, int]]] = {
    "m": ("1", "meter meters metre metres", {"m": 1}),
    "g": ("1/1000", "gram grams gramme grammes", {"kg": 1}),
    "s": ("1", "second seconds sec secs", {"s": 1}),
    "A": ("1", "ampere amperes amp amps", {"A": 1}),
    "K": ("1", "kelvin kelvins", {"K": 1}),
    "mol": ("1", "mole moles", {"mol": 1}),
    "cd": ("1", "candela candelas", {"cd": 1}),
    "Hz": ("1", "hertz", {"s": -1}),
    "N": ("1", "newton newtons", {"kg": 1, "m": 1, "s": -2}),
    "Pa": ("1", "pascal pascals", {"kg": 1, "m": -1, "s": -2}),
    "J": ("1", "joule joules", {"kg": 1, "m": 2, "s": -2}),
    "W": ("1", "watt watts", {"kg": 1, "m": 2, "s": -3}),
    "C": ("1", "coulomb coulombs", {"A": 1, "s": 1}),
    "V": ("1", "volt volts", {"kg": 1, "m": 2, "s": -3, "A": -1}),
    "F": ("1", "farad farads", {"kg": -1, "m": -2, "s": 4, "A": 2}),
    "Ω": ("1", "ohm ohms", {"kg": 1, "m": 2, "s": -3, "A": -2}),
    "T": ("1", "tesla teslas", {"kg": 1, "s": -2, "A": -1}),
    "H": ("1", "henry henries", {"kg": 1, "m": 2, "s": -2, "A": -2}),
    "Wb": ("1", "weber webers", {"kg": 1, "m": 2, "s": -2, "A": -1}),
    "L": ("1/1000", "liter liters litre litres", {"m": 3}),
    "l": ("1/1000", "", {"m": 3}),
    "eV": ("1602176634/10000000000000000000000000000", "electronvolt electronvolts", {"eV": 1}),
    "bit": ("1", "bits", {"bit": 1}),
    "B": ("8", "byte bytes", {"bit": 1}),
    "cal": ("4184/1000", "calorie calories", {"kg": 1, "m": 2, "s": -2}),
    "pc": ("1", "parsec parsecs", {"pc": 1}),
}
#: Units without prefixes.
_UNPREFIXED: Mapping[str, tuple[str, dict[str, int]]] = {
    "in inch inches 英寸": ("254/10000", {"m": 1}),
    "ft foot feet 英尺": ("3048/10000", {"m": 1}),
    "yd yard yards 码": ("9144/10000", {"m": 1}),
    "mi mile miles 英里": ("1609344/1000", {"m": 1}),
    "Å angstrom angstroms": ("1/10000000000", {"m": 1}),
    "AU": ("1", {"AU": 1}),
    "ly light-year light-years": ("1", {"ly": 1}),
    "斤": ("1/2", {"kg": 1}),
    "t ton tons tonne tonnes 吨": ("1000", {"kg": 1}),
    "oz ounce ounces 盎司": ("28349523125/1000000000000", {"kg": 1}),
    "lb lbs pound pounds 磅": ("45359237/100000000", {"kg": 1}),
    "min mins minute minutes 分钟 分": ("60", {"s": 1}),
    "h hr hrs hour hours 小时 时": ("3600", {"s": 1}),
    "d day days 天 日": ("86400", {"s": 1}),
    "wk week weeks 周 星期": ("604800", {"s": 1}),
    "mo month months 个月 月": ("1", {"month": 1}),
    "yr yrs year years 年": ("12", {"month": 1}),
    "century centuries 世纪": ("1200", {"month": 1}),
    "rpm": ("1/60", {"s": -1}),
    "acre acres": ("40468564224/10000000", {"m": 2}),
    "ha hectare hectares 公顷": ("10000", {"m": 2}),
    "亩": ("2000/3", {"m": 2}),
    "gal gallon gallons 加仑": ("3785411784/1000000000000", {"m": 3}),
    "qt quart quarts": ("946352946/1000000000000", {"m": 3}),
    "pint pints": ("473176473/1000000000000", {"m": 3}),
    "cup cups": ("1", {"cup": 1}),
    "atm": ("101325", {"kg": 1, "m": -1, "s": -2}),
    "bar": ("100000", {"kg": 1, "m": -1, "s": -2}),
    "dyne dynes dyn": ("1/100000", {"kg": 1, "m": 1, "s": -2}),
    "erg ergs": ("1/10000000", {"kg": 1, "m": 2, "s": -2}),
    "M molar": ("1000", {"mol": 1, "m": -3}),
    "°C celsius 摄氏度": ("1", {"°C": 1}),
    "°F fahrenheit 华氏度": ("1", {"°F": 1}),
    "$ dollar dollars usd USD 美元 美金": ("1", {"$": 1}),
    "¢ cent cents 美分": ("1/100", {"$": 1}),
    "元 块 块钱 人民币 yuan rmb RMB ¥ CNY 元钱": ("1", {"元": 1}),
    "角 毛": ("1/10", {"元": 1}),
    "€ euro euros eur EUR 欧元": ("1", {"€": 1}),
    "£ gbp GBP 英镑": ("1", {"£": 1}),
    "₹ rupee rupees Rs": ("1", {"₹": 1}),
    "yen 日元": ("1", {"yen": 1}),
    "rad radian radians 弧度": ("1", {"rad": 1}),
    "unit units 单位 个单位": ("1", {"unit": 1}),
    "人 person persons people 个人 名": ("1", {"person": 1}),
    "种 way ways 种方法 种情况 种方案": ("1", {"way": 1}),
}
#: Chinese names of SI units.
_CHINESE: Mapping[str, str] = {
    "cm": "厘米 公分", "mm": "毫米", "dm": "分米", "m": "米", "km": "千米 公里", "g": "克", "kg": "千克 公斤",
    "mg": "毫克", "s": "秒 秒钟", "L": "升", "mL": "毫升", "kW": "千瓦", "W": "瓦", "N": "牛 牛顿", "J": "焦 焦耳",
}  # fmt: skip
_WORD_POWERS: Mapping[str, int] = {"square": 2, "sq": 2, "cubic": 3, "平方": 2, "立方": 3}
POWER_SUFFIXES: Mapping[str, int] = {"squared": 2, "cubed": 3}
#: Signs of money, which precede their number.
CURRENCIES: Mapping[str, str] = {
    "\\$": "$", "$": "$", "¥": "元", "€": "€", "£": "£", "₹": "₹", "USD": "$", "RMB": "元", "Rs": "₹",
    "\\yen": "元", "\\euro": "€", "\\pounds": "£", "¢": "¢",
}  # fmt: skip


def _base_unit(name: str, factor: Fraction, powers: Mapping[str, int]) -> Unit:
    return Unit(factor, tuple(sorted(powers.items())), ((name, 1),))


def _unit_table() -> dict[str, Unit]:
    table: dict[str, Unit] = {}
    for symbol, (factor, words, powers) in _SI.items():
        name = "L" if symbol == "l" else symbol
        for spelling in [symbol, *words.split()]:
            table[spelling] = _base_unit(name, Fraction(factor), powers)
        for prefix, power in _PREFIXES.items():
            scaled = Fraction(factor) * Fraction(10) ** power
            short = "μ" if prefix == "u" else prefix
            table.setdefault(prefix + symbol, _base_unit(short + name, scaled, powers))
        for prefix, power in _PREFIX_WORDS.items():
            short = next(p for p, exponent in _PREFIXES.items() if exponent == power)
            scaled = Fraction(factor) * Fraction(10) ** power
            for word in words.split():
                table[prefix + word] = _base_unit(short + name, scaled, powers)
    for spellings, (factor, powers) in _UNPREFIXED.items():
        first, *others = spellings.split()
        for spelling in (first, *others):
            table[spelling] = _base_unit(first, Fraction(factor), powers)
    for symbol, chinese in _CHINESE.items():
        table.update(dict.fromkeys(chinese.split(), table[symbol]))
    table["Nm"] = table["N"].multiply(table["m"])
    for prefix in ("", "k", "M", "G"):
        table[f"{prefix}Wh"] = table[f"{prefix}W"].multiply(table["h"])
    table["mph"] = table["mi"].multiply(table["h"], -1)
    table["kph"] = table["kmh"] = table["km"].multiply(table["h"], -1)
    return table


UNITS: Mapping[str, Unit] = _unit_table()
#: Base units of the table.
BASE_UNITS = frozenset(base for unit in UNITS.values() for base, _ in unit.dimension)


#: Prefix of the names of counted things, so that none of them is a unit of the table by chance.
COUNT_PREFIX: Final = "counted "


def counting_unit(word: str) -> Unit:
    """Return the unit of a counted thing, the same for `apples` and `apple`."""
    name = COUNT_PREFIX + (word.casefold() if word[1:].islower() or len(word) > 4 else word)
    if len(word) > 3 and word.isascii():
        name = name.removesuffix("ies") + "y" if name.endswith("ies") else name.removesuffix("s")
    return Unit(Fraction(1), ((name, 1),), ((name, 1),))


@lru_cache(maxsize=1024)
def lookup_unit(word: str) -> Unit | None:
    """Return the unit of the table that a word names, also after 平方 or 立方; None without one."""
    word = word.rstrip(".")
    for prefix, power in _WORD_POWERS.items():
        if (
            not prefix.isascii()
            and word.startswith(prefix)
            and (unit := lookup_unit(word[len(prefix) :]))
        ):
            return unit.power(power)
    if word in UNITS:
        return UNITS[word]
    spelled = word.istitle() or (word.isupper() and len(word) > 3)
    return UNITS.get(word.lower()) if len(word) > 2 and spelled else None


def unit_power(word: str) -> int:
    """Return the power of a word such as `square` before a unit; 0 for any other word."""
    return _WORD_POWERS.get(word.lower(), 0)
