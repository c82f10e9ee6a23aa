r"""Equations: the value of a label or a chain, agreement of labels, and equality of equations."""

from fractions import Fraction

from hypothesis import assume, given
from hypothesis import strategies as st

from rewardkit.answers.equal import equal
from rewardkit.answers.relations import are_proportional, equation_value, solution_of
from rewardkit.answers.scalar import STRICT
from tests.answers.latex_printer import read
from tests.tables import every


@every(
    ("text", "value"),
    [
        # labels: a name, a function's value, a length, an angle, a part
        ("x = 5", "5"), ("5 = x", "5"), ("f(x) = x^2", "x^2"), ("f(2) = 4", "4"), ("P(A) = 0.5", "0.5"), ("AB = 5", "5"), ("|AB| = 5", "5"), (r"\overline{AB} = 5", "5"), (r"\angle ABC = 30^\circ", r"30^\circ"),
        (r"\frac{dy}{dx} = 2x", "2x"), ("f'(x) = 2x", "2x"), ("f^{-1}(x) = x - 1", "x-1"), ("a_n = 2n", "2n"), ("x_1 = 5", "5"), (r"\text{Area} = 5", "5"), ("the area is 5", "5"), ("Volume: 5", "5"), ("答案是5", "5"), (r"\vec{v} = (1, 2)", "(1,2)"),
        (r"\hat{y} = 2", "2"), ("V = abc", "abc"), (r"\sin A = \frac12", r"\frac12"), ("(x, y) = (1, 2)", "(1,2)"), ("a:b:c = 1:2:3", "1:2:3"), (r"\alpha = 5", "5"), ("y = 2x + 1", "2x+1"),
        # chains, whose value is the last one
        ("V = 4 + 5 = 9", "9"), ("x = y = 5", "5"), ("2 + 3 = 5", "5"), (r"\int_0^1 2 = 2", "2"), (r"\lim_{x \to 0} x = 0", "0"), (r"x = \frac12 = 0.5", "0.5"), ("12 \\cdot 13 = 156", "156"), (r"x = \sqrt{4} = 2", "2"),
        (r"x = 5 \text{ cm}", r"5\text{ cm}"), (r"x \approx 3.14", "3.14"), (r"x = \pi \approx 3.14", r"\pi"),
        # unsolved equations, and chains that contradict themselves
        ("x + 1 = 6", None), ("2x = 10", None), ("x^2 = 25", None), ("a + b = 5", None), ("x = x", None), ("x = x + 1", None), ("1 + 1 = 3", None), ("x = 2 + 3 = 6", None), (r"x = \frac12 = 0.6", None), (r"x = \pi \approx 4", None), ("x^2 + y^2 = 1", None),
        ("3x = 2y", None), ("x = 5 = 6", None),
    ],
)  # fmt: skip
def test_an_equation_has_this_value(text, value):
    answer = solution_of(read(text), STRICT)
    if value is None:
        assert answer is None
        assert equation_value(read(text), STRICT) == read(text)
    else:
        assert answer.value == read(value)
        assert equation_value(read(text), STRICT) == read(value)


# --- equations up to a factor

coefficient = st.integers(-9, 9)


@given(coefficient, coefficient, coefficient, st.integers(-9, 9).filter(bool))
def test_a_line_is_the_same_line_at_any_scale_and_from_either_side(a, b, c, factor):
    assume(a and b)
    line = f"({a})x + ({b})y = {c}"
    scaled = f"({a * factor})x + ({b * factor})y = {c * factor}"
    moved = f"({a})x + ({b})y - ({c}) = 0"
    turned = f"{c} = ({a})x + ({b})y"
    for other in (scaled, moved, turned):
        assert are_proportional(read(other), read(line))
        assert equal(other, line)
    for p, q, r in ((a, b, c + 1), (a + 10, b, c), (a, -b, c)):
        other = f"({p})x + ({q})y = {r}"
        assert not are_proportional(read(other), read(line))
        assert not equal(other, line)


@every(
    ("one", "other"),
    [("0 = 0", "x = x"), ("x - x = 0", "x = 0"), ("x^2 = y^2", "x = y"), ("xy = 1", r"y = \frac1x"), ("x = y", "x = z"), ("2 = 3", "4 = 6"), ("x = y = z", "2x = 2y = 2z"), ("x + y = 1", "x + y = x"), ("x^2 = 4", "x = 2")],
)  # fmt: skip
def test_equations_that_differ_by_more_than_a_factor_are_different(one, other):
    assert not are_proportional(read(one), read(other))
    assert not are_proportional(read(other), read(one))


# --- in the comparison


@every(
    ("answer", "gold", "right"),
    [
        ("x = 5", "5", True), ("5", "x = 5", True), ("y = 5", "x = 5", False), ("x = 6", "5", False), ("x + 1 = 6", "5", False), ("x + 1 = 6", "x = 5", False), ("2x = 10", "x = 5", False), ("x^2 = 25", r"x = \pm 5", False),
        ("f(t) = t^2", "f(x) = x^2", True), ("f(y, x) = x - y", "f(x, y) = x - y", False), ("f(a) = a", "g(a) = a", False), (r"V = \frac43 \pi r^3 = 36\pi", r"36\pi", True), ("2 + 3 = 6", "6", False), ("5 = 6", "6", False),
        ("x = 5, y = 6", "(5, 6)", True), ("y = 6, x = 5", "(5, 6)", False), ("y = 6, x = 5", "x = 5, y = 6", True), ("(y, x) = (6, 5)", "x = 5, y = 6", True), ("(y, x) = (5, 6)", "x = 5, y = 6", False),
        ("x = 5 or x = 6", r"\{5, 6\}", True), ("x = 5", r"x \ne 5", False), ("x < 5", "x = 5", False), (r"\vec{a} = (1, 2)", "(1, 2)", True), ("area = 5", r"\text{volume} = 5", False), ("f'(x) = 2x", "f(x) = 2x", False),
(r"x = 12 \cdot 13", "156", False), (r"x = 12 \cdot 13 = 156", "156", True), ("x = 5 m", r"x = 5\text{ cm}", False), ("x_1 = 5", "x_2 = 5", False), ("x = 2y", r"y = \frac{x}{2}", True),
        ("AB = 5", "BA = 5", True), ("f(m) = 2m", "f(n) = 2n", True), ("f(2) = 4", "f(n) = 2n", False), ("f(x,y) = x-y", "f(y,x) = y-x", True),
        ("y is 5", "5", True), ("y is 5", "x = 5", False), ("y is 5", "y = 5", True), ("the area is 5", "A = 5", True), ("the value of y is 5", "y = 5", True),
    ],
)  # fmt: skip
def test_a_label_may_be_omitted_and_a_different_one_contradicts(answer, gold, right):
    assert equal(answer, gold) is right


@given(
    st.integers(-99, 99), st.integers(-99, 99), st.sampled_from("xyzabn"), st.sampled_from("xyzabn")
)
def test_labelled_numbers_are_equal_only_with_one_label_and_one_value(one, other, name, another):
    assert equal(f"{name} = {one}", f"{another} = {other}") == (one == other and name == another)
    assert equal(f"{name} = {one}", str(other)) == (one == other)
    assert equal(str(one), f"{name} = {other}") == (one == other)


@every(
    ("answer", "gold", "right"),
    [
        (r"\frac17\approx 0.143", r"\frac17", True),
        (r"\frac17\approx 0.14", r"\frac17", True),
        (r"\frac17\approx 0.142", r"\frac17", False),
        (r"\frac17\approx 0.15", r"\frac17", False),
        (r"\frac{17}{3}\approx 6", r"\frac{17}{3}", True),
        (r"\frac{17}{3}\approx 5", r"\frac{17}{3}", False),
        (r"\frac{1}{300}\approx 0", r"\frac{1}{300}", False),
        (r"\frac{12345}{7}\approx 1800", r"\frac{12345}{7}", True),
        (r"\frac{12345}{7}\approx 1700", r"\frac{12345}{7}", False),
        (r"\frac17\approx 14.3\%", r"\frac17", True),
        (r"\frac17\approx 14.2\%", r"\frac17", False),
        (r"\frac17\approx 14.3\%", r"14.3\%", True),
        (r"\frac17\approx 0.143", r"14.3\%", True),
        (r"\sqrt{7} (\approx 2.65)", r"\sqrt{7}", True),
        (r"\sqrt{7} (\approx 2.64)", r"\sqrt{7}", False),
        (r"\sqrt{7}, or about 2.65", r"\sqrt{7}", True),
        (r"\sqrt{7} or roughly 2.646", r"\sqrt{7}", True),
        (r"\sqrt{7} or roughly 2.7", r"\sqrt{7}", False),
        (r"\sqrt{7} or roughly 2.6", r"\sqrt{7}", True),
        (r"\sqrt{7}（约2.65）", r"\sqrt{7}", True),
        (r"\sqrt{7}，约为2.65", r"\sqrt{7}", True),
        (r"\sqrt{7}\text{ cm }(\approx 2.65\text{ cm})", r"\sqrt{7}\text{ cm}", True),
        (r"x=\sqrt{7} (\approx 2.65)", r"\sqrt{7}", True),
        (r"\arctan 2\approx 63.4^\circ", r"\arctan 2", True), (r"\arctan 2\approx 63.5^\circ", r"\arctan 2", False), (r"\arctan 2\approx 1.11", r"\arctan 2", True),
        (r"12 or about 13", r"12", False),
        (r"12 or about 13", r"13", False),
        (r"5, about 6", r"5", False),
        (r"\sqrt{7} or 2.65", r"\sqrt{7}", False),
        (r"\pi\approx\frac{22}{7}", r"\pi", False),
        (r"\sqrt{7}\approx 2.65", r"2.65", True),
        (r"\sqrt{7}\approx 2.65", r"2.6458", True),
        (r"2.65 (about)", r"\sqrt7", False),
        (r"7(about 3)", r"21", False),
    ],
)  # fmt: skip
def test_a_rounding_beside_its_value_must_be_right_to_the_digits_shown(answer, gold, right):
    assert equal(answer, gold) is right


@given(st.integers(1, 10**6), st.integers(2, 10**4), st.integers(1, 5))
def test_only_the_nearest_decimal_is_a_rounding(top, bottom, places):
    nearest = round(Fraction(top, bottom), places)
    assume(nearest and Fraction(top, bottom).denominator > 10**places)
    for step, right in ((0, True), (1, False), (-1, False)):
        shown = nearest + Fraction(step, 10**places)
        assume(2 * abs(Fraction(top, bottom) - shown) != Fraction(1, 10**places))
        text = rf"\frac{{{top}}}{{{bottom}}} \approx {float(shown):.{places}f}"
        assert (solution_of(read(text), STRICT) is not None) is (right and shown != 0)
