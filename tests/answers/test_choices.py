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

AMOUNTS = {"A": "980万元", "B": "990万元", "C": "1000万元", "D": "以上A和C都对"}


def read(text, options=None):
    """The letters in order, "?" for an ambiguous answer, None for no choice."""
    legal = frozenset(options) if options else DEFAULT_LETTERS
    letters = read_letters(text, legal, options)
    return "".join(sorted(letters)) if isinstance(letters, frozenset) else letters and "?"


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("final_letter", [False, True])
@pytest.mark.parametrize(
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
