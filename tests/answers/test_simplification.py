r"""Which answers are simplified, and which only repeat a formula of the question."""

from hypothesis import assume, given
from hypothesis import strategies as st

from rewardkit.answers.equal import compare, equal
from rewardkit.answers.simplification import MAX_QUESTION_CHARS, question_formulas
from tests.tables import every


@every(
    ("answer", "gold", "right"),
    [
        (r"3 \cdot 4:5", "12:5", False), (r"x > 3 \cdot 4", "x > 12", False),
        (r"12 \cdot 13", "156", False), ("3^4-1", "80", True), (r"\sqrt{25}-\sqrt{4}", "3", False), ("100!/98!", "9900", False), ("7!", "5040", False), (r"\binom{10}{3}", "120", False), (r"2^4 \cdot 3^2", "144", True), (r"\frac{10}{4}", "2.5", True), ("2^{10}", "1024", True),
        ("x = 12 \\cdot 13", "156", False), (r"12 \cdot 13 = 156", "156", True), (r"1+\frac34", r"\frac74", True), (r"3 \cdot 10^4", "30000", True), ("3*4", "12.", False), (r"(3 \cdot 4)\%", r"12\%", False), (r"3 \cdot 4\text{ cm}", r"12\text{ cm}", False), (r"(3 \cdot 4, 2)", "(12, 2)", False),
        ("10", r"\binom{5}{2}", True), (r"\binom{10}{3}", r"\binom{10}{7}", True), (r"\gcd(12,18)", "6", False), (r"\sqrt{25}", "5", True), ("x+5!", "x+120", True), (r"\frac{5+14i}{2+3i}", "4+i", False), ("i^2", "-1", False),
    ],
)  # fmt: skip
def test_an_answer_that_leaves_arithmetic_is_wrong(answer, gold, right):
    assert equal(answer, gold) is right
    assert compare(answer, gold).outcome == ("equal" if right else "unreadable")


whole = st.integers(2, 99)


@given(whole, whole, st.sampled_from([r"{} \cdot {}", r"{} \times {}", "{}*{}"]))
def test_a_product_of_two_numbers_never_equals_its_value(a, b, form):
    assume(10 not in (a, b))  # a number times a power of ten is a number
    text, value = form.format(a, b), a * b
    forms = r"{};({});\left({}\right);x = {};${}$;{}\text{{ cm}};({}, 1);{}, 1"
    for dress in forms.format(*[text] * 8).split(";"):
        gold = dress.replace(text, str(value))
        assert not equal(dress, gold), dress
    assert equal(f"{text} = {value}", str(value)), "a chain that holds says its value"


@given(st.integers(-9, 9), st.integers(2, 40), st.integers(2, 40))
def test_a_fraction_or_a_power_is_simplified_in_any_terms(a, b, c):
    assert equal(rf"\frac{{{a * c}}}{{{b * c}}}", rf"\frac{{{a}}}{{{b}}}")
    assert equal(f"{b}^2", str(b * b))
    assert equal(rf"\sqrt{{{b * b}}}", str(b))


# --- formulas of the question


@every(
    ("answer", "gold", "question", "paid"),
    [
        ("2^{10}", "1024", "Compute $2^{10}$.", False), ("2^{10}", "1024", "Compute two to the tenth.", True), ("1024", "1024", "Compute $2^{10}$.", True), (r"\frac{10}{4}", "2.5", r"Simplify $\frac{10}{4}$.", False), (r"\frac{5}{2}", "2.5", r"Is it $\frac{5}{2}$?", True),
        (r"\sqrt{50}", r"5\sqrt{2}", r"Simplify $\sqrt{50}$.", False), (r"5\sqrt{2}", r"\sqrt{50}", r"Simplify $\sqrt{50}$.", True), ("x^2+2x", "x(x+2)", "Factor $x^2+2x$.", False), ("x^2+2x", "x^2+2x", "Is it $x^2+2x$?", True), ("x^{2} + 2x", "x^2+2x", "Is it $x^2+2x$?", True),
        ("5.0", "5", "Let $x = 5$.", True), ("x = 5", "5", "Let $x = 5$.", True), ("(1, 2)", "(1.0, 2)", "Let $(1, 2)$.", True), (r"\{1, 2\}", "2, 1", r"Of $\{1, 2\}$", True), ("2^{10} = 1024", "1024", "Compute $2^{10}$.", True), ("x > 3", r"(3, \infty)", "Let $x > 3$.", False),
        (r"\frac{1}{2}", "0.5", r"Round $\frac{1}{2}$", True), (r"\frac{2}{4}", "0.5", r"Reduce $\frac{2}{4}$", False), ("30°", "30", r"an angle of $30^\circ$", True), (r"f(x) = x^2+1", "x^2+1", "Let $f(x) = x^2+1$.", False),
        ("(2^{10})", "1024", "Compute $2^{10}$.", False), ("x = 2^{10}", "1024", "Compute $2^{10}$.", False),
        (r"{10 \choose 3}", "120", r"What is $\binom{10}{3}$?", False),
        (r"\sin\frac{\pi}{6}", "0.5", r"Find $\sin(\pi/6)$.", False),
        ("2x+x^2", "x(x+2)", "Factor $x^2+2x$.", False), ("2^10", "1024", "Compute 2^10.", False),
        ("3+4", "7", "Compute 3 + 4.", False), (r"30^\circ", "30", r"an angle of $30^\circ$", True),
        (r"x=\frac12", "0.5", r"$x=\frac12$", True),
        (r"\left\{2^{10}\right\}", "1024", "Compute $2^{10}$.", False),
        (r"2^{10}\text{ units}", "1024", "Compute $2^{10}$.", False),
        ("2^{10} = 2^{10}", "1024", "Compute $2^{10}$.", False),
        (r"2^{10} \approx 2^{10}", "1024", "Compute $2^{10}$.", False),
        (r"\frac{2^{10}}{1}", "1024", "Compute $2^{10}$.", False),
        ("-(-2^{10})", "1024", "Compute $2^{10}$.", False),
    ],
)  # fmt: skip
def test_a_formula_of_the_question_is_wrong_unless_it_is_the_gold_s_own_form(
    answer, gold, question, paid
):
    assert (compare(answer, gold, question).outcome == "equal") is paid


def test_only_the_end_of_a_long_question_is_read():
    filler = "word " * (MAX_QUESTION_CHARS // 5)
    assert compare("2^{10}", "1024", f"{filler}$2^{{10}}$").outcome == "unreadable"
    assert compare("2^{10}", "1024", f"$2^{{10}}${filler}").outcome == "equal"


@given(
    st.text(max_size=200),
    st.sampled_from(
        ["$", "$$", r"\(", r"\[", r"\(x\)$y$", r"$\unknown{x}$", "$" + "1" * 300 + "$"]
    ),
)
def test_any_question_has_formulas_or_none(text, sign):
    for question in (text, sign + text, text + sign, sign + text + sign):
        assert isinstance(question_formulas(question), frozenset)
        assert compare("5", "5.0", question).outcome == "equal"
