"""`split_words` removes markup and preserves what distinguishes two problems."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.preprocess.contamination import word_splitting as module
from rewardkit.preprocess.contamination.word_splitting import split_words
from tests.tables import every


@every(
    ("one", "other"),
    [
        ("Find $x$.", "find X"),
        (r"$\left(x+1\right)^2$", "(x + 1)^{2}"),
        (r"\dfrac{1}{2}", r"\tfrac{1}2"),
        (r"$x\leq 3$, $y\geq 4$, $z\neq 5$", "x ≤ 3; y ≥ 4; z ≠ 5"),
        (r"2\cdot 3\times a*b", "2 3 a b"),
        (r"5\text{ cm}", "5 cm"),
        (r"90^\circ, 90^{\circ}", "90° 90°"),
        ("x−1", "x-1"),
        ("two-digit", "two digit"),
        ("２ｘ＋１", "2x+1"),
        ("cafe\u0301", "café"),
        (r"\Big( \sin x \Big)", "sin x"),
        (r"a \\ b", "a b"),
    ],
)
def test_markup_does_not_change_the_words(one, other):
    assert split_words(one) == split_words(other)


@every(
    ("text", "words"),
    [
        ("求AB的长度。カ", ["求", "ab", "的", "长", "度", "カ"]),
        ("2x = 2 x", ["2", "x", "=", "2", "x"]),
        (r"\left( left \leftarrow", ["left", "leftarrow"]),
    ],
)
def test_characters_of_chinese_digits_and_whole_commands_are_words(text, words):
    assert split_words(text) == words


@every(
    ("one", "other"),
    [
        ("x+1", "x-1"),
        ("x<1", "x>1"),
        ("x^2", "x_2"),
        ("9!", "9"),
        ("|x|", "x"),
        (r"\sin x", r"\cos x"),
        (r"x \le 1", r"x \ge 1"),
        ("1/2", "12"),
        ("50%", "50"),
        (r"A \cup B", r"A \cap B"),
        (r"A ∪ B", r"A ∩ B"),
    ],
)
def test_another_operator_is_another_word(one, other):
    assert split_words(one) != split_words(other)


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_has_words_without_spaces(text):
    """Also text with lone surrogates, which JSON can contain."""
    assert all(word and not any(c.isspace() for c in word) for word in split_words(text))


@given(st.text(), st.text())
def test_the_words_of_a_text_are_the_words_of_its_lines(one, other):
    """`find_overlaps` reads a row line by line and relies on it."""
    assert split_words(f"{one}\n{other}") == split_words(one) + split_words(other)


def test_a_long_sequence_of_marks_is_cut_before_normalization(monkeypatch):
    """Normalization sorts them, which takes the square of their number: minutes for 1 MB."""
    seen = []
    normalize = unicodedata.normalize
    stand_in = type("unicodedata", (), {"combining": unicodedata.combining})
    stand_in.normalize = lambda form, text: seen.append(text) or normalize(form, text)
    monkeypatch.setattr(module, "unicodedata", stand_in)
    assert split_words("a" + "\u0301\u0316" * 500_000 + " b")[-1] == "b"
    assert len(seen[0]) < 50


@pytest.mark.parametrize(
    "unit",
    [
        "\\",
        "\\left",
        "-",
        "a-",
        "[asy]",
        "\\text{",
        "求",
        pytest.param("\ufdfa", marks=pytest.mark.full),
        "^{",
    ],
)
def test_a_megabyte_of_any_text_is_split(unit):
    assert len(split_words(unit * (10**6 // len(unit)))) <= 20 * 10**6
