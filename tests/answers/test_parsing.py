"""The parser: random trees are printed as LaTeX and parsed back; a table lists trees by hand."""

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rewardkit.answers.equal import compare
from rewardkit.answers.parsing.grammar import MAX_DEPTH, parse
from rewardkit.answers.parsing.tokens import UnreadableError, tokenize
from rewardkit.answers.parsing.tree import INF, PI, add, divide, fn, mul, multiply, neg, num
from rewardkit.answers.parsing.units import lookup_unit
from rewardkit.answers.scalar import UndefinedError, evaluate_double, exact_value
from tests.answers.latex_printer import (
    POINT,
    STYLES,
    close,
    expressions,
    latex,
    lenient,
    rationals,
    read,
    value,
)
from tests.tables import every

# --- printed trees are parsed back


@lenient
@given(rationals, STYLES)
def test_arithmetic_is_read_back_exactly(tree, style):
    expected = value(tree, Fraction)
    assume(max(abs(expected.numerator), expected.denominator).bit_length() < 1000)
    node = read(latex(tree, style))
    assert exact_value(node) == expected


@lenient
@given(expressions, STYLES)
def test_expressions_are_read_back_with_the_same_value(tree, style):
    try:
        expected = value(tree, lambda digits: complex(float(digits)))
    except OverflowError:
        assume(False)
    assume(1e-6 < abs(expected) < 1e9)
    text = latex(tree, style)
    point = {name.removeprefix("\\"): x for name, x in POINT.items()}
    try:
        assert close(evaluate_double(read(text), point), expected), text
    except UndefinedError:  # over a limit of the evaluator, on the way to a value that is not
        assume(False)


@lenient
@given(
    st.lists(rationals, min_size=2, max_size=5),
    st.sampled_from(["list", "tuple", "set", "row", "column", "closed", "half-open"]),
    STYLES,
)
def test_groups_are_read_back_with_their_kind_and_items(items, kind, style):
    expected = [value(item, Fraction) for item in items]
    texts = [latex(item, style) for item in items]
    spaced = style.choice([", ", " , "]).join
    pair = spaced(texts[:2])
    below = r"\\ ".join(texts)
    text = {
        "list": spaced(texts),
        "tuple": rf"\left({spaced(texts)}\right)",
        "set": rf"\{{{spaced(texts)}\}}",
        "row": rf"\begin{{pmatrix}}{'&'.join(texts)}\end{{pmatrix}}",
        "column": rf"\begin{{bmatrix}}{below}\end{{bmatrix}}",
        "closed": f"[{pair}]",
        "half-open": f"[{pair})",
    }[kind]
    node = read(text)
    if kind in ("row", "column"):
        assert node[0] == "matrix"
        cells = [cell for row in node[1:] for cell in row[1:]]
        assert len(node) - 1 == (1 if kind == "row" else len(items))
    elif kind in ("closed", "half-open"):
        assert (node[0], node[3:]) == ("interval", (False, kind == "half-open"))
        cells, expected = list(node[1:3]), expected[:2]
    else:
        assert node[0] == kind
        cells = list(node[1:])
    assert list(map(exact_value, cells)) == expected


# --- any text is a tree or UnreadableError

PIECES = [
    "0", "1", "12", "3.5", ".5", "1,234", "1e5", "x", "y", "ab", "abc", "f", "e", "i", "pi", "sin", "+",
    "-", "*", "/", "^", "_", "=", "<", ">", "<=", "!", "%", "'", ":", ",", ";", "(", ")", "[", "]", "{",
    "}", "|", "&", "$", "@", r"\{", r"\}", r"\|", r"\\", r"\,", r"\ ", r"\%", r"\frac", r"\sqrt", r"\sin",
    r"\log", r"\ln", r"\pi", r"\infty", r"\circ", r"\pm", r"\cup", r"\setminus", r"\in", r"\le", r"\ne",
    r"\approx", r"\mid", r"\overline", r"\text{ cm}", r"\text{and}", r"\text{or}", r"\text{", r"\mathbb{R}",
    r"\begin{pmatrix}", r"\end{pmatrix}", r"\begin", r"\end", r"\sum", r"\int", r"\lim", r"\binom", r"\left",
    r"\right", r"\lfloor", r"\rfloor", r"\lvert", r"\rvert", r"\boxed", r"\gcd", r"\det", r"\degree", r"\bar",
    r"\dot", r"\cdot", r"\times", r"\div", r"\dots", r"\forall", "万", "或", "和", "度", "无解", "°", "½", "√",
]  # fmt: skip


@given(st.text() | st.lists(st.sampled_from(PIECES), max_size=30).map("".join), st.booleans())
def test_any_text_is_read_or_is_unreadable(text, letters):
    try:
        tokens = tokenize(text)
        node = parse(tokens, letters_are_units=letters)
    except UnreadableError:
        return
    assert isinstance(node, tuple)
    assert isinstance(node[0], str)
    again = parse(tokens, letters_are_units=letters)
    assert hash(node) == hash(again), "reading leaves the tokens as they are"


# --- limits


def unreadable(text):
    with pytest.raises(UnreadableError):
        read(text)


@pytest.mark.parametrize(
    ("opening", "closing"),
    [("(", ")"), ("{", "}"), (r"\{", r"\}"), (r"\sqrt{", "}"), ("x^{", "}"), (r"\frac{1}{", "}"),
     (r"\sin(", ")"), ("f(", ")"), (r"\lfloor ", r"\rfloor "), ("-(", ")"), ("|(", ")|")],
)  # fmt: skip
def test_nesting_is_read_up_to_the_limit(opening, closing):
    def nested(depth):
        return opening * depth + "1" + closing * depth

    read(nested(MAX_DEPTH // 6 - 1))
    unreadable(nested(MAX_DEPTH))


@pytest.mark.parametrize("text", ["10^{3001}", "2^{10000}", "9^{9^{9}}", "(10^{300})^{300}"])
def test_an_exact_result_over_the_limit_is_not_computed(text):
    node = read(text)
    assert exact_value(node) is None
    with pytest.raises(UndefinedError):
        evaluate_double(node, {})


# --- texts and their trees, by hand

X, Y, E = ("sym", "x"), ("sym", "y"), ("const", "e")
CM, HOUR, MINUTE, DOLLAR = map(lookup_unit, ("cm", "hours", "minutes", "dollars"))


def measured(value, unit):
    return ("quantity", value, unit)


@every(
    ("text", "tree"),
    [
        # numbers
        ("5! = 120", ("rel", "=", fn("fact", num(5)), num(120))), ("x is 5", ("rel", "=", X, num(5))),
        ("6 1+2", None), ("6 1-2", None), ("5 million dollars", measured(num(5 * 10**6), DOLLAR)),
        ("5 deg", ("degree", num(5))), ("5 min", measured(num(5), MINUTE)), ("5 pct", ("percent", num(5))), ("deg", ("text", "deg")),
        (r"5\textdegree", ("degree", num(5))),
        (".5", num(Fraction(1, 2), 1)), ("1.", num(1)), ("1.50", num(Fraction(3, 2), 2)), ("1e5", num(10**5, -5)),
        ("1.5E3", num(1500, -2)), ("1.5e-3", num(Fraction(3, 2000), 4)), ("1e5x", None),
        (r"2.5\times10^{300}", num(25 * 10**299, -299)), (r"2.5\cdot 10^{-3}", num(Fraction(1, 400), 4)),
        (r"2 \cdot 10^2", num(200)), (r"0.\dot{3}", num(Fraction(1, 3))), (r"0.\bar{3}", num(Fraction(1, 3))), (r"0.1\overline{6}", num(Fraction(1, 6))),
        ("1,234,567", num(1234567)), ("(1,234)", num(1234)), ("1,23", ("list", num(1), num(23))),
        ("5万", num(50_000)), ("5万元", measured(num(50_000), lookup_unit("元"))), (r"\text{5}", num(5)), (r"\text{1,234}", num(1234)),
        # mixed numbers, and texts that only look like them
        ("6 1/64", num(Fraction(385, 64))), (r"2\frac12\%", ("percent", num(Fraction(5, 2)))),
        (r"-2\frac12", num(Fraction(-5, 2))), ("2 3/2", mul(num(2), num(Fraction(3, 2)))),
        (r"2\dfrac{1}{2}", num(Fraction(5, 2))), (r"2\frac{x}{2}", mul(num(2), divide(X, num(2)))),
        (r"x\frac12", mul(X, num(Fraction(1, 2)))), (r"2.5\frac12", mul(num(Fraction(5, 2), 1), num(Fraction(1, 2)))),
        (r"\frac12\frac12", mul(num(Fraction(1, 2)), num(Fraction(1, 2)))), (r"0\frac12", num(Fraction(1, 2))),
        # arguments without braces, and their signs
        (r"\frac12x", mul(num(Fraction(1, 2)), X)), (r"\cfrac 1 2", num(Fraction(1, 2))), ("x^-2", ("pow", X, num(-2))),
        (r"\sqrt2x", mul(fn("sqrt", num(2)), X)), (r"\sqrt 23", None),
        (r"\sqrt[3]2", fn("root", num(2), num(3))), (r"\sqrt[4]x", ("pow", X, num(Fraction(1, 4)))),
        (r"\sqrt[n]x", ("pow", X, divide(num(1), ("sym", "n")))), ("√2", fn("sqrt", num(2))), (r"\sqrt[2]x", fn("sqrt", X)),
        (r"\dbinom52", fn("binom", num(5), num(2))), (r"\tbinom{5}{2}", fn("binom", num(5), num(2))),
        (r"\log_28", divide(fn("ln", num(8)), fn("ln", num(2)))), ("x^10", ("pow", X, num(10))),
        # functions
        (r"\sin^-1 x", fn("arcsin", X)), (r"\ln^{-1} x", ("pow", fn("ln", X), num(-1))),
        (r"\sin^2 x", ("pow", fn("sin", X), num(2))), (r"\sin 2x\cos x", mul(fn("sin", mul(num(2), X)), fn("cos", X))),
        (r"\sin x/2", fn("sin", mul(X, ("pow", num(2), num(-1))))), (r"\sin x + 1", add(fn("sin", X), num(1))),
        (r"\sin(x)y", mul(fn("sin", X), Y)), (r"\ln 2\pi", fn("ln", mul(num(2), PI))), (r"\sin x^2", fn("sin", ("pow", X, num(2)))),
        (r"\sin{x}y", mul(fn("sin", X), Y)),
        ("T(10)", fn("T", num(10))), ("h(x)", fn("h", X)), ("h(2x)", fn("h", mul(num(2), X))),
        ("f(2x)", fn("f", mul(num(2), X))), ("g(x, y)", fn("g", X, Y)), ("f'(x)", fn("f'", X)), ("f''(2)", fn("f''", num(2))),
        ("x(y)", mul(X, Y)), ("f x", mul(("sym", "f"), X)), ("h(x", None), ("k(x)", mul(("sym", "k"), X)),
        # signs
        ("--2", num(2)), ("+-5", num(-5)), ("-2^2", neg(("pow", num(2), num(2)))), ("-x", mul(num(-1), X)),
        (r"\mp 2", ("pm", num(-2))), (r"1\pm 2", add(num(1), ("pm", num(2)))), ("- 5 cm", measured(num(-5), CM)),
        ("2*-x", mul(num(2), num(-1), X)), ("2/-4", num(Fraction(-1, 2))), ("x!", fn("fact", X)),
        # degrees, percent, subscripts, bases
        (r"5\degree", ("degree", num(5))), ("5^{\\circ}", ("degree", num(5))),
        ("5^\\degree", ("degree", num(5))), ("5%%", ("percent", ("percent", num(5)))), ("a_{12}", ("sym", "a_12")), ("x_1^2", ("pow", ("sym", "x_1"), num(2))),
        ("12_{(5)}", ("base", "12", 5)), ("12_5", ("base", "12", 5)), ("1.5_2", None), ("(1,2)_3", None), ("12_x", None), ("x^'", ("sym", "x'")), ("x^{''}", ("sym", "x''")),
        # brackets
        ("[1,2)", ("interval", num(1), num(2), False, True)), ("(1,2]", ("interval", num(1), num(2), True, False)),
        ("[1,2,3]", ("tuple", num(1), num(2), num(3))), ("]1,2]", ("interval", num(1), num(2), True, False)), ("(x)", X),
        ("{1, 2}", ("list", num(1), num(2))), (r"\{3\}", ("set", num(3))), ("((1)", None), ("(1", None), ("1)", None),
        ("|x||y|", mul(fn("abs", X), fn("abs", Y))), ("2|x|", mul(num(2), fn("abs", X))), ("|x", None), ("|(|x|)|", fn("abs", fn("abs", X))),
        *((rf"\{{x {bar} x<3\}}", ("builder", X, ("rel", "<", X, num(3)))) for bar in (r"\mid", r"\vert", "|", ":")),
        (r"\{1, 2\}, 6:4", ("list", ("set", num(1), num(2)), ("ratio", num(6), num(4)))),
        # lists, alternatives, sets, labels
        ("1,2,", ("list", num(1), num(2))), ("1;;2", ("list", num(1), num(2))), (",1", None), (r"A\setminus B", ("minus", ("sym", "A"), ("sym", "B"))),
        (r"A\backslash B", ("minus", ("sym", "A"), ("sym", "B"))), ("[0,1]-\\{1\\}", ("minus", ("interval", num(0), num(1), False, False), ("set", num(1)))),
        (r"\{1,2\}-\{1\}", ("minus", ("set", num(1), num(2)), ("set", num(1)))),
        (r"(1,2]-\{2\}-x", add(("interval", num(1), num(2), True, False), neg(("set", num(2))), neg(X))),
        ("Qing: 14", ("rel", "=", ("sym", "qing"), num(14))), (r"\text{Area}: 5", ("rel", "=", ("sym", "area"), num(5))), ("x:5", ("ratio", X, num(5))), ("= 5", num(5)), (r"\approx 5", num(5)), (r"\simeq 5", num(5)),
        ("1 < x <= 2", ("rel", "< <=", num(1), X, num(2))), (r"\text{a and}b", ("and", ("sym", "a"), ("sym", "b"))),
        # units
        (r"5\text{ cm}^2", measured(num(5), CM.power(2))), ("5 cm/s", measured(num(5), CM.multiply(lookup_unit("s"), -1))), ("5 cm^{2}", measured(num(5), CM.power(2))),
        ("3 hours 5 minutes", ("compound", measured(num(3), HOUR), measured(num(5), MINUTE))), (r"5\text{ cm 3}", None), (r"\pi\text{ cm}", measured(PI, CM)), ("2+3 cm", measured(add(num(2), num(3)), CM)),
        # sums, integrals and limits are not evaluated
        (r"\int_0^1 x", fn(r"\int", X, ("text", "0"), ("text", "1"))),
        # relations, congruences, bases, times, words
        ("x = 5", ("rel", "=", X, num(5))), ("x != 5", ("rel", "!=", X, num(5))),
        (r"x \notin S", ("rel", "notin", X, ("sym", "S"))), (r"3 \pmod 7", ("congruence", num(3), num(7))),
        (r"x \equiv 3 \pmod{7}", ("congruence", ("rel", "=", X, num(3)), num(7))), ("2:30 PM", ("clock", "2:30pm")), ("02:30", ("clock", "2:30")), ("25:30", ("ratio", num(25), num(30))),
        ("2020-01-02", ("text", "2020-01-02")), ("Monday", ("text", "monday")), ("New York, Rome", ("list", ("text", "new york"), ("text", "rome"))),
        ("no", ("text", "no")), ("xy", mul(X, Y)), ("infinitely many", INF),
        # grouped digits, and two items
        ("1,234", num(1234)), ("1, 234", ("list", num(1), num(234))), ("1,2345", ("list", num(1), num(2345))), ("1;2,3", ("list", num(1), num(2), num(3))), ("1,2;3,4", ("list", ("list", num(1), num(2)), ("list", num(3), num(4)))),
        # text that is not mathematics
        ("", None), ("@", None), ("a@b", None), ("&", None), (r"\unknown", None), ("2 3", None), (r"\frac{1}", None), ("1.5.2", None), ("cat 5", None),
    ],
)  # fmt: skip
def test_a_text_is_parsed_into_this_tree(text, tree):
    try:
        assert read(text) == tree
    except UnreadableError:
        assert tree is None


def test_groups_side_by_side_add_nothing_to_the_depth():
    deepest = "(" * 31 + "1" + ")" * 31
    for group in [*"(x) {x} x, -x, |x| x^{y} 5!, 2*-x,".split(), r"\{x\},", r"\sqrt{x}"]:
        read(group * 60 + deepest)
        unreadable(group * 60 + f"({deepest})")


def test_quotients_and_powers_of_ten_are_computed_up_to_4096_bits():
    ten = ("pow", num(10), num(2))
    assert divide(num(2**4092), num(1)) == num(2**4092)
    assert divide(num(2**4093), num(1))[0] == "mul"
    assert multiply(num(2**4094), ten) == num(2**4094 * 100)
    assert multiply(num(2**4095), ten)[0] == "mul"
    assert multiply(num(Fraction(3, 2), 1), ten) == num(150, -1)
    for base, exponent in ((num(11), num(2)), (num(10), num(Fraction(1, 2))), (num(10), num(301))):
        assert multiply(num(3), ("pow", base, exponent))[0] == "mul"


@pytest.mark.parametrize("text", ["1 & " * n + r"\begin{align} x &= 1" for n in (1, 5, 50)])
def test_an_alignment_sign_before_an_environment_does_not_move_its_end(text):
    """Signs that were removed before the position once moved it beyond the last token."""
    with pytest.raises(UnreadableError):
        parse(tokenize(text))
    assert compare(text, "12").outcome != "equal"
