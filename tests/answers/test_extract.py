import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.answers.extract import final_answer, last_boxed, last_hash, last_phrase

EXTRACTORS = [last_hash, last_phrase, last_boxed, final_answer]


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
        ("The answer is $14{,}916$. I hope it is correct.", "14{,}916"),
        ("The final answer is 7.78. Done.", "7.78"),
        ('{"answer": "14"}', '14"}'),
        ("Answer：42", "42"),
        ("答案：AC", "AC"),
        ("答案是 18。", "18"),
        ("Answer:\n7", "7"),
        ("Answer:", None),
        ("nothing", None),
    ],
)
def test_last_phrase_is_what_follows_the_last_statement_of_an_answer(text, found):
    assert last_phrase(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r"\boxed{1} Answer: 2", ("1", "box")),
        (r"\boxed{1}, \boxed{2} and $\boxed{3}$.", ("1, 2, 3", "box")),
        (r"\boxed{1} is wrong, it is \boxed{2}", ("2", "box")),
        ("<answer>5</answer> then Answer: 6", ("5", "tag")),
        ("The answer is 6\n#### 7", ("6", "phrase")),
        ("so\n#### 7", ("7", "hash")),
        ("so $x = 5$ and then $y = 6$.", ("y = 6", "math")),
        ("It follows.\n(1, 2)", ("(1, 2)", "line")),
        ("All in all there are 12 apples left over", ("12", "number")),
        (r"<think>\boxed{1}</think> \boxed{2}", ("2", "box")),
        (r"<think>\boxed{1}", None),
        (r"cut off: \boxed{1", None),
        ('the form is "#### 5" here', None),
        ("I do not know.", None),
        ("", None),
    ],
)
def test_the_final_answer_is_at_the_most_explicit_mark(text, found):
    assert final_answer(text) == found


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
        (r"\\boxed{3}", "3"),
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
    assert found is None or found[0] in text or found in text


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
