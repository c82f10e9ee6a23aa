"""Words that two texts share are marked in excerpts of both."""

from hypothesis import example, given
from hypothesis import strategies as st

from rewardkit.pages.shared_words import MAX_COMPARED_CHARACTERS, mark_shared_words
from rewardkit.pages.text import MAX_CHARACTERS, clean

ANY_TEXT = st.text(st.characters())


def marked_words(excerpt):
    return [part for part, common in excerpt.parts if common]


def test_runs_of_shared_words_are_marked():
    left, right = mark_shared_words(
        "Tom has 3 apples, and he buys 9 more. How many?",
        "Ann has 3 apples and he buys 10 more. How many?",
    )
    assert marked_words(left) == ["has 3 apples, and he buys", "more. How many"]
    assert marked_words(right) == ["has 3 apples and he buys", "more. How many"]


def test_chinese_is_compared_by_character():
    left, right = mark_shared_words("小明有三个苹果", "小红有三个梨子")
    assert (marked_words(left), marked_words(right)) == (["有三个"], ["有三个"])


def test_the_shared_part_of_a_long_text_is_shown():
    item = "find the sum of all positive integers n such that this holds"
    _, row = mark_shared_words(item, "padding " * 2000 + item + " padding" * 2000)
    assert marked_words(row) == [item]
    assert row.before > 10_000 < row.after


@given(ANY_TEXT, ANY_TEXT)
@example("a b " * 20_000, "b a " * 20_000)
@example("x" * (MAX_COMPARED_CHARACTERS + 1), "x")
def test_an_excerpt_is_a_contiguous_part_of_its_text(left, right):
    for text, excerpt in zip((left, right), mark_shared_words(left, right), strict=True):
        piece = text[excerpt.before : len(text) - excerpt.after]
        assert "".join(part for part, _ in excerpt.parts) == clean(piece)
        assert len(piece) == min(MAX_CHARACTERS, len(text)) or excerpt.before


def test_a_formula_that_both_texts_have_is_marked_as_a_whole():
    left, right = mark_shared_words(
        "Let $x^2 + 1 = 0$. Find $y^2 + 3$ now.", "Put $x^2 + 1 = 0$. Find $y^2 + 4$ now."
    )
    assert marked_words(left) == ["$x^2 + 1 = 0$. Find $y^2 +"]
    assert marked_words(right) == marked_words(left)
