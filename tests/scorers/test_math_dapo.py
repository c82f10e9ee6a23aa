import time

from hypothesis import given
from hypothesis import strategies as st

from rewardkit.scorers import math, math_dapo
from rewardkit.scorers.base import Status
from rewardkit.scorers.math_dapo import normalize, score
from tests.tables import every

RIGHT, WRONG = Status.CORRECT, Status.WRONG
NONE, BAD = Status.NO_ANSWER, Status.BAD_GROUND_TRUTH

#: Text of characters and words that matter for the normalisation, and of others.
WORDS = (
    r"\boxed{",
    r"\text{",
    "}",
    "{",
    "$",
    "Answer:",
    "\n",
    "frac",
    "sqrt",
    "=",
    "an ",
    "1",
    ",",
)
tex = st.lists(st.sampled_from(WORDS) | st.text(max_size=5)).map("".join)


@every(
    ("response", "gold", "pred", "status"),
    [
        ("answer : $34$", "34", "34", RIGHT),
        ("Answer: 33\nAnswer: 34", "34", "34", RIGHT),
        ("Answer:\n\n34", "34", "34", RIGHT),
        ("Answer: the answer: 34", "34", "theanswer:34", WRONG),
        ("Answer: x = 34 cm", "34", "34", RIGHT),
        (r"Answer: \frac12", r"\frac{1}{2}", r"\frac{1}{2}", RIGHT),
        (r"Answer: \dfrac{1}{2}", r"\frac{1}{2}", r"\dfrac{1}{2}", WRONG),
        (r"Answer: \boxed{\sqrt2}", r"\sqrt{2}", r"\sqrt{2}", RIGHT),
        (r"Answer: 1,000\text{ dollars}", "1000", "1000", RIGHT),
        ("Answer: 34.", "34", "34.", WRONG),
        (r"so \boxed{ 34}", "34", " 34", WRONG),
        (r"Answer: 35 \boxed{34}", "34", "3534", WRONG),
        ("Answer: ", "34", "", NONE),
    ],
)
def test_the_verdicts_are_the_same_as_verls(response, gold, pred, status):
    result = score(response, gold)
    assert (result.pred, result.status) == (pred, status)
    assert (result.score, result.correct) == ((1.0, True) if status is RIGHT else (-1.0, False))


@every(
    "response",
    ["", "Answer: ", "Answer: [INVALID]", r"\boxed{}", r"\boxed{ }", r"\boxed{[INVALID]}"],
)
@every("gold", ["", " ", "\n", "[INVALID]", " [INVALID]", "units", "$$", "x ="])
@every("strict_box", [False, True])
def test_a_gold_without_content_is_never_paid(response, gold, strict_box):
    result = score(response, gold, strict_box=strict_box)
    assert (result.score, result.correct) == (-1.0, False)
    assert strict_box or result.status is BAD


def test_a_box_that_repeats_a_gold_of_units_is_right():
    assert score(r"\boxed{feet}", "feet").correct
    assert not score(r"\boxed{inches}", "feet").correct
    assert not score("Answer: inches", "feet").correct


def test_robust_mode_gives_the_verdicts_of_math_as_plus_and_minus_one():
    for response in ("Answer: 0.5", r"thus \boxed{0.5}", r"\boxed{2}", "nothing"):
        dapo_score, math_score = score(response, "0.5", mode="robust"), math.score(response, "0.5")
        assert dapo_score.score == (1.0 if math_score.correct else -1.0)
        assert dapo_score[1:] == math_score[1:]
    assert score(r"Answer: 34.00", "34", mode="robust").correct


@given(response=tex, gold=tex, strict=st.booleans())
def test_no_text_makes_the_scorer_raise_and_scores_are_plus_or_minus_one(response, gold, strict):
    result = score(response, gold, strict_box=strict)
    assert result.score in (1.0, -1.0)
    assert result.correct == (result.score == 1.0) == (result.status is RIGHT)
    assert type(result.pred) is str


@given(st.integers(), st.integers(), st.text(max_size=400).filter(lambda t: ":" not in t))
def test_the_gold_in_the_requested_format_always_scores_and_no_other(gold, number, thoughts):
    assert score(f"{thoughts}\n{math_dapo.respond(str(gold))}", str(gold)).correct
    assert score(f"Answer: {number}", str(gold)).correct == (gold == number)


@every(
    ("text", "normal"),
    [
        *(("an apple", "apple"), ("x=y=12", "12"), ("$a$ and $b$", "a"), ("$a$ or\n$b$", "a\nb")),
        *(("$5", "5"), (".$5", "5"), (r"\text{and}", ","), (r"\text{m}", ""), (r"\mbox{x}", "x")),
        *(
            (r"\text{A\text{B}C}", r"A\text{BC}"),
            ("\\text{a\nb}", "\\text{a\nb}"),
            ("b = 1 2", "12"),
        ),
        *((r"\boxed{a\boxed{b}c} d}e", r"a\boxed{b}c}de"), (r"\textbf{x}\overline{y}", "xy")),
        *((r"\frac1{23}", "\\frac{1}{{}23}"), ("1,234,567", "1234567"), ("1,234.5", "1,234.5")),
        *(
            (r"90^\circ", "90"),
            ("10\\%", "10\\%"),
            (r"1,\text{and}2", "12"),
            (r"x\text{and}2", "x,2"),
        ),
        *(
            (r"5\text{m}^2", "5"),
            (r"\text{\text{}x}", "x"),
            (r"x\text{}^3y", "xy"),
            ("$5$ cats", "5"),
        ),
        *((r"\frac12x", r"\frac{1}{2}x"), (r"\frac{1}2", r"\frac{1}2"), (r"\sqrt2", r"\sqrt{2}")),
        *((r"\sqrt{2}", r"\sqrt{2}"), (r"\overline{x", r"\overline{x"), (r"\boxed{5", r"\boxed{5")),
        *(
            (r"x\boxed{5}y", "x5y"),
            ("b$5$c", "5"),
            ("1,000x", "1,000x"),
            ("x,000", "x,000"),
            ("", ""),
        ),
    ],
)
def test_answers_have_verl_s_normal_form(text, normal):
    assert normalize(text) == normal
    assert normalize(text + " " * 400) == normal  # more than verl reads


@every(
    "unit",
    ["$", "$a", r"\text{", r"\textbf{", r"\boxed{", "\\text{\n", "$\n", *"},=", "frac", "a "],
)
def test_time_is_linear_in_the_gold_and_the_response(unit):
    """A quadratic step on 1 MB would take hours, and verl's does; this takes a fraction of it."""
    hostile = unit * (1_000_000 // len(unit))
    start = time.process_time()
    for gold in (hostile, f"{hostile}\n}}", f"{hostile}$"):
        score(f"{hostile}\nAnswer: 1", gold)
        score(hostile, "1")
    assert time.process_time() - start < 10


def test_the_line_is_read_in_the_last_300_characters_and_the_box_in_the_last_100():
    for answer, length in (("Answer: 34", 290), (r"\boxed{34}", 90)):
        assert score(answer + " " * length, "34").correct
        assert score(answer + " " * (length + 1), "34").status is NONE
    assert score(r"\boxed{34}" + " " * 90, "34", strict_box=True).correct
    assert not score(r"\boxed{34}" + " " * 91, "34", strict_box=True).correct


def test_a_gold_of_up_to_10000_characters_is_compared():
    assert score("Answer: 3", "3" * 10_000).status is WRONG
    assert score("Answer: 3", "3" * 10_001) == (-1.0, False, "", BAD)


@every(
    "step",
    [
        *("square", "ways", "integers", "dollars", "mph", "inches", "hours", "km", "units", "sue", "points", "feet"),
        *("minutes", "digits", "cents", "degrees", "cm", "gm", "pounds", "meters", "meals", "edges", "students"),
        *("childrentickets", "multiples", r"\ldots", r"\text{s}", r"\text{.}", "\\text{\ns}", r"\text{}^2", r"\text{}^3"),
        *("\\text{\n}", r"\text{}", r"\mathrm{th}", r"^\circ", r"^{\circ}", r"\;", r",\!", "{,}", '"', r"\dots", r"\$", r"\ ", " "),
        *("an ", "a "),
    ],
)  # fmt: skip
def test_every_step_of_the_normalisation_has_an_effect(step):
    assert normalize(f"12{step}y") == "12y"


@every(
    ("response", "options", "result"),
    [
        ("Answer: units", {}, (-1.0, False, "", NONE)),
        ("no", {"strict_box": True}, (-1.0, False, "", NONE)),
        ("Answer: 34", {"strict_box": True}, (-1.0, False, "", NONE)),
        (r"Answer: 35 \boxed{34}", {"strict_box": True}, (1.0, True, "34", RIGHT)),
        (r"\boxed{34} \boxed{35}", {"strict_box": True}, (-1.0, False, "35", WRONG)),
        (r"\boxed{34} \boxed{", {}, (-1.0, False, "[INVALID]", NONE)),
    ],
)
def test_a_missing_answer_and_a_wrong_one_have_different_statuses(response, options, result):
    assert score(response, "34", **options) == result
