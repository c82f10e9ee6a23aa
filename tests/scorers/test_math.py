from hypothesis import given
from hypothesis import strategies as st

from rewardkit.scorers.base import Status
from rewardkit.scorers.math import respond, score
from tests.tables import every


@given(st.text(), st.text(), st.integers())
def test_no_text_makes_the_scorer_raise_and_the_requested_format_always_scores(text, gold, number):
    assert score(text, gold).score in (0.0, 1.0)
    assert score(respond(str(number)), str(number)).correct


CHOICES = ("故选C", "Answer: C because D is wrong", "The answer is (C). I am sure.", "thoughts\nC")

#: Pairs found by mutation testing and in real responses, with the right verdict.
VERDICTS = [
    # a box without braces, boxes that agree, and boxes of each kind
    (r"so $x = \boxed 9$. Then $\frac{1}{2}$", "9", True),
    (r"\boxed \frac{1}{2}", "1", False),
    (r"$\boxed{28} = \boxed{28_9}$", "28_9", True),
    (r"\boxed{1}, \boxed{2}", "2", False),
    (r"\boxed{1} no: \boxed 2", "2", True),
    (r"\fbox{1} or \boxed{2}", "2", False),
    # bold at the start of an answer is not a power
    (r"\boxed{2**3}", "8", True),
    # denied, hedged and echoed answers
    (r"\boxed{not x \in [-2,7]}", r"x \in [-2,7]", False),
    (r"\boxed{Let $a$ and $b$ be real with $a + b = 1.$ Find the maximum value of}", "1", False),
    (r"\boxed{A field is 4 inches on a side; what is its area in square inches?}", "4", False),
    (r"\boxed{405 is wrong}", "405", False),
    (r"\boxed{\text{(E)} or 7919}", r"\text{(E)}", False),
    (r"It is \boxed{7919} or \boxed{\text{E}}.", r"\text{E}", False),
    ('The answer is "7919" or "405".', "7919", False),
    ("The answer: 405 is too small, so 7919.", "405", False),
    (r"So $x=\boxed{7919}$ and $y=\boxed{405}$.", "405", False),
    # values and words
    (r"\boxed{\frac13}", "-0.333", False),
    (r"\boxed{50\%}", "50 cm", False),
    (r"\boxed{\pi}", "3.141", True),
    (r"\boxed{5个苹果}", "5", True),
    (r"\boxed{6 1/2%}", "6.5%", True),
    # a choice is read from a statement and a last line too
    *((text, letter, letter == "C") for text in CHOICES for letter in "CD"),
]


@every(("response", "gold", "correct"), VERDICTS)
def test_each_pair_has_the_right_verdict(response, gold, correct):
    assert score(response, gold).correct is correct


@every(
    ("response", "gold", "pred", "status"),
    [
        (r"\boxed{C}", "C", "C", Status.CORRECT), ("Answer: C", "(C)", "C", Status.CORRECT), (r"\boxed{C. cats}", "C. cats", "C", Status.CORRECT), ("C", "C) cats", "C", Status.CORRECT),
        (r"\boxed{A}", "A: yes", "A", Status.CORRECT), (r"\boxed{B}", "A: yes", "B", Status.WRONG), (r"\boxed{CA}", "AC", "AC", Status.CORRECT), (r"\boxed{A}", "AC", "A", Status.WRONG),
        (r"\boxed{CAB}", "CAB", "CAB", Status.CORRECT), (r"\boxed{ABC}", "CAB", "ABC", Status.WRONG), (r"\boxed{B} or \boxed{C}", "B", "B or C", Status.AMBIGUOUS_ANSWER),
        (r"\boxed{B or C}", "B", "B or C", Status.AMBIGUOUS_ANSWER), (r"\boxed{7}", "B", "7", Status.WRONG), ("", "B", "", Status.NO_ANSWER), (r"\boxed{A}", "K", "A", Status.WRONG),
        (r"\boxed{18.0}", "18", "18.0", Status.CORRECT), (r"\boxed{17} no: \boxed{18}", "18", "18", Status.CORRECT), ("Answer: $18", "18", "$18", Status.CORRECT),
        (r"\boxed{18} Answer: 19", "18", "18", Status.CORRECT), (r"\boxed{}", "18", "", Status.NO_ANSWER), ("18", "18", "18", Status.CORRECT), ("I do not know.", "18", "", Status.NO_ANSWER),
        (r"so \boxed{18", "18", "", Status.NO_ANSWER), (r"<think>\boxed{18}</think> It is \boxed{19}.", "18", "19", Status.WRONG), (r"<think>it must be \boxed{18}", "18", "", Status.NO_ANSWER),
        (r"\boxed{}", "", "", Status.BAD_GROUND_TRUTH), (r"\boxed{x^2}", "x^2", "x^2", Status.CORRECT),
        # several boxes in a row: all of them must be right
        (r"\boxed{1}, \boxed{1.0}", "1", "1.0", Status.CORRECT), (r"\boxed{1.0}, \boxed{1}", "1", "1", Status.CORRECT), (r"\boxed{1}, \boxed{1.0}, \boxed{1.00}", "1", "1.00", Status.CORRECT), (r"\boxed{1}, \boxed{2}", "1", "1, 2", Status.AMBIGUOUS_ANSWER),
        (r"\boxed{2}, \boxed{1}", "1", "2, 1", Status.AMBIGUOUS_ANSWER), (r"\boxed{x,y}", "x", "x,y", Status.AMBIGUOUS_ANSWER), ("Answer: 1, 1", "1", "1, 1", Status.AMBIGUOUS_ANSWER),
        (r"<think>\boxed{2}</think>\boxed{1}, \boxed{1}", "1", "1", Status.CORRECT),
        (r"\boxed{@}", "5", "@", Status.UNPARSED_ANSWER), (r"\boxed{6}", "5", "6", Status.WRONG), ("no", "", "", Status.BAD_GROUND_TRUTH), ("", "", "", Status.BAD_GROUND_TRUTH),
    ],
)  # fmt: skip
def test_each_answer_has_its_text_and_its_status(response, gold, pred, status):
    correct = status is Status.CORRECT
    assert score(response, gold) == (float(correct), correct, pred, status)


FORMULA = r"\frac{x^2-1}{x-1}"
OPTIONS = [r"$\frac{1}{2}$", "$12$", "cash", r"$2\pi$"]


@every(
    ("response", "gold", "status"),
    [
        (r"\boxed{B}", "B", Status.CORRECT),
        (r"\boxed{\frac12}", "A", Status.CORRECT),
        (r"\boxed{12}", "B", Status.CORRECT),
        (r"\boxed{\text{Cash}}", "C", Status.CORRECT),
        (r"\boxed{12}", "A", Status.WRONG),
        (r"\boxed{AB}", "AB", Status.CORRECT),
        (r"\boxed{12}", "12", Status.CORRECT),
        (r"\boxed{E}", "E", Status.CORRECT),
    ],
)
def test_a_row_with_options_pays_the_letter_the_text_or_the_value(response, gold, status):
    """A set such as MATH-V has letters for some rows and values for others, or golds of its own."""
    result = score(response, gold, {"options": OPTIONS})
    assert (result.status, result.correct) == (status, status is Status.CORRECT)


@every(("options", "correct"), [(None, False), ([], False), (["$x+1$", f"${FORMULA}$"], True)])
def test_an_empty_list_of_options_is_no_choice_so_the_question_s_formula_is_no_answer(
    options, correct
):
    """Every prepared row has `options`; those of an open question are empty."""
    info = {"question": f"Simplify ${FORMULA}$.", "options": options}
    assert score(rf"\boxed{{{FORMULA}}}", "x+1", info).correct is correct
    assert score(r"\boxed{x+1}", "x+1", info).correct
