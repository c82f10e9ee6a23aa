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
        ("10", r"\binom{5}{2}", True), (r"\binom{10}{3}", r"\binom{10}{7}", True), (r"\sqrt{25}", "5", True), ("x+5!", "x+120", True), (r"\frac{5+14i}{2+3i}", "4+i", False), ("i^2", "-1", False),
    ],
)  # fmt: skip
def test_an_answer_that_leaves_arithmetic_is_wrong(answer, gold, right):
    assert equal(answer, gold) is right
    assert compare(answer, gold).outcome == ("equal" if right else "unreadable")


@every(
    ("answer", "gold", "right"),
    [
        ("1000(1.05)^{10}", "1628.89", False), ("1.05^{10}", "1.62889", False), (r"30\sin 60^\circ", "25.98", False), (r"30\sin 60^\circ", r"15\sqrt{3}", False), (r"\sin 60^\circ", r"\frac{\sqrt{3}}{2}", False), (r"\log_2 8", "3", False),
        (r"\log_3 81", "4", False), (r"\cos 60^\circ", r"\frac12", False), (r"\lceil 100/7\rceil", "15", False), (r"\lfloor 3.7\rfloor", "3", False), ("|3+4i|", "5", False), ("|-5|", "5", False),
        (r"17 \bmod 5", "2", False), (r"\varphi(12)", "4", False), (r"1+2+\dots+100", "5050", False), (r"1+2+3+\cdots+10", "55", False),
        (r"\begin{vmatrix}2&1\\1&3\end{vmatrix}", "5", False), (r"\det\begin{pmatrix}2&1\\1&3\end{pmatrix}", "5", False), (r"e^{\ln 3}", "3", False), (r"\sqrt{9+16}", "5", False), (r"\sqrt{3^2+4^2}", "5", False), ("(1+2)^4", "81", False),
        (r"\sqrt{25}-\sqrt{4}", "3", False), (r"12\cdot 13", "156", False), ("5!", "120", False), (r"\binom{6}{2}", "15", False), (r"\arctan 1", r"\frac{\pi}{4}", False), (r"\frac{12\pi}{3\pi}", "4", False), (r"\tan 45^\circ", "1", False),
        (r"-\log_2 8", "-3", False), (r"\{\log_2 8, 1\}", r"\{3, 1\}", False), ("(|-3|, 2)", "(3,2)", False), (r"x=\lceil 14.2\rceil", "15", False), (r"\lceil 14.2\rceil\text{ cm}", r"15\text{ cm}", False), (r"\Re(3+4i)", "3", False),
        (r"2^{\log_2 5}", "5", False), (r"e^{i\pi}", "-1", False), (r"\ln e^2", "2", False), (r"3^{-2}\cdot 9", "1", False), (r"\sum_{k=1}^{4} k", "10", False), ("C_6^2", "15", False), (r"\int_1^2 \frac1x dx", r"\ln 2", False),
        ("100(1.02)^3", "106.1208", False), (r"\log_{1.05} 2", "14.2067", False), (r"50\cos 30^\circ", "43.3", False), ("2^{10}", "1024", True), (r"\sqrt{144}", "12", True), (r"\sqrt[3]{27}", "3", True), (r"\frac{6}{8}", r"\frac34", True),
        ("3^4-1", "80", True), (r"1+\frac34", r"\frac74", True), (r"2^4\cdot 3^2", "144", True), (r"1.5\times 10^3", "1500", True), ("(-2)^3", "-8", True), ("4^{-1}", r"\frac14", True), (r"\left(\frac23\right)^4", r"\frac{16}{81}", True),
        (r"1-\left(\frac12\right)^5", r"\frac{31}{32}", True), (r"\sqrt{2}", "1.41", True), (r"12\pi", "37.7", True), (r"\pi", "3.14", True), ("e^2", "7.389", True), (r"5\sqrt{2}", "7.07", True), (r"\frac{1+\sqrt5}{2}", "1.618", True),
        (r"\log_2 3", r"\frac{\ln 3}{\ln 2}", True), (r"3\ln 2", r"\ln 8", True), (r"\log_2 3", r"\log_2 3", True), (r"1000\cdot 1.05^{10}", "1000(1.05)^{10}", True), (r"2\sqrt{27}", r"6\sqrt{3}", True),
        (r"\cos 50^\circ", r"\sin 40^\circ", True), ("10!", r"3628800\cdot 1!", True), (r"\log_2 8 = 3", "3", True), (r"\gcd(12,18)=6", "6", True), ("|3+4i|=5", "5", True), (r"\lceil 100/7\rceil=15", "15", True),
        (r"\arccos\left(-\frac13\right)", r"\pi-\arccos\frac13", True), (r"\exp(2)", "e^2", True), (r"\ln(1+\sqrt2)", r"\operatorname{arcsinh} 1", True), (r"\frac{\pi}{6}", r"30^\circ", True), ("2+3", "5", True), (r"\frac{10}{2}", "5", True),
        (r"\sqrt{-4}", "2i", True), (r"\frac{1}{i}", "-i", True), (r"x\sin 30^\circ", r"\frac{x}{2}", True), (r"e^{x\ln 3}", "3^x", True), (r"5e^{i\arctan(4/3)}", "3+4i", True), (r"3e^{i\pi/2}", "3i", True),
        (r"2(\cos 60^\circ + i\sin 60^\circ)", r"1+\sqrt{3}i", True), (r"\frac{5+14i}{2+3i}", "4+i", False), ("(1+i)^4", "-4", False), ("(1+i)^3", "-2+2i", False), ("(2+i)(3-i)", "7+i", False), ("(2+i)+(3-i)", "5", False),
        ("i^2", "-1", False), (r"\frac{1+3i}{2}", r"\frac12+\frac32i", True), ("3(2+i)", "6+3i", False), (r"\gcd(4,6)=2, \text{lcm}(4,6)=12", "2,12", True), (r"\frac{1}{1+1}", r"\frac12", False), (r"\frac{1}{1+1}", "0.5", False),
        (r"\frac{3}{1.5}", "2", False),
        (r"9\cdot 2^4", "144", True), (r"6\cdot 2^4", "96", False), (r"\frac{3^4}{2}", "40.5", True), (r"\frac{3^4}{6}", "13.5", False), (r"3\cdot\sqrt{16}", "12", False), (r"\sqrt{16}+1", "5", False), (r"1+\sqrt{2}", "2.414", True), (r"\frac{\sqrt{16}}{2}", "2", False),
    ],
)  # fmt: skip
def test_the_form_of_the_gold_decides_what_is_a_finished_form(answer, gold, right):
    assert equal(answer, gold) is right


@every(
    ("answer", "gold", "right"),
    [
        (r"0.25\%", "0.25", False), (r"0.25\%", r"25\%", False), (r"0.25\%", r"\frac14", False), (r"0.5\%", "0.5", False), (r"0.5\%", r"\frac12", False), (r"0.25\%", "0.0025", True), (r"0.25\%", r"0.25\%", True), (r"25\%", "0.25", True),
        (r"25\%", "25", True), (r"25\%", r"\frac14", True), (r"50\%", "0.5", True), (r"50\%", "50", True), (r"50\%", "5", False), (r"50\%", "500", False), ("0.5", "50", False), ("0.25", r"25\%", True), ("0.25", r"0.25\%", False),
        (r"150\%", "1.5", True), (r"150\%", "150", True), (r"0\%", "0", True), (r"1\%", "0.01", True), (r"\frac12\%", r"\frac12", False), ("0.05", r"5\%", True), ("5‰", "0.5", False), ("5‰", r"0.5\%", True), ("5‰", "0.005", True),
        ("50‰", "5", False), ("5k", "5", False), ("5m", "5", False), ("5M", "5", False), ("5k", "5000", False), (r"\$5k", "5", False), ("3 thousand", "3", False), ("3 thousand", "3000", True), ("4 million", "4", False),
        ("5 mm", "5 m", False), ("5 mA", "5 A", False), ("5 km", "5 m", False), (r"-0.5\%", "-0.5", False), (r"-20\%", "-0.2", True), (r"33.3\%", r"\frac13", True), ("百分之二十", r"20\%", True), ("百分之二十", "2", False), ("千分之五", "0.5", False),
        ("千分之五", "0.005", True), (r"x=0.25\%", "0.25", False),
    ],
)  # fmt: skip
def test_a_prefix_and_a_percent_sign_change_the_number(answer, gold, right):
    assert equal(answer, gold) is right


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
