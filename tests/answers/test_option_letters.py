"""Which options an answer picks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.answers.choices import (
    DEFAULT_LETTERS,
    MAX_FORMULA,
    MAX_OPTIONS,
    option_texts,
    read_gold,
    read_letters,
)
from tests.tables import every

AMOUNTS = {"A": "980万元", "B": "990万元", "C": "1000万元", "D": "以上A和C都对"}


def read(text, options=None):
    """Return the letters in order, "?" for an ambiguous answer, None for no choice."""
    legal = frozenset(options) if options else DEFAULT_LETTERS
    letters = read_letters(text, legal, options)
    return "".join(sorted(letters)) if isinstance(letters, frozenset) else letters and "?"


JOINTS = [
    ",", ";", "、", "&", "和", "及", "与", "跟", "以及", " and ", "AND", r"\quad ", r"\\ ", "~", r"\,"
]  # fmt: skip
OR = ["/", "|", " or ", "或", "或者", "还是"]


@every(
    ("letters", "texts"),
    [
        # in any markup, with filler words, with another letter that is denied
        ("A", [
            "A", "(A)", "A.", "A)", "Ａ", "（Ａ）", "【A】", "A。", "a", "(a)", "$A$", r"\(A\)", "**A**",
            "{A}", r"\text{A}", r"\mathbf{A}", r"\textbf{(A)}", r"\rm A", r"\left(A\right)",
            r"\text{A}.", "option A", "Option (A)", "choice A", "The correct answer is A.",
            "A is correct", "Answer: A", "选A", "故选A", "正确答案是 A", "答案：A", "A项", "选项A", "A正确", "A, A",
            "A/A", "不选B，选A", "A。不是 B", "A不是 B", "A, not B",
            *(rf"\{command}{{A}}" for command in ("text", "textbf", "textit", "textrm", "textsf", "texttt", "textnormal")),
            *(rf"\{command}{{A}}" for command in ("mathrm", "mathbf", "mathit", "mathsf", "mathtt", "mathnormal", "mathbb")),
            r"\underline{A}", r"\emph{A}", r"\textbf{\text{\emph{\bm{A}}}}", r"\displaystyle A", r"\large A", r"\Large A", r"\bf A", "__A__", "`A`",
            *(f"{word} A" for word in ("the", "my", "final", "correct", "right", "best", "answer", "answers", "option", "options")),
            *(f"{word}A" for word in ("正确", "最终", "最佳", "答案", "选项", "选择", "因此", "所以", "综上", "本题", "该题", "而是", "应该")),
            *(f"A不{word}B" for word in ("选", "选择", "应选", "应该选", "能选", "该选", "可选", "是")), "A, not (B)", "A不是B、C",
            "A. 市盈率", "A. Because B is not valid", *(f"(A){joint}(A)" for joint in OR),
        ]),
        # with any separator
        ("AC", [
            "AC", "CA", "A,C", "C, A", "A、C", "Ａ、Ｃ", "A，C", "A C", "A;C", "A & C", "A.C", "A\nC", "A和C",
            "A及C", "A以及C", "A与C", "A and C", "both A and C", "A, and C", "a, c", "ac", r"A\ and\ C",
            r"\{A, C\}", r"A,\,C", r"A \text{ and } C", r"\text{A}, \text{C}", r"A\quad C", "AC项",
            "A、C两项", "选项A和C", "选项A, 选项C", "选AC", "A、C都是正确的。", "The answers are A and C",
            "A. 市盈率 C. 市净率", "(A) cash; (C) bonds",
            "A+C", "(A)+(C)", "A + C", r"\text{A}+\text{C}", "选A+C", *(f"(A){joint}(C)" for joint in JOINTS),
        ]),
        # more than letters
        (None, [
            "", " ", "Apple", "Cabbage", "None of the above", "bad", "Dad", "AAA", "AAC", "A股", "A1",
            "A_1", "A?", "A-C", "A+", "A+1", "A to C", "A > B", "C++", "not A", "a correct option",
            "A is right, B is wrong", "可能是A", "无正确答案", "题目可能有误", "K", "AK", "1", r"\text{}", "A" * 5000,
        ]),
        # rejected or asked
        (None, [
            "~A", "~(A)", "$~A$", "~~A", r"\text{~A}", "～A", "¬A", r"\neg A", r"\lnot A", "非A", "除A外", "除了A", "A以外", "排除A", "不选A", "不是A", "A不正确", "A错误",
            "A是错误的", "选项A是错误的", "A is wrong", "(A) is wrong", "(A) is not the answer", "(A) isn't correct", "(A) was eliminated", "(A)不正确", "(A) 不对", "A (wrong)", "A (错误的)",
            "A) is incorrect", "A. is incorrect", r"\cancel{A}", r"\sout{A}", r"\xcancel{(A)}", r"A\ne", r"A \neq", r"\not A", "(A)?", "A.?", "A?", "(A) probably not", "(A) not",
            "not (A)", "none (A)", "all except A", "(A) = 3", "A^c", r"\overline{A}",
        ]),
        # an option's text may deny something itself
        ("B", [
            "B. 错误", "B、不正确", "B) Wrong", "(B) cannot be determined", "B. not enough information", "(B) impossible to tell", "B. is not affected", "(B) No", "B (because it is larger)",
            "B (12 cm)", "B (not A)", "B~", r"\text{选项}~B", "排除A，选B", "(B) - 5 cm",
        ]),
        ("E", [r"E: \text{A polygenic risk score}"]),
        # alternatives
        ("?", [
            "A or C", "A/C", "A或C", "A或者C", "A还是C", "either A or C", "A, or C", "A and/or C", "A|C",
            r"A \text{ or } C", "A. cash or C", "A、B、C三个",
            *(f"(A){joint}(C)" for joint in OR), *(f"A. cash {joint} (C) bonds" for joint in OR), "(A) OR (C)",
        ]),
    ],
)  # fmt: skip
def test_a_text_picks_these_letters(letters, texts):
    for text in texts:
        assert read(text) == letters, text


FRACTIONS = {"A": "1/3", "B": "1/2", "C": r"$\frac{3}{4}$", "D": r"(D) $\sqrt{8}$", "E": "none"}
SAME_VALUES = {"A": "1/2", "B": "0.5", "C": "2", "D": "3"}
ENDS = {"A": "BMW", "B": "BMWX", "C": "BMW!", "D": "BM"}
PROSE = {
    "A": "收到货款5万元，余款10万元尚未收到",
    "B": "the train needs about 5 hours there",
    "C": "1",
}


@every(
    ("options", "text", "letters"),
    [
        *((AMOUNTS, *row) for row in [
            ("980万元", "A"), ("９８０ 万元。", "A"), (r"\text{980 万元}", "A"), ("A. 980万元", "A"),
            ("A：980万元", "A"), ("(A) 980万元", "A"), ("A 980万元", "A"), ("正确答案是A. 980万元", "A"),
            ("A. 980万元，C. 1000万元", "AC"), ("以上A和C都对", "D"), ("D. 以上A和C都对", "D"), ("A. 990万元", "?"),
            ("A. 980元", "?"), ("A. 980万元; B. 1000万元", "?"), ("980", None), ("980元", None), ("E", None),
            ("AE", None),
            ("980万元 and", "A"), ("980万元、", "A"), ("a 980万元", None), ("A. 980万元 B. 990万元", "AB"), ("A. 980万元；B. 1000万元", "?"), ("E. 980万元", None),
            ("(B) 990 万元", "B"), ("以上A和C都对。", "D"), ("A", "A"), ("AB", "AB"), ("A. 990万元 B. 980万元", "?"), ("B 980万元", None),
        ]),
        *((FRACTIONS, *row) for row in [
            (r"\frac12", "B"), ("0.5", "B"), (r"$\dfrac{1}{2}$", "B"), ("0.75", "C"), (r"2\sqrt{2}", "D"), (r"2 \sqrt 2.", "D"), ("The answer is 2/4", "B"),
            (r"A. \frac12", "?"), ("A (0.5)", "?"), ("B. 0.75", "?"), (r"A. 0.5, C. 0.75", "?"), ("0.4", None), (r"\frac12 or \frac13", None), ("B = 0.5", "B"), ("B - 1/2", None), ("not 1/2", None), ("it is 1/2 then", None),
        ]),
        # a text or a value of two options, and a filler word that is an option's text
        *((SAME_VALUES, *row) for row in [
            (r"\frac12", "?"), ("1/2", "A"), ("0.5", "B"), ("4/2", "C"), (r"A. \frac12", "A"), (r"C. \frac12", "?"),
        ]),
        *(({"A": "错", "B": "对"}, *row) for row in [
            ("对", "B"), ("B. 对", "B"), ("B对", "B"), ("A. 对", "?"), ("A 对", "?"), ("(A) 对", "?"), ("A", "A"), ("选A", "A"),
        ]),
        ({"A": "same", "B": " Same "}, "same", "?"), ({"A": "same", "B": "same"}, "A. same", "A"),
        # letters and lists of letters as options, options in another order, options that end alike
        *(({"A": "I", "B": "A和C", "C": "AC"}, *row) for row in [("A和C", "?"), ("AC", "?"), ("B. A和C", "B"), ("AB", "AB")]),
        *(({"A": "C", "B": "A", "C": "B"}, text, "A") for text in ("A", "A. C")),
        *((dict(zip("ABCDE", "ABCDE", strict=True)), letter, letter) for letter in "ABCDE"),
        ({letter: f"({letter})" for letter in "ABCDE"}, "(C)", "C"), ({"A": "A", "B": "C", "C": "F"}, "F", "C"),
        ({"A": "1", "B": "2"}, "f", None), (PROSE, "5", None),
        *(({"A": "5, 10", "B": "10, 5", "C": "x"}, *row) for row in [
            ("5, 10", "A"), ("10, 5", "B"), ("A. 10, 5", "?"), ("B. 5, 10", "?"), ("B. 10, 5", "B"),
        ]),
        *((ENDS, text, letter) for letter, text in ENDS.items()), (ENDS, "BMW.", "A"), (ENDS, "bmw ,", "A"),
    ],
)  # fmt: skip
def test_an_option_s_text_or_value_picks_it_and_contradicts_another_letter(options, text, letters):
    assert read(text, options) == letters


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
        ["980万元", "990万元"], ("A. 980万元", "B. 990万元"), {"A": "980万元", "b": "（B）990万元"},
        ["980万元", "990万元", None], {"A": "980万元", "B": "990万元", "C": None},
    ],
)  # fmt: skip
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


DRESS = ["{}", "({})", r"\text{{{}}}", "**{}**", "选{}", "the answer is {}", "{}.", "${}$"]
SEPARATORS = [",", ", ", "、", "，", "和", "及", " and ", " ", ";", " & ", r"\text{ and }", "\n"]


@given(
    st.lists(st.sampled_from("ABCDEFGHIJ"), min_size=1, max_size=10, unique=True),
    st.sampled_from(SEPARATORS),
    st.sampled_from(DRESS),
)
def test_order_separators_and_markup_do_not_matter(letters, separator, dress):
    text = dress.format(separator.join(letters))
    assert read_letters(text, DEFAULT_LETTERS) == frozenset(letters)


def test_answers_are_read_up_to_each_limit_only():
    assert read("A" + " " * 4095) == "A"
    assert read("A" + " " * 4096) is None
    assert read(r"\textbf{\text{\emph{\bm{\bm{A}}}}}") is None  # nested five deep


def test_mathematics_is_compared_up_to_each_limit_only():
    zeros = "0" * (MAX_FORMULA - 3)
    assert read("0.5" + zeros, {"A": "1/2", "B": "x"}) == "A"
    assert read("0.5" + zeros + "0", {"A": "1/2", "B": "x"}) is None
    for count, letters in ((MAX_OPTIONS, "A"), (MAX_OPTIONS + 1, None)):
        options = dict(
            zip("ABCDEFGHIJKL"[:count], ["1/2", *map(str, range(1, count))], strict=True)
        )
        assert read("0.5", options) == letters
