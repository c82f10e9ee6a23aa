import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.answers.extract import (
    after_thought,
    boxes,
    final_answer,
    gold_answer,
    last_boxed,
    last_hash,
    last_phrase,
    last_tag,
)
from tests.tables import every

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


@every(
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
        ("Answer: X", "X"),
        ("Answer: **7**", "7"),
        ('Answer: "7"', "7"),
        ("the answer = 7", "7"),
        ("the answer are 7", "7"),
        ("the answer is: 7", "7"),
        ("Answer: 7.5. Done", "7.5"),
        ("Answer: 7! Done", "7"),
        ("Answer: 7, since 8 is not", "7"),
        ("答案为 7", "7"),
        ("答案：7。 8", "7"),
        ("ANSWER: 7", "7"),
        ("Antwort: 7", "7"),
        ("Réponse: 7", "7"),
        ("Respuesta: 7", "7"),
        ("Ответ: 7", "7"),
        ("Answer: 7, because 8 is not", "7"),
        ("Answer: 7; 8 is too large", "7"),
        ("Answer: 7; or 8", "7; or 8"),
        ("The answer is $7$, or 8.", "$7$, or 8"),
        ("The answer is $7$ (or $8$).", "$7$ (or $8$)"),
        (r"The answer is \(7\).", "7"),
        (r"The answer is \[7\]", "7"),
        ("The answer is $$7$$", "7"),
        ("the reanswer: 7", None),
        ("Answer:", None),
        ("nothing", None),
    ],
)
def test_last_phrase_is_what_follows_the_last_statement_of_an_answer(text, found):
    assert last_phrase(text) == found


@every(
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


@every(
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


@every("extract", EXTRACTORS)
@every("piece", ["\\boxed{", "{", "}", "\\", "#### ", "####", "Answer: x ", "answer ** ", " "])
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


@pytest.mark.parametrize(
    ("extract", "at", "beyond", "found"),
    [
        (last_hash, "#### 7\n" + "####\n" * 19, "#### 7\n" + "####\n" * 20, "7"),
        (last_hash, f"#### 1\n#### {'x' * 4095}7", f"#### 1\n#### {'x' * 4096}7", f"{'x' * 4095}7"),
        (last_phrase, "Answer: 7\n" + "Answer\n" * 19, "Answer: 7\n" + "Answer\n" * 20, "7"),
        (last_phrase, f"Answer: 7\n{'x' * 19_990}", f"Answer: 7\n{'x' * 19_991}", "7"),
        (last_boxed, rf"\boxed{{{'7' * 4992}}}", rf"\boxed{{{'7' * 4993}}}", "7" * 4992),
        (final_answer, f"$x$ follows {'word ' * 397}end", f"$x$ follows {'word ' * 397}ends", ("x", "math")),
    ],
    ids=["20 marks", "4096 characters of a line", "20 phrases", "20000 characters for a phrase",
         "5000 characters of a box", "2000 characters without a mark"],
)  # fmt: skip
def test_an_answer_is_found_up_to_each_limit_and_not_beyond(extract, at, beyond, found):
    assert extract(at) == found
    assert extract(beyond) != found


@every(
    ("text", "found"),
    [
        # side by side: spaces, signs, `and`, `or`, a few words
        (r"\boxed{1} or \boxed{2}", ["1", "2"]), (r"\boxed{1}\text{ and }\boxed{2}", ["1", "2"]), (r"\boxed{1}, maybe \boxed{2}", ["1", "2"]),
        (r"\boxed{1} (perhaps \boxed{2})", ["1", "2"]), (r"\boxed{1}, possibly \boxed{2}", ["1", "2"]), (r"\boxed{1}和\boxed{2}", ["1", "2"]), (r"\boxed{1}或\boxed{2}", ["1", "2"]),
        (r"\boxed{1}与\boxed{2}", ["1", "2"]), (r"\boxed{1}/\boxed{2}", ["1", "2"]), (r"\boxed{1} is \boxed{2}", ["1", "2"]), (r"$\boxed{1}$; $\boxed{2}$", ["1", "2"]),
        (r"\boxed{1} so we get \boxed{2}", ["1", "2"]), (r"\boxed{1}\quad\boxed{2}", ["1", "2"]), (r"\boxed{1}, \fbox{2}", ["1", "2"]),
        (r"\boxed{\boxed{1}, \boxed{2}}", ["1", "2"]), (r"\boxed{1}, \boxed{2}, \boxed{3}", ["1", "2", "3"]), (r"\boxed{0} is not it. \boxed{1}, \boxed{2}", ["1", "2"]),
        (r"\boxed{1}" + " " * 59 + r"\boxed{2}", ["1", "2"]), (r"\boxed{1}" + " " * 60 + r"\boxed{2}", ["2"]),
        # what takes the one before back, or says more than a few words
        (r"\boxed{1} but \boxed{2}", ["2"]), (r"\boxed{1} then \boxed{2}", ["2"]), (r"\boxed{1} also \boxed{2}", ["2"]), (r"\boxed{1}, not \boxed{2}", ["2"]), (r"\boxed{1} no \boxed{2}", ["2"]),
        (r"\boxed{1} = \boxed{2}", ["2"]), (r"\boxed{1} which is also \boxed{2}", ["2"]), (r"\boxed{1} and then it comes to \boxed{2}", ["2"]),
        # without braces
        (r"\boxed 5", ["5"]), (r"\boxed5", ["5"]), (r"\boxed 5.", ["5"]), (r"$\boxed ab$", ["ab"]), (r"\fbox 7 is it", ["7"]), (r"\boxed 55", ["55"]), (r"\boxed55", []), (r"\boxed \frac12", []),
        # cut off, escaped, and none
        (r"\boxed{4} and \boxed{5", ["4"]), (r"\boxed{5", []), (r"\boxed{5\}", []), (r"\boxed{\{5\}}", [r"\{5\}"]), (r"x \boxed{\text{a}} y", [r"\text{a}"]), ("none", []), (r"\boxed{ 5 }", ["5"]),
        (r"\boxed{5} }", ["5"]), (r"{ \boxed{5} and more", ["5"]), (r"\boxed{4} " + "x" * 1990 + r" \boxed{5}", ["5"]), (r"\boxed{4}" + " word" * 1000 + r"\boxed{5", ["4"]),
    ],
)  # fmt: skip
def test_boxes_that_stand_side_by_side_are_one_answer(text, found):
    assert boxes(text) == found


@every(
    ("text", "found"),
    [
        ("so $x$", ("so $x$", "line")), ("we get (1, 2)", ("we get (1, 2)", "line")), ("The result $5$", ("5", "math")), ("It is $5$ and then 6 things", ("6", "number")),
        ("It is 5 and then $6$ things", ("6", "math")), ("a line\nof 5 words here", ("5", "number")), ("$x$\n", ("$x$", "line")), ("lots of cats 5%", ("5%", "number")),
        ("it costs about $5.50 in total", ("$5.50", "number")), ("it costs about 1,000 in total", ("1,000", "number")), ("they have -5 degrees there", ("-5", "number")), ("x\n\n", ("x", "line")),
        ("some $x$ lines before\nand none in this one", ("x", "math")), ("no number here at all", None), ("the last line\n", None), ("\n", None), ("####", ("", "hash")), (r"so \boxed{", None),
        (r"so \(x\) is what we have found", ("x", "math")), (r"so \[x\] is what we have found", ("x", "math")), ("so $$x$$ is what we have found", ("x", "math")), ("<answer></answer> 5", ("", "tag")),
    ],
)  # fmt: skip
def test_without_a_mark_the_last_line_mathematics_or_number_is_the_answer(text, found):
    assert final_answer(text) == found


@pytest.mark.parametrize(
    ("text", "rest"),
    [("a</think>b", "b"), ("<think>a</think>b</think>c", "c"), ("<think>a", ""), ("a<think>b", ""), ("</think>", ""), ("a", "a")],
)  # fmt: skip
def test_what_counts_stands_behind_the_last_thought(text, rest):
    assert after_thought(text) == rest


@pytest.mark.parametrize(
    ("text", "found"),
    [("<answer>5</answer><answer>6</answer>", "6"), ("</answer><answer>5</answer>", "5"), ("<answer>\n 5 \n</answer>", "5"), ("<answer>1<answer>5</answer>", "5"),
     ("<answer>5</answer> <answer>6", "5"), ("<answer>5", None), ("</answer>5", None), ("</answer>", None), ("", None)],
)  # fmt: skip
def test_the_last_closed_tag_counts(text, found):
    assert last_tag(text) == found


@pytest.mark.parametrize("quote", ['"', "'", "`", "“"])
def test_a_mark_that_is_quoted_is_passed_over(quote):
    assert last_hash(f"{quote}#### 5") is None
    assert last_hash(f"#### 5\n{quote}#### 6") == "5"
    assert last_hash("#### 5 is\n#### x") == "5 is"


@every(
    ("text", "gold"),
    [
        (r"so \boxed{5}.", "5"), (r"\boxed{1} and \boxed{2}", "1, 2"), ("The answer is 5.", "5"), ("Answer: 5", "5"), ("x = 5", "x = 5"), ("  5 ", "5"), (r"\boxed{", r"\boxed{"), ("", ""),
        ("Therefore the value we are looking for, after all of this, is $5$ and nothing else at all.", "5"), ("the value we look for is $5$", "the value we look for is $5$"),
        ("Therefore the value we are looking for, after all of this, is 5 and nothing else at all.", "Therefore the value we are looking for, after all of this, is 5 and nothing else at all."),
        ("the answers $5$, $6$ and $7$ in this one are all right for us all", "7"),
    ],
)  # fmt: skip
def test_the_gold_of_a_solution_is_what_it_ends_on(text, gold):
    assert gold_answer(text) == gold
