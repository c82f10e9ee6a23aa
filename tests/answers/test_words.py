"""Golds that are words: truth values, dates and sentences around the words of a gold."""

from hypothesis import given
from hypothesis import strategies as st

from rewardkit.answers.equal import compare
from rewardkit.answers.words import same_words
from tests.tables import every


@every(
    ("answer", "gold", "question"),
    [
        ("Yes", "True", ""),
        ("yes.", "Y", ""),
        ("\\text{True}", "Yes", ""),
        ("Y", "yes", ""),
        ("False", "No", ""),
        ("Yes, it is differentiable everywhere", "Yes", "Is g differentiable?"),
        ("Yes, because every term is positive", "Yes", ""),
        ("Yes, because it never vanishes", "True", ""),
        ("No, it is not injective", "No", ""),
        ("No, since f(0) = f(1)", "No", ""),
        ("No. It is not possible to tile the floor.", "No", ""),
        ("是", "是的", ""),
        ("是，因为两边相等", "是", ""),
        ("错误", "错", ""),
        ("正确", "对", ""),
        ("Anna is the youngest", "Anna", "Who is the youngest?"),
        ("The youngest is Anna", "Anna", "Who is the youngest?"),
        ("Anna wins", "Anna", "Anna and Ben take turns. Who wins if both play perfectly?"),
        ("It is a Friday", "Friday", "On which day of the week does it fall?"),
        ("on Friday", "Friday", ""),
        ("infinitely many", "infinitely many solutions", "How many solutions are there?"),
        ("infinitely many solutions", "infinitely many", ""),
        ("even", "any even number", ""),
        ("an even number", "even", ""),
        ("the function is even", "even", "Is the function even or odd?"),
        ("方程组无解", "无解", "求关于x，y的方程组的解。"),
        ("这样的三角形不存在", "不存在", "是否存在这样的三角形？"),
        ("两圆外切", "外切", "两圆的位置关系是？"),
        ("f(x)在R上单调递增", "单调递增", "判断$f(x)$在$R$上的单调性。"),
        ("函数是奇函数", "奇函数", "判断该函数的奇偶性"),
        ("July 4, 1776", "4 July 1776", ""),
        ("1776-07-04", "July 4, 1776", ""),
        ("1776年7月4日", "1776-07-04", ""),
        ("July 4th, 1776", "July 4, 1776", ""),
        ("the 4th of July", "July 4", ""),
        ("impossible", "It is impossible", ""),
        ("the red one", "red one", ""),
    ],
)  # fmt: skip
def test_an_answer_states_the_words_of_the_gold(answer, gold, question):
    assert compare(answer, gold, question).outcome == "equal"


@every(
    ("answer", "gold", "question"),
    [
        ("N", "yes", ""),
        ("No", "True", ""),
        ("No, it can be tiled", "No", ""),
        ("No, wait, yes", "No", ""),
        ("Yes, but only for even n", "Yes", ""),
        ("Yes, if n > 3", "Yes", ""),
        ("Yes and no", "Yes", ""),
        ("Yes or no", "Yes", ""),
        ("Yes, it is not injective", "Yes", ""),
        ("Not yes", "Yes", ""),
        ("Yes?", "Yes", ""),
        ("Maybe yes", "Yes", ""),
        ("Yes, maybe", "Yes", ""),
        ("No, yes", "Yes", ""),
        ("是，但不唯一", "是", ""),
        ("不是", "是", ""),
        ("不正确", "正确", ""),
        ("Anna is not the youngest", "Anna", "Who is the youngest?"),
        ("Anna or Ben", "Anna", "Who is the youngest, Anna or Ben?"),
        ("Ben is younger than Anna", "Anna", "Who is younger, Anna or Ben?"),
        ("Anna is the oldest", "Anna", "Who is the youngest?"),
        ("Anna loses", "Anna", "Anna and Ben take turns; the player who cannot move loses. Who wins?"),
        ("Ben wins, not Anna", "Anna", "Who wins?"),
        ("before Friday", "Friday", ""),
        ("Friday or Saturday", "Friday", ""),
        ("not Friday", "Friday", ""),
        ("no solution or infinitely many", "infinitely many solutions", ""),
        ("many solutions", "infinitely many solutions", ""),
        ("even or odd", "any even number", ""),
        ("number", "any even number", ""),
        ("not even", "even", ""),
        ("neither even nor odd", "odd", ""),
        ("conditionally convergent", "convergent", "Is the series absolutely or conditionally convergent?"),
        ("convergent", "conditionally convergent", "Is the series absolutely or conditionally convergent?"),
        ("absolutely and conditionally convergent", "conditionally convergent", ""),
        ("the function is even or odd", "even", "Is the function even or odd?"),
        ("Is the function even or odd?", "even", "Is the function even or odd?"),
        ("方程组有解", "无解", "求关于x，y的方程组的解。"),
        ("不外切", "外切", "两圆的位置关系是？"),
        ("可能外切", "外切", ""),
        ("外切或内切", "外切", ""),
        ("正相关", "相关", "是正相关还是负相关？"),
        ("充分必要", "必要", "p是q的什么条件（填“充分”、“必要”）？"),
        ("既充分又必要", "必要", ""),
        ("f(x)在R上不单调递增", "单调递增", "判断$f(x)$在$R$上的单调性。"),
        ("非奇函数", "奇函数", ""),
        ("July 4, 1777", "July 4, 1776", ""),
        ("July 1776", "July 4, 1776", ""),
        ("July 5", "July 4", ""),
        ("04/07/1776", "July 4, 1776", ""),
        ("July 4 or July 5", "July 4", ""),
        ("4", "July 4", ""),
        ("possible", "impossible", ""),
        ("It is possible", "impossible", "Is it possible?"),
        ("isosceles", "isosceles right", ""),
    ],
)  # fmt: skip
def test_another_statement_around_the_same_words_is_wrong(answer, gold, question):
    assert compare(answer, gold, question).outcome != "equal"


@every(
    ("answer", "gold", "question", "right"),
    [
        (r"\$94 million", "94", "What was the revenue, in millions of dollars?", True),
        ("94 million", "94", "What was the revenue in millions?", True),
        ("94 million dollars", "94", "How many million dollars did it cost?", True),
        ("94 million", "94000000", "What was the revenue in millions?", True),
        ("95 million", "94", "What was the revenue in millions?", False),
        ("94 billion", "94", "What was the revenue in millions?", False),
        ("94 million", "94", "What was the revenue?", False),
        ("94000000", "94", "What was the revenue in millions?", False),
        (r"0.4\%", "0.4", "What is the fee? Answer as a percentage.", True),
        (r"0.4\%", "0.4", "The fee is 12%. What is the chance of rain?", False),
        (r"0.4\%", "40", "What is the fee in percent?", False),
        ("3.5 thousand", "3.5", "Give the number of visitors in thousands.", True),
    ],
)  # fmt: skip
def test_the_question_says_in_which_scale_an_answer_counts(answer, gold, question, right):
    assert (compare(answer, gold, question).outcome == "equal") is right


QUESTION = "Who of the five children is the tallest?"
PLAIN = st.sampled_from("the tallest is it was so answer".split())
DOUBTS = st.sampled_from("not or maybe if unless but never than neither except Bob".split())


@given(st.lists(PLAIN, max_size=4), st.lists(PLAIN, max_size=4), DOUBTS, st.booleans())
def test_one_word_of_doubt_makes_any_sentence_wrong(before, after, doubt, first):
    plain = " ".join([*before, "Alice", *after])
    sides = [[doubt, *before], after] if first else [before, [*after, doubt]]
    assert not same_words(" ".join([*sides[0], "Alice", *sides[1]]), "Alice", QUESTION)
    assert same_words(plain, "Alice", QUESTION), plain


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_any_texts_have_a_verdict(answer, gold, question):
    assert same_words(answer, gold, question) in (True, False)
