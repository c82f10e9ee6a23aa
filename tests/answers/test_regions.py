"""Sets of reals: intervals, unions, inequalities, set-builders and points become intervals."""

from hypothesis import given
from hypothesis import strategies as st

from rewardkit.answers.equal import equal
from tests.tables import every

SAME_SET = [
    ("2x<10", "x<5"), ("10>2x", "x<5"), (r"-x \le 5", r"x \ge -5"), ("5<x", "x>5"), (r"5 \le x", r"x \ge 5"), ("3!=x", "x!=3"),
    (r"\{5\}", "[5,5]"), (r"(1,2)\cup[2,3]", "(1,3]"), (r"(1,2]\cup(2,3)", "(1,3)"), (r"[1,2]\cup[1,3]", "[1,3]"),
    (r"[1,5]\cup[2,3]", "[1,5]"), (r"(1,3)\cup[1,3]", "[1,3]"), (r"(1,3]\cup(2,3)", "(1,3]"), (r"(1,3)\cup(2,3]", "(1,3]"),
    (r"(1,3)\cup(2,3)", "(1,3)"), (r"\{1\}\cup(1,2)", "[1,2)"), (r"[1,2]\cup\{5\}", r"\{5\}\cup[1,2]"),
    (r"[0,3]\setminus\{1\}", r"[0,1)\cup(1,3]"), (r"[0,3]\setminus\{0\}", "(0,3]"), (r"[0,3]\setminus\{3\}", "[0,3)"),
    (r"[0,3]\setminus\{5\}", "[0,3]"), (r"[0,3]\setminus\{-1\}", "[0,3]"), (r"[0,3]\setminus\{0,3\}", "(0,3)"), (r"\{1,2\}\setminus\{1\}", r"\{2\}"),
    (r"(0,3)\setminus\{0\}", "(0,3)"), (r"\mathbb{R}\setminus\{1,2\}", r"(-\infty,1)\cup(1,2)\cup(2,\infty)"),
    ("x>3 or x<1", r"(-\infty,1)\cup(3,\infty)"), ("x!=3", r"(-\infty,3)\cup(3,\infty)"), (r"x \ge a", r"[a,\infty)"), (r"x \le a", r"(-\infty,a]"),
    ("1<x<2", "2>x>1"), (r"1 \le x<2", "[1,2)"), (r"1<x \le 2", r"2 \ge x>1"), (r"1<x \le y", "(1,y]"), (r"x \in [1,2]", "[1,2]"),
    (r"\{x\mid 1<x<2\}", "(1,2)"), (r"\mathbb{R}", r"(-\infty,\infty)"), (r"x \in \mathbb{R}", r"\mathbb{R}"), (r"(\sqrt2,2)", "(2^{1/2},2)"),
    (r"(1,2)\cup(\pi,4)", r"(\pi,4)\cup(1,2)"),
]  # fmt: skip
OTHER_SET = [
    ("x>a", r"x \ge a"), ("(a,b)", "(a,b]"), ("(a,b)", "(a,d)"), (r"(-\infty,1)", r"(1,-\infty)"), (r"(-\infty,1)", r"(\infty,1)"), (r"(1,\infty)", r"(1,-\infty)"),
    (r"(-\infty,\infty)", r"(\infty,-\infty)"), (r"[0,3]\setminus[1,2]", "[0,1)"), (r"[0,3]\setminus(1,2)", "[0,1]"), ("1<x>2", "(1,2)"), ("1<x>2", "(2,1)"),
    ("x+1>2", "x>1"), ("0x<5", "x<5"), ("-x<5", "x<-5"), ("2x<10", "x>5"), ("2x<10", "x<10"), (r"(1,2)\cup(2,3)", "(1,3)"), (r"[0,3]\setminus\{1\}", "[0,3]"),
    (r"[0,3]\setminus\{0\}", "[0,3)"), ("x!=3", "x=3"), ("x>3 or x<1", "(1,3)"), ("(1,2,3)", "(1,3)"), (r"\{1,2\}", "[1,2]"), ("x<3", "3<x"), (r"x \le 3", "x<3"),
    (r"1 \le x<2", "(1,2)"), (r"1 \le x<2", r"1<x \le 2"), (r"(1,2)\cup(3,4)", r"(1,2)\cup(3,5)"), (r"(1,2)\cup(3,4)", r"(1,2)\cup[3,4)"), (r"\{x\mid x<2\}", r"\{x\mid x<3\}"),
    ("y>x", "x>y"), ("1<2x<4", "1<x<4"), (r"\mathbb{R}", "R+1"), (r"\mathbb{Q}", r"(-\infty,\infty)"), (r"(1,2)\cup(i,4)", "(1,4)"), ("5>x>1", "5<x<1"),
    ("x+y>2", "(0,1)"), (r"x^2 < 4", "(-4,4)"), (r"\{x \in \mathbb{Z} : x > 3\}", r"(3,\infty)"), (r"\{x \in \mathbb{N} \mid x < 3\}", r"(-\infty,3)"),
]  # fmt: skip


@every(("one", "other"), SAME_SET)
def test_the_same_set_of_reals_is_equal_in_every_notation(one, other):
    assert equal(one, other)
    assert equal(other, one)


@every(("one", "other"), OTHER_SET)
def test_a_different_set_of_reals_is_not_equal(one, other):
    assert not equal(one, other)
    assert not equal(other, one)


ends = st.lists(st.integers(-50, 50), min_size=2, max_size=8, unique=True).map(sorted)
brackets = st.lists(st.sampled_from(["()", "[]", "(]", "[)"]), min_size=8, max_size=8)


def intervals(points, kinds):
    pairs = zip(points[::2], points[1::2], strict=False)
    return [
        f"{kind[0]}{low}, {high}{kind[1]}" for (low, high), kind in zip(pairs, kinds, strict=False)
    ]


@given(ends, brackets, st.randoms(use_true_random=False))
def test_the_parts_of_a_union_have_no_order_and_every_end_counts(points, kinds, shuffler):
    parts = intervals(points, kinds)
    union = r" \cup ".join(parts)
    assert equal(r" \cup ".join(shuffler.sample(parts, len(parts))), union)
    turned = {"(": "[", "[": "(", ")": "]", "]": ")"}
    place = shuffler.randrange(len(parts))
    first = [*parts]
    first[place] = turned[first[place][0]] + first[place][1:]
    last = [*parts]
    last[place] = last[place][:-1] + turned[last[place][-1]]
    for changed in (first, last, parts[1:], [*parts, "(200, 201)"]):
        if changed:
            assert not equal(r" \cup ".join(changed), union)


@given(ends, brackets)
def test_a_union_is_its_inequalities(points, kinds):
    parts = intervals(points, kinds)
    signs = {"(": "<", "[": r"\le", ")": "<", "]": r"\le"}
    pairs = zip(points[::2], points[1::2], strict=False)
    said = [
        f"{low} {signs[kind[0]]} x {signs[kind[1]]} {high}"
        for (low, high), kind in zip(pairs, kinds, strict=False)
    ]
    assert equal(r" \text{ or } ".join(said), r" \cup ".join(parts))
    assert equal(r" \cup ".join(parts), r" \text{ or } ".join(said))


@given(ends, brackets, st.integers(-60, 60))
def test_a_removed_point_is_missing(points, kinds, point):
    parts = intervals(points, kinds)
    union = r" \cup ".join(parts)
    without = rf"{f'({union})' if len(parts) > 1 else union} \setminus \{{{point}\}}"
    inside = any(
        low < point < high
        or (point == low and kind[0] == "[")
        or (point == high and kind[1] == "]")
        for low, high, kind in zip(points[::2], points[1::2], kinds, strict=False)
    )
    assert equal(without, union) is not inside
