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
        (r"\text{True}", "Yes", ""),
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
        ("The series converges", "converges", "Does the series converge?"),
        ("The winner is Alice", "Alice", "Who is the winner?"),
        ("甲同学", "甲", "哪位同学的成绩最好？"),
        ("必要不充分条件", "必要不充分", "p是q的什么条件？"),
        ("该方程无实数根", "无实数根", "判断方程根的情况"),
        ("N", "No", ""),
        ("T", "True", ""),
        ("rational", "rational numbers", ""),
        ("获胜的是甲", "甲", "获胜的是谁？"),
        ("No, because the limits differ", "False", ""),
        ("The statement is true", "True", ""),
        ("It is false", "No", ""),
        ("这是错误的", "错误", ""),
        ("该命题正确", "正确", ""),
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
        ("The series does not converge", "converges", "Does the series converge?"),
        ("right isosceles", "isosceles", "Is the triangle right or isosceles?"),
        ("right triangle", "triangle", "Is the figure a right triangle?"),
        ("absolutely convergent", "convergent", "Is the series absolutely convergent?"),
        ("甲和乙", "甲", "甲和乙谁的成绩好？"),
        ("充分必要条件", "必要", "p是q的什么条件（填充分必要或必要）？"),
        ("充分条件", "必要条件", "p是q的什么条件？"),
        ("Alice and Bob", "Alice", "Who wins?"),
        ("Bob", "Alice", "Who wins?"),
        ("The winner is not Alice", "Alice", "Who is the winner?"),
        ("该方程有实数根", "无实数根", "判断方程根的情况"),
        ("t", "y", ""),
        ("n", "N", ""),
        ("f", "No", ""),
        ("F", "N", ""),
        ("y", "True", ""),
        ("positive", "positive integers", ""),
        ("positive numbers", "positive integers", ""),
        ("odd numbers", "even numbers", ""),
        ("乙胜甲", "甲", "乙胜甲的概率大吗？谁胜？"),
        ("等腰直角三角形", "直角三角形", "它是等腰三角形还是直角三角形？"),
        ("正数", "数", "正数还是负数？"),
        ("No, the limits agree", "No", ""),
        ("The statement is not true", "True", ""),
        ("The statement is true or false", "True", ""),
        ("It is true, but only for even n", "True", ""),
        ("该命题不正确", "正确", ""),
        ("It is true that x is not real", "No", ""),
        ("这不是错误的", "错误", ""),
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


@every(
    ("answer", "gold", "right"),
    [
        ("12 (attained when x=3)", "12", True), (r"12\text{ (attained at }x=3)", "12", True), ("12 (attained at x = 3)", "12", True), ("12, attained at x=3", "12", True), ("12 at x=3", "12", True),
        (r"\sqrt{5} (achieved for a=b=1)", r"\sqrt{5}", True), (r"\frac{3}{4} (reached at the endpoint)", r"\frac34", True), ("12 (since 3*4=12)", "12", True), ("12 (exact)", "12", True), ("12 (final answer)", "12", True),
        ("12 (by symmetry)", "12", True), (r"2\sqrt{3} (exact value)", r"2\sqrt3", True), ("12 (square units)", "12", True), ("12（当且仅当x=3时取等号）", "12", True), ("12，当且仅当x=3时取等号", "12", True), ("12，此时x=3", "12", True),
        ("(1,2) (the only solution)", "(1,2)", True), ("12 (the maximum)", "12", True), ("12 (or 13)", "12", False), ("12 (not 13)", "12", False), ("12 (if n is even)", "12", False), ("12 (for even n)", "12", False),
        ("12 (base 7)", "12", False), ("12 (thousand)", "12", False), ("12 (feet)", "12 m", False), ("12 (maybe)", "12", False), ("12 (wrong)", "12", False), ("12 (13)", "12", False), ("12 (at least)", "12", False),
        ("12 (this is not the answer)", "12", False), ("12 (attained when x=3) or 13", "12", False), ("12 (attained at x=3), 13", "12", False), ("13 (attained when x=12)", "12", False), ("12, 13", "12", False),
        ("12 when x=3, 13 when x=4", "12", False), ("f(3) (attained at 12)", "12", False), ("12 (n even), 13 (n odd)", "12", False), ("12 (lower bound)", "12", False), ("共有12种不同的方法", "12", True), ("12种不同的排法", "12", True),
        ("一共有12种", "12", True), ("共12个不同的数", "12", True), ("有12种不同的选法", "12", True), ("不同的排法共有12种", "12", True), ("故共有12种不同的方法", "12", True), ("不是12种", "12", False), ("至少有12种不同的方法", "12", False), ("不足12种", "12", False),
        ("有12种或13种不同的方法", "12", False), ("第12种", "12", False), ("12种方法中的3种", "12", False), ("不同于12", "12", False), ("12倍", "12", False), ("12的平方", "12", False), (r"decreased by 15\%", r"15\%", True), ("decreased by 15%", "15", True),
        ("increased by 12", "12", True), (r"a decrease of 15\%", r"15\%", True), ("fell by 7", "7", True), (r"decreased to 15\%", r"15\%", False),
        (r"not decreased by 15\%", r"15\%", False), (r"decreased by 15\% or 16\%", r"15\%", False), (r"increased by 15\%", r"-15\%", False), (r"decreased by 15\%", r"85\%", False), ("multiplied by 15", "15", False),
        ("divisible by 15", "15", False), ("increased by a factor of 2", "2", False), (r"increased by at least 15\%", r"15\%", False), ("The maximum is 12", "12", True), ("the maximum value of f is 12", "12", True),
        ("the minimum is 12", "12", True), ("the function f(x)=x^2", "x^2", True), ("the function x^2", "x^2", True), ("the function f(x) = x^2", "f(x)=x^2", True), ("the point (1,2)", "(1,2)", True), ("the interval (0,1)", "(0,1)", True),
        (r"the set \{1,2\}", r"\{1,2\}", True), ("the line y=2x+1", "y=2x+1", True), ("the number 12", "12", True), (r"the matrix \begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", True),
        ("the ordered pair (3,4)", "(3,4)", True), ("the polynomial x^2+1", "x^2+1", True), ("the integers 3 and 5", "3,5", True), ("the square 12", "12", False), ("the square of 12", "12", False), ("the reciprocal 12", "12", False),
        ("the number after 12", "12", False), ("not the number 12", "12", False), ("the derivative x^2", "x^2", False), ("the function f(x)=x^2 or x^3", "x^2", False), ("the inverse function x^2", "x^2", False),
        ("the numbers 12 and 13", "12", False), ("函数f(x)=x^2", "x^2", True), ("点(1,2)", "(1,2)", True), ("区间(0,1)", "(0,1)", True), ("12 (attained at x=3, but 13 is larger)", "12", False),
        ("12 (attained at x=3; not the maximum)", "12", False), ("5 at x=3, 7 at x=4", "5", False), ("5 at x=3, 7 at x=4", "7", False), ("12 (obtained by mistake, wrong)", "12", False), (r"\text{12 (attained at } x=3\text{)}", "12", True),
        ("$12$ (attained at $x=3$)", "12", True), (r"\frac{1}{2}\text{, attained at }x=1", r"\frac12", True), ("12（此时x=3）", "12", True), ("12（或13）", "12", False), ("12（舍去）", "12", False), ("点(2,1)", "(1,2)", False),
        ("区间(0,1)", "[0,1]", False), ("12, final 13", "12", False), ("12, exactly 13 less", "12", False), ("12 (the only 13)", "13", False), ("12, because the sum is fixed", "12", True),
    ],
)  # fmt: skip
def test_words_around_a_value_count_only_if_they_say_more(answer, gold, right):
    assert (compare(answer, gold).outcome == "equal") is right


QUESTION = "Who of the five children is the tallest?"
PLAIN = st.sampled_from("the tallest is it was so answer".split())
DOUBTS = st.sampled_from("not or maybe if unless but never than neither except Bob".split())


@given(st.lists(PLAIN, max_size=4), st.lists(PLAIN, max_size=4), DOUBTS, st.booleans())
def test_one_word_of_doubt_makes_any_sentence_wrong(before, after, doubt, first):
    plain = " ".join([*before, "is Alice", *after])
    sides = [[doubt, *before], after] if first else [before, [*after, doubt]]
    assert not same_words(" ".join([*sides[0], "Alice", *sides[1]]), "Alice", QUESTION)
    assert same_words(plain, "Alice", QUESTION), plain


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_any_texts_have_a_verdict(answer, gold, question):
    assert same_words(answer, gold, question) in (True, False)
