"""Finding the statement of a choice in a response."""

from hypothesis import given
from hypothesis import strategies as st

from rewardkit.answers.choices import (
    AMBIGUOUS,
    DEFAULT_LETTERS,
    final_choice,
    option_texts,
    read_gold,
    read_letters,
)
from tests.tables import every

AMOUNTS = {"A": "980万元", "B": "990万元", "C": "1000万元", "D": "以上A和C都对"}


def choice(response, **kwargs):
    letters = final_choice(response, DEFAULT_LETTERS, **kwargs)[1]
    return "".join(sorted(letters)) if isinstance(letters, frozenset) else letters and "?"


@every(
    ("response", "letters"),
    [
        (r"\boxed{B} no, wait: \boxed{A}", "A"), (r"\boxed{A} and a cut \boxed{B", "A"),
        (r"\boxed{\boxed{A}}", "A"), (r"\boxed{A}, that is $\boxed{(A)}$", "A"),
        ("<answer>A</answer>", "A"),
        (r"<think>\boxed{B}</think><answer>so \boxed{A}</answer>", "A"),
        (r"<think>\boxed{B}</think>\boxed{A}", "A"), (r"<think>\boxed{A}</think>", "A"),
        ("use <answer> </answer>: <answer>A</answer>", "A"), (r"\boxed{A} or \boxed{B}", "?"),
        (r"\boxed{A}, \boxed{C}", "?"), (r"The answer is \boxed{B}. The answer is \boxed{A}.", "A"),
        ("<answer>B</answer><answer>A</answer>", "?"), (r"<answer>B</answer> \boxed{A}", "?"),
        ("The answer is A", None), ("<answer>A", None), (r"\boxed{}", None),
    ],
)  # fmt: skip
def test_the_last_box_or_answer_is_final_unless_another_beside_it_differs(response, letters):
    assert choice(response) == letters


@every(
    ("response", "letters"),
    [
        ("答案：AC", "AC"), ("【答案】: A <eoa>", "A"), ("正确答案是 B", "B"), ("故选C", "C"),
        ("The answer is B. I hope it is correct.", "B"), ("Answer: B because C is not valid", "B"),
        ("Maybe Answer: A? Let me reconsider. Final Answer: B", "B"),
        ("Answer: B\nAnswer: unknown", "B"), ("thoughts\n(B)", "B"),
        (r"so 6 = \boxed{6}. The answer is (B).", "B"), (r"\boxed{A}. The answer is (B).", "A"),
        ("Answer: B\nA", "A"), ("Answer: B\nA, C\n", "AC"), ("故选B。注意A项正确是常见的误解。", "B"),
        ("A is correct, you may say. The answer is B.", "B"), ("The answer is B, C and others are wrong.", "?"),
        ("The answer is B, I think.", "B"), ("Answer A", None), ("Answer: AA", None), ("Answer: K", None), ("Answers", None),
        ("x\nA or B", None), ("x\nABA", None), ("x\nabc", None), ("x\nNOT A", None), ("reanswer: A", None), ("AC\nx", None),
        ("The answer is A or B", "?"), ("Answer: A\nAnswer: B", "?"),
        ("The answer is a good one", None), ("Answer: I think it is B", None),
        ("The answer is not A", None), ("It might be B but I am not sure", None), ("答案是A股", None),
        ("答案A不正确", None), ("答案：A、B增速一样快", "?"),
    ],
)  # fmt: skip
def test_final_letter_reads_statements(response, letters):
    assert choice(response, final_letter=True) == letters


@given(st.text(), st.one_of(st.none(), st.lists(st.text(), max_size=5)), st.booleans())
def test_no_text_raises_and_only_legal_letters_are_returned(text, options, final_letter):
    texts = option_texts(options)
    legal = frozenset(texts) if texts else DEFAULT_LETTERS
    for letters in (
        read_letters(text, legal, texts),
        final_choice(text, legal, texts, final_letter=final_letter)[1],
        final_choice(rf"Answer: \boxed{{{text}}}", legal, texts, final_letter=final_letter)[1],
        read_gold(text, legal),
    ):
        assert letters in (None, AMBIGUOUS) or (letters and letters <= legal)


def test_boxes_and_lines_are_read_up_to_each_limit_and_not_beyond():
    for blocks, letters in ((3, "?"), (4, "A")):
        assert choice("<answer>B</answer>" + "<answer>A</answer>" * blocks) == letters
    for statements, letters in ((15, "B"), (16, None)):
        assert choice("Answer: B\n" + "Answer: no\n" * statements, final_letter=True) == letters
    for chars, letters in ((9_990, "B"), (9_991, None)):
        assert choice("Answer: B\n" + "x" * chars, final_letter=True) == letters
    for commas, letters in ((78, "?"), (79, "B")):
        assert choice(f"Answer: A{',' * commas}Answer: B", final_letter=True) == letters


@every(
    ("response", "answer", "letters"),
    [
        (r"\boxed{A}/\boxed{B}", "A or B", "?"), (r"\boxed{A}或\boxed{B}", "A or B", "?"), (r"\boxed{A}, \boxed{B}", "A or B", "?"),
        ("<answer>B</answer> no: <answer>none of it</answer>", "none of it", None), ("<answer>none</answer><answer>B</answer>", "B", "B"),
        ("<answer>x \\boxed{A} or \\boxed{B}</answer>", "A or B", "?"), ("", "", None), ("none", "", None),
    ],
)  # fmt: skip
def test_the_text_of_the_final_answer_comes_with_its_letters(response, answer, letters):
    assert final_choice(response, DEFAULT_LETTERS)[0] == answer
    assert choice(response) == letters


@every(
    "statement",
    ["The answer: A", "The Answer is: A", "answer = A", "option: A", "the correct choices are A", "answers: A", "**Answer**: A", "the answer is A, because B",
     "Answer: A! x", "Answer: A: x", "Answer: A<eoa>", "答案：A不是B", "答案选项A", "Answer: a", "Answer: A\nAnswer: A", "Answer: none\nAnswer: A"],
)  # fmt: skip
def test_every_wording_of_a_statement_is_read(statement):
    assert choice(f"x {statement}", final_letter=True) == "A"
    assert choice(f"x {statement}") is None


@every(
    "statement",
    ["Solution: Choice_B", r"Solution: Choice\_B", "Solution: Choice_B: 0.5 mm", "Solution: Choice B (an acid)", "Solution: Choice B - an acid", "Solution: Choice_B\nConfidence: 90%", "Solution: B",
     "So it must be (D)", "so it must be option D.", "I choose D.", "I'd go with option (D).", "We pick D", "So D.", "Hence, (D).", "Therefore, option D", "The answer to this question is D.", "Ans: (D)", "The answer is definitely D.",
     "(D) is the answer", "**D** is the right choice.", "Option D is correct.", "Only D is correct, since A is not.", "Choice D must be correct.", "This matches choice D.", "the best one is option (D)", "option D",
     "本题选D", "此题应选D。", "D项正确", "D正确。", "选项D正确", "选项D是正确的。", "D选项符合题意", "D是正确答案", "D为正确选项", "D项是本题答案", "答：D", "答：选D", "选D", "我选D", "这道题选D", "由此可知选D", "故选（D）",
     "The answer is not C but D.", "The answer is D, not C.", "The answer is D not C", "答案是D而不是C", "答案不是C，而是D", "The answer is D. C is wrong.", "I thought the answer is C? No: the answer is D.",
     "If so, A is correct. The answer is D.", "That's why the answer is D."],
)  # fmt: skip
def test_wordings_of_real_models_are_read(statement):
    letter = "B" if "B" in statement else "D"
    assert choice(f"first x = 3.\n{statement}", final_letter=True) == letter
    assert choice(f"first x = 3.\n{statement}") is None


@every(
    "statement",
    ["The answer is not B.", "Answer: not B", "Answer: ~B", r"Answer: \cancel{B}", "Answer: $\\neg B$", "答案：非B", "答案：除B外", "答案：B不正确", "答案：B错误", "排除B", "B不正确", "B is wrong.", "Choice B is incorrect.",
     "Is B correct?", "Is the answer B?", "Is B the correct answer?", "B is correct?", "B is correct if x = 2.", "The answer is B?", "选项B是错误的", "B项错误", "B不符合题意", "B不是答案", "B不是正确答案", "不应选B", "不能选B", "不可选B",
     "It must not be B.", "I would not choose B.", "I won't choose B.", "Neither A nor B is correct.", "everything but B is correct", "All options except B are correct.", "Suppose the answer is B.", "Assume that B is the correct answer.",
     "Statement B is correct", "说法B正确", "Answer: B is wrong", "Answer: (B) is wrong", "Answer: B (wrong)", "The correct answer is anything but B.", "B is the wrong answer.", "B is an incorrect choice.", "B is the least likely answer",
     "B is the only incorrect option", "Which of A, B, C, D is right?", "Options: A B C D", "The options are B and C.", "Take each option:\nB. is odd\nC. is even", "We look at an option:\nb. option B is odd\nc. option C is even", "Which option: B?",
     "Possible answers are B, C and others. All can be defended.", "The answer is:\n- B\n- C", "The answer is BMW.", "Answer: Because", "Solution: A car moves.", "It must be that B is smaller.", "We choose B = 3."],
)  # fmt: skip
def test_a_letter_that_is_denied_doubted_or_asked_is_not_the_choice(statement):
    assert choice(f"first x = 3.\n{statement}", final_letter=True) is None


@every(
    "statement",
    ["The answer is B or C", "The answer is B or perhaps C", "must be B or C", "I choose B or C.", "本题选B还是C", "本题选B或C", "The answer is B. Actually, B is wrong.", "答案：B。但是B不正确。", "A is correct. B is correct.",
     "The answer is B, C, D and so on.", "The answer is B, C, etc.", "答案是B、C等选项",
     "A项正确，C项错误，B项正确。", "Choice C is the correct answer.\nSolution: Choice_B", "the one is option C, then it is option B"],
)  # fmt: skip
def test_statements_that_leave_the_choice_open_are_ambiguous(statement):
    assert choice(f"first x = 3.\n{statement}", final_letter=True) == "?"


MARBLES = {"A": "12", "B": "15", "C": "18", "D": "24"}
COLORS = {"A": "red", "B": "dark blue", "C": "green", "D": "cannot be determined"}
SPEEDS = {"A": "大于", "B": "小于", "C": "等于", "D": "无法确定"}


def choice_of(options, response):
    letters = final_choice(response, frozenset(options), options, final_letter=True)[1]
    return "".join(sorted(letters)) if isinstance(letters, frozenset) else letters and "?"


@every(
    ("options", "response", "letters"),
    [
        *((MARBLES, text, "C") for text in [
            # the noun has a modifier
            "The correct option letter is C (18).", "The answer to your question is C.", "The answer, then, is C.", "The option that matches this is C", "The best answer among the given options is C. 18", "Final answer → C",
            # the option's text follows its letter, and a sentence or a reason follows the text
            "The answer is (C) 18. Every row has six marbles.", "C) 18, because every row has six.", "Answer: **(C) 18**\n\nEvery row has 6, so A (12) is too small.", "(C) 18. Each of the three rows has six.",
            # the last sentence
            "There are 18 marbles in total (C).", "The total is 18, option C", "The total is 18, which is option C.", "The total is 18 (option C).", "So the total equals 18 (C)", "The box shows (C) 18.", "The perimeter is C. 18",
            "The total is 18. (C)", "So we are left with option C.", "This gives us option C.", "The answer is C rather than B.",
            # closing courtesies
            "(C) 18\n\nFeel free to ask more.", "答案：C。希望对你有帮助！",
            # the first line
            "C\n\nThe rows have six each.", "C. 18\n\nExplanation: every row has six.", "B and A are too small. The answer is C.",
            # a conclusion after what is denied, supposed or doubted
            "It is not A, so the answer is C.", "Since it is neither A nor B, the answer is C.", "There is no doubt that the answer is C.", "I believe the correct answer is C.", "If a row has six, three rows have 18, therefore the answer is C.", "The most likely answer is C.",
            "The answer is C. If you count again you will see 18.", "At first I thought of A, but the correct answer is C.", r"It cannot be A, so \boxed{C}", r"The answer is not A but \boxed{C}.",
        ]),
        *((COLORS, text, "D") for text in ["The color cannot be determined (D).", "The answer is (D) cannot be determined."]),
        *((SPEEDS, text, "B") for text in [
            "选项为(B)", "所以甲的速度小于乙,选项为B.", "甲的速度小于乙的速度（选项B）。", "甲的速度小于乙的速度，即选项B。", "因此x的值是(B)。", "我认为答案是B。", "B. 小于。因为甲用的时间更长。", "B\n\n解析：甲用的时间更长。",
            "因为甲不比乙快，答案是B。", "若甲慢，则甲小于乙，因此答案是B。", "综合分析，B选项最符合题意。", "不难看出答案是B。", "A错误；B正确；C错误；D错误。",
        ]),
    ],
)  # fmt: skip
def test_a_result_sentence_states_the_option_it_names(options, response, letters):
    assert choice_of(options, response) == letters


@every(
    ("options", "response"),
    [
        *((MARBLES, text) for text in [
            # denied
            "I don't think the answer is C.", "It is false that the answer is C.", "It is wrong to say that the answer is C.", "The wrong answer is C.", "The least likely answer is C.", "The answer is anything except C.",
            "The box does not show (C) 18.", "This contradicts option C.", "The number is not 18 (C).", "(C) 18 is too big", "The answer is C, which is wrong.", "The answer is C, which cannot be right.", "The answer is C, not really.", "Prove that the answer is C.", r"The answer is not \boxed{C}.", r"\boxed{C} is wrong.",
            # supposed, hedged, told or asked
            "If the rows are full, the answer is C.", "The answer is C, if the rows are full.", "Perhaps the answer is C.", "Some may say the answer is C.", "A student said the answer is C.", "The answer is C, right?", "It may be option C.",
            "If the box shows (C) 18, a row has six.", r"Suppose the answer is \boxed{C}.", "I would choose C if there were six rows.", "The box might show (C) 18.",
            # taken back, or not the only one
            "The answer is C. Wait, that's not right.", "The answer is C. Sorry, it is B.", "The answer is C, but B is also correct.", "The answer is C (18) or D (24).", "The answer is C (18), D (24).", "The answer is C as well as D.", "The answer is C, says Tom.", "Next, option C", "Now for (C) 18.", r"\boxed{C}. Wait, that is wrong.",
            "C\n\nWait, no, that is wrong.", "The answer is (C) 18. The total is 15 (B).", "There are 24 marbles (C).", "The answer is (C) 24.", r"\boxed{C} or B",
            # a bound, a point, a list
            "There are at least (C) 18 marbles.", "The total is less than option C", "The angle is at point (C).", "The options are 12 (A), 15 (B), 18 (C)", "For the moment let x be 18 (C).", "The center is C.",
        ]),
        *((SPEEDS, text) for text in [
            "如果答案是B，那么甲更快。", "假设答案为B", "设答案为B", "可能答案是B", "也许应选B", "我不认为答案是B", "不一定选B", "无法选B", "并非答案是B", "答案是B。等等，算错了。", "答案是B，这是错误的", "答案是B，也可能是C", "有同学选B",
            "谁说答案是B", "他认为答案是B", "据说答案是B", "答案是B，错。", "B正确，C也正确", "B正确吗？", "只有当x>0时答案才是B", "选项为A、B、C、D", "所以圆心为B", "所以面积大于B", "所以面积不为B", "甲的速度不是(B)小于乙的速度", r"如果答案是\boxed{B}", r"不选\boxed{B}",
        ]),
    ],
)  # fmt: skip
def test_a_letter_under_a_denial_doubt_condition_or_contradiction_is_not_stated(options, response):
    assert choice_of(options, response) in (None, "?")


HALVES = {"A": "1/2", "B": "Thursday"}
WEIGHTS = {"A": "1/2", "B": "8 kg", "C": "12"}


@every(
    ("options", "response", "letters"),
    [
        (AMOUNTS, "答案：A. 980万元", "A"), (AMOUNTS, "答案：980万元", "A"), (AMOUNTS, "答案：A. 990万元", "?"),
        # a last line that is an option's text
        (HALVES, "we count\n$\\frac12$", "A"), (HALVES, "we count\nThursday.", "B"), (HALVES, "we count\n**(A) 0.5**", "A"),
        (HALVES, "we count\n(B) 0.5", "?"), (HALVES, "we count\nit is 1/2 then", None), (HALVES, "Answer: A\nThursday", "A"),
        # a statement of a value
        (WEIGHTS, r"The answer is $\frac12$.", "A"), (WEIGHTS, "The answer is 0.5. It is half.", "A"), (WEIGHTS, "答案：12", "C"),
        (WEIGHTS, "The answer is (B) 8 kg.", "B"), (WEIGHTS, "The answer is B or 12.", "?"),
    ],
)  # fmt: skip
def test_the_text_or_value_of_a_known_option_picks_it(options, response, letters):
    picked = final_choice(response, frozenset(options), options, final_letter=True)[1]
    assert (picked is AMBIGUOUS) is (letters == "?")
    assert letters == "?" or picked == (letters and frozenset(letters))


@given(
    st.sampled_from("ABCDEFGHIJ"),
    st.sampled_from(["not ", "~", "¬", "非", "不选", "排除", "除"]),
    st.sampled_from(
        [
            "The answer is {}.", "答案：{}", "Solution: Choice {}", r"\boxed{{{}}}",
            "<answer>{}</answer>",
        ]
    ),
)  # fmt: skip
def test_no_negation_of_a_letter_picks_it(letter, negation, form):
    assert choice(form.format(negation + letter), final_letter=True) != letter
    assert choice(form.format(f"{negation}({letter})"), final_letter=True) != letter
