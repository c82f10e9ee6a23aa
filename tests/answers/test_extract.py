import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.answers.extract import (
    boxes,
    final_answer,
    gold_answer,
    last_hash,
    last_phrase,
    last_tag,
    text_after_thought,
)
from rewardkit.scorers import math
from tests.tables import every


def last_boxed(text):
    return (boxes(text) or [None])[-1]


def stated(response, gold=""):
    """Return (text, mark) of the final answer; None without one."""
    answer = final_answer(response, gold)
    return answer and (answer.text, answer.mark)


EXTRACTORS = [last_hash, last_phrase, last_boxed, final_answer]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("so #### 18", "18"), ("#### 1\n#### 2", "2"), ("####7\nmore", "7"), ("#### 18 ####", "18"),
        ("#### 18\n####", "18"), ("#### 18\n\n#### Explanation", "18"), ("####\n18\nmore", "18"),
        ("#### ", ""), ("#### none\n####", ""), ("no mark", None),
    ],
)  # fmt: skip
def test_last_hash_returns_the_answer_after_the_last_mark_with_a_number(text, answer):
    assert last_hash(text) == answer


@every(
    ("text", "answer"),
    [
        ("Answer: 5", "5"), ("answer : 5\nAnswer: 6 apples", "6 apples"), ("**Answer:** 42", "42"),
        ("The answer is $14{,}916$. I hope it is correct.", "14{,}916"),
        ("The final answer is 7.78. Done.", "7.78"), ('{"answer": "14"}', "14"),
        ('{"answer": 14}', "14"), ('{"answer": "14", "tries": 3}', "14"), ("Answer：42", "42"),
        ("答案：AC", "AC"), ("答案是 18。", "18"), ("Answer:\n7", "7"), ("Answer: X", "X"),
        ("the answer are 7", "7"), ("the answer is: 7", "7"), ("Answer: 7.5. Done", "7.5"),
        ("答案：7。 8太大", "7"), ("ANSWER: 7", "7"), ("Antwort: 7", "7"), ("Réponse: 7", "7"),
        ("Respuesta: 7", "7"), ("Ответ: 7", "7"), ("Answer: 7, because 8 is not", "7"),
        ("Answer: 7; 8 is too large", "7"), ("Answer: 7; or 8", "7; or 8"),
        ("The answer is $7$, or 8.", "$7$, or 8"), ("The answer is $7$ (or $8$).", "$7$ (or $8$)"),
        (r"The answer is \(7\).", "7"), (r"The answer is \[7\]", "7"), ("The answer is $$7$$", "7"),
        ("【答案】$7$", "7"), ('The answer is "7" or "8"', '7" or "8'), ("the reanswer: 7", None),
        ("Answer:", None), ("nothing", None),
    ],
)  # fmt: skip
def test_last_phrase_returns_the_text_after_the_last_statement_of_an_answer(text, answer):
    assert last_phrase(text) == answer


@every(
    ("text", "answer"),
    [
        (r"\boxed{1} Answer: 2", ("1", "box")),
        (r"\boxed{1}, \boxed{2} and $\boxed{3}$.", ("1, 2, 3", "box")),
        (r"\boxed{1} is wrong, it is \boxed{2}", ("2", "box")),
        ("<answer>5</answer> then Answer: 6", ("5", "tag")),
        ("The answer is 6\n#### 7", ("6", "phrase")), ("so\n#### 7", ("7", "hash")),
        ("It follows.\n(1, 2)", ("(1, 2)", "line")),
        ("All in all there are 12 apples left over", ("12 apples left over", "sentence")),
        (r"<think>\boxed{1}</think> \boxed{2}", ("2", "box")), (r"<think>\boxed{1}", None),
        (r"cut off: \boxed{1", None), ('the form is "#### 5" here', None), ("I do not know.", None),
        ("", None),
    ],
)  # fmt: skip
def test_the_final_answer_is_at_the_most_explicit_mark(text, answer):
    assert stated(text) == answer


def balanced():
    return st.recursive(
        st.text(alphabet="abc01 ", max_size=5),
        lambda inner: st.lists(
            st.one_of(inner, inner.map(lambda t: "{" + t + "}")), max_size=3
        ).map("".join),
        max_leaves=8,
    )


@given(st.text(alphabet="xyz{}\\ ", max_size=30), balanced())
def test_a_balanced_box_at_the_end_is_found_after_any_text(before, content):
    assert last_boxed(f"{before.rstrip(chr(92))}\\boxed{{{content}}}") == content.strip()


@given(st.text())
@pytest.mark.parametrize("extract", EXTRACTORS[:-1])
def test_any_text_is_searched_without_raising(extract, text):
    statement = extract(text)
    assert statement is None or statement in text


@every(
    "piece", [" ", "\t", " ,", "? ", "and ", "not ", "不是", "1 ", "= ", "*", "\\(", "x 1 ", "is "]
)
@every("start", ["Answer: x", "It is 1", "so ", "答案：x", "Answer: $x$"])
def test_any_content_of_a_statement_is_read_in_time(piece, start):
    """A gap of 1,900 blanks once took a minute: a window does not bound a cubic expression."""
    assert _timed(final_answer, start + piece * (1900 // len(piece)) + "y") < 0.5


@every("piece", ["<!--", "<!-- a ", "~~a", "<s>", "\\phantom{", "\n%", "\n", "\\boxed{1} or "])
@every("start", ["", r"\boxed{12}", "The answer is 12"])
def test_a_long_response_of_one_piece_is_read_in_time(piece, start):
    """Comments that never end were searched 2,000 characters each: four seconds for a megabyte."""
    assert _timed(final_answer, start + piece * (200_000 // len(piece))) < 0.2


def _timed(extract, text):
    started = time.process_time()
    extract(text)
    return time.process_time() - started


@pytest.mark.parametrize(
    ("extract", "at", "beyond", "answer"),
    [
        (last_hash, "#### 7\n" + "####\n" * 19, "#### 7\n" + "####\n" * 20, "7"),
        (last_hash, f"#### 1\n#### {'x' * 4095}7", f"#### 1\n#### {'x' * 4096}7", f"{'x' * 4095}7"),
        (last_phrase, "Answer: 7\n" + "Answer\n" * 19, "Answer: 7\n" + "Answer\n" * 20, "7"),
        (last_phrase, f"Answer: 7\n{'x' * 19_990}", f"Answer: 7\n{'x' * 19_991}", "7"),
        (last_boxed, rf"\boxed{{{'7' * 4992}}}", rf"\boxed{{{'7' * 4993}}}", "7" * 4992),
        (stated, f"It is 7{' ' * 1996}", f"It is 7{' ' * 1997}", ("7", "sentence")),
    ],
    ids=["20 marks", "4096 characters of a line", "20 phrases", "20000 characters for a phrase",
         "5000 characters of a box", "2000 characters without a mark"],
)  # fmt: skip
def test_an_answer_is_found_up_to_each_limit_only(extract, at, beyond, answer):
    assert extract(at) == answer
    assert extract(beyond) != answer


@every(
    ("text", "answer"),
    [
        # the last balanced box
        (r"\boxed{5}", ["5"]), (r"\boxed{1} then \boxed{2}", ["2"]),
        (r"\boxed{\frac{1}{2}}", [r"\frac{1}{2}"]), (r"\boxed{1} and a cut \boxed{2", ["1"]),
        (r"\boxed{\{1, 2\}}", [r"\{1, 2\}"]), (r"\boxed{\left\{ x \right.}", [r"\left\{ x \right."]),
        (r"\boxed {7}", ["7"]), (r"\fbox{8}", ["8"]), (r"\boxed{\boxed{3}}", ["3"]), (r"\\boxed{3}", ["3"]),
        (r"\boxed{", []), ("boxed{5}", []),
        # side by side: spaces, signs, `and`, `or`, a few words
        (r"\boxed{1} or \boxed{2}", ["1", "2"]), (r"\boxed{1}\text{ and }\boxed{2}", ["1", "2"]), (r"\boxed{1}, maybe \boxed{2}", ["1", "2"]),
        (r"\boxed{1}与\boxed{2}", ["1", "2"]), (r"\boxed{1}/\boxed{2}", ["1", "2"]), (r"\boxed{1} is \boxed{2}", ["1", "2"]), (r"$\boxed{1}$; $\boxed{2}$", ["1", "2"]),
        (r"\boxed{1} so we get \boxed{2}", ["1", "2"]), (r"\boxed{1}\quad\boxed{2}", ["1", "2"]), (r"\boxed{1}, \fbox{2}", ["1", "2"]), (r"$x=\boxed{1}$ and $y_1=\boxed{2}$", ["1", "2"]),
        (r"\boxed{\boxed{1}, \boxed{2}}", ["1", "2"]), (r"\boxed{1}, \boxed{2}, \boxed{3}", ["1", "2", "3"]), (r"\boxed{0} is not it. \boxed{1}, \boxed{2}", ["1", "2"]),
        (r"\boxed{1}" + " " * 59 + r"\boxed{2}", ["1", "2"]), (r"\boxed{1}" + " " * 60 + r"\boxed{2}", ["2"]),
        # words that retract the box before, or more than a few words
        (r"\boxed{1} but \boxed{2}", ["2"]), (r"\boxed{1} then \boxed{2}", ["2"]), (r"\boxed{1} also \boxed{2}", ["2"]), (r"\boxed{1}, not \boxed{2}", ["2"]), (r"\boxed{1} no \boxed{2}", ["2"]),
        (r"\boxed{1} = \boxed{2}", ["2"]), (r"\boxed{1} which is also \boxed{2}", ["2"]), (r"\boxed{1} and then it comes to \boxed{2}", ["2"]),
        # without braces
        (r"\boxed 5", ["5"]), (r"\boxed5", ["5"]), (r"\boxed 5.", ["5"]), (r"$\boxed ab$", ["ab"]), (r"\fbox 7 is it", ["7"]), (r"\boxed 55", ["55"]), (r"\boxed55", []), (r"\boxed \frac12", []),
        # cut off, escaped, and missing boxes
        (r"\boxed{4} and \boxed{5", ["4"]), (r"\boxed{5", []), (r"\boxed{5\}", []), (r"\boxed{\{5\}}", [r"\{5\}"]), (r"x \boxed{\text{a}} y", [r"\text{a}"]), ("none", []), (r"\boxed{ 5 }", ["5"]),
        (r"\boxed{5} }", ["5"]), (r"{ \boxed{5} and more", ["5"]), (r"\boxed{4} " + "x" * 1990 + r" \boxed{5}", ["5"]), (r"\boxed{4}" + " word" * 1000 + r"\boxed{5", ["4"]),
    ],
)  # fmt: skip
def test_boxes_side_by_side_are_one_answer(text, answer):
    assert boxes(text) == answer


@every(
    ("text", "answer"),
    [
        # a line that holds only an answer
        ("12", "12"), ("x = 12", "x = 12"), ("so we get\n\n**12**", "12"), ("### Final Answer\n12", "12"), ("#### Final Answer\n12", "12"), ("Output: 12", "12"), ("Total: 12 cm", "12 cm"),
        ("The result $5$", "5"), ("Answer $5$", "5"), ("$x$\n", "x"), ("(1, 2)", "(1, 2)"), ("x=1 or x=2", "x=1 or x=2"), ("12个苹果", "12个苹果"), ("12 white cubes", "12 white cubes"),
        ("12<|im_end|>", "12"), ("12</s>", "12"), ("1. 12", "12"), ("<b>12</b>", "12"), (r"\begin{pmatrix} 1 & 2 \end{pmatrix}", r"\begin{pmatrix} 1 & 2 \end{pmatrix}"),
        # a display whose last row ends in a value
        ("So we get\n$$\nx = 12\n$$", "x = 12"),
        # a sentence that states a result: the whole run of values, with the words after it
        ("The result is 2^10.", "2^10"), ("The number of possible values is 12.", "12"), ("So the date is May 12.", "May 12"), ("故共有12种不同的方法。", "12种不同的方法"), ("The sides are equal to 12.", "12"), ("The result is x^2+12", "x^2+12"), ("The train arrives at 10:45.", "10:45"), ("Therefore the probability is 3/4.", "3/4"), ("So the point is (1, 2).", "(1, 2)"),
        ("The range is 5-12.", "5-12"), ("Hence the interval is $(1,2]$.", "(1,2]"), ("It costs about $5.50 in total", "$5.50 in total"), ("They have -5 degrees there", "-5 degrees there"),
        ("The area is $9-4=5$ square inches.", "$9-4=5$ square inches"), ("We find that $x < 3$.", "x < 3"), ("12 is the final answer.", "12"), ("Thus $x < 3$ is our answer.", "x < 3"),
        (r"so \(x\) is what we have found", "x"), ("It is 12. I hope this helps!", "12"), ("Hmm, 12? No wait, it's 15.", "15"), ("x=12 is extraneous, so x=3.", "x=3"),
        ("综上所述，结果等于12。", "12"), ("因此最小值为$\\frac34$。", "\\frac34"), ("故共有12种。", "12种"), ("综上，a=3，b=4。", "a=3，b=4"), ("答：一共有12个苹果。", "一共有12个苹果"),
        # several values stay together
        ("So there are 12 or 13 ways.", "12 or 13 ways"), ("so $x = 5$ and $y = 6$.", "$x = 5$ and $y = 6$"), ("It is 12 here and for Mary it is 13.", "12 here and for Mary it is 13"),
        ("The answer is 12, not 13.", "12"), ("The answer is 12 rather than 13", "12"), ("所以答案是 12 而不是 13。", "12"),
        ("The answer is 12, not counting the ends", "12, not counting the ends"),
        # all values of a hedge are kept
        ("The answer is either 12 or 13.", "either 12 or 13"), ("The answer is 12 (or 13 if zero counts).", "12 (or 13 if zero counts)"), ("The answer is 12. Or 13.", "12. Or 13"),
        ("The answer is 12. It could also be 13.", "12. It could also be 13"), ("Answer: $x=1$ and $y=2$.", "$x=1$ and $y=2$"), ("The answer is $5.50 or $6.00.", "$5.50 or $6.00"),
        ("Answer: 12; 13", "12; 13"), ("Answer: 12; alternatively 13", "12; 13"), ("Answer: 12. 13.", "12; 13"), ("答案：12。13。", "12; 13"), ("Answer: 12. 12.", "12"), ("Answer: 12; $x$ is odd", "12"),
        # taken back, and only checked
        ("The answer is 13. No, that is wrong. It is 12.", "12"), ("The answer is 13. Wait, it's 12.", "12"), ("The answer is 13.\n\nHmm, this is not right. It is 12.", "12"), ("答案是13。算错了，结果是12。", "12"),
        ("The answer is 12. Wait, let me verify: 5 + 7 = 12.", "12"), ("The answer is 12. Actually, we used only 3 of the rules.", "12"), ("The answer is 12. If you got 13, that is wrong.", "12"), ("The answer is 12. No 13th floor exists.", "12"), ("The answer is 12. It is wrong to count the roof.", "12"), ("答案是12。等等，验证一下：5+7=12。", "12"),
        # with words that change the value
        ("The answer is $12$ million.", "$12$ million"), ("The answer is $12$ apples", "$12$ apples"), ("the answer is 5 less than x", "5 less than x"), ("The answer is 2**3.", "2**3"),
        # the words before a mark, and after it
        ("故答案为：12．", "12"), ("故答案为$\\sqrt{3}$.", "\\sqrt{3}"), ("所以答案是12。\n\n（注：共 40 人。）", "12"), ("故答案为12，其中不含 4 个点。", "12"), ("最终答案是：12。", "12"), ("答案等于12", "12"), ("答えは12です。", "12"), ("정답은 12입니다.", "12"),
        ("The answer is **12** apples", "12 apples"), ("<b>Answer:</b> 12", "12"), ("The answer is 12.<|im_end|>", "12"), ("Answer: `12`", "12"), ("Answer:\n\n$$\\frac34$$", "\\frac34"),
        ("Answer:\nWe need to count them all. So x = 12.", "x = 12"), ("Answer: 12\nAnswer: 13", "13"),
        *((text, None) for text in [
            # no result is stated
            "After step 12 I ran out of ideas.", "See problem 12", "Stick 4 lies in the middle.", "a line\nof 5 words here", "some $x$ before\nand none in this one", "I do not know.", "I tried 12.", "lots of cats 5%",
            "There were 12 apples in the question. I cannot determine the answer.", "Question: how many? Given: 12.\n\nI am not sure.", "Let x = 12.", "Now consider x = 12.", "Take 12.", "We use it where x = 12", "So it holds for n = 12.",
            "```python\nprint(12)\n```", "so\n\n12\n\n(Note: 13 was left out.)",
            # denied, doubted or asked
            "The answer is not 12.", "The answer isn't 12.", "The answer can't be 12.", "The answer could be 12.", "The answer might be 12.", "答案不是12。", "答案可能是12。", "12 is not a solution. There is none.", "It cannot be 12.",
            "So it is not 12.", "The answer is 12. No: the answer is not 12.", "Is the answer 12?", "The answer is 12?", "It is 12?", "Maybe it is 12.", "If it rains it is 12.", "There are at least 12 ways.", "So x is between 12 and 13.",
            "结果不是12。", "是12吗？", "如果x=12", "The answer is 12. No, that is wrong.", "Answer: 12. Oops, that was a mistake.", "答案是12。不对。",
            # a thought that never ends
            "<think>\nThe answer is 12", "<think>a</think>12<think>b", "<|begin_of_thought|>\\boxed{12}", "◁think▷12", "<thinking>12",
        ]),
    ],
)  # fmt: skip
def test_the_values_that_a_response_states_are_its_answer(text, answer):
    statement = final_answer(text)
    assert (statement and statement.text) == answer


@every(
    ("text", "answer"),
    [
        (r"\boxed{\text{The answer is } 12}", ("12", "box")), (r"\boxed{\text{Answer: 12}}", ("12", "box")), (r"\boxed{Answer: 12}", ("12", "box")), (r"\boxed{答案：12}", ("12", "box")), (r"\boxed{#### 12}", ("12", "box")), (r"\boxed{故答案为12}", ("12", "box")),
        ("<answer>The answer is 12</answer>", ("12", "tag")), ("<answer>12 or 13</answer>", ("12 or 13", "tag")), (r"\boxed{}", ("", "box")), ("<answer></answer> 5", ("", "tag")), ("####", ("", "hash")),
        ("#### Explanation\nSo x = 12.", ("x = 12", "sentence")), ("#### 3. Count them\nSo x = 12.", ("x = 12", "sentence")), ("#### No solution", ("No solution", "hash")), ("The result is 32m, which is option A. #### A", ("A", "hash")), ("So the final result is 32m.\nThat is A. #### A", ("A", "hash")), ("#### 12\n#### 13", ("13", "hash")),
        ("<think>a</think>\\boxed{13}<think>b</think>\\boxed{12}", ("12", "box")), ("◁think▷\\boxed{13}◁/think▷\\boxed{12}", ("12", "box")), (r"\boxed{\text{The answer is not } 12}", (r"\text{The answer is not } 12", "box")),
    ],
)  # fmt: skip
def test_the_answer_of_a_box_a_tag_or_a_hash_does_not_contain_its_phrase(text, answer):
    assert stated(text) == answer


@every(
    ("text", "gold", "answer"),
    [
        ("So the winner is Alice.", "Bob", "Alice"), ("There is no solution.", "no solution", "no solution"), ("The function is not even.", "even", "not even"), ("所以该函数是奇函数。", "偶函数", "奇函数"),
        ("Alice", "Bob", "Alice"), ("It is even or odd.", "even", "even or odd"), ("There are 12 ways.", "none", "12 ways"), ("So the winner is Alice.", "12", None), ("It cannot be even.", "even", None),
        ("I do not know.", "Bob", None), ("It might be Alice.", "Alice", None),
    ],
)  # fmt: skip
def test_words_count_if_the_gold_is_words(text, gold, answer):
    statement = final_answer(text, gold)
    assert (statement and statement.text) == answer


@given(
    st.text(alphabet="x1 .,;?$\\()[]{}=&*`\n是不，。an't orsef:", max_size=60),
    st.sampled_from(["", "5", "no"]),
)
def test_any_response_has_a_stripped_answer_or_none(text, gold):
    answer = final_answer(text, gold)
    assert answer is None or answer.text == answer.text.strip()


@every(
    "text",
    [
        # a clause governs `the answer is`; a bound or a second value follows; a box is denied, supposed, asked or taken back
        "I don't think the answer is 12.", "I do not believe that the final answer is 12.", "I'm not sure the answer is 12.", "We cannot say the answer is 12.", "It is not clear that the answer is 12.",
        "It's not true that the correct answer is 12.", "It is unlikely that the answer is 12.", "I doubt the answer is 12.", "No one knows whether the answer is 12.", "One might think the answer is 12.",
        "Many people say the answer is 12.", "Assume that the answer is 12. Then 12 divides 25, a contradiction.", "Let us suppose the answer is 12 and see.", "Imagine the answer is 12.", "Maybe the answer is 12.",
        "Perhaps, the answer is 12.", "My guess: perhaps the answer is 12.", "There is no proof that the answer is 12.", "Never say the answer is 12.", r"The answer is not \boxed{12}.", r"The answer isn't \boxed{12}.",
        r"x \neq \boxed{12}", r"$x\ne\boxed{12}$", r"The answer cannot be $\boxed{12}$.", r"It is certainly not the case that the answer is \boxed{12}.", r"I don't think it is \boxed{12}.",
        r"If the answer is \boxed{12} then we get a contradiction.", r"Suppose the answer is $\boxed{12}$.", r"Is the answer \boxed{12}?", r"\boxed{12} is wrong.", r"\boxed{12} (incorrect)", r"$\boxed{12}$ is not the answer.",
        r"\boxed{12}. No, that's wrong.", "\\boxed{12}\n\nWait, this is incorrect. I do not know.", r"\boxed{12}. Actually, it is 13.", r"\boxed{12}. Correction: it should be 13.", r"\boxed{12}. Sorry, I made a mistake.",
        r"答案不是\boxed{12}。", "我不认为答案是12。", "我不确定答案是12。", "如果答案是12，那么矛盾。", "假设答案是12。", "可能答案是12。", "也许正确答案是12。", "答案未必是12。", "答案最多是12。", "答案至多为12。", "答案至少为12。", "不能确定答案是否是12。", r"\boxed{12}，不对。", r"\boxed{12}。不对，应该是13。",
        r"\boxed{12}（错误）", "La réponse n'est pas 12.", "Je ne pense pas que la réponse est 12.", "La respuesta no es 12.", "La respuesta es 12 o 13.", "Die Antwort ist 12 oder 13.", "Ответ: 12 или 13", "答えは12または13です。",
        "答えは12ではありません。", "정답은 12 또는 13입니다.", "정답은 12가 아닙니다.", "La risposta non è 12.", "La risposta è 12 o 13.", "A resposta não é 12.", "A resposta é 12 ou 13.", "The answer is x=12; otherwise x=13.", "Answer: n=12; n=13; n=14.",
        r"The answer is \boxed{13}, not \boxed{12}.", "A common wrong answer is 12.", "Incorrect answer: 12", "A common wrong answer is 12.", "Incorrect answer: 12", "Placeholder answer: 12", "Tom thinks the answer is 12.",
        "We hope the answer is 12.", "Let us prove that the answer is 12.", "Nobody believes the answer is 12.", "It cannot be that the answer is 12.", "The answer is 12. Strike that.", "The answer is 12. Just kidding, 13.",
        "The answer is 12. I changed my mind: it is 13.", "The answer is 12, which is wrong.", "The answer is 12... is false.", "The answer is 12\nor 13", "The answer is 12.\nAlternatively 13.",
        r"Write your answer as \boxed{12}. The answer is 13", r"% \boxed{12}", r"<!-- \boxed{12} -->", r"\phantom{\boxed{12}}", r"~~\boxed{12}~~", r"<s>\boxed{12}</s>", r"\boxed{13 \boxed{12}}", r"\boxed{\boxed{12}13}",
        r"\boxed{13} (alternatively \boxed{12})", "<answer>12</answer> or <answer>13</answer>", r"\boxed{\text{My answer: } 12 \text{; backup: } 13}", r"I first thought it was $\boxed{12}$, but that was a mistake.",
        r"Let me discard \boxed{12}; the correct value is 13.", r"The answer is $\boxed{12}$. Hmm, no, scratch that. I forgot a carry.", "有人说答案是12，但他们漏掉了一种情况。", "Answer: 12 xor 13", r"A common wrong answer is \boxed{12}.",
        "Tom says it is 12.", r"\boxed{12} cannot be right.", r"\boxed{12} can't be the answer.", r"\boxed{12} does not satisfy the equation.", r"\boxed{12} fails.", r"\boxed{12} would be the answer if the die were fair.",
        r"The answer would have been \boxed{12} had we counted twice.", r"Die Antwort ist nicht \boxed{12}.", r"La réponse n'est pas \boxed{12}.", r"La respuesta no es \boxed{12}.", r"La risposta non è \boxed{12}.",
        r"Ответ не \boxed{12}.", r"答えは\boxed{12}ではない。", r"정답은 \boxed{12}이 아니다.", r"\boxed{12} ist falsch.", r"\boxed{12} est faux.", r"\boxed{12}. I misread the question.", r"\boxed{12}. There is an error in my work.",
        r"\boxed{12}. This contradicts the condition.", r"\boxed{12}. That can't be right.", r"\boxed{12}。这个答案不对。", r"\boxed{12}。结果有误。", r"\boxed{12}是错误的。", r"Ignore \boxed{12}.", r"I reject \boxed{12}.",
        r"\boxed{12} is extraneous.", "La réponse est peut-être 12.", "La réponse est environ 12.", "La réponse est plus de 12.", "La réponse est au moins 12.", "Die Antwort ist etwa 12.", "Die Antwort ist ungefähr 12.",
        "Die Antwort ist mehr als 12.", "Die Antwort ist höchstens 12.", "Die Antwort ist vielleicht 12.", "La respuesta es aproximadamente 12.", "La respuesta es más de 12.", "La respuesta es quizás 12.",
        "La respuesta es como máximo 12.", "La risposta è circa 12.", "La risposta è almeno 12.", "La risposta è forse 12.", "A resposta é no máximo 12.", "A resposta é talvez 12.", "Ответ: примерно 12", "Ответ: около 12",
        "Ответ: не более 12", "Ответ: больше 12", "Ответ: возможно 12", "答えは約12です。", "答えは12以上です。", "答えは12未満です。", "答えは少なくとも12です。", "答えはたぶん12です。", "答えは12くらいです。", "정답은 약 12입니다.", "정답은 12 이상입니다.", "정답은 최소 12입니다.", "정답은 아마 12입니다.",
        "답은 12보다 큽니다.", "答案不超过12。", "答案大于12。", "答案是12左右。", "答案是12以上。", "答案是至少12。", "答案接近12。", "答案是12或13。", "答案是12还是13？", "答案也许是12。", "我猜是12。", "结果可能是12。", "La réponse est 12 ou 13.", "La respuesta es 12 u 13.",
        "La risposta è 12 oppure 13.", "Die Antwort ist entweder 12 oder 13.", "Ответ: 12 либо 13", "答えは12か13です。", "답은 12 아니면 13입니다.", "Es ist 12 oder 13.", "12 oder 13", "12 ou 13", r"\boxed{12 \text{ ou } 13}",
        r"\boxed{12 \text{ oder } 13}", r"\boxed{12 \text{ o } 13}", r"\boxed{12 \text{ или } 13}", r"\boxed{12または13}", r"\boxed{12 \text{ environ}}", r"\boxed{\text{environ } 12}", r"\boxed{\text{etwa } 12}",
        r"\boxed{\text{mindestens } 12}", r"\boxed{\text{не менее } 12}", r"\boxed{至少12}", r"\boxed{12以上}", r"\boxed{12左右}", r"\boxed{不是12}", r"\boxed{\text{nicht } 12}", r"\boxed{\text{pas } 12}", r"\boxed{12 \text{ probably}}",
        r"\boxed{12 \text{ minimum}}", r"\boxed{12 \text{ maximum}}", r"\boxed{12 \text{ tops}}", r"\boxed{12 \text{ etc.}}", r"\boxed{12\text{th}}", "There were 12 apples at first. How many are left?",
        "So there are 12 apples at first. How many are left?", "We start with 12 apples. Can you finish it?", "If we add 12 apples we are done.", "Step 12 is the last one.", "The price decreased by more than 12.",
        "He needs at least 12 more apples.", "Tom has 12 apples and Mary has 13.", "Each of the 12 children gets some candies.", "First, 12 students passed, then 13 more.", "The train leaves at 12 and arrives at 13.",
        "We are given 12 cards.", "There are 12 cards in the problem. I can not go on.", "12 is not possible. Sorry!", "The bound of 12 is never reached.", "Let me know if 12 is right.", "Do you think it is 12?", "Tom guessed 12.",
        "The question asks about 12 apples.", "Method 12 works best.", "The answer is on page 12.", "It was 12 yesterday but now it is 13.", "x is less than 12.", "So 12 does not work.", "I would say between 12 and 13.",
        "Roughly 12 to 13.", "So the price decreased by a factor of 12 to 5.", "在12个盒子里有一些球。", "第12步结束。", "不到12个。", "如果有12个人，就够了。", "It is possible that the total is 12.", "Suppose there are 12 diagonals.",
        "Tom believes there are 12.", "The claim that there are 12 is false.", "Had we counted twice, we would get 12.", "The number of diagonals would be 12 if the figure were a square.",
        r"I doubt that the number of diagonals is \boxed{12}.", r"Suppose that the total number is \boxed{12}.", r"If the remainder were \boxed{12}, we would have a contradiction.",
        r"If the total is \boxed{12}, then it cannot be odd.", r"Someone claimed that the total is \boxed{12}.", r"My friend says it is \boxed{12}.", r"A careless solver would write \boxed{12}.",
        r"It is tempting to answer \boxed{12}.", r"One might write \boxed{12}.", "At first glance the answer is 12.", "At first glance, the answer seems to be 12.", "It seems that the answer is 12, but it is not.",
        "The answer is 12, but that is not possible.", "The answer is 12? No.", "The answer is definitely not 12.", r"The answer is certainly not \boxed{12}.", "The answer is no longer 12.", "The answer is anything but 12.",
        "The answer is never 12.", "The answer is far from 12.", "The answer is close to 12.", "The answer is near 12.", "The answer is almost 12.", "The answer is just under 12.", "The answer is slightly more than 12.",
        "The answer is up to 12.", "The answer is about 12 or so.", "The answer was supposed to be 12.", "The answer used to be 12.", "The answer should have been 12.", "The answer must be less than 12.",
        "The answer must exceed 12.", "The answer can be 12.", "The answer may be 12.", "The answer could well be 12.", "The answer is allegedly 12.", "The answer is supposedly 12.", "The answer is not necessarily 12.",
        "The answer is neither 12 nor 13.", "The answer is either 12 or 13.", "The answer is 12 unless n is odd, in which case it is 13.", "The answer is 12 for even n and 13 for odd n.", "The answer is 12 plus something.",
        "The answer is 12 times 3.", "The answer is 12 (or possibly 13).", "The answer is 12/13.", "The answer is 12, 13.", r"The answer is \sout{12} 13.", "Without loss of generality the answer is not 12.",
        "No, the answer is not 12.", "The answer is 12 in the key, but the key is wrong.", "The textbook says the answer is 12, but that is a typo.", "According to the key the answer is 12; I get 13.",
        "They want us to say that the answer is 12.", "You would think the answer is 12.", "It would be wrong to say that the answer is 12.", "It is a common misconception that the answer is 12.",
        "It is not known whether the answer is 12.", "I am not convinced that the answer is 12.", "I can't prove that the answer is 12.", "I cannot conclude that the answer is 12.", "There is a 50% chance that the answer is 12.",
        "Let's say the answer is 12.", "Let's pretend the answer is 12.", "Let the answer be 12.", "Could the answer be 12?", "Can the answer be 12?", "Is 12 the answer?", "Why is the answer 12?", "What if the answer is 12?",
        "Prove that the answer is 12.", "Show that the answer is 12.", "We want to show that the answer is 12.", "We were told that the answer is 12.", "Unless I am mistaken, the answer isn't 12.", "有人认为答案是12。", "他说答案是12。",
        "我不相信答案是12。", "很难说答案是12。", "答案不可能是12。", "答案并不是12。", "答案绝不是12。", "答案应该不是12。", "答案好像是12。", "答案似乎是12，但不对。", "看起来答案是12，其实不是。", "若答案为12，则不成立。", "要证明答案是12。", "谁说答案是12？", "难道答案是12吗？", "不一定，答案可能是12。", "答案是12吗？不是。", "答案是12，这是错误的。",
        "答案是12。不，是13。", "答案是12。更正：13。", "答案是12，不对，应该是13。", "先猜答案是12。", "书上的答案是12，但书错了。", "小明认为答案是12。", r"如果是\boxed{12}，则矛盾。", r"不可能是\boxed{12}。", r"错误答案：\boxed{12}", r"\boxed{12}不是答案。", r"\boxed{12}显然不对。", r"\boxed{12}，但这是错的。",
        "Resposta: 12 ou 13", "Odpowiedź: 12 lub 13", "Odpowiedź: 12 albo 13", "Antwoord: 12 of 13", "Risposta: 12 o 13", "Cevap: 12 veya 13", "Đáp án: 12 hoặc 13", "Jawaban: 12 atau 13", "الجواب: 12 أو 13",
        "La réponse est 12 ou plus.", "La respuesta es 12 o más.", "Die Antwort ist 12 oder mehr.", "Ответ: 12 или больше", "Ответ: не меньше 12", "Ответ: меньше 12", "Ответ: скорее всего 12", "Ответ: вряд ли 12",
        "Die Antwort ist mindestens 12 Stühle.", "Die Antwort ist weniger als 12.", "Die Antwort ist fast 12.", "Die Antwort ist wahrscheinlich 12.", "Die Antwort ist kaum 12.", "Die Antwort liegt zwischen 11 und 13.",
        "Die Antwort ist maximal 12.", "La réponse est moins de 12.", "La réponse est au plus 12.", "La réponse est presque 12.", "La réponse est probablement 12.", "La réponse est peut être 12.", "La réponse est entre 11 et 13.",
        "La réponse est supérieure à 12.", "La réponse est inférieure à 12.", "La respuesta es menos de 12.", "La respuesta es casi 12.", "La respuesta es probablemente 12.", "La respuesta es mayor que 12.",
        "La respuesta es menor que 12.", "La respuesta es tal vez 12.", "La respuesta puede ser 12.", "La réponse pourrait être 12.", "Die Antwort könnte 12 sein.", "La risposta potrebbe essere 12.", "La risposta è meno di 12.",
        "La risposta è al massimo 12.", "La risposta è quasi 12.", "La risposta è maggiore di 12.", "A resposta é pelo menos 12.", "A resposta é menos de 12.", "A resposta é quase 12.", "A resposta pode ser 12.",
        "A resposta é maior que 12.", "答えは12より大きい。", "答えは12を超える。", "答えは12個以上です。", "答えは12人以下です。", "答えは最大12です。", "答えは多分12です。", "答えは12かもしれない。", "答えは12でしょうか。", "答えは12から13の間です。", "답은 12명 이상입니다.", "답은 12보다 작다.", "답은 최대 12입니다.",
        "답은 12일 수도 있습니다.", "답은 12일까요?", "답은 약 12 정도입니다.", "答案是12或更多。", "答案是12多。", "答案是12上下。", "答案是12个以上。", "答案是12个以内。", "答案是不到12。", "答案是近12。", "答案是12至13。", "答案是12到13之间。", "答案在11和13之间。", "答案多于12。", "答案少于12。", "答案大于等于12。",
        "答案是大于12的数。", "答案有可能是12。", "答案大概是12或13。", r"\boxed{12\text{ ou plus}}", r"\boxed{12\text{ oder mehr}}", r"\boxed{12\text{ o más}}", r"\boxed{12\text{ или больше}}", r"\boxed{12个以上}", r"\boxed{12 이상}", r"\boxed{12人以下}",
        r"\boxed{12を超える}", r"\boxed{12\text{ et plus}}", r"\boxed{\text{al menos }12}", r"\boxed{\text{höchstens }12}", r"\boxed{\text{au plus }12}", r"\boxed{\text{peut-être }12}", r"\boxed{\text{vielleicht }12}",
        r"\boxed{\text{quizás }12}", r"\boxed{\text{возможно }12}", r"\boxed{\text{más de }12}", r"\boxed{\text{plus de }12}", r"\boxed{\text{mehr als }12}", r"\boxed{\text{больше }12}", r"\boxed{\text{最多}12}",
        r"\boxed{\text{可能是}12}", r"\boxed{\text{大于}12}", "#### 12 ou 13", "#### au moins 12", "#### 12 oder 13", "#### 12以上", "Es sind entweder 12 oder 13.", "Il y en a 12 ou 13.", "Hay 12 o 13.", "Hay al menos 12.",
        "Hay más de 12.", "Es gibt mindestens 12.", "Es gibt mehr als 12.", "Il y a au moins 12.", "Il y a plus de 12.", "Ci sono almeno 12.", "Их не менее 12.", "Их больше 12.", "少なくとも12個あります。", "12個以上あります。", "12개 이상 있습니다.",
        "超过12个。", "大约12到13个。", "不超过12个。", "不少于12个。", "也许有12个。", "可能有12个。", r"I know that the answer is not \boxed{12}.", r"The number \boxed{12} is a wrong answer.", r"\boxed{12} is a common mistake.",
        r"The answer \boxed{12} must be rejected.", r"The answer \boxed{12} is rejected.", r"We reject the value \boxed{12}.", r"The value \boxed{12} is excluded.", r"\boxed{12} was my first guess, but it is wrong.",
        r"My first attempt gave \boxed{12}, which is incorrect.", r"At first I got \boxed{12}. But this is wrong.", r"At first I got \boxed{12}. That was wrong, though.", r"\boxed{12}. Oh no, I made a sign error.",
        r"\boxed{12}. Hmm, that does not match the given condition.", r"\boxed{12}. On second thought, 13.", r"\boxed{12}. Actually the answer is 13.", r"\boxed{12}. Oops! It should be 13.", r"\boxed{12}. I meant 13.",
        r"\boxed{12}. I meant to write 13.", r"\boxed{12}. Sorry, typo: 13.", r"\boxed{12} → wait, 13.", r"\boxed{12}, no, 13.", r"\boxed{12}, or rather 13.", r"\boxed{12}, I mean 13.", r"\boxed{12}. So this approach fails.",
        r"\boxed{12}. This answer is incorrect.", r"\boxed{12}. The above answer is incorrect.", r"\boxed{12}. The above is wrong.", r"\boxed{12}. My answer is wrong.", r"\boxed{12}. So my answer above is not correct.",
        r"\boxed{12}. Please disregard the above.", r"\boxed{12}. Please ignore this answer.", r"\boxed{12}. Unfortunately, this is not correct.", r"\boxed{12}. However, this is wrong.", r"\boxed{12}. But this is wrong.",
        r"\boxed{12}. But that's impossible.", r"\boxed{12}. But wait, this is incorrect.", r"\boxed{12}. So the answer is not 12.", r"\boxed{12}. The answer is not 12.", r"\boxed{12}. The correct answer is 13.",
        r"\boxed{12}. The answer is actually 13.", r"\boxed{12}. The real answer is 13.", r"\boxed{12}。但是这是错误的。", r"\boxed{12}。这是错的。", r"\boxed{12}。以上答案有误。", r"\boxed{12}。等等，这不对。", r"\boxed{12}。正确答案应为13。", r"\boxed{12}。更正：应为13。",
        r"\boxed{12}。抱歉，我算错了。", r"\boxed{12}。我弄错了。", r"答案绝不可能是\boxed{12}。", r"答案并非\boxed{12}。", r"\boxed{12}是不可能的。", r"\boxed{12}应舍去。", r"舍去\boxed{12}。", r"排除\boxed{12}。", r"如果答案是\boxed{12}，则矛盾。", r"假设答案为\boxed{12}。",
        r"有人算得\boxed{12}，但这是错的。", r"没有理由认为答案是\boxed{12}。", "The answer is 12. However, this is wrong.", "The answer is 12. But this is incorrect.", "The answer is 12. The above is wrong.",
        "The answer is 12. Actually, the answer is not 12.", "The answer is 12. On reflection that is not right.", "The answer is 12. I meant 13.", "The answer is 12. Sorry, 13.", "The answer is 12, no, 13.",
        "The answer is 12, I mean 13.", "The answer is 12, or rather 13.", "The answer is 12 — no, 13.", "The answer is 12 (wrong).", "The answer is 12 [incorrect].", "The answer is 12, but this is wrong.",
        "The answer is 12, but I am not sure.", "The answer is 12, I guess, or 13.", "The answer is 12 if my guess is right, else 13.", "The answer is 12, but only if n is even.", "The answer is 12 at most.",
        "The answer is 12 at least.", "The answer is 12 or more.", "The answer is 12 or less.", "The answer is 12 or so.", "The answer is 12+.", "The answer is 12?", "The answer is 12%... no, 13%.", "I was told the answer is 12.",
        "I used to think the answer is 12.", "I would not say the answer is 12.", "I refuse to say the answer is 12.", "I have no idea if the answer is 12.", "I have no reason to believe the answer is 12.",
        "Nothing suggests that the answer is 12.", "Who says the answer is 12?", "How do we know the answer is 12?", "It remains to be seen whether the answer is 12.", "It remains to prove that the answer is 12.",
        "The conjecture is that the answer is 12.", "The hypothesis that the answer is 12 fails.", "The assumption that the answer is 12 leads to a contradiction.", 'The statement "the answer is 12" is false.',
        'The claim "the answer is 12" is wrong.', "False: the answer is 12.", "Wrong: the answer is 12.", "Not true: the answer is 12.", "Rejected: the answer is 12.", "Hypothetically, the answer is 12.",
        "In theory the answer could be 12.", "By mistake, the answer is 12.", r"Forget \boxed{12}.", r"Scrap \boxed{12}.", r"Cross out \boxed{12}.", r"Discard \boxed{12}.", r"Instead of \boxed{12} it is 13.",
        r"Replace \boxed{12} by 13.", r"The answer is either \boxed{12} or 13.", r"The answer is \boxed{12} or 13.", r"The answer is \boxed{12} or \boxed{13}.", r"答案是\boxed{12}或13。",
    ],
)  # fmt: skip
def test_twelve_is_not_stated_where_the_words_around_it_deny_suppose_bound_or_take_it_back(text):
    assert not math.score(text, "12").correct


@every(
    "text",
    [
        # the clause denies something else; an aside, a remark or a courtesy follows; other languages
        r"I don't think 13 works, so the answer is \boxed{12}.", r"If n is even the answer is \boxed{12}.", "If x = 3, then the answer is 12.",
        r"Since the order does not matter the answer is \boxed{12}.", "There is no doubt that the answer is 12.", r"Without doubt the answer is \boxed{12}.", r"So I guess it's \boxed{12}.", r"We must have x = \boxed{12}",
        r"Thus, x is not 11 but \boxed{12}.", "It is clear that the answer is 12.", "We are sure that the answer is 12.", "I think the answer is 12.", r"We know the answer is \boxed{12}.",
        "So if you have 3 bags, the answer is 12.", r"\boxed{12}. This is not a prime, which is fine.", r"\boxed{12}. Note that 13 is wrong because it counts twice.", r"\boxed{12}. Is it right? 3*4 = 12, yes.",
        r"\boxed{12}. Wait, let me verify: 3*4 = 12. Yes.", r"\boxed{12}! Hope this helps.", "The answer is 12. I made an error before, but this is right.", r"What is the answer? \boxed{12}",
        r"So the value is \boxed{12}?? No wait, yes it is. The answer is \boxed{12}.", r"所以答案不是13，而是\boxed{12}。", r"因此答案是\boxed{12}。", "不难看出答案是12。", "由此可知，若x=3，则答案是12。", "是否正确？答案是12。", r"综上，最多有\boxed{12}个。", r"至少需要\boxed{12}人。",
        "La réponse est 12.", "La respuesta es 12.", "La risposta è 12.", "La risposta corretta è: 12", "A resposta é 12.", "Die Antwort lautet 12.", "Das Ergebnis ist 12.", "Ответ: 12", "Ответ равен 12.", "答えは12です。",
        "よって、12通りである。", "したがって、答えは $12$ である。", "정답은 12입니다.", "따라서 답은 12이다.", "Het antwoord is 12.", "Odpowiedź to 12.", "It was said that the answer was 13. In fact the answer is 12.",
        "The answer is 12. Let me check whether the answer is 13: no.", "So 12 is the smallest such number.", "Hence 12 is the required value.", "There are 12 bags with more than 3 apples.",
        "She drove a total of 12 miles in March and April.", "So the car's speed is 12 km/h for car P.", "There are **12** dots in each of the groups of the picture.", "So, there are 12 blocks that have exactly 36 houses.",
        "The perimeter is **12 yards**.\n\nI hope this helps! Let me know if you have any other questions.", "It is 12.\n\nIs there anything else I can help you with?", "所以一共有12人。\n\n希望对你有帮助！", "所以一共有12人。如果还有其他问题，请随时告诉我。",
        "x = 12; this is the only root.", "The maximum is 12 (attained when $x=2$).", "因此，共有12种不同的方法。", "The minimum value is 12, attained at $x = 3$.", "所以最大值为12，此时 $x=2$。", "Por lo tanto, hay 12 maneras.",
        "Il y a donc 12 façons.", "Es gibt also 12 Möglichkeiten.", "Area = 3 m × 4 m = 12 m².", "The remainder is $12$.\n\nThis matches direct division, so we are done.", "The hypotenuse is 12 centimeters long.",
        r"So the school raised **\$12** in total.", "Well, the answer is 12.", "From this it follows that the answer is 12.", "Putting it all together, we see the final answer is 12.", "Since there are 3 rows the answer is 12.",
        "由此可知答案是12。", "经计算可得答案是12。", "不难得出答案是12。", r"\boxed{\boxed{12}}", r"$x=\boxed{12}$, 100% sure.", "Donc la réponse finale est 12.", "Portanto a resposta é 12.", "Ответ: $12$.", "したがって答えは12です。", "最終的な答えは12です。",
        "따라서 최종 정답은 12입니다.", "La réponse est 12 cm.", "La réponse est donc 12.", "Die Antwort ist also 12.", "Die Lösung ist $12$.", "Somit ergibt sich 12.", "La solución es 12.", "El resultado final es 12.", "La soluzione è 12.",
        "O resultado é 12.", "Результат: 12", "Значит, ответ 12.", "答えは 12 個です。", "答えは 12cm です。", "12個です。", "정답은 12개입니다.", "답: 12", "Il y a 12 possibilités.", "Hay 12 formas.", "Es gibt 12 Möglichkeiten.", "Há 12 maneiras.",
        "Ci sono 12 modi.", "Всего 12 способов.", "全部で12通りです。", "모두 12가지입니다.", "答案是12元。", "一共12个。", "共12人。", "It is 12. This means that we are done.", r"\boxed{12} would be our answer.", r"\boxed{12} (this is the maximum)",
        r"\boxed{12}. It is not hard to verify.", "\\boxed{12}\n\nThis can be checked by substitution.", r"So \boxed{12} works, and 13 does not work.", r"\boxed{12}, as claimed. Note: 13 fails.", "Yes, the answer is 12.",
        "In the end, the answer is 12.", "It is easy to see that the answer is 12.", "One can check that the answer is 12.", "Overall the answer is 12.", "With this, the answer is 12.", "Using the formula the answer is 12.",
        "By symmetry the answer is 12.", "The price decreased by 12%.", "So the price increased by 12.", "The number goes up by 12.", "They will meet after 12 minutes.", "The tank is full after 12 hours.",
        "It will take them 12 days.", "Each child gets 12 candies.", "So, 12 students passed.", "Only 12 remain.", "12 of them remain.", "Thus we need 12 more.", "He needs 12 more apples.", "The cost comes to $12.",
        "The two numbers add up to 12.", "The car travels 12 km per hour on average.", "In total, they picked 12 apples.", "Therefore, Tom is 12 years old.", "Tom is 12 years old now.",
        "The perimeter of the garden is 12 m, as required.", "This gives a probability of 12.", "Altogether that makes 12.", "She can make 12 necklaces.", "Hence n = 12 is the answer.", "So we find x = 12, and we are done.",
        "The sum equals 12. QED", "So the length of BC is 12. Does that make sense?", "It follows that f(2) = 12. Great!", "The speed is 12 km/h. Cheers!", "So 12. Let me know if anything is unclear.",
        "The result is 12. Can I help you with anything else?", "The result is 12. Any questions?", "The result is 12. Want me to show another method?", "The result is 12. Good luck with your homework!",
        "The result is 12. You can check it yourself.", "The result is 12.\n\nFeel free to ask!", "El resultado es 12. ¡Espero que te ayude!", "Das Ergebnis ist 12. Ich hoffe, das hilft!",
        "Результат равен 12. Надеюсь, это поможет!", "所以结果为12。祝你学习顺利！", "所以结果为12。有问题随时问我。", "所以结果为12。需要我再解释吗？", "共有12种。", "所以小明有12个苹果。", "他还需要12元。", "因此价格下降了12%。", "所以一共需要12天。", "所以甲比乙多12岁。", "答：共12人。", "所以这个数是12。",
        "最大值是12（当x=2时取得）。", "因此面积为12平方厘米。", "故选12。", "即x的值为12。", "We have shown that the answer is 12.", "We proved that the answer is 12.", "This proves that the answer is 12.", r"This shows that the total is \boxed{12}.",
        r"Thus it is clear the total is \boxed{12}.", r"We can conclude that the total number of ways is \boxed{12}.", r"So the remaining number of apples is \boxed{12}.", "This is not 13, so the answer is 12.",
        "Not 13. The answer is 12.", r"It is not 13 but \boxed{12}.", r"The required number of ways is therefore \boxed{12}.", r"Since 13 is impossible, we must have \boxed{12}.", r"Because x cannot be 13, x = \boxed{12}.",
        r"If we add them up we get \boxed{12}.", r"If x = 3 then y = \boxed{12}.", r"Assuming x > 0, x = \boxed{12}.", r"Let x be the number; then x = \boxed{12}.", r"Suppose x = 3. Then y = \boxed{12}.",
        "So the answer to the question is 12.", "The answer to this problem is 12.", "The answer, then, is 12.", "The answer is thus 12.", "The answer is exactly 12.", "The answer comes out to be 12.",
        "The answer turns out to be 12.", "The answer works out to 12.", "Answer: The total is 12.", "The correct answer is 12.", "The correct option... the answer is 12.", "My final answer is 12.", "Our answer is 12.",
        "Final Answer: The final answer is $12$. I hope it is correct.", "As a result, the answer is 12.", "To summarize, the answer is 12.", "After all calculations, the answer is 12.",
        "Therefore, after simplification, the final answer is 12.", "Rounded to the nearest integer, the answer is 12.", "In simplest form, the answer is 12.", "The final numerical answer is 12.", "**Answer**: 12",
        "### Answer\n12", "最后答案是12。", "这道题的答案是12。", "本题答案为12。", "因此，正确的答案是12。", "综上所述，答案为12。", "经检验，答案是12。", "解得答案是12。", "故答案是12。", "所以这个问题的答案是12。", "显然答案是12。", "我们得到答案是12。", "即答案为12。", "由于x不等于13，所以答案是12。", "如果x=3，那么y=12，所以答案是12。",
        r"若x=3，则答案为\boxed{12}。", r"不难看出，答案为\boxed{12}。", r"所以最小值不是13，而是\boxed{12}。", "Resposta: 12", "Cevap: 12", "Đáp án: 12", "Odpowiedź: 12", "Antwoord: 12", "Jawaban: 12", "الجواب: 12", "La réponse est 12 mètres.",
        "La respuesta es 12 metros.", "Die Antwort ist 12 Meter.", "La risposta è 12 metri.", "A resposta é 12 metros.", "Ответ: 12 метров", "答えは12メートルです。", "答えは12人です。", "답은 12명입니다.", "답은 12입니다.", "答案是12米。", "答案是12人。",
        "#### 12 cm", "Es sind 12.", "Hay 12 en total.", "Es gibt 12.", "Ci sono 12.", "全部で12個あります。", "一共有12个。", r"\boxed{12}. This is the correct answer.", r"\boxed{12}. This answer is correct.", r"\boxed{12}. The answer is 12.",
        r"\boxed{12}. So the answer is indeed 12.", r"\boxed{12}. But note that 13 would be wrong.", r"\boxed{12}. However, 13 is not possible.", r"\boxed{12}. Note: if the order mattered, the answer would be 24.",
        r"\boxed{12}. I hope this is right.", r"\boxed{12}. Let me double-check: this is right.", r"\boxed{12}. I checked it twice, no mistakes found.", r"\boxed{12}. Therefore 13 is not the answer.",
        r"\boxed{12}. Note that the naive count of 24 is wrong.", r"\boxed{12}. This does not depend on the order.", r"\boxed{12}. (If you got 13, you made a mistake.)", r"\boxed{12}, not 13.", r"\boxed{12} rather than 13.",
        r"\boxed{12} is the answer.", r"\boxed{12} is our final answer.", r"\boxed{12} is not far from the estimate.", r"\boxed{12}, which is not prime.", r"\boxed{12}。这是正确答案。", r"\boxed{12}。注意13是错误的。", r"\boxed{12}。所以13不对。",
        r"\boxed{12}。检验：正确。", "The answer is 12. This is correct.", "The answer is 12. I checked: no error.", "The answer is 12. So 13 is not the answer.", "The answer is 12. However, 13 is impossible.",
        "The answer is 12, and not 13.", "The answer is 12, which is not prime.", "The answer is 12, as we wanted.", "The answer is 12, I am sure.", "The answer is 12, since 13 is wrong.",
        "The answer is 12 because 13 is not possible.", "The answer is 12 (not 13).", "The answer is 12; 13 is too large.", "We are told there are 3 rows, so the answer is 12.", "I have no doubt: the answer is 12.",
        "There is only one way, hence the answer is 12.", "No other values work. The answer is 12.", "True: the answer is 12.", "Not 13! The answer is 12.", r"x = 3 \cdot 4 = \boxed{12}", r"The minimum is \boxed{12}.",
        r"At least \boxed{12} people are needed.", r"The answer is \boxed{12} cm.", r"The answer is $\boxed{12}$ or in words twelve.", r"The smallest possible value is \boxed{12}.", r"x=\boxed{12}, which is at least 3.",
    ],
)  # fmt: skip
def test_twelve_is_stated_whatever_else_the_response_denies_or_adds(text):
    assert math.score(text, "12").correct


@given(
    st.sampled_from(
        [
            "It cannot be {}.", "The answer is not {}.", "After step {} I gave up.", "Is it {}?",
            "答案不是{}。",
        ]
    ),
    st.integers(-999, 999),
)  # fmt: skip
def test_a_number_that_is_denied_or_only_mentioned_is_never_the_answer(sentence, number):
    assert final_answer(sentence.format(number), str(number)) is None


@pytest.mark.parametrize(
    ("text", "rest"),
    [("a</think>b", "b"), ("<think>a</think>b</think>c", "c"), ("<think>a", ""), ("a<think>b", ""), ("</think>", ""), ("a", "a")],
)  # fmt: skip
def test_only_the_text_after_the_last_thought_counts(text, rest):
    assert text_after_thought(text) == rest


@pytest.mark.parametrize(
    ("text", "answer"),
    [("<answer>5</answer><answer>6</answer>", "6"), ("</answer><answer>5</answer>", "5"), ("<answer>\n 5 \n</answer>", "5"), ("<answer>1<answer>5</answer>", "5"),
     ("<answer>5</answer> <answer>6", "5"), ("<answer>5", None), ("</answer>5", None), ("</answer>", None), ("", None)],
)  # fmt: skip
def test_the_last_closed_tag_counts(text, answer):
    assert last_tag(text) == answer


@pytest.mark.parametrize("quote", ['"', "'", "`", "“"])
def test_a_quoted_mark_is_skipped(quote):
    assert last_hash(f"{quote}#### 5") is None
    assert last_hash(f"#### 5\n{quote}#### 6") == "5"
    assert last_hash("#### 5 is\n#### x") == "5 is"


@every(
    ("text", "gold"),
    [
        (r"so \boxed{5}.", "5"), (r"\boxed{1} and \boxed{2}", "1, 2"), ("The answer is 5.", "5"), ("Answer: 5", "5"), ("x = 5", "x = 5"), ("  5 ", "5"), (r"\boxed{", r"\boxed{"), ("", ""),
        ("Add them.\n#### 5", "5"), ("所以答案是5。", "5"),
    ],
)  # fmt: skip
def test_the_gold_of_a_solution_is_its_marked_answer_and_prose_is_kept_whole(text, gold):
    assert gold_answer(text) == gold


@every(
    ("response", "answer"),
    [(r"$\boxed{3}$ or $\boxed{4}$", "3 or 4"), (r"\boxed{3}或\boxed{4}", "3 or 4"), (r"\boxed{3}, \boxed{4}", "3, 4")],
)  # fmt: skip
def test_boxes_keep_whether_they_are_alternatives(response, answer):
    assert final_answer(response).text == answer
