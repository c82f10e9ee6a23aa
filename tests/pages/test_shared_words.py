"""Words that two texts share are marked in both."""

from hypothesis import example, given
from hypothesis import strategies as st

from rewardkit.pages.html import MAX_CHARACTERS, mark_shared_words
from rewardkit.text import printable

ANY_TEXT = st.text(st.characters())


def marked_words(side):
    return [part for part, is_shared in side if is_shared]


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


@given(ANY_TEXT, ANY_TEXT)
@example("a b " * 20_000, "b a " * 20_000)
def test_the_pieces_are_the_start_of_the_text(left, right):
    for text, side in zip((left, right), mark_shared_words(left, right), strict=True):
        assert "".join(part for part, _ in side) == printable(text[:MAX_CHARACTERS])
