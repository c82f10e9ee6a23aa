import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.answers.extract import last_answer_line, last_boxed, last_hash

EXTRACTORS = [last_hash, last_answer_line, last_boxed]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("so #### 18", "18"),
        ("#### 1\n#### 2", "2"),
        ("####7\nmore", "7"),
        ("#### 18 ####", "18"),
        ("#### 18\n####", "18"),
        ("#### 18\n\n#### Explanation", "18"),
        ("####\n18\nmore", "18"),
        ("#### ", ""),
        ("#### none\n####", ""),
        ("no mark", None),
    ],
)
def test_last_hash_is_what_the_last_mark_with_a_number_says(text, found):
    assert last_hash(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Answer: 5", "5"),
        ("answer : 5\nAnswer: 6 apples", "6 apples"),
        ("**Answer:** 42", "42"),
        ("The Answer：42", "42"),
        ("Answer:\n", None),
        ("nothing", None),
    ],
)
def test_last_answer_line_is_what_follows_the_last_answer_mark(text, found):
    assert last_answer_line(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r"\boxed{5}", "5"),
        (r"\boxed{1} then \boxed{2}", "2"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{1} and a cut \boxed{2", "1"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{\left\{ x \right.}", r"\left\{ x \right."),
        (r"\boxed {7}", "7"),
        (r"\fbox{8}", "8"),
        (r"\boxed{\boxed{3}}", "3"),
        (r"\boxed{", None),
        ("boxed{5}", None),
    ],
)
def test_last_boxed_is_the_content_of_the_last_balanced_box(text, found):
    assert last_boxed(text) == found


def balanced():
    return st.recursive(
        st.text(alphabet="abc01 ", max_size=5),
        lambda inner: st.lists(
            st.one_of(inner, inner.map(lambda t: "{" + t + "}")), max_size=3
        ).map("".join),
        max_leaves=8,
    )


@given(st.text(alphabet="xyz{}\\ ", max_size=30), balanced())
def test_a_balanced_box_at_the_end_is_found_whatever_came_before(before, content):
    assert last_boxed(f"{before.rstrip(chr(92))}\\boxed{{{content}}}") == content.strip()


@given(st.text())
@pytest.mark.parametrize("extract", EXTRACTORS)
def test_any_text_is_searched_without_raising(extract, text):
    found = extract(text)
    assert found is None or found in text


@pytest.mark.parametrize("extract", EXTRACTORS)
@pytest.mark.parametrize(
    "piece", ["\\boxed{", "{", "}", "\\", "#### ", "####", "Answer: x ", "answer ** ", " "]
)
def test_extraction_is_linear(extract, piece):
    """Twenty times the text takes at most about twenty times as long, on the worst inputs."""

    def cost(chars):
        text = piece * (chars // len(piece))
        return min(_timed(extract, text) for _ in range(3))

    assert cost(1_000_000) < 60 * cost(50_000) + 0.01


def _timed(extract, text):
    started = time.process_time()
    extract(text)
    return time.process_time() - started
