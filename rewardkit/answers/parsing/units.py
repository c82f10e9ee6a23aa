"""The table of units: SI with its prefixes, everyday and Chinese units, money, time, counts.

A unit has a dimension, which is a product of powers of base units, and a factor to it: `km/h` is
5/18 of metre to the power 1 and second to the power -1. A counted thing (`apples`) is a base unit
of its own. Factors are exact. Sources: the SI brochure (9th edition), the international yard and
pound agreement of 1959.
"""

from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple


class Unit(NamedTuple):
    """A unit of measurement, or a counted thing: its exact factor to (base unit, exponent) in order."""

    factor: Fraction
    dimension: tuple[tuple[str, int], ...]

    def multiply(self, other: "Unit", exponent: int = 1) -> "Unit":
        """Return the product with a power of another unit."""
        powers = dict(self.dimension)
        for base, power in other.dimension:
            powers[base] = powers.get(base, 0) + power * exponent
        dimension = sorted((base, power) for base, power in powers.items() if power)
        return Unit(self.factor * other.factor**exponent, tuple(dimension))

    def power(self, exponent: int) -> "Unit":
        """Return a power of the unit."""
        return NO_UNIT.multiply(self, exponent)


NO_UNIT = Unit(Fraction(1), ())

#: Prefixes of SI, each as a symbol and its words, and their powers of ten.
_PREFIXES = (
    "f femto -15, p pico -12, n nano 纳 -9, μ micro 微 -6, u micro -6, m milli 毫 -3, c centi 厘 -2,"
    " d deci 分 -1, h hecto 2, k kilo 千 3, M mega 兆 6, G giga 9, T tera 12"
)
#: Spellings = factor and powers of base units. A star marks a unit that takes prefixes: the first
#: spelling takes a symbol, the others a word of their language. Words of three letters also have `s`.
_TABLE = """
*m meter metre 米 = 1 m; *g gram gramme 克 = 1/1000 kg; *s second sec 秒 秒钟 = 1 s;
*A ampere amp = 1 A; *K kelvin = 1 K; *mol mole = 1 mol; *cd candela = 1 cd; *Hz hertz = 1 s^-1;
*N newton 牛 牛顿 = 1 kg m s^-2; *Pa pascal = 1 kg m^-1 s^-2; *J joule 焦 焦耳 = 1 kg m^2 s^-2;
*W watt 瓦 = 1 kg m^2 s^-3; *C coulomb = 1 A s; *V volt = 1 kg m^2 s^-3 A^-1;
*F farad = 1 kg^-1 m^-2 s^4 A^2; *Ω ohm = 1 kg m^2 s^-3 A^-2; *T tesla = 1 kg s^-2 A^-1;
*H henry henries = 1 kg m^2 s^-2 A^-2; *Wb weber = 1 kg m^2 s^-2 A^-1;
*L liter litre 升 = 1/1000 m^3; *l = 1/1000 m^3; *eV electronvolt = 1 eV; *bit = 1 bit;
*B byte = 8 bit; *cal calorie = 4184/1000 kg m^2 s^-2; *pc parsec = 1 pc; *Wh = 3600 kg m^2 s^-2;
Nm = 1 kg m^2 s^-2; 公里 = 1000 m; 公分 = 1/100 m; 公斤 = 1 kg;
in inch inches 英寸 = 254/10000 m; ft foot feet 英尺 = 3048/10000 m; yd yard 码 = 9144/10000 m;
mi mile 英里 = 1609344/1000 m; Å angstrom = 1/10000000000 m; AU = 1 AU;
ly light-year light-years = 1 ly; 斤 = 1/2 kg; t ton tonne 吨 = 1000 kg;
oz ounce 盎司 = 28349523125/1000000000000 kg; lb lbs pound 磅 = 45359237/100000000 kg;
min minute 分钟 分 = 60 s; h hr hrs hour 小时 时 = 3600 s; d day 天 日 = 86400 s; wk week 周 星期 = 604800 s;
mo month 个月 月 = 1 month; yr yrs year 年 = 12 month; century centuries 世纪 = 1200 month;
rpm = 1/60 s^-1; mph = 1609344/3600000 m s^-1; kph kmh kmph = 5/18 m s^-1;
acre = 40468564224/10000000 m^2; ha hectare 公顷 = 10000 m^2; 亩 = 2000/3 m^2;
gal gallon 加仑 = 3785411784/1000000000000 m^3; qt quart = 946352946/1000000000000 m^3;
pint = 473176473/1000000000000 m^3; cup = 1 cup; atm = 101325 kg m^-1 s^-2;
bar = 100000 kg m^-1 s^-2; dyne dyn = 1/100000 kg m s^-2; erg = 1/10000000 kg m^2 s^-2;
M molar = 1000 mol m^-3; °C celsius 摄氏度 = 1 °C; °F fahrenheit 华氏度 = 1 °F;
$ dollar usd USD 美元 美金 = 1 $; ¢ cent 美分 = 1/100 $; 元 块 块钱 人民币 yuan rmb RMB ¥ CNY 元钱 = 1 元;
角 毛 = 1/10 元; € euro eur EUR 欧元 = 1 €; £ GBP 英镑 = 1 £; ₹ rupee Rs = 1 ₹; yen 日元 = 1 yen;
rad radian 弧度 = 1 rad; unit 单位 个单位 = 1 unit;
人 person people 个人 名 = 1 person; 种 way 种方法 种情况 种方案 = 1 way
"""
_WORD_POWERS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3, "平方": 2, "立方": 3}
POWER_SUFFIXES = {"squared": 2, "cubed": 3}
#: Signs of money, which precede their number.
CURRENCIES = {
    "\\$": "$", "¥": "元", "RMB": "元", "\\yen": "元", "USD": "$", "Rs": "₹", "\\euro": "€", "\\pounds": "£",
    **{sign: sign for sign in "$€£₹¢"},
}  # fmt: skip


def _read_table() -> dict[str, Unit]:
    table: dict[str, Unit] = {}
    scaled: dict[str, Unit] = {}
    prefixes = [prefix.split() for prefix in _PREFIXES.split(",")]
    for line in map(str.strip, _TABLE.split(";")):
        spellings, _, size = line.partition(" = ")
        factor, *bases = size.split()
        powers = [base.partition("^") for base in bases]
        dimension = sorted((base, int(power or 1)) for base, _, power in powers)
        unit = Unit(Fraction(factor), tuple(dimension))
        symbol, *words = spellings.removeprefix("*").split()
        words += [f"{word}s" for word in (symbol, *words) if word.isascii() and len(word) > 2]
        table.update(dict.fromkeys([symbol, *words], unit))
        for short, *longs, power in prefixes if line[0] == "*" else ():
            larger = unit._replace(factor=unit.factor * Fraction(10) ** int(power))
            scaled[short + symbol] = larger
            pairs = ((long, word) for long in longs for word in words)
            scaled |= {a + b: larger for a, b in pairs if a.isascii() == b.isascii()}
    return scaled | table


UNITS = _read_table()


def counting_unit(word: str) -> Unit:
    """Return the unit of a counted thing, the same for `apples` and `apple`."""
    name = word.casefold() if word[1:].islower() or len(word) > 4 else word
    if len(word) > 3 and word.isascii():
        name = name.removesuffix("ies") + "y" if name.endswith("ies") else name.removesuffix("s")
    return Unit(Fraction(1), ((f"counted {name}", 1),))  # so that no unit of the table is like it


@lru_cache(maxsize=1024)
def lookup_unit(word: str) -> Unit | None:
    """Return the unit of the table that a word names, also after 平方 or 立方; None without one."""
    word = word.rstrip(".")
    for prefix, power in (("平方", 2), ("立方", 3)):
        if word.startswith(prefix) and (unit := lookup_unit(word.removeprefix(prefix))):
            return unit.power(power)
    if word in UNITS:
        return UNITS[word]
    is_word = word.istitle() or (word.isupper() and len(word) > 3)
    return UNITS.get(word.lower()) if len(word) > 2 and is_word else None


def unit_power(word: str) -> int:
    """Return the power of a word such as `square` before a unit; 0 for any other word."""
    return _WORD_POWERS.get(word.lower(), 0)
