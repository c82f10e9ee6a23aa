r"""Folded tokens: only two typesettings of one text have the same folded tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.answers.equal import compare, equal
from rewardkit.answers.parsing.tokens import (
    UnreadableError,
    canonical_spelling,
    fold,
    fold_words,
    tokenize,
)
from tests.answers.latex_printer import STYLES, expressions, latex
from tests.tables import every


def folded(text):
    return fold(tokenize(text))


@every(
    ("one", "other"),
    [
        (r"\dfrac{a}{b}", r"\frac{a}b"), (r"\tfrac{1}{2}", r"\frac12"), (r"\left( 1, 2 \right)", "(1,2)"), (r"\bigl(x\bigr)", "(x)"),
        (r"\mathrm{km}", r"\text{km}"), (r"\mathbf{x}", "x"), (r"\displaystyle\sum_{k} k", r"\sum_k k"), (r"x^{2}", "x^2"), ("x²", "x^2"),
        (r"\{ 1 , 2 \}", r"\{1,2\}"), (r"\lvert x \rvert", "|x|"), (r"a \mid b", "a|b"), (r"x \leq 2", r"x\le2"), ("x ≤ 2", r"x\le 2"),
        (r"\boxed{5}", "5"), ("$5$", "5"), (r"\(5\)", "5"), ("5.", "5"), ("5 ,", "5"), ("{{x+1}}", "x+1"), ("５", "5"), (r"5\,", "5"),
        (r"30^\circ", r"30\degree"), (r"\sqrt{15}", "√15"), (r"\sqrt{2}", r"\sqrt2"),
        (r"\text{Monday}", "monday"), ("Boston.", "boston"), ("1,234", "1234"), (r"1\,234", "1234"), ("1{,}234", "1234"),
        (r"\\frac12", r"\frac12"), (r"\varnothing", r"\emptyset"), ("x→y", r"x\to y"), (r"\langle1,2\rangle", "(1,2)"), (r"\phantom{1}5", "5"),
    ],
)  # fmt: skip
def test_one_text_in_two_typesettings_has_the_same_folded_tokens(one, other):
    assert folded(one) == folded(other)
    assert compare(one, other).outcome == "equal"


@every(
    ("one", "other"),
    [
        ("12", "1 2"), ("ab", "a b"), (r"\sqrt15", r"\sqrt{15}"), (r"\frac{12}{3}", r"\frac{1}{23}"), (r"\frac12 3", r"\frac{1}{23}"), ("x^{12}", "x^1 2"),
        ("x^{ab}", "x^a b"), ("x_{12}", "x_1 2"), ("MPa", "mPa"), ("ABC", "abc"), ("A", "a"), (r"\overline{x}", "x"), ("x'", "x"),
        ("x!", "x"), ("-5", "5"), (r"\pm5", "5"), ("5%", "5"), ("5°", "5"), (r"\{1\}", "(1)"), ("[1]", "(1)"), (r"x \ne 5", "x = 5"), ("x < 5", r"x \le 5"),
        ("1.5", "15"), ("1,5", "15"), (r"\cancel{5}", "5"), (r"\sout{5}", "5"), (r"\cup", r"\cap"), ("α", "a"), (r"\mathbb{R}", "R"),
    ],
)  # fmt: skip
def test_folding_keeps_everything_with_a_meaning(one, other):
    assert folded(one) != folded(other)


@every(
    ("one", "other"),
    [
        ("(1,234)", "(1234)"), (r"\{1,234\}", r"\{1234\}"), ("f(1,234)", "f(1234)"), (r"\frac123", r"\frac{1}{23}"),
        ("x and y", "X and Y"), ("M is the midpoint", "m is the midpoint"), ("a or b", "or b"),
    ],
)  # fmt: skip
def test_commas_in_brackets_and_single_letters_keep_their_meaning(one, other):
    assert not equal(one, other)


@every(
    ("text", "words"),
    [
        ("The cat", "cat"), ("an apple, a pear; the end!", "apple pear end"), (r"\text{New   York}", "new york"), (r"\textbf{Word}", "word"), (r"\mathrm{Word}", "word"),
        ("Plan A", "plan a"), ("the", "the"), ("a, an; the", "the"), ("well-known", "well known"), ('"Paris"', "paris"), ("Ünï ÄÖÜ", "ünï äöü"), ("是的。", "是的"),
        *((text, None) for text in ["", "5", "x", "x, y", "3.5 kg", "cat + dog", r"\frac12", "cat = 5", "(cat)", "cat: dog", "cat?", "A", "5 cats", "x^2"]),
    ],
)  # fmt: skip
def test_the_words_of_a_text_are_folded_and_other_texts_have_none(text, words):
    assert fold_words(tokenize(text)) == (words and tuple(words.split()))


# --- decoration does not change the folded tokens of any text

DRESS = {
    "blanks": lambda text: f"  {text} ", "dollars": lambda text: f"${text}$",
    "brackets of TeX": lambda text: rf"\({text}\)", "braces": lambda text: "{" + text + "}",
    "a box": lambda text: rf"\boxed{{{text}}}", "a full stop": lambda text: f"{text}.",
    "thin spaces": lambda text: rf"\,{text}\,", "a style": lambda text: rf"\displaystyle {text}",
    "larger fractions": lambda text: text.replace(r"\frac", r"\dfrac"),
    "larger brackets": lambda text: text.replace("(", r"\left(").replace(")", r"\right)"),
    "blanks at signs": lambda text: text.replace("+", " + ").replace("=", " = "),
}  # fmt: skip
TEXTS = st.builds(latex, expressions, STYLES) | st.sampled_from(
    ["Monday", "no solution", "1,234", "(1, 2]", r"\{1, 2\}", r"5\text{ cm}", "2:30 PM", "x=1, y=2", "无解", r"\frac12", r"50\%"]
)  # fmt: skip


@pytest.mark.parametrize("dress", DRESS.values(), ids=DRESS)
@given(text=TEXTS)
def test_folding_removes_decoration(dress, text):
    assert folded(dress(text)) == folded(text)
    assert folded(dress(dress(text).rstrip("."))) == folded(text)


@given(st.text(max_size=80))
def test_any_text_is_folded_or_over_a_limit(text):
    try:
        tokens = tokenize(text)
    except UnreadableError:
        assert canonical_spelling(text) == text.strip()
        return
    assert all(isinstance(part, str) and part for part in fold(tokens))
    words = fold_words(tokens)
    assert words is None or words
    assert isinstance(canonical_spelling(text), str)
