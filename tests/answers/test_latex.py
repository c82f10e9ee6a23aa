"""Random trees are printed as LaTeX, in any of its styles, and read back with the same value."""

import cmath
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from rewardkit.answers.evaluate import UndefinedError, exact, numeric
from rewardkit.answers.latex.grammar import parse
from rewardkit.answers.latex.reader import MAX_DEPTH
from rewardkit.answers.latex.tokens import MAX_CHARS, MAX_DIGITS, MAX_TOKENS, UnreadableError
from rewardkit.answers.normalize import clean

STYLES = st.randoms(use_true_random=False)
POINT = {"x": 0.71, "y": 1.37, "z": 2.23, r"\alpha": 0.53, "a_1": 1.9}
BINARY = ("add", "sub", "mul", "div")
CONSTANTS = {"pi": cmath.pi, "e": cmath.e}
FUNCTIONS = {
    "sin": cmath.sin, "cos": cmath.cos, "tan": cmath.tan, "exp": cmath.exp, "ln": cmath.log,
    "arctan": cmath.atan, "sinh": cmath.sinh, "sqrt": cmath.sqrt, "abs": abs,
    "cube": lambda v: v ** (1 / 3),
}  # fmt: skip
lenient = settings(suppress_health_check=[HealthCheck.filter_too_much])


def numbers():
    whole = st.integers(0, 999).map(lambda n: ("num", str(n)))
    decimal = st.decimals(0, 99, places=2).map(lambda d: ("num", f"{d:f}"))
    return whole | decimal


def trees(*, leaves, functions=(), max_leaves=10):
    """Expressions as tuples: a kind, and what it stands over."""

    def over(inner):
        kinds = [
            st.tuples(st.sampled_from(BINARY), inner, inner),
            st.tuples(st.just("neg"), inner),
            st.tuples(st.just("pow"), inner, st.integers(-3, 3)),
        ]
        if functions:
            kinds.append(st.tuples(st.just("fn"), st.sampled_from(sorted(functions)), inner))
        return st.one_of(kinds)

    return st.recursive(leaves, over, max_leaves=max_leaves)


rationals = trees(leaves=numbers())
expressions = trees(
    leaves=numbers()
    | st.sampled_from([("sym", name) for name in POINT])
    | st.sampled_from([("const", name) for name in CONSTANTS]),
    functions=FUNCTIONS,
)


def value(tree, enter):
    """The value of a tree by Python's own arithmetic: what the reader is compared with."""
    kind, *parts = tree
    if kind == "num":
        return enter(parts[0])
    if kind in ("sym", "const"):
        return complex({**POINT, **CONSTANTS}[parts[0]])
    if kind == "neg":
        return -value(parts[0], enter)
    if kind == "pow":
        base = value(parts[0], enter)
        assume(abs(base) > 1e-3)
        return base ** parts[1]
    if kind == "fn":
        inside = value(parts[1], enter)
        assume(abs(inside) < 50)
        if parts[0] in ("ln", "sqrt", "cube"):  # off the cut, where the sign of 0j decides
            assume(abs(inside.imag) < 1e-12 and inside.real > 1e-3)
        return complex(FUNCTIONS[parts[0]](inside))
    left, right = value(parts[0], enter), value(parts[1], enter)
    if kind == "div":
        assume(abs(right) > 1e-3)
        return left / right
    return {"add": left + right, "sub": left - right, "mul": left * right}[kind]


# --- the printer: `level` is 0 where a sum may stand, 1 for a product, 2 for a factor, 3 for a base


def latex(tree, style, level=0):
    """A tree as LaTeX, in a style that is drawn anew at every node."""
    text, own = PRINTERS[tree[0]](tree, style)
    return bracketed(text, style) if own < level else text


def bracketed(text, style):
    return style.choice(["({})", r"\left({}\right)", "( {} )", r"\bigl({}\bigr)"]).format(text)


def print_number(tree, style):
    return tree[1], 3


def print_symbol(tree, style):
    return style.choice([tree[1], tree[1].replace("_1", "_{1}")]), 3


def print_constant(tree, style):
    return {"pi": r"\pi", "e": "e"}[tree[1]] + " ", 3


def print_sum(tree, style):
    sign = style.choice(["{}", " {} ", " {}"]).format({"add": "+", "sub": "-"}[tree[0]])
    return latex(tree[1], style, 0) + sign + latex(tree[2], style, 1), 0


def print_negative(tree, style):
    return "-" + style.choice(["", " "]) + latex(tree[1], style, 1), 0


def print_product(tree, style):
    left, right = latex(tree[1], style, 1), latex(tree[2], style, 2)
    beside = right[0].isalpha() or right.startswith((r"\pi", r"\sqrt", r"\sin", r"\alpha", "("))
    signs = [r" \cdot ", r"\times ", "*", r" \, \cdot \, "] + [" "] * 3 * beside
    return left + style.choice(signs) + right, 1


def print_quotient(tree, style):
    form = style.choice(["/", r" \div ", "frac", "dfrac", "tfrac"])
    if not form.endswith("frac"):
        return latex(tree[1], style, 1) + form + latex(tree[2], style, 2), 1
    top, bottom = latex(tree[1], style), latex(tree[2], style)
    return rf"\{form}{style.choice(['', ' '])}{{{top}}}{{{bottom}}}", 2


def print_power(tree, style):
    exponent = str(tree[2])
    bare = len(exponent) == 1 and style.random() < 0.5
    return latex(tree[1], style, 3) + "^" + (exponent if bare else f"{{{exponent}}}"), 2


def print_function(tree, style):
    name, inside = tree[1], latex(tree[2], style)
    if name == "sqrt":
        return rf"\sqrt{{{inside}}}", 2
    if name == "cube":
        return rf"\sqrt[3]{{{inside}}}", 2
    if name == "abs":
        return style.choice(["|{}|", r"\left|{}\right|", r"\lvert {} \rvert"]).format(inside), 2
    return rf"\{name}" + style.choice(["({})", r"\left({}\right)", "{{{}}}"]).format(inside), 2


PRINTERS = {
    "num": print_number, "sym": print_symbol, "const": print_constant, "add": print_sum,
    "sub": print_sum, "neg": print_negative, "mul": print_product, "div": print_quotient,
    "pow": print_power, "fn": print_function,
}  # fmt: skip


def read(text):
    return parse(clean(text))


def close(a, b):
    return abs(a - b) <= 1e-7 * max(1, abs(a), abs(b))


# --- what is printed is read back


@lenient
@given(rationals, STYLES)
def test_arithmetic_is_read_back_exactly(tree, style):
    expected = value(tree, Fraction)
    assume(max(abs(expected.numerator), expected.denominator).bit_length() < 1000)
    node = read(latex(tree, style))
    assert exact(node) == expected


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
        assert close(numeric(read(text), point), expected), text
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
    assert list(map(exact, cells)) == expected


@lenient
@given(rationals, STYLES, st.sampled_from([r"\%", "%", r"^\circ", r"^{\circ}", r"\text{ cm}"]))
def test_a_sign_behind_a_value_is_kept_with_it(tree, style, sign):
    text = bracketed(latex(tree, style), style) + sign
    node = read(text)
    assert node[0] == ("percent" if "%" in sign else "degree" if "circ" in sign else "unit")
    assert exact(node[1]) == value(tree, Fraction)


RELATIONS = {"<": "<", ">": ">", r"\le ": "<=", r"\geq ": ">=", "=": "=", r"\ne ": "!="}


@lenient
@given(
    st.lists(rationals, min_size=2, max_size=4),
    STYLES,
    st.lists(st.sampled_from(sorted(RELATIONS)), min_size=3, max_size=3),
)
def test_chains_of_relations_are_read_back_side_by_side(sides, style, signs):
    text = latex(sides[0], style)
    for sign, side in zip(signs, sides[1:], strict=False):
        text += sign + latex(side, style)
    node = read(text)
    assert node[:2] == ("rel", tuple(RELATIONS[sign] for sign in signs[: len(sides) - 1]))
    assert [exact(side) for side in node[2:]] == [value(side, Fraction) for side in sides]


@given(st.integers(1, 99), st.integers(1, 99), st.integers(1, 99), STYLES)
def test_mixed_numbers_are_sums(whole, top, bottom, style):
    assume(top < bottom)
    form = style.choice([r"{}\frac{{{}}}{{{}}}", r"{} \dfrac{{{}}}{{{}}}", "{} {}/{}"])
    assert exact(read(form.format(whole, top, bottom))) == whole + Fraction(top, bottom)


@given(st.integers(0, 99), st.text("0123456789", max_size=4), st.text("0123456789", min_size=1))
def test_repeating_decimals_are_exact(whole, places, period):
    assume(len(period) < 20)
    got = exact(read(rf"{whole}.{places}\overline{{{period}}}"))
    shift = 10 ** len(places)
    expected = Fraction(int(f"{whole}{places}"), shift)
    assert got == expected + Fraction(int(period), (10 ** len(period) - 1) * shift)


@given(st.integers(0, 10**12))
def test_grouped_digits_are_one_number_or_a_list_as_is_asked(number):
    grouped = f"{number:,}"
    assert exact(parse(grouped)) == number
    if number >= 1000:
        items = parse(grouped, commas_group=False)
        assert items[0] == "list"
        assert [int(item[1]) for item in items[1:]] == [int(part) for part in grouped.split(",")]


# --- whatever the text is, it is a tree or UnreadableError

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


def reads_or_says_so(text, *, commas_group):
    try:
        node = parse(text, commas_group=commas_group)
    except UnreadableError:
        return
    assert isinstance(node, tuple)
    assert isinstance(node[0], str)
    hash(node)


@given(st.text(), st.booleans())
def test_any_text_is_read_or_is_unreadable(text, commas_group):
    reads_or_says_so(text, commas_group=commas_group)
    reads_or_says_so(clean(text), commas_group=commas_group)


@settings(max_examples=500)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), st.booleans())
def test_any_text_of_latex_pieces_is_read_or_is_unreadable(text, commas_group):
    reads_or_says_so(text, commas_group=commas_group)
    reads_or_says_so(clean(text), commas_group=commas_group)


@given(st.sampled_from(PIECES), st.sampled_from(PIECES), st.sampled_from(["", "1", "x"]))
def test_short_texts_of_latex_pieces_are_read_or_are_unreadable(one, two, end):
    for text in (one, one + end, one + two, one + two + end, end + one + two):
        reads_or_says_so(clean(text), commas_group=True)


# --- limits


def unreadable(text):
    with pytest.raises(UnreadableError):
        parse(text)


def test_a_text_over_the_limit_of_characters_is_not_read():
    assert parse("1" + " " * (MAX_CHARS - 1)) == parse("1")
    unreadable("1" + " " * MAX_CHARS)


def test_a_text_over_the_limit_of_tokens_is_not_read():
    assert exact(parse("+".join(["1"] * (MAX_TOKENS // 2)))) == MAX_TOKENS // 2
    unreadable("+".join(["1"] * (MAX_TOKENS // 2 + 1)))


def test_a_number_over_the_limit_of_digits_is_not_read():
    assert exact(parse("7" * MAX_DIGITS)) == int("7" * MAX_DIGITS)
    unreadable("7" * (MAX_DIGITS + 1))
    unreadable("0." + "7" * MAX_DIGITS)


@pytest.mark.parametrize(
    ("opening", "closing"),
    [("(", ")"), ("{", "}"), (r"\{", r"\}"), (r"\sqrt{", "}"), ("x^{", "}"), (r"\frac{1}{", "}"),
     (r"\sin(", ")"), ("f(", ")"), (r"\lfloor ", r"\rfloor "), ("-(", ")"), ("|(", ")|")],
)  # fmt: skip
def test_nesting_is_read_up_to_the_limit(opening, closing):
    def nested(depth):
        return opening * depth + "1" + closing * depth

    parse(nested(MAX_DEPTH // 6 - 1))
    unreadable(nested(MAX_DEPTH))


@pytest.mark.parametrize("text", ["1e301", "1e-301", "1e9999"])
def test_a_power_of_ten_over_the_limit_is_not_read(text):
    unreadable(text)


@pytest.mark.parametrize("text", ["10^{3001}", "2^{10000}", "9^{9^{9}}", "(10^{300})^{300}"])
def test_an_exact_result_over_the_limit_is_not_worked_out(text):
    node = parse(text)
    assert exact(node) is None
    with pytest.raises(UndefinedError):
        numeric(node, {})


def test_deeper_nesting_never_takes_more_than_the_limit():
    """What is read grows with the depth until it is refused, and stays refused."""
    read_at = []
    for depth in range(1, 60):
        try:
            parse("(" * depth + "1" + ")" * depth)
        except UnreadableError:
            read_at.append(False)
        else:
            read_at.append(True)
    assert all(before or not after for before, after in pairwise(read_at))
