import time

import pytest
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
from rewardkit.answers.extract import between
from tests.tables import every

AMOUNTS = {"A": "980万元", "B": "990万元", "C": "1000万元", "D": "以上A和C都对"}


def read(text, options=None):
    """The letters in order, "?" for an ambiguous answer, None for no choice."""
    legal = frozenset(options) if options else DEFAULT_LETTERS
    letters = read_letters(text, legal, options)
    return "".join(sorted(letters)) if isinstance(letters, frozenset) else letters and "?"


@every(
    "text",
    [
        "A",
        "(A)",
        "A.",
        "A)",
        "Ａ",
        "（Ａ）",
        "【A】",
        "A。",
        "a",
        "(a)",
        "$A$",
        r"\(A\)",
        "**A**",
        "{A}",
        r"\text{A}",
        r"\mathbf{A}",
        r"\textbf{(A)}",
        r"\rm A",
        r"\left(A\right)",
        r"\text{A}.",
        "option A",
        "Option (A)",
        "choice A",
        "The correct answer is A.",
        "A is correct",
        "Answer: A",
        "选A",
        "故选A",
        "正确答案是 A",
        "答案：A",
        "A项",
        "选项A",
        "A正确",
        "A, A",
        "A/A",
        "不选B，选A",
        "A。不是 B",
        "A不是 B",
        "A, not B",
    ],
)
def test_one_letter_is_read_in_any_dress(text):
    assert read(text) == "A"


@every(
    "text",
    [
        "AC",
        "CA",
        "A,C",
        "C, A",
        "A、C",
        "Ａ、Ｃ",
        "A，C",
        "A C",
        "A;C",
        "A & C",
        "A+C",
        "A.C",
        "A\nC",
        "A和C",
        "A及C",
        "A以及C",
        "A与C",
        "A and C",
        "both A and C",
        "A, and C",
        "a, c",
        "ac",
        r"A\ and\ C",
        r"\{A, C\}",
        r"A,\,C",
        r"A \text{ and } C",
        r"\text{A}, \text{C}",
        r"A\quad C",
        "AC项",
        "A、C两项",
        "选项A和C",
        "选项A, 选项C",
        "选AC",
        "A、C都是正确的。",
        "The answers are A and C",
        "A. 市盈率 C. 市净率",
        "(A) cash; (C) bonds",
    ],
)
def test_several_letters_are_read_with_any_separator(text):
    assert read(text) == "AC"


@every(
    "text",
    [
        "",
        " ",
        "Apple",
        "Cabbage",
        "None of the above",
        "bad",
        "Dad",
        "AAA",
        "AAC",
        "A股",
        "A1",
        "A_1",
        "A?",
        "A-C",
        "A to C",
        "A > B",
        "C++",
        "not A",
        "a correct option",
        "A is right, B is wrong",
        "可能是A",
        "无正确答案",
        "题目可能有误",
        "K",
        "AK",
        "1",
        r"\text{}",
        "A" * 5000,
    ],
)
def test_what_is_more_than_letters_is_no_choice(text):
    assert read(text) is None


@every(
    "text",
    [
        "A or C",
        "A/C",
        "A或C",
        "A或者C",
        "A还是C",
        "either A or C",
        "A, or C",
        "A and/or C",
        "A|C",
        r"A \text{ or } C",
        "A. cash or C",
        "A、B、C三个",
    ],
)
def test_alternatives_are_ambiguous(text):
    assert read(text) == "?"


@every(
    ("text", "letters"),
    [
        ("980万元", "A"),
        ("９８０ 万元。", "A"),
        (r"\text{980 万元}", "A"),
        ("A. 980万元", "A"),
        ("A：980万元", "A"),
        ("(A) 980万元", "A"),
        ("A 980万元", "A"),
        ("正确答案是A. 980万元", "A"),
        ("A. 980万元，C. 1000万元", "AC"),
        ("以上A和C都对", "D"),
        ("D. 以上A和C都对", "D"),
        ("A. 990万元", "?"),
        ("A. 980元", "?"),
        ("A. 980万元; B. 1000万元", "?"),
        ("980", None),
        ("980元", None),
        ("E", None),
        ("AE", None),
    ],
)
def test_an_option_s_text_counts_only_where_it_matches(text, letters):
    assert read(text, AMOUNTS) == letters


def test_the_letter_of_a_text_counts_where_the_options_are_unknown():
    assert read("A. 市盈率") == "A"
    assert read(r"E: \text{A polygenic risk score}") == "E"
    assert read("A. Because B is not valid") == "A"


def test_a_harmless_word_that_is_another_option_s_text_contradicts_the_letter():
    options = {"A": "错", "B": "对"}
    texts = ["对", "B. 对", "B对", "A. 对", "A 对", "(A) 对", "A", "选A"]
    assert [read(text, options) for text in texts] == ["B", "B", "B", "?", "?", "?", "A", "A"]


def test_a_text_that_two_options_share_is_ambiguous():
    assert read("same", {"A": "same", "B": " Same "}) == "?"
    assert read("A. same", {"A": "same", "B": "same"}) == "A"


def test_a_list_of_letters_that_is_an_option_s_text_too_is_ambiguous():
    options = {"A": "I", "B": "A和C", "C": "AC"}
    assert [read(text, options) for text in ("A和C", "AC", "B. A和C", "AB")] == [
        "?",
        "?",
        "B",
        "AB",
    ]


def test_a_single_letter_is_a_letter_whatever_the_options_say():
    assert read("A", {"A": "C", "B": "A", "C": "B"}) == "A"
    assert read("A. C", {"A": "C", "B": "A", "C": "B"}) == "A"


@every(
    ("gold", "letters"),
    [("A", "A"), ("(A)", "A"), ("CA", "AC"), ("A,C", "AC"), ("A、C", "AC"), ("Ａ Ｃ", "AC")]
    + [
        (gold, None)
        for gold in ("", " ", "a", "K", "N", "12", "A or C", "A/C", "Apple", "A. 市盈率")
    ],
)
def test_a_gold_is_upper_case_letters_only(gold, letters):
    assert read_gold(gold, DEFAULT_LETTERS) == (letters and frozenset(letters))


@pytest.mark.parametrize(
    "options",
    [
        ["980万元", "990万元"],
        ("A. 980万元", "B. 990万元"),
        {"A": "980万元", "b": "（B）990万元"},
        ["980万元", "990万元", None],
        {"A": "980万元", "B": "990万元", "C": None},
    ],
)
def test_options_are_a_list_or_a_mapping_with_or_without_labels(options):
    texts = option_texts(options)
    assert list(texts) == ["A", "B"]
    assert read("990万元", texts) == "B"


@pytest.mark.parametrize("options", [None, "A. x", [], {}, 3, {"1": "x"}, {"AB": "x"}, [None]])
def test_other_options_count_as_absent(options):
    assert option_texts(options) is None


def test_options_of_an_array_are_a_list():
    numpy = pytest.importorskip("numpy")
    assert option_texts(numpy.array(["x", "y"], dtype=object)) == {"A": "x", "B": "y"}
    assert option_texts(numpy.array(3)) is None


def choice(response, **kwargs):
    letters = final_choice(response, DEFAULT_LETTERS, **kwargs)[1]
    return "".join(sorted(letters)) if isinstance(letters, frozenset) else letters and "?"


@every(
    ("response", "letters"),
    [
        (r"\boxed{B} no, wait: \boxed{A}", "A"),
        (r"\boxed{A} and a cut \boxed{B", "A"),
        (r"\boxed{\boxed{A}}", "A"),
        (r"\boxed{A}, that is $\boxed{(A)}$", "A"),
        ("<answer>A</answer>", "A"),
        (r"<think>\boxed{B}</think><answer>so \boxed{A}</answer>", "A"),
        (r"<think>\boxed{B}</think>\boxed{A}", "A"),
        (r"<think>\boxed{A}</think>", "A"),
        ("use <answer> </answer>: <answer>A</answer>", "A"),
        (r"\boxed{A} or \boxed{B}", "?"),
        (r"\boxed{A}, \boxed{C}", "?"),
        (r"The answer is \boxed{B}. The answer is \boxed{A}.", "?"),
        ("<answer>B</answer><answer>A</answer>", "?"),
        (r"<answer>B</answer> \boxed{A}", "?"),
        ("The answer is A", None),
        ("<answer>A", None),
        (r"\boxed{}", None),
    ],
)
def test_the_last_box_or_answer_is_final_unless_another_beside_it_differs(response, letters):
    assert choice(response) == letters


@every(
    ("response", "letters"),
    [
        ("答案：AC", "AC"),
        ("【答案】: A <eoa>", "A"),
        ("正确答案是 B", "B"),
        ("故选C", "C"),
        ("综上，本题选AC。", "AC"),
        ("正确的选项是B、D。", "BD"),
        ("答案是选项A和C", "AC"),
        ("The answer is (B).", "B"),
        ("The answer is B. I hope it is correct.", "B"),
        ("Answer: B because C is not valid", "B"),
        ("Answer: A and C", "AC"),
        ("__Answer__: A", "A"),
        ("ANSWER IS b", "B"),
        ("Maybe Answer: A? Let me reconsider. Final Answer: B", "B"),
        ("Answer: B\nAnswer: unknown", "B"),
        ("thoughts\n(B)", "B"),
        (r"so 6 = \boxed{6}. The answer is (B).", "B"),
        (r"\boxed{A}. The answer is (B).", "A"),
        ("The answer is A or B", "?"),
        ("Answer: A\nAnswer: B", "?"),
        ("Answer: A Answer: B Answer: C", "?"),
        ("答案：A。答案：B", "?"),
        ("The answer is a good one", None),
        ("Answer: I think it is B", None),
        ("The answer is not A", None),
        ("It might be B but I am not sure", None),
        ("答案是A股", None),
        ("答案A不正确", None),
        ("答案：A、B增速一样快", "?"),
    ],
)
def test_final_letter_reads_statements(response, letters):
    assert choice(response, final_letter=True) == letters


def test_a_statement_with_another_option_s_text_is_ambiguous():
    legal = frozenset(AMOUNTS)
    for response, letters in (
        ("答案：A. 980万元", frozenset("A")),
        ("答案：980万元", frozenset("A")),
        ("答案：A. 990万元", AMBIGUOUS),
    ):
        assert final_choice(response, legal, AMOUNTS, final_letter=True)[1] == letters


DRESS = ["{}", "({})", r"\text{{{}}}", "**{}**", "选{}", "the answer is {}", "{}.", "${}$"]
SEPARATORS = [",", ", ", "、", "，", "和", "及", " and ", " ", ";", " & ", r"\text{ and }", "\n"]


@given(
    st.lists(st.sampled_from("ABCDEFGHIJ"), min_size=1, max_size=10, unique=True),
    st.sampled_from(SEPARATORS),
    st.sampled_from(DRESS),
)
def test_order_separators_and_dress_do_not_matter(letters, separator, dress):
    text = dress.format(separator.join(letters))
    assert read_letters(text, DEFAULT_LETTERS) == frozenset(letters)


@given(st.text(), st.one_of(st.none(), st.lists(st.text(), max_size=5)), st.booleans())
def test_no_text_makes_it_raise_and_only_legal_letters_come_back(text, options, final_letter):
    texts = option_texts(options)
    legal = frozenset(texts) if texts else DEFAULT_LETTERS
    for letters in (
        read_letters(text, legal, texts),
        final_choice(text, legal, texts, final_letter=final_letter)[1],
        final_choice(rf"Answer: \boxed{{{text}}}", legal, texts, final_letter=final_letter)[1],
        read_gold(text, legal),
    ):
        assert letters in (None, AMBIGUOUS) or (letters and letters <= legal)


@given(st.text(alphabet="ABab,、和or \n()\\{}.*不选", max_size=40))
def test_near_answers_do_not_raise(text):
    letters = read_letters(text, DEFAULT_LETTERS, {"A": text, "B": "b"})
    assert letters in (None, AMBIGUOUS) or letters <= frozenset("ABO")


@given(st.text(alphabet="<a>/b", max_size=60))
def test_between_finds_what_the_regular_expression_finds(text):
    import re

    assert between(text, "<a>", "</a>") == re.findall("<a>(.*?)</a>", text, re.DOTALL)


@every("final_letter", [False, True])
@every(
    "piece",
    [
        "\\boxed{",
        "{",
        "}",
        "<answer>",
        "<answer>A</answer>",
        "答案",
        "Answer: A ",
        "A ",
        "A,",
        " ",
        "\\boxed{A} or ",
        "\\text{",
        "A. b ",
        "不选A,",
        "、",
        "and",
        "\n选",
        "</think>",
    ],
)
def test_reading_is_linear(piece, final_letter):
    """Twenty times the text takes at most about twenty times as long, on the worst inputs."""

    def cost(chars):
        text = piece * (chars // len(piece))
        return min(_timed(text, final_letter) for _ in range(3))

    assert cost(1_000_000) < 60 * cost(50_000) + 0.01


def _timed(text, final_letter):
    started = time.process_time()
    final_choice(text, DEFAULT_LETTERS, final_letter=final_letter)
    return time.process_time() - started


@pytest.mark.parametrize(
    "piece", [",", "A,", "(", " ", "not A, ", "A. ", "\\text{", "**", "ﷺ", "和"]
)
def test_reading_letters_is_linear_up_to_the_longest_answer_that_is_read(piece):
    def cost(chars):
        text = (piece * chars)[: chars - 1] + "x"
        return min(_read_timed(text) for _ in range(3))

    assert cost(4096) < 60 * cost(205) + 0.01


def _read_timed(text):
    started = time.process_time()
    read_letters(text, frozenset("AB"), {"A": text[:-1], "B": "b"})
    return time.process_time() - started


@every(
    "text",
    [
        *(rf"\{command}{{A}}" for command in ("text", "textbf", "textit", "textrm", "textsf", "texttt", "textnormal")),
        *(rf"\{command}{{A}}" for command in ("mathrm", "mathbf", "mathit", "mathsf", "mathtt", "mathnormal", "mathbb")),
        *(rf"\{command}{{A}}" for command in ("mathcal", "mbox", "fbox", "boxed", "boldsymbol", "bm", "operatorname")),
        r"\underline{A}", r"\emph{A}", r"\textbf{\text{\emph{\bm{A}}}}", r"\displaystyle A", r"\large A", r"\Large A", r"\bf A", "__A__", "`A`",
        *(f"{word} A" for word in ("the", "my", "final", "correct", "right", "best", "answer", "answers", "option", "options")),
        *(f"{word} A" for word in ("choice", "choices", "is", "are", "both", "either", "so", "therefore", "thus", "hence", "but", "rather")),
        *(f"{word}A" for word in ("正确", "最终", "最佳", "答案", "选项", "选择", "因此", "所以", "综上", "本题", "该题", "而是", "应该")),
        *(f"{word}A" for word in ("是", "故", "应", "选", "为", "的", "即", "而")), "A都对", "A均对", "A项",
        *(f"A不{word}B" for word in ("选", "选择", "应选", "应该选", "能选", "该选", "可选", "是")), "A, not (B)", "A不是B、C",
    ],
)  # fmt: skip
def test_a_letter_is_read_through_every_dress_and_harmless_word(text):
    assert read(text) == "A"


@every(
    "joint",
    [
        ",",
        ";",
        "、",
        "&",
        "+",
        "和",
        "及",
        "与",
        "跟",
        "以及",
        " and ",
        "AND",
        r"\quad ",
        r"\\ ",
        "~",
        r"\,",
    ],
)
def test_every_separator_joins_letters(joint):
    assert read(f"(A){joint}(C)") == "AC"


@pytest.mark.parametrize("joint", ["/", "|", " or ", "或", "或者", "还是"])
def test_every_word_for_or_leaves_the_choice_open(joint):
    assert read(f"(A){joint}(C)") == "?"
    assert read(f"A. cash {joint} (C) bonds") == "?"
    assert read(f"(A){joint}(A)") == "A"
    assert read("(A) OR (C)") == "?"


def test_answers_and_lines_are_read_up_to_each_limit_and_not_beyond():
    assert read("A" + " " * 4095) == "A"
    assert read("A" + " " * 4096) is None
    assert read(r"\textbf{\text{\emph{\bm{\bm{A}}}}}") is None  # nested five deep
    for spaces, letters in ((79, "?"), (80, "B")):
        assert choice(r"\boxed{A}" + " " * spaces + r"\boxed{B}") == letters
    for spaces, letters in ((192, "?"), (193, "B")):
        assert choice(r"\boxed{A" + " " * spaces + r"}, \boxed{B}") == letters
    for blocks, letters in ((3, "?"), (4, "A")):
        assert choice("<answer>B</answer>" + "<answer>A</answer>" * blocks) == letters
    for statements, letters in ((15, "B"), (16, None)):
        assert choice("Answer: B\n" + "Answer: no\n" * statements, final_letter=True) == letters
    for chars, letters in ((19_990, "B"), (19_991, None)):
        assert choice("Answer: B\n" + "x" * chars, final_letter=True) == letters
    for commas, letters in ((78, "?"), (79, "B")):
        assert choice(f"Answer: A{',' * commas}Answer: B", final_letter=True) == letters


@every(
    ("response", "said", "letters"),
    [
        (r"\boxed{A}/\boxed{B}", "A or B", "?"), (r"\boxed{A}或\boxed{B}", "A or B", "?"), (r"\boxed{A}, \boxed{B}", "B", "?"),
        (r"\boxed{A}or \boxed{B}", "A or B", "?"), (r"\boxed{ A }", "A", "A"), (r"\fbox{A}, \boxed{B}", "B", "?"), (r"\boxed{A}, \fbox{B}", "B", "?"),
        (r"\boxed{A} \boxed{none}", "none", None), (r"\boxed{none} \boxed{A}", "A", "A"), (r"\frac{1}{2} \boxed{A}", "A", "A"), (r"\boxed{A} {x} \boxed{B}", "B", "B"),
        ("<answer>B</answer> no: <answer>none of it</answer>", "none of it", None), ("<answer>none</answer><answer>B</answer>", "B", "B"),
        (r"<answer>\boxed{A}</answer> \boxed{A}", "A", "A"), ("<answer>A</answer><answer> </answer>", "A", "A"), ("<answer>A</answer>\\boxed{}", "A", "A"),
        (r"\boxed{B} <answer>A</answer>", "A", "A"), (r"<think>\boxed{A}</think> none", "A", "A"), (r"<think>\boxed{A}</think>\boxed{B}", "B", "B"),
        ("<answer>x \\boxed{A} or \\boxed{B}</answer>", "A or B", "?"), ("", "", None), ("none", "", None),
    ],
)  # fmt: skip
def test_the_text_of_the_final_answer_comes_with_its_letters(response, said, letters):
    found = final_choice(response, DEFAULT_LETTERS)
    assert found[0] == said
    assert choice(response) == letters


@every(
    "statement",
    ["The answer: A", "The Answer is: A", "answer = A", "option: A", "choices are A", "answers: A", "**Answer**: A", "the answer is A, because B",
     "Answer: A since B", "Answer: A due to B", "Answer: A for B", "Answer: A as B", "Answer: A, B is bad", "答案是A因为B", "答案为A由于B", "答案A", "【答案】A", "正确选项是A", "正确的是A",
     "正确的选A", "故选A", "应选A", "我选A", "可选A", "则选A", "即选A", "因此选A", "所以应选A", "综上，选A", "最终选择A", "\n选A", "\n选择：A", "Answer: (A)", "Answer: {A}.", "Answer: A选项", "Answer: A项",
     "Answer: A! B", "Answer: A: x", "Answer: A<eoa>", "答案：A不是B", "答案选项A", "Answer: a", "Answer: A\nAnswer: A", "Answer: none\nAnswer: A"],
)  # fmt: skip
def test_every_wording_of_a_statement_is_read(statement):
    assert choice(f"x {statement}", final_letter=True) == "A"
    assert choice(f"x {statement}") is None


@pytest.mark.parametrize(
    "text",
    [
        "Answer A",
        "选A",
        "Answer: AA",
        "Answer: K",
        "Answers",
        "x\nA or B",
        "x\nABA",
        "x\nabc",
        "x\nNOT A",
        "reanswer: A",
        "AC\nx",
    ],
)
def test_what_is_no_statement_and_no_last_line_of_letters_is_not_read(text):
    assert choice(text, final_letter=True) is None


def test_a_last_line_of_letters_goes_before_a_statement():
    assert choice("Answer: B\nA", final_letter=True) == "A"
    assert choice("Answer: B\nA, C\n", final_letter=True) == "AC"
    assert final_choice("x\n A, C ", DEFAULT_LETTERS, final_letter=True)[0] == "A, C"


@every(
    ("text", "letters"),
    [("980万元 and", "A"), ("980万元、", "A"), ("a 980万元", None), ("A. 980万元 B. 990万元", "AB"), ("A. 980万元；B. 1000万元", "?"), ("E. 980万元", None),
     ("(B) 990 万元", "B"), ("以上A和C都对。", "D"), ("A", "A"), ("AB", "AB"), ("A. 990万元 B. 980万元", "?"), ("B 980万元", None)],
)  # fmt: skip
def test_a_label_with_a_text_wants_the_text_of_its_own_option(text, letters):
    assert read(text, AMOUNTS) == letters


def test_options_that_differ_in_their_last_character_are_two():
    options = {"A": "BMW", "B": "BMWX", "C": "BMW!", "D": "BM"}
    assert [read(text, options) for text in options.values()] == ["A", "B", "C", "D"]
    assert read("BMW.", options) == read("bmw ,", options) == "A"
