r"""Families of solutions: neither the name nor the start of a parameter counts."""

from hypothesis import given
from hypothesis import strategies as st

from rewardkit.answers.equal import compare, equal
from rewardkit.answers.families import have_same_members
from tests.answers.latex_printer import read
from tests.tables import every


@every(
    ("answer", "gold", "right"),
    [
        (r"2n\pi", r"2k\pi", True), (r"2\pi m", r"2k\pi", True), (r"x = 2\pi n", r"2k\pi", True), (r"x = 2\pi n", r"x = 2k\pi", True), (r"3n\pi", r"2k\pi", False), (r"2\pi", r"2k\pi", False), (r"k\pi", r"2k\pi", False),
        (r"\frac{\pi}{4} + n\pi", r"\frac{\pi}{4} + k\pi", True), (r"\frac{5\pi}{4} + n\pi", r"\frac{\pi}{4} + k\pi", True), (r"-\frac{3\pi}{4} + k\pi", r"\frac{\pi}{4} + k\pi", True), (r"\frac{\pi}{4} - k\pi", r"\frac{\pi}{4} + k\pi", True),
        (r"\frac{\pi}{3} + n\pi", r"\frac{\pi}{4} + k\pi", False), (r"\frac{5\pi}{4} + 2n\pi", r"\frac{\pi}{4} + 2k\pi", False), (r"\frac{\pi}{4} + 2k\pi", r"\frac{\pi}{4} + k\pi", False),
        (r"30^\circ + 360^\circ n", r"30^\circ + 360^\circ k", True), (r"390^\circ + 360^\circ n", r"30^\circ + 360^\circ k", True), (r"30^\circ + 180^\circ n", r"30^\circ + 360^\circ k", False),
        ("x^2 + k", "x^2 + C", True), ("x^2 + c", "x^2 + C", True), ("x^2", "x^2 + C", False), ("x^2 + 5", "x^2 + C", False), ("x^3 + C", "x^2 + C", False), ("y^2 + C", "x^2 + C", False),
        ("A e^x + B e^{-x}", "C_1 e^x + C_2 e^{-x}", True), ("A e^{-x} + B e^x", "C_1 e^x + C_2 e^{-x}", True), ("A e^x + A e^{-x}", "C_1 e^x + C_2 e^{-x}", False), ("C_1 e^x + C_2 e^{2x}", "C_1 e^x + C_2 e^{-x}", False),
        (r"2n, n \in \mathbb{Z}", r"2k, k \in \mathbb{Z}", True), (r"3n, n \in \mathbb{Z}", r"2k, k \in \mathbb{Z}", False), (r"2n + 2, n \in \mathbb{Z}", r"2k, k \in \mathbb{Z}", True), (r"2n + 1, n \in \mathbb{Z}", r"2k, k \in \mathbb{Z}", False),
        (r"x = 1 + 3k, k \in \mathbb{Z}", r"[1,2] \pmod{4}", False), ("2n", "2k", False), ("n", "k", False), (r"x = n\pi, n \in \mathbb{N}", r"x = k\pi", False), (r"a_n = 2n - 1, n \in \mathbb{N}", "a_n = 2n - 1", True), (r"x = \frac{\pi}{4} + n\pi \text{ for all integers } n", r"x = \frac{\pi}{4} + k\pi", True),
    ],
)  # fmt: skip
def test_families_are_the_same_if_their_values_are_the_same(answer, gold, right):
    assert equal(answer, gold) is right


turns = st.integers(-6, 6)
steps = st.integers(1, 6)


@given(turns, steps, turns, st.sampled_from("kn"), st.sampled_from("ml"))
def test_a_family_may_start_at_any_of_its_values(start, step, moved, name, other):
    gold = rf"\frac{{{start}\pi}}{{12}} + {step}{name}\pi"
    for sign in "+-":
        same = rf"\frac{{{start + 12 * step * moved}\pi}}{{12}} {sign} {step}{other}\pi"
        assert equal(same, gold)
    assert not equal(rf"\frac{{{start + 12 * step * moved + 1}\pi}}{{12}} + {step}{other}\pi", gold)
    assert not equal(rf"\frac{{{start}\pi}}{{12}} + {step + 1}{other}\pi", gold)


@given(st.integers(-9, 9), st.integers(1, 9), st.integers(-9, 9), st.integers(1, 9))
def test_two_families_are_the_same_exactly_if_their_values_are_the_same(a, b, c, d):
    one, two = read(f"({a}) + {b}k"), read(f"({c}) + {d}k")
    values = [{p + q * k for k in range(-40, 41)} for p, q in ((a, b), (c, d))]
    near = [{value for value in each if abs(value) < 20} for each in values]
    assert have_same_members(one, two, {"k"}) is (near[0] == near[1])


@given(
    st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 4)), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 4)), min_size=1, max_size=3),
)
def test_lists_of_families_are_the_same_exactly_if_their_members_are_the_same(one, other):
    texts = [", ".join(f"{a} + {b}k" for a, b in each) for each in (one, other)]
    members = [
        {a + b * k for a, b in each for k in range(-40, 41) if abs(a + b * k) < 20}
        for each in (one, other)
    ]
    assert have_same_members(*map(read, texts), {"k"}) is (members[0] == members[1])


@every(
    ("answer", "gold", "right"),
    [
        # a list of families, with a label at every item or at the first, and with other names
        (r"x = \frac{\pi}{8} + k\pi, \frac{3\pi}{8} + k\pi", r"x = \frac{\pi}{8} + n\pi \text{ or } x = \frac{3\pi}{8} + n\pi", True), (r"x = k\pi \text{ or } x = 2n\pi + \frac{\pi}{3}", r"x = n\pi \text{ or } x = 2k\pi + \frac{\pi}{3}", True),
        (r"x = k\pi, x = 1", r"x = k\pi", False), (r"x = k\pi", r"x = k\pi, x = 1", False), (r"x = k\pi, y = k\pi", r"x = k\pi", False),
        # periods
        (r"x = k\pi, x = \frac{\pi}{2} + k\pi", r"x = \frac{k\pi}{2}", True), (r"x = k\pi, x = \frac{\pi}{2} + 2k\pi", r"x = \frac{k\pi}{2}", False), (r"180^\circ k", r"360^\circ k, 180^\circ + 360^\circ k", True), (r"k\pi, \sqrt{2} k\pi", r"k\pi", False),
        (r"6k + 1, 6k + 4, k \in \mathbb{Z}", r"3m + 1, m \in \mathbb{Z}", True), (r"6k + 1, 6k + 3, k \in \mathbb{Z}", r"3m + 1, m \in \mathbb{Z}", False), (r"6k \pm 1, k \in \mathbb{Z}", r"6m + 1, 6m + 5 \text{ for integers } m", True),
        # intervals and what is left out
        (r"[2k\pi, 2k\pi + \pi]", r"(2k\pi, 2k\pi + \pi)", False), (r"(2k\pi, 2k\pi + 2\pi)", r"(k\pi, k\pi + \pi)", False),
        (r"(2k\pi, 2k\pi + \pi) \cup (2k\pi + \pi, 2k\pi + 2\pi)", r"(k\pi, k\pi + \pi)", True), (r"x \ne 2k\pi", r"x \ne k\pi", False), (r"x \ne k\pi", r"x = k\pi", False),
        # sets by a condition
        (r"\{4n + 1 \mid n \in \mathbb{Z}\}", r"\{x \mid x = 4k - 3, k \in \mathbb{Z}\}", True), (r"\{4n + 1 \mid n \in \mathbb{Z}\}", r"\{4k - 1 : k \in \mathbb{Z}\}", False), (r"\{2^k : k \in N\}", r"\{2^n : n \in N\}", True), (r"\{k^2 : k \in N\}", r"\{2^n : n \in N\}", False),
        (r"\{(a, b) \mid b = a^2\}", r"\{(x, y) \mid y = x^2\}", True), (r"\{(a, b) \mid a = b^2\}", r"\{(x, y) \mid y = x^2\}", False), (r"\{t \in \mathbb{Q} \mid t < 4\}", r"\{x \in \mathbb{Q} \mid x < 4\}", True), (r"\{t \in \mathbb{Q} \mid t < 4\}", r"\{x \in \mathbb{R} \mid x < 4\}", False),
        (r"\{x \mid x = k\pi \text{ or } x = 2k\pi + \frac{\pi}{5}, k \in \mathbb{Z}\}", r"x = n\pi \text{ or } x = 2n\pi + \frac{\pi}{5}", True), (r"\{x : x = \frac{\pi}{5} + k\pi\}", r"x = \frac{\pi}{5} + n\pi", True),
        (r"\{x \in \mathbb{N} \mid x \equiv 4 \pmod 5\}", r"x \equiv 4 \pmod 5", False), (r"\{x \mid x = 1 \text{ or } x = 2\}", r"\{1, 2\}", True), (r"\{x \mid x = 1 \text{ or } x = 2\}", r"\{1, 3\}", False),
        (r"x = (-1)^k \frac{\pi}{6} + k\pi", r"x = \frac{\pi}{6} + 2k\pi, x = \frac{5\pi}{6} + 2k\pi", True), (r"x = (-1)^k \frac{\pi}{6} + k\pi", r"x = \frac{\pi}{6} + 2k\pi, x = \frac{7\pi}{6} + 2k\pi", False), (r"k^2 \pi", r"k\pi", False), (r"x = k\pi + \frac{\pi}{4} (k为整数)", r"x = n\pi + \frac{\pi}{4}", True),
        # congruences
        (r"x \equiv 1, 2 \pmod 4", r"x \equiv 1 \pmod 2", False), (r"x \equiv -4 \pmod 7", r"x \equiv 3 \pmod 7", True), (r"x \equiv 3 \pmod 7", r"y \equiv 3 \pmod 7", False), (r"x \equiv 10^{60} \pmod 7", r"x \equiv 10^{60} + 1 \pmod 7", False),
        (r"x = 7k - 4", r"x \equiv 3 \pmod 7", True), (r"x = 7k + 4", r"x \equiv 3 \pmod 7", False), (r"x = 7k + 3, k \in \mathbb{N}", r"x \equiv 3 \pmod 7", False),
    ],
)  # fmt: skip
def test_families_with_the_same_members_are_the_same_in_any_form(answer, gold, right):
    assert equal(answer, gold) is right
    assert equal(gold, answer) is right


@every(("answer", "gold"), [(r"\frac{1}{k}\pi", r"\frac{2}{k}\pi"), (r"2^k\pi", r"3^k\pi"), ("(a, b)", "(a, c)"), ("mb^2", "mc^2"), ("2b", "2c"), ("5x", "5C"), ("a^2 + b^2", "a^2 + c^2"), (r"\frac{ab}{2}", r"\frac{ac}{2}")])  # fmt: skip
def test_a_letter_of_a_formula_is_not_a_constant_of_integration(answer, gold):
    assert not equal(answer, gold)


@every(
    ("answer", "gold", "question"),
    [
        (r"2\pi r", r"2\pi n", "a circle of radius $r$"), (r"2n\pi", r"2k\pi", "Let $k$ be an integer."),
        ("x^2 + k", "x^2 + C", "Find $C$."),
    ],
)  # fmt: skip
def test_a_name_of_the_question_keeps_its_meaning(answer, gold, question):
    assert compare(answer, gold, question).outcome != "equal"
