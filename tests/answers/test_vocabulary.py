"""Every spelling that the parser knows, listed a second time, so that a lost table entry shows."""

from fractions import Fraction

import pytest

from rewardkit.answers.equal import compare, equal
from rewardkit.answers.equal import parse_answer as reading
from rewardkit.answers.parsing.grammar import parse
from rewardkit.answers.parsing.tokens import UnreadableError, tokenize
from rewardkit.answers.parsing.tree import INF, add, fn, num
from tests.tables import every

X, Y, N = ("sym", "x"), ("sym", "y"), ("sym", "n")


def read(text):
    return parse(tokenize(text))


def is_unreadable(text):
    with pytest.raises(UnreadableError):
        read(text)


@every(
    "name",
    [
        *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"),
        *("lambda", "mu", "nu", "xi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega"),
        *("Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Phi", "Psi", "Omega"),
        *("ell", "hbar"),
    ],
)  # fmt: skip
def test_every_letter_of_tex_is_a_name(name):
    assert read(rf"\{name}+1") == add(("sym", name), num(1))


@pytest.mark.parametrize("name", ["epsilon", "theta", "phi"])
def test_a_variant_of_a_letter_is_the_letter(name):
    assert read(rf"\var{name}") == ("sym", name)


@pytest.mark.parametrize("dots", ["dots", "ldots", "cdots"])
def test_dots_of_any_height_are_the_same_dots(dots):
    assert read(rf"1, 2, \{dots}") == ("list", num(1), num(2), ("sym", "..."))


@every("wrapper", ["boxed", "fbox", "underline", "mathbf", "boldsymbol", "mathrm", "text", "mathcal", "mathscr", "mathfrak", "textcolor{red}"])  # fmt: skip
def test_a_decoration_does_not_change_its_argument(wrapper):
    assert read(rf"\{wrapper}{{x}}+y") == add(X, Y)


@every(
    ("one", "other"),
    [("vec", "overrightarrow"), ("hat", "widehat"), ("bar", "overline"), ("tilde", "widetilde")],
)
def test_an_accent_makes_a_different_name_which_is_the_same_in_both_sizes(one, other):
    marked = read(rf"\{one}{{x}}")
    assert marked == read(rf"\{other}{{x}}") == read(rf"\{one} x") != X
    assert marked != read(r"\dot{x}")


@pytest.mark.parametrize(
    ("signs", "operator"),
    [
        (["=", "==", r"\equiv"], "="), ([r"\approx", r"\simeq", "≈"], "~"), (["<", r"\lt"], "<"),
        ([">", r"\gt"], ">"), (["<=", r"\le", r"\leq", r"\leqslant", r"\leqq", "≤", "⩽"], "<="),
        ([">=", r"\ge", r"\geq", r"\geqslant", r"\geqq", "≥", "⩾"], ">="),
        (["!=", r"\ne", r"\neq", "≠"], "!="), ([r"\in", "∈"], "in"),
    ],
)  # fmt: skip
def test_every_sign_of_a_relation_is_that_relation(signs, operator):
    for sign in signs:
        assert read(f"x {sign} y") == ("rel", operator, X, Y)


@pytest.mark.parametrize(
    "kind", ["matrix", "pmatrix", "bmatrix", "Bmatrix", "smallmatrix", "array"]
)
def test_every_environment_of_a_matrix_is_a_matrix(kind):
    rows = ("matrix", ("row", num(1), num(2)), ("row", num(3), num(4)))
    assert read(rf"\begin{{{kind}}}1&2\\3&4\end{{{kind}}}") == rows


@pytest.mark.parametrize("kind", ["vmatrix", "Vmatrix"])
def test_a_matrix_between_bars_is_a_determinant(kind):
    rows = ("matrix", ("row", num(1), num(2)), ("row", num(3), num(4)))
    assert read(rf"\begin{{{kind}}}1&2\\3&4\end{{{kind}}}") == fn("det", rows)


def test_an_array_may_name_its_columns_and_draw_lines():
    rows = ("matrix", ("row", num(1), num(2)), ("row", num(3), num(4)))
    assert read(r"\begin{array}{c|c}1&2\\\hline 3&4\end{array}") == rows


@pytest.mark.parametrize(
    ("text", "function"),
    [(r"\lfloor x\rfloor", "floor"), (r"\lceil x\rceil", "ceil"), (r"\lvert x\rvert", "abs"),
     (r"\vert x\vert", "abs"), ("|x|", "abs"), (r"\left|x\right|", "abs")],
)  # fmt: skip
def test_every_fence_is_its_function(text, function):
    assert read(text) == fn(function, X)


@pytest.mark.parametrize(
    "word",
    ["infty", "infinity", "Infinity", "oo", r"\infty", "∞", r"\text{infinitely many}", "无穷大"],
)
def test_every_word_for_infinity_is_infinity(word):
    assert read(word) == INF


@pytest.mark.parametrize("name", [r"\emptyset", r"\varnothing", "∅", r"\{\}"])
def test_every_name_of_the_empty_set_is_the_empty_set(name):
    assert read(name) == ("set",)


def test_the_reals_have_three_spellings():
    assert read(r"\R") == read(r"\mathbb{R}") == read(r"\mathbb R") == ("sym", "R")


@pytest.mark.parametrize("word", ["and", "und", "和", "与", "及", "以及", "&", "AND"])
def test_a_word_for_and_makes_a_list(word):
    assert read(rf"1\text{{ {word} }}2") == ("and", num(1), num(2))


@pytest.mark.parametrize("word", ["or", "或", "或者", "Or"])
def test_a_word_for_or_makes_alternatives(word):
    assert read(rf"1\text{{ {word} }}2") == ("or", num(1), num(2))


@pytest.mark.parametrize(
    ("sign", "kind"),
    [(r"\land", "and"), (r"\wedge", "and"), (",", "list"), (";", "list"), (r"\lor", "or"), (r"\vee", "or"),
     (r"\cup", "union"), (r"\bigcup", "union"), ("∪", "union"), (r"\cap", "meet"), ("∩", "meet")],
)  # fmt: skip
def test_a_sign_between_two_items_makes_a_group_of_its_kind(sign, kind):
    assert read(f"1 {sign} 2") == (kind, num(1), num(2))


@pytest.mark.parametrize(
    "scope", [r"\text{for all }n", r"\text{where }n<9", "for n", "where n < 9", r"\forall n", "其中 n", "∀n"]
)  # fmt: skip
def test_a_clause_that_says_where_an_answer_holds_is_separate_from_it(scope):
    where, value, clause, restricts, names, _ = read(f"2^n {scope}")
    assert (where, value) == ("where", read("2^n"))
    assert clause
    assert restricts is ("<" in scope)
    assert names == "n"


@pytest.mark.parametrize("word", ["no", "on", "up", "go", "do", "it", "us", "me"])
def test_a_short_word_is_a_word_and_not_a_product(word):
    assert read(word) == ("text", word)
    assert read("xy") == ("mul", X, Y)


@pytest.mark.parametrize("char", "不错误非")
def test_a_character_that_denies_its_number_is_not_a_unit(char):
    is_unreadable(f"5个{char}")
    assert compare(f"5{char}", "5").outcome != "equal"


@pytest.mark.parametrize(
    ("word", "factor"),
    [("dozen", 12), ("hundred", 100), ("thousand", 1000), ("million", 10**6), ("billion", 10**9),
     ("trillion", 10**12), ("十", 10), ("百", 100), ("千", 1000), ("万", 10**4), ("亿", 10**8)],
)  # fmt: skip
def test_a_multiplier_after_a_number_multiplies_it(word, factor):
    assert equal(f"7 {word}", str(7 * factor))
    assert equal(f"1.5 {word}", str(Fraction(3, 2) * factor))
    assert not equal(f"7 {word}", "7")


@pytest.mark.parametrize("sign", ["€", "£", r"\$", "¥"])
def test_a_currency_may_precede_its_number(sign):
    assert equal(f"{sign}5", "5")
    assert equal("5", f"{sign}5")
    assert not equal(f"{sign}5", "6")
    assert read(f"{sign}5")[:2] == ("quantity", num(5))


@every("letter", "abcdefghjklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
def test_a_letter_before_a_number_in_brackets_is_a_function_or_multiplies(letter):
    is_function = letter in "fghpqruvwy" or letter.isupper()
    name = ("const", "e") if letter == "e" else ("sym", letter)
    assert read(f"{letter}(5)") == (fn(letter, num(5)) if is_function else ("mul", name, num(5)))
    assert read(f"{letter}(5+x)")[0] == ("fn" if letter in "fghFGH" else "mul")


@pytest.mark.parametrize("sign", [r"\times", r"\cdot", "*"])
def test_a_sign_ends_the_argument_of_a_function(sign):
    assert read(rf"\sin x {sign} 2") == ("mul", fn("sin", X), num(2))
    assert read(rf"x {sign} 2") == ("mul", X, num(2))


@pytest.mark.parametrize(
    "sign", ["+", "-", "=", "<", r"\le", r"\pm", r"\cup", r"\setminus", r"\in", ","]
)
def test_a_sign_after_a_command_is_not_a_factor(sign):
    assert read(rf"\pi {sign} 2") == read(rf"(\pi) {sign} 2") != read(r"2\pi")


@pytest.mark.parametrize("pair", ["()", "[]", (r"\{", r"\}")])
def test_digits_are_grouped_outside_brackets_only(pair):
    opening, closing = pair
    group = reading(f"{opening}1,234{closing}").value
    assert [item for item in group[1:] if isinstance(item, tuple)] == [num(1), num(234)]
    assert reading(f"{opening}2{closing}, 1,234").value[-1] == num(1234)
    assert reading("1,234").value == num(1234)
