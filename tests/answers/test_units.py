"""Units: a table of spellings, each with a dimension and a factor; SI prefixes scale them."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.answers.equal import compare
from rewardkit.answers.parsing.grammar import parse
from rewardkit.answers.parsing.tokens import UnreadableError, tokenize
from rewardkit.answers.parsing.units import NO_UNIT, UNITS, counting_unit, lookup_unit
from rewardkit.answers.scalar import Policy
from tests.tables import every

CONVERTED = Policy(convert_units=True)

#: Spellings of one unit, a line each, and the factor and powers of base units that it stands for.
SPELLINGS = {
    "cm centimeter centimeters centimetre centimetres 厘米 公分 CENTIMETERS cm.": ("1/100", "m"),
    "mm millimeter millimeters millimetre 毫米": ("1/1000", "m"),
    "m meter meters metre metres 米 Meters METERS": ("1", "m"),
    "dm decimeter decimeters 分米": ("1/10", "m"), "₹ rupee rupees": ("1", "₹"),
    "in inch inches 英寸": ("0.0254", "m"), "ft foot feet 英尺": ("0.3048", "m"),
    "g gram grams 克": ("1/1000", "kg"), "kg kilogram kilograms 千克 公斤": ("1", "kg"),
    "mg milligram milligrams 毫克": ("1/1000000", "kg"), "lb lbs pound pounds": ("0.45359237", "kg"),
    "s sec second seconds 秒": ("1", "s"), "ms millisecond milliseconds": ("1/1000", "s"),
    "min mins minute minutes 分钟": ("60", "s"), "h hr hrs hour hours 小时 HOURS hrs.": ("3600", "s"),
    "yr yrs year years 年": ("12", "month"),
    "$ dollar dollars usd USD 美元 Dollars": ("1", "$"), "cent cents 美分": ("1/100", "$"), "元 人民币 yuan rmb RMB 块": ("1", "元"),
    "€ euro euros eur 欧元": ("1", "€"), "£ 英镑": ("1", "£"),
    "L l liter liters litre litres 升": ("1/1000", "m^3"), "mL ml milliliter millilitres 毫升": ("1/1000000", "m^3"),
    "N newton newtons 牛顿": ("1", "kg m s^-2"), "J joule joules 焦耳": ("1", "kg m^2 s^-2"), "W watt watts 瓦": ("1", "kg m^2 s^-3"),
    "kW kilowatt kilowatts 千瓦": ("1000", "kg m^2 s^-3"), "Pa pascal pascals": ("1", "kg m^-1 s^-2"), "MPa megapascal": ("1000000", "kg m^-1 s^-2"),
    "mph": ("0.44704", "m s^-1"), "kph kmh": ("5/18", "m s^-1"), "μm um micrometer": ("1/1000000", "m"), "nm nanometer nanometres": ("1/1000000000", "m"),
    "°C celsius 摄氏度": ("1", "°C"), "°F fahrenheit 华氏度": ("1", "°F"), "mol mole moles": ("1", "mol"), "atm": ("101325", "kg m^-1 s^-2"),
}  # fmt: skip


def dimension(text):
    powers = [part.partition("^") for part in text.split()]
    return tuple(sorted((base, int(power or 1)) for base, _, power in powers))


@every(("spellings", "factor", "powers"), [(k, *v) for k, v in SPELLINGS.items()])
def test_every_spelling_of_a_unit_is_that_unit(spellings, factor, powers):
    for word in spellings.split():
        unit = lookup_unit(word)
        assert (unit.factor, unit.dimension) == (Fraction(factor), dimension(powers)), word


@every(
    ("one", "other"),
    [("mg", "Mg"), ("mm", "Mm"), ("mW", "MW"), ("MPa", "mPa"), ("s", "S"), ("k", "K"), ("m", "M"), ("g", "G"), ("cm", "mm"), ("t", "T"), ("a", "A"), ("n", "N")],
)  # fmt: skip
def test_the_case_of_a_short_symbol_counts(one, other):
    assert lookup_unit(one) != lookup_unit(other)


@every(
    ("one", "other", "alike"),
    [("apples", "apple", True), ("Apples", "apples", True), ("berries", "berry", True), ("apples", "oranges", False), ("gas", "gas", True), ("苹果", "苹果", True), ("苹果", "梨", False)],
)  # fmt: skip
def test_a_counted_thing_is_a_unit_of_its_own(one, other, alike):
    assert (counting_unit(one) == counting_unit(other)) is alike


WORDS = {"femto": -15, "pico": -12, "nano": -9, "micro": -6, "milli": -3, "centi": -2, "deci": -1, "hecto": 2, "kilo": 3, "mega": 6, "giga": 9, "tera": 12}  # fmt: skip
SYMBOLS = {"m": "meters", "g": "grams", "s": "seconds", "A": "amperes", "N": "newtons", "J": "joules", "W": "watts", "V": "volts", "Hz": "hertz", "L": "liters", "mol": "moles", "eV": "electronvolts"}  # fmt: skip


@given(st.sampled_from(sorted(WORDS)), st.sampled_from(sorted(SYMBOLS)))
def test_a_prefix_scales_its_unit_and_leaves_its_dimension(prefix, symbol):
    scaled, unit = lookup_unit(prefix + SYMBOLS[symbol]), lookup_unit(symbol)
    assert scaled.factor == unit.factor * Fraction(10) ** WORDS[prefix]
    assert scaled.dimension == unit.dimension


units = st.sampled_from(
    sorted(word for word in UNITS if word.isascii() and word.isalpha() and len(word) > 2)
)
powers = st.sampled_from([-3, -2, -1, 1, 2, 3])


@given(units, units, units, powers, powers)
def test_units_multiply_like_powers(a, b, c, m, n):
    one, two, three = lookup_unit(a), lookup_unit(b), lookup_unit(c)
    assert one.multiply(two) == two.multiply(one)
    assert one.multiply(two).multiply(three) == one.multiply(two.multiply(three))
    assert one.power(m).power(n) == one.power(m * n)
    assert one.multiply(two).power(m) == one.power(m).multiply(two.power(m))
    assert one.multiply(one, -1) == NO_UNIT == NO_UNIT.multiply(NO_UNIT)
    assert one.multiply(NO_UNIT) == one


# --- units after a value


def unit_of(text, *, letters=True):
    node = parse(tokenize(text), letters_are_units=letters)
    assert node[0] == "quantity", node
    return node[2]


M, S, KG, CM = map(lookup_unit, ("m", "s", "kg", "cm"))


@every(
    ("text", "unit"),
    [
        ("5 cm", CM), ("5cm", CM), (r"5\text{ cm}", CM), (r"5\,\mathrm{cm}", CM), ("5~cm", CM), ("5 cm.", CM), ("5厘米", CM), (r"5\ \mbox{cm}", CM),
        ("5 cm^2", CM.power(2)), (r"5\text{ cm}^{2}", CM.power(2)), (r"5\text{ cm}^{-1}", CM.power(-1)), ("5 square centimeters", CM.power(2)), (r"5\text{ sq cm}", CM.power(2)),
        ("5 cubic cm", CM.power(3)), ("5平方厘米", CM.power(2)), ("5 cm squared", CM.power(2)), ("5 cm²", CM.power(2)),
        ("5 m/s", M.multiply(S, -1)), ("5 m/s^2", M.multiply(S, -2)), (r"5\ \mathrm{m/s^2}", M.multiply(S, -2)), (r"5\ \mathrm{m\,s^{-2}}", M.multiply(S, -2)),
        (r"5\ \mathrm{m\cdot s^{-2}}", M.multiply(S, -2)), ("5 meters per second", M.multiply(S, -1)), ("5 km per hour", lookup_unit("kmh")), ("5 km/h", lookup_unit("kph")), ("5 miles per hour", lookup_unit("mph")),
        ("5 kg m/s", KG.multiply(M).multiply(S, -1)), (r"5\text{ kg}\cdot\text{m}^2", KG.multiply(M.power(2))), (r"5\text{ N}\cdot\text{m}", lookup_unit("N").multiply(M)),
        *((f"18 {word}", counting_unit(word)) for word in ("eggs", "ants", "arms", "façons", "см", "шт")),
        *((f"12{word}", counting_unit(word)) for word in "개명個"),
        ("5 apples", counting_unit("apple")), ("5 red apples", counting_unit("red").multiply(counting_unit("apple"))), ("5 apples per day", counting_unit("apple").multiply(lookup_unit("day"), -1)),
        (r"\$5", lookup_unit("$")), ("€5", lookup_unit("€")), ("¥5", lookup_unit("元")), ("5 dollars", lookup_unit("$")), ("5美元", lookup_unit("$")), (r"-\$5", lookup_unit("$")),
        (r"\pi\text{ cm}", CM), (r"\frac{1}{2}\text{ cm}", CM), (r"2\sqrt{3}\text{ cm}", CM), ("20°C", lookup_unit("celsius")), (r"20^\circ\text{C}", lookup_unit("celsius")), ("5 million dollars", lookup_unit("$")),
    ],
)  # fmt: skip
def test_a_text_has_this_unit_after_its_value(text, unit):
    behind = unit_of(text)
    assert (behind.factor, behind.dimension) == (unit.factor, unit.dimension)


@every(
    "word",
    "squared,cubed,choose,half,not,no,wrong,times,minus,不,错误,or more,or less,at least,at most,or fewer".split(
        ","
    ),
)
def test_a_word_that_changes_its_number_is_not_a_unit(word):
    for text in (rf"5\text{{ {word}}}", f"5 {word}"):
        assert compare(text, "5").outcome != "equal", text
        assert compare(text, "25").outcome != "equal", text


@every(
    "text",
    ["5 cm 3", "5 cm 3 4", "5 feet 6", "5 apples 6 pears", "5 cm^x", "5 cm^{1/2}", "5 cm^{10}"],
)
def test_a_quantity_with_a_tail_is_not_parsed_in_part(text):
    with pytest.raises(UnreadableError):
        parse(tokenize(text))


# --- units in the comparison


@every(
    ("answer", "gold", "plain", "converted"),
    [
        ("5 cm", "5 centimeters", True, True), ("5 cm", "5 mm", False, False), ("50 mm", "5 cm", False, True), ("3 hours", "180 minutes", False, True), ("500 cents", "5 dollars", False, True),
        ("3 hours", "180 seconds", False, False), ("5 cm", "5 cm^2", False, False), ("5 m/s", r"5\text{ m/s}", True, True), ("18 km/h", r"5\text{ m/s}", False, True), ("1 kg", r"1000\text{ g}", False, True),
        ("1 apple", "1 orange", False, False), (r"5\text{ N}\cdot\text{m}", r"5\text{ J}", True, True), ("5 J", r"5\text{ W}", False, False), ("1 L", r"1000\text{ cm}^3", False, True),
        ("12 months", "1 year", False, True), ("365 days", "1 year", False, False), ("5 dollars", "5 euros", False, False), ("2 h 90 min", r"3\text{ h }30\text{ min}", True, True),
        ("3.5 hours", r"3\text{ h }30\text{ min}", False, True), ("66 inches", "5 feet 6 inches", False, True), ("5 feet", "5 feet 6 inches", False, False), ("5", "5 feet 6 inches", False, False),
        ("5 cm", "5", True, True), ("5", "5 cm", True, True), ("6 cm", "5", False, False), ("50 mm", "5", False, False), ("100 cm", "1", False, False),
        ("5 cents", "$5", False, False), ("$5", "€5", False, False), (r"3\ \mathrm{m\,s^{-1}}", "3 m/s", True, True), (r"5\text{ J}", "5 J", True, True), (r"5\text{ USD}", "5 USD", True, True),
        ("5 (cm)", "5 cm", True, True), (r"5\text{ cm}^2", "5 sq cm", True, True), ("5 feet 6 inches", "5 ft 6 in", True, True), ("5 May", "5", False, False), ("5 pm", "5", False, False),
        ("20°C", "20°F", False, False), ("20°C", "20 K", False, False), ("20°C", r"20^\circ", False, False), (r"5\%", "5 cm", False, False),
    ],
)  # fmt: skip
def test_units_are_converted_only_if_the_policy_says_so(answer, gold, plain, converted):
    assert (compare(answer, gold).outcome == "equal") is plain
    assert (compare(answer, gold, policy=CONVERTED).outcome == "equal") is converted


@given(st.integers(1, 999), st.sampled_from(["cm", "mm", "km", "kg", "mg", "hours", "miles", "dollars", "L", "mL", "N", "MPa", "Hz"]), st.data())  # fmt: skip
def test_a_quantity_is_equal_in_every_typesetting_and_to_no_other_number_or_unit(value, word, data):
    setting = st.sampled_from(
        ["{} {}", r"{}\text{{ {}}}", r"{}\,\mathrm{{{}}}", r"{}~\mathrm{{{}}}", r"{}\ \text{{{}}}"]
    )
    text = data.draw(setting).format(value, word)
    assert compare(data.draw(setting).format(value, word), text).outcome == "equal"
    assert compare(data.draw(setting).format(value + 1, word), text).outcome != "equal"
    other = data.draw(
        st.sampled_from(["cm", "kg", "hours", "dollars", "MPa", "apples"]).filter(
            lambda one: one != word
        )
    )
    assert compare(data.draw(setting).format(value, other), text).outcome != "equal"
