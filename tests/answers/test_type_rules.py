r"""Equality of two values by the rule for their types: both verdicts of every pair."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rewardkit.answers.equal import compare, equal
from rewardkit.answers.scalar import STRICT
from rewardkit.answers.type_rules import _RULES, same_answer, states_several_values, value_type
from tests.answers.latex_printer import expressions as trees
from tests.answers.latex_printer import latex, lenient, read
from tests.answers.samples import SAMPLES, texts
from tests.tables import every

# --- every type, and every pair of types


@every(("kind", "text"), [(kind, text) for kind, group in SAMPLES.items() for text in group])
def test_a_text_is_read_into_this_type(kind, text):
    assert value_type(read(text)) == kind


def test_every_type_of_the_rules_has_samples():
    assert {kind for pair in _RULES for kind in pair} == set(SAMPLES)


@every("text", texts())
def test_a_value_of_any_type_is_the_same_as_itself(text):
    assert same_answer(read(text), read(text), STRICT)
    assert equal(f" {text} ", text)


@every(
    ("one", "other"), [(a, b) for group in SAMPLES.values() for a in group for b in group if a != b]
)
def test_two_samples_of_one_type_are_not_the_same(one, other):
    assert not same_answer(read(one), read(other), STRICT)


@every(
    ("one", "other"),
    [
        (a, b)
        for p in SAMPLES
        for q in SAMPLES
        if (p, q) not in _RULES
        for a in SAMPLES[p]
        for b in SAMPLES[q]
    ],
)
def test_types_without_a_rule_are_never_the_same(one, other):
    assert not equal(one, other)


CASES = r"\begin{cases}x & x > 0\\0 & x \le 0\end{cases}"
TURNED = r"\begin{cases}0 & x \le 0\\x & x > 0\end{cases}"
OTHER_CASES = r"\begin{cases}x & x \ge 0\\0 & x < 0\end{cases}"
ROW, COLUMN = r"\begin{pmatrix}1&2\end{pmatrix}", r"\begin{pmatrix}1\\2\end{pmatrix}"
TAIL = (r"(-\infty, 1) \cup (2, \infty)", r", k \in \mathbb{Z}")

#: For every two types with a rule: a pair that is one answer, and a pair that is not, either way round.
PAIRS = [
    ("value", "value", ("0.5", r"\frac12"), ("0.5", r"\frac13")), ("value", "list", ("5", "5,"), ("5", "5, 6")), ("value", "set", ("5", r"\{5\}"), ("5", r"\{5, 6\}")),
    ("value", "equation", ("5", "x = 5"), ("5", "x = 6")), ("value", "quantity", ("5", r"5\text{ cm}"), ("5", r"6\text{ cm}")), ("value", "ratio", ("0.75", "3:4"), ("0.7", "3:4")),
    ("value", "region", (r"\mathbb{R}", r"(-\infty, 1] \cup [1, \infty)"), ("5", "[5, 6]")),
    ("value", "relation", (r"\mathbb{R}", r"x \in \mathbb{R}"), ("5", "x > 5")), ("value", "where", ("2k", r"2k, k \in \mathbb{Z}"), ("2k", r"2k \text{ for } k > 5")),
    ("value", "tuple", ("M(0,-2)", "(0,-2)"), ("M(0,-2)", "(0,2)")),
    ("quantity", "quantity", ("5 cm", "5 centimeters"), ("5 cm", "5 mm")), ("quantity", "set", ("5 cm", r"\{5\text{ cm}\}"), ("5 cm", r"\{5\text{ mm}\}")), ("quantity", "list", ("5 cm", "5 cm,"), ("5 cm", "5 cm, 6 cm")),
    ("quantity", "equation", ("5 cm", r"x = 5\text{ cm}"), ("5 cm", r"x = 5\text{ mm}")), ("quantity", "where", ("5 cm", r"5\text{ cm for all }x"), ("5 cm", r"5\text{ cm for }x > 2")), ("quantity", "compound", None, ("5 feet", "5 feet 6 inches")),
    ("compound", "compound", ("5 feet 6 inches", r"5\text{ ft }6\text{ inches}"), ("5 feet 6 inches", "5 feet 7 inches")), ("compound", "equation", ("5 feet 6 inches", "h = 5 feet 6 inches"), ("5 feet 6 inches", "h = 5 feet 7 inches")),
    ("compound", "where", ("5 feet 6 inches", "5 feet 6 inches for all x"), ("5 feet 6 inches", "5 feet 7 inches for all x")),
    ("ratio", "ratio", ("4:6", "2:3"), ("3:2", "2:3")), ("ratio", "equation", ("2:3", "r = 2:3"), ("2:3", "r = 3:2")), ("ratio", "list", ("2:3", "2:3,"), ("2:3", "2:3, 3:4")), ("ratio", "set", None, ("2:3", r"\{3:2\}")),
    ("ratio", "where", ("2:3", r"2:3 \text{ for all } n"), ("2:3", r"2:3 \text{ for } n > 5")),
    ("clock", "clock", ("2:30 PM", "02:30 pm"), ("2:30 PM", "2:30 AM")), ("clock", "equation", None, ("2:30", "x = 2:31")), ("clock", "where", None, ("2:30", "2:31 for all n")),
    ("text", "text", ("Monday", "monday."), ("Monday", "Tuesday")), ("text", "equation", ("Monday", r"\text{day} = \text{Monday}"), ("Monday", r"\text{day} = \text{Tuesday}")), ("text", "list", ("Monday", "Monday,"), ("Monday", "Monday, Tuesday")),
    ("text", "set", ("Monday", r"\{\text{Monday}\}"), ("Monday", r"\{\text{Tuesday}\}")), ("text", "where", None, ("Monday", "Tuesday for all n")),
    ("equation", "equation", ("2x - y + 1 = 0", "y = 2x + 1"), ("y = 2x", "y = 2x + 1")), ("equation", "tuple", ("(x,y)=(1,2)", "(1,2)"), ("(x,y)=(1,2)", "(2,1)")), ("equation", "set", (r"x = \{1, 2\}", r"\{2, 1\}"), (r"x = \{1, 2\}", r"\{1\}")),
    ("equation", "list", ("x = 5", "x = 5,"), ("x = 5", "5, 6")), ("equation", "matrix", (f"A = {ROW}", ROW), (f"A = {ROW}", COLUMN)), ("equation", "region", ("S = (1, 2]", "(1, 2]"), ("S = (1, 2]", "[1, 2]")),
    ("equation", "cases", (f"f(x) = {CASES}", TURNED), (f"f(x) = {CASES}", OTHER_CASES)), ("equation", "where", ("x = 2k", r"x = 2k, k \in \mathbb{Z}"), ("x = 2k", r"x = 3k, k \in \mathbb{Z}")),
    ("relation", "relation", ("5 < x", "x > 5"), ("x < 5", "x > 5")), ("relation", "set", (r"x \in \{1, 2\}", r"\{2, 1\}"), (r"x \in \{1, 2\}", r"\{1\}")), ("relation", "list", ("1 < x < 2", "x > 1, x < 2"), ("x > 1", "x > 1, x < 2")),
    ("relation", "tuple", ("1 < x < 2", "(1, 2)"), ("1 < x < 2", "(2, 1)")), ("relation", "region", (r"1 < x \le 2", "(1, 2]"), ("1 < x < 2", "(1, 2]")), ("relation", "where", ("x > 1", "x > 1 for all x"), ("x > 2", "x > 1 for all x")),
    ("list", "list", ("2, 1", "1, 2"), ("1, 1", "1, 2")), ("list", "set", ("2, 1", r"\{1, 2\}"), ("2, 3", r"\{1, 2\}")), ("list", "tuple", ("1, 2", "(1, 2)"), ("2, 1", "(1, 2)")), ("list", "matrix", (f"{ROW},", ROW), ("1, 2", ROW)),
    ("list", "region", ("x < 1 or x > 2", TAIL[0]), ("x < 1 or x > 3", TAIL[0])), ("list", "where", ("2k, 3k", "2k, 3k" + TAIL[1]), ("2k", "2k, 3k" + TAIL[1])),
    ("set", "set", (r"\{2, 1\}", r"\{1, 2\}"), (r"\{1, 3\}", r"\{1, 2\}")), ("set", "tuple", (r"\{(1, 2)\}", "(1, 2)"), (r"\{1, 2\}", "(1, 2)")), ("set", "region", (r"\{5\}", "[5, 5]"), (r"\{1, 2\}", "[1, 2]")),
    ("set", "where", (r"\{1\}", r"\{1\} \text{ for all } n"), (r"\{2\}", r"\{1\} \text{ for all } n")),
    ("tuple", "tuple", ("(0.5, 2)", r"(\frac12, 2)"), ("(2, 1)", "(1, 2)")), ("tuple", "region", ("(1, 2)", r"\{x \mid 1 < x < 2\}"), ("(1, 2)", "(1, 2]")), ("tuple", "matrix", ("(1, 2)", COLUMN), ("(2, 1)", COLUMN)),
    ("tuple", "where", ("(k, 2k)", "(k, 2k)" + TAIL[1]), ("(k, k)", "(k, 2k)" + TAIL[1])), ("region", "region", (r"(0, 1] \cup [1, 2)", "(0, 1.5] \\cup [1, 2)"), ("(0, 1]", "[0, 1]")),
    ("region", "where", (r"[0, 1]", r"[0, 1] \text{ for all } n"), (r"[0, 2]", r"[0, 1] \text{ for all } n")), ("matrix", "matrix", (r"\begin{bmatrix}1&2\end{bmatrix}", ROW), (COLUMN, ROW)), ("matrix", "where", (ROW, rf"{ROW} \text{{ for all }} n"), (COLUMN, rf"{ROW} \text{{ for all }} n")),
    ("cases", "cases", (CASES, TURNED), (CASES, OTHER_CASES)), ("cases", "where", (CASES, rf"{CASES} \text{{ for all }} n"), (OTHER_CASES, rf"{CASES} \text{{ for all }} n")),
    ("congruence", "congruence", (r"x \equiv 10 \pmod 7", r"x \equiv 3 \pmod 7"), (r"x \equiv 4 \pmod 7", r"x \equiv 3 \pmod 7")), ("where", "where", (r"2n, n \in \mathbb{Z}", r"2k, k \in \mathbb{Z}"), (r"2k \text{ for } k > 5", r"2k \text{ for } k < 5")),
]  # fmt: skip


@every(("one", "other", "right", "wrong"), PAIRS, ids=lambda one, other, *_: f"{one}, {other}")
def test_a_pair_of_types_has_answers_that_are_right_and_answers_that_are_not(
    one, other, right, wrong
):
    assert (one, other) in _RULES
    assert not equal(*wrong)
    assert not equal(*reversed(wrong))
    if right:
        assert equal(*right)
        assert equal(*reversed(right))


def test_every_rule_has_a_pair():
    tested = {frozenset(pair[:2]) for pair in PAIRS}
    assert {frozenset(pair) for pair in _RULES} == tested


# --- expressions: rewrites that keep their value


def alike(one, other):
    """Whether two texts have one value, simplified or not."""
    return same_answer(read(one), read(other), STRICT)


ATOMS = st.integers(1, 20).map(str) | st.sampled_from(["x", "y", "a", r"\pi ", r"\sqrt{2}"])


def expressions(max_leaves=5):
    """Strategy of LaTeX of expressions that are real for real names."""

    def over(inner):
        pairs = st.tuples(inner, inner)
        return st.one_of(
            pairs.map(lambda p: f"({p[0]} + {p[1]})"),
            pairs.map(lambda p: f"({p[0]} - ({p[1]}))"),
            pairs.map(lambda p: rf"{p[0]} \cdot {p[1]}"),
            pairs.map(lambda p: rf"\frac{{{p[0]}}}{{1 + ({p[1]})^2}}"),
            inner.map(lambda t: rf"\sin({t})"),
            inner.map(lambda t: rf"\sqrt{{1 + ({t})^2}}"),
            inner.map(lambda t: rf"\cos({t})"),
        )

    return st.recursive(ATOMS, over, max_leaves=max_leaves)


REWRITES = {
    "add and subtract": lambda t, u: rf"({t}) + \sin({u}) - \sin({u})",
    "multiply by n/n": lambda t, u: rf"\frac{{7 \cdot ({t})}}{{7}}",
    "turn the sign twice": lambda t, u: f"-(-({t}))",
    "split in halves": lambda t, u: rf"\frac{{1}}{{2}}({t}) + 0.5 \cdot ({t})",
    "one as sine and cosine": lambda t, u: rf"({t}) \cdot (\sin^2 ({u}) + \cos^2 ({u}))",
    "one as a quotient": lambda t, u: rf"({t}) \cdot \frac{{1 + ({u})^2}}{{1 + ({u})^2}}",
    "as a power": lambda t, u: f"(({t})^{{-1}})^{{-1}} + 0",
    "as a label's value": lambda t, u: f"w = {t}",
}  # fmt: skip
IDENTITIES = {
    "addition commutes": lambda t, u: (f"({t}) + ({u})", f"({u}) + ({t})"),
    "multiplication commutes": lambda t, u: (rf"({t}) \cdot ({u})", rf"({u}) \cdot ({t})"),
    "a square expands": lambda t, u: (f"(({t}) + ({u}))^2", rf"({t})^2 + 2 \cdot ({t}) \cdot ({u}) + ({u})^2"),
    "a difference of squares": lambda t, u: (rf"(\sin({t}))^2 - (\sin({u}))^2", rf"(\sin({t}) - \sin({u})) \cdot (\sin({t}) + \sin({u}))"),
    "a product distributes": lambda t, u: (rf"3 \cdot (({t}) + ({u}))", rf"3 \cdot ({t}) + 3 \cdot ({u})"),
    "a root is a power": lambda t, u: (rf"\sqrt{{1 + ({t})^2}}", rf"(1 + ({t})^2)^{{1/2}}"),
    "the double angle": lambda t, u: (rf"\sin(2({t}))", rf"2\sin({t})\cos({t})"),
    "exponents add": lambda t, u: (rf"e^{{\sin({t})}} \cdot e^{{\cos({u})}}", rf"e^{{\sin({t}) + \cos({u})}}"),
}  # fmt: skip


def may_vanish(text):
    """Whether a division by the text could divide by zero."""
    return text.strip() in ("0", "-0") or alike(text, "0")


# --- changes that keep an answer the same


@pytest.mark.parametrize("rewrite", REWRITES.values(), ids=REWRITES)
@given(tree=expressions(), other=expressions(3))
@lenient
def test_a_rewritten_expression_stays_alike(rewrite, tree, other):
    assume(not may_vanish(tree))
    assert alike(rewrite(tree, other), tree)
    assert alike(tree, rewrite(tree, other))


@pytest.mark.parametrize("pair", IDENTITIES.values(), ids=IDENTITIES)
@given(tree=expressions(4), other=expressions(3))
@lenient
def test_the_two_sides_of_an_identity_are_alike(pair, tree, other):
    left, right = pair(tree, other)
    assert alike(left, right)
    assert alike(right, left)


# --- changes that make it a different answer


@lenient
@given(expressions(), st.integers(1, 9))
def test_an_expression_plus_a_number_is_different(tree, number):
    for changed in (f"({tree}) + {number}", f"({tree}) - {number}"):
        assert not alike(changed, tree)
        assert not alike(tree, changed)


@lenient
@given(expressions(), st.integers(2, 9))
def test_a_multiple_of_an_expression_is_different(tree, number):
    assume(not may_vanish(tree))
    for changed in (rf"{number} \cdot ({tree})", f"-({tree})", rf"\frac{{{tree}}}{{{number}}}"):
        assert not alike(changed, tree)
        assert not alike(tree, changed)


@given(st.integers(-99, 99), st.integers(-99, 99), st.sampled_from([",", " or ", " and ", "; "]))
def test_a_right_answer_beside_a_wrong_one_is_not_right(right, wrong, joint):
    assume(right != wrong)
    assert not equal(f"{right}{joint} {wrong}", str(right))
    assert not equal(f"{wrong}{joint} {right}", str(right))


# --- labels, equations, vectors and matrices, by hand and from both sides

SAME = [
    ("(f(1),g(1))=(1,2)", "(f(1),g(1))=(1,2.0)"), ("y=(-x)!", "2y=2(-x)!"), (r"x=\int_0^1 2 = 2", "2"),
    (r"x \in \{1,2\}", "1,2"), ("(x,y)=(1,2)", "x=1,y=2"), ("(x,y)=(1,2)", "y=2,x=1"), ("x>y", "y<x"),
    ("x=5, y=6", "(5,6)"), ("x=5,x=6", "5,6"), ("x=5 or x=6", "5,6"), ("x=5,x=6", "6,5"), ("21, 16 or 11", "11,16,21"),
    ("21, 16 or 11", r"\{11,16,21\}"), (r"\{(1,2),(3,4)\}", "(3,4),(1,2)"), ("(1)", "1"), (r"\{x=1\}", "1"),
    ("(1,2)", r"\begin{pmatrix}1&2\end{pmatrix}"),
    (r"\begin{pmatrix}1\\2\end{pmatrix}+\begin{pmatrix}3\\4\end{pmatrix}", r"\begin{pmatrix}4\\6\end{pmatrix}"),
    (r"2x\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}2x\\4x\end{pmatrix}"),
    (r"-\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}-1\\-2\end{pmatrix}"), (r"\pm 2, 3", "2,-2,3"),
    (r"\{\pm 2\}", "2,-2"), (r"\pm 0", "0"), (r"(\pm 2)", "2,-2"), (r"x=\pm 2", "x=2 or x=-2"),
    (r"x=\pm\sqrt2", r"\sqrt2,-\sqrt2"), (r"(\pm1, 2)", "(1,2),(-1,2)"), (r"\pm1\pm2", "3,-3"), (r"\pm1\mp2", "1,-1"),
    (r"-\pm 2", r"\pm 2"), ("5=x", "5"), ("x=a", "a"), ("y=5", "value=5"), ("value=5", "y=5"), (r"x\approx 5.0", "5.0"),
    (r"x=\pi\approx3.14", r"\pi"), (r"\pi\approx 3.14", r"\pi"), (r"3.14\approx x", "3.14"), (r"x=\frac12=0.5", "0.5"),
    ("f(2)=4", "f(2)=4.0"), ("f(2)=4", "4"), ("x^2=4", "x^2-4=0"), ("x=y", "y=x"), ("x=2y", "y=x/2"), ("a<b", "b>a"),
    ("a<b<c", "c>b>a"), (r"a \le b", r"b\ge a"), ("a=b=c", "a=b=c"), (r"x \ne y", r"y\ne x"), ("x=1,y=2", "(1,2)"),
    ("1,2", "x=1,y=2"), ("y=2,x=1", "x=1,y=2"), ("x=1,x=2", "1,2"), ("area=1,y=2", "(1,2)"), ("2,1", "x=1,x=2"),
    (r"\{1\},\{2\}", r"\{2\},\{1\}"), (r"A \cup B", r"B\cup A"), (r"A\setminus B", r"A \setminus B"),
    ("1,2,2", "2,1,2"), (r"\sin(x)^2", r"\sin^2 x"),
    (r"\sqrt{a}\sqrt{b}", r"\sqrt{ab}"), (r"\sin x + x^4 - x^4", r"\sin x"), (r"\sqrt{10^{17}+1}", "(10^{17}+1)^{1/2}"),
]  # fmt: skip
OTHER = [
    ("(f(1),g(1))=(1,2)", "(f(2),g(2))=(1,2)"), ("y=3(-x)!", "2y=2(-x)!"), ("x=5", "[5,5]"), ("(x,1)=(1,1)", "x=1"),
    ("(x,y)=(1,2,3)", "x=1,y=2"), ("(1,2),(3,4)", "(1,2),(4,3)"), (r"\begin{pmatrix}1\\2\end{pmatrix}", "(2,1)"),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", "(1,2,3)"), (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "(1,2,3,4)"),
    (r"\begin{pmatrix}1&2\\3\end{pmatrix}", r"\begin{pmatrix}1&2\\3&4\end{pmatrix}"),
    (r"\begin{pmatrix}1&2\end{pmatrix}", r"\begin{pmatrix}1&2\\3&4\end{pmatrix}"),
    (r"\begin{pmatrix}1\\2\end{pmatrix}+\begin{pmatrix}3\end{pmatrix}", r"\begin{pmatrix}4\\2\end{pmatrix}"),
    (r"\begin{pmatrix}1&2\end{pmatrix}\begin{pmatrix}1&2\end{pmatrix}", "(1,4)"), ("2+3=6", "6"), ("x=x", "x"),
    ("x=x+1", "x+1"), ("value=5", "total=5"), ("x_1=5", "x_2=5"), (r"x=\frac12=0.6", "0.6"), ("f(x)=x^2", "f(2)=4"),
    ("f(2)=4", "f(3)=4"), ("g(x)=x", "f(x)=x"), ("f(a,a)=a", "f(x,y)=x"), ("f(x,y)=x-y", "f(x)=x-y"),
    ("(a,b)=(1,2)", "(x,y)=(1,2)"), ("(x,y)=(1,2)", "(y,x)=(1,2)"), ("2x-y+1=0", "2x+1"), ("x^2+y^2=1", "x^2+y^2=2"),
    ("0=0", "x=x"), ("x-x=0", "x=0"), ("x=0", "2x=0"), ("xy=1", "y=1/x"), ("x^2=y^2", "x=y"), ("x=y=z", "z=y=x"),
    ("2x=10", "x=5"), ("a<b", "a>b"), (r"a<b \le c", r"a \le b<c"), ("a<b<c", "a<b"), (r"x \ne y", "x=y"),
    ("1,1,2", "1,2,2"), ("2,1", "x=1,y=2"), ("y=2,x=1", "(1,2)"), ("f(1)=1,f(2)=2", "2,1"), ("[1,2]", "(1,2)"),
    ("(1,2)", "[1,2]"), ("[1,2]", "[1,2)"), ("1,2", "1"), ("1", "1,2"), (r"\pm2", "2"),
    (r"A\setminus B", r"B\setminus A"), ("x=3", "x=3, y=4"), ("1,2,2", "1,1,2"), ("3.15", r"\pi \approx 3.14"),
    (r"\pi \approx 3.2", r"\pi"), (r"\pi r^2", r"\pi n^2"), (r"\begin{pmatrix}\end{pmatrix}", "1"),
    (r"A \subset B", r"B \subset A"), (r"\angle ABC", r"\angle ACB"), ("ABC", "CAB"), (r"p \land q", r"p \lor q"),
    (r"x \in 5", "5"),
]  # fmt: skip


@every(("one", "other"), SAME)
def test_the_same_answer_in_another_structure_is_equal(one, other):
    assert equal(one, other)
    assert equal(other, one)


@every(("one", "other"), OTHER)
def test_a_different_answer_in_a_similar_structure_is_not_equal(one, other):
    assert not equal(one, other)
    assert not equal(other, one)


@every(
    ("one", "other", "same"),
    [
        (r"b<a<d", r"b, a, d", True),
        (r"d>a>b", r"b<a<d", True),
        (r"d>a>b", r"b, a, d", False),
        (r"b<a<d", r"(b, a, d)", True),
        (r"b \le a<d", r"b, a, d", False),
        (r"b<a<d", r"a, b, d", False),
        (r"b<a", r"b, a", False),
        (r"\frac12<0.6<\frac34", r"0.5, 0.6, 0.75", True),
        (r"p<q<r", r"p, q", False),
        (r"B>A>C", r"B, A, C", True),
        (r"丙<乙<甲", r"甲>乙>丙", True),
        (r"甲>乙>丙", r"甲，乙，丙", True),
        (r"甲>丙>乙", r"甲，乙，丙", False),
        (r"a<b>c", r"a, b, c", False),
        (r"u=3 and v=4", r"(3,4)", True),
        (r"u=3 or v=4", r"(3,4)", False),
        (r"u=3, u=4", r"(3,4)", False),
        (r"3 and 4", r"(3,4)", False),
        (r"3和4", r"(3,4)", False),
        (r"3或4", r"(3,4)", False),
        (r"3 or 4", r"3, 4", True),
        (r"u_1=3, u_2=4", r"u=3, u=4", True),
        (r"u_1=3, u_2=4", r"u_1=4, u_2=3", False),
        (r"\lambda=3, 4", r"\lambda_1=4, \lambda_2=3", True),
        (r"x=3 \text{ or } y=4", r"x=3, y=4", False),
        (r"\alpha=5", r"x=5", False),
        (r"\text{angle}=5", r"x=5", True),
        (r"\mu=5", r"\sigma=5", False),
        (r"r=1+\cos\theta", r"\rho=1+\cos\theta", True),
        (r"r=5", r"\rho=5", False),
        (r"y=2x-1 \text{ or } x=3", r"x=3 \text{ or } 2x-y-1=0", True),
        (r"y=2x-1 \text{ or } x=4", r"x=3 \text{ or } 2x-y-1=0", False),
    ],
)  # fmt: skip
def test_labels_joints_and_order_signs_say_how_a_list_is_read(one, other, same):
    assert equal(one, other) is same
    assert equal(other, one) is same


@every(
    ("one", "other", "same"),
    [
        (r"(a) 3, (b) 4", r"3, 4", True),
        (r"(a) 3 (b) 4", r"(a) 3; (b) 4", True),
        (r"(b) 4, (a) 3", r"3, 4", True),
        (r"(a) 4, (b) 3", r"3, 4", False),
        (r"4, 3", r"(a) 3, (b) 4", False),
        (r"(1) x=3; (2) y=4", r"x=3, y=4", True),
        (r"（1）3（2）4", r"(1) 3, (2) 4", True),
        (r"(i) 3 (ii) 4", r"(a) 3 (b) 4", True),
        (r"(a) 3, (b) 4", r"3", False),
        (r"(a) 3, (c) 4", r"3, 4", False),
        (r"(a) 3, (b) 4, (c) 5", r"(a) 3, (b) 4", False),
        (r"(a)(b)", r"ab", True),
        (r"(a+b)(c)", r"ac+bc", True),
        (r"②④", r"②和④", True),
        (r"②④", r"(2)(4)", True),
        (r"②④", r"2, 4", True),
        (r"②④", r"2和4", True),
        (r"②④", r"24", False),
        (r"②④", r"2, 3", False),
        (r"②④", r"②③④", False),
        (r"②或④", r"②④", False),
        (r"(2)(4)", r"8", False),
        (r"(2)(4)", r"2, 4", True),
        (r"③", r"3", True),
        (r"(3)", r"3", True),
        (r"③", r"2", False),
        (r"(1) 3; (2) 4", r"3, 4", True),
        (r"（1）3（2）4", r"3, 4", True),
        (r"\frac{d^2f}{dx^2}=3", r"f''(x)=3", True),
        (r"\frac{d^2y}{dx^2}=3", r"y'=3", False),
        (r"\frac{\partial u}{\partial t}=3", r"u_x=3", False),
        (r"\nabla f=(y,x)", r"(y,x)", True),
        (r"\nabla f=(y,x)", r"(x,y)", False),
        (r"\nabla f=(y,x)", r"\nabla g=(y,x)", False),
        (r"\nabla\cdot F=3", r"3", True),
        (r"E(X)=3", r"E[X]=3", True),
        (r"E(X)=3", r"E(Y)=3", False),
        (r"x-4=0", r"x=4", True),
        (r"x+4=0", r"x=4", False),
        (r"x-4=0", r"4", False),
        (r"2x-8=0", r"x=4", False),
        (r"x+1=5", r"x=4", False),
    ],
)  # fmt: skip
def test_marks_of_parts_and_statements_and_labels_are_read_from_either_side(one, other, same):
    assert equal(one, other) is same
    assert equal(other, one) is same


@every(
    ("answer", "gold", "right"),
    [
        ("p+q=7", "7", True), ("p+q=3+4=7", "7", True), ("pq=6", "6", True), (r"\frac{p}{q}=6", "6", True), ("10p+q=73", "73", True), ("p+q=3+4=8", "8", False), ("p+q=7", "8", False), ("p+q=7", "p=7", False),
        ("7", "p+q=7", False), ("2p=7", "7", False), ("p^2=7", "7", False), ("x+y=7", "7", False), ("p+q=2r", "2r", False), ("④②", "②④", True), ("②④", "④②", False),
    ],
)  # fmt: skip
def test_an_answer_may_name_the_combination_or_the_statements_that_are_asked_for(
    answer, gold, right
):
    assert equal(answer, gold) is right


@every(
    ("question", "right"),
    [("What is $p+q$?", True), ("Find p + q.", True), ("Two numbers $p$ and $q$ are prime. What is $p$?", False), ("What is $pq$?", False)],
)  # fmt: skip
def test_the_combination_must_be_the_one_that_the_question_asks_for(question, right):
    assert (compare("p + q = 7", "7", question).outcome == "equal") is right


@pytest.mark.parametrize(("factors", "outcome"), [(2, "equal"), (3, "equal"), (4, "different")])
def test_up_to_three_matrices_are_multiplied(factors, outcome):
    shear = r"\begin{pmatrix}1&1\\0&1\end{pmatrix}"
    product = rf"\begin{{pmatrix}}1&{factors}\\0&1\end{{pmatrix}}"
    assert alike(shear * factors, product) is (outcome == "equal")


@pytest.mark.parametrize(("items", "outcome"), [(60, "equal"), (61, "different")])
def test_sixty_items_are_compared_in_any_order_and_longer_lists_in_order(items, outcome):
    numbers = [str(n) for n in range(items)]
    assert compare(",".join(numbers), ",".join(reversed(numbers))).outcome == outcome
    assert compare(",".join(numbers), ", ".join(numbers)).outcome == "equal"


@every(
    ("text", "expected"),
    [("5", False), ("(1, 2)", False), ("1, 2", True), (r"1 \text{ or } 2", True), (r"\{1\}", True), (r"\pm 2", True), (r"x = \pm 2", True), ("[1, 2]", False), ("x = 5", False)],
)  # fmt: skip
def test_lists_sets_and_both_signs_are_several_values(text, expected):
    assert states_several_values(read(text)) is expected


# --- any two values

values = st.sampled_from(texts()) | st.builds(latex, trees, st.randoms(use_true_random=False))
shells = st.sampled_from(["{}, {}", r"\{{ {}, {} \}}", "({}, {})", "[{}, {}]", "{} = {}", "{} < {}", "{}:{}", r"{} \pm {}", r"\frac{{ {} }}{{ {} }}", r"{} \cup {}", r"{} \pmod{{ {} }}", r"{} \text{{ for }} {}", r"{} \in {}", r"\begin{{pmatrix}} {} & {} \end{{pmatrix}}"])  # fmt: skip
nested = st.recursive(
    values, lambda inner: st.builds(str.format, shells, inner, inner), max_leaves=4
)


@given(nested, nested)
def test_comparing_any_two_values_gives_a_verdict(one, other):
    for pair in ((one, other), (other, one)):
        assert compare(*pair).outcome in ("equal", "different", "ambiguous", "unreadable")


@lenient
@given(nested)
def test_any_value_is_equal_to_itself(text):
    assert equal(text, text)
    assert equal(f"{text} ", text)
    assert equal(rf"\displaystyle {text}", text)
