"""A formula is shown as it was written or as its text, whatever it is."""

import re
import time
import unicodedata
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rewardkit.pages.formulas import (
    KIND_CODES,
    MAX_FORMULAS,
    find_formulas,
    find_value,
    pack_formulas,
    show_formulas,
)
from rewardkit.pages.math_symbols import KINDS
from rewardkit.pages.mathml import MAX_FORMULA_CHARACTERS, parse_latex, to_mathml

#: Pieces that LaTeX is made of, and pieces that break it.
PIECES = st.sampled_from(
    r"\frac \sqrt \sqrt[3] { } ^ _ ' 1 12 3.5 1{,}234 x ab word ( ) [ ] \{ \} \left( \right) \left. "
    r"\right] \text{cm} \text{a<b} \begin{pmatrix} \end{pmatrix} & \\ \pi \sum \le \% $ < > \" \x "
    r"\boxed{ \overline{ \mathbb{R} \not \pmod + - = , | 中文 ½ √ &lt; <script>".split()
) | st.sampled_from([" ", "\n", "\ud800", "\u202e", "\0"])
LATEX = st.lists(PIECES, max_size=25).map("".join) | st.text(st.characters(), max_size=60)


def shown(latex):
    """Return the MathML of a formula in a short form: `frac(1, 2)`."""

    def short(node):
        inside = ", ".join(map(short, node.parts))
        return f"{node.kind}({inside})" if node.parts else node.text or f"[{node.kind}]"

    return " ".join(map(short, parse_latex(latex) or ()))


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        ("2^{10}", "sup(2, 10)"),
        (r"\frac12", "fraction(1, 2)"),
        (r"\frac{2}{4}", "fraction(2, 4)"),
        (r"2\frac{3}{4}", "2 fraction(3, 4)"),
        ("-x^2", "− sup(x, 2)"),
        (r"0.\overline{3}", "0 . accented(3, ¯)"),
        (r"\sqrt[3]{x}", "root(x, 3)"),
        ("(1,2]", "( 1 , 2 ]"),
        (r"\pi", "π"),
        (
            r"\begin{pmatrix}1&2\\3&4\end{pmatrix}",
            "row((, table(line(cell(1), cell(2)), line(cell(3), cell(4))), ))",
        ),
        (r"5\%", "5 %"),
        (r"\text{cm}^2", "sup(cm, 2)"),
        ("1{,}234", "1,234"),
        ("1,234.50", "1,234.50"),
        (r"x_1^2", "subsup(x, 1, 2)"),
        (r"f'(x)", "row(f, ′) ( x )"),
        (r"\sum_{i=1}^n i", "underover(∑, row(i, =, 1), n) i"),
        (r"2\sin x", "2 [thin] sin [thin] x"),
        (r"a \not= b", "a ≠ b"),
        (r"\{x \mid x>0\}", "{ x ∣ x > 0 }"),
        (r"90^\circ", "sup(90, ∘)"),
        (r"\boxed{42}", "boxed(42)"),
        (r"\left(\frac12, x\right]", "row((, fraction(1, 2), ,, x, ])"),
    ],
)
def test_a_formula_is_shown_as_it_was_written(latex, expected):
    assert shown(latex) == expected


@pytest.mark.parametrize(
    "latex",
    [
        "2^10",  # LaTeX shows 2 to the power of 1, then 0
        "x^-1",
        "x_12",
        r"\frac{1}",
        r"\unknown{x}",
        "the answer is five",
        r"\begin{array}{c|c}1&2\end{array}",  # the line would be lost
        r"\hspace{x}",
        r"\text{if $x$}",
        "x^2^3",
        "a & b",
        r"a \\ b",
        "{",
        "}",
        r"\left( x",
        r"\boxed{}",
        "x\u202ey",
        "x\0",
        "\ud800",
        "",
        " ",
        "x" * (MAX_FORMULA_CHARACTERS + 1),
        "{" * 500 + "x" + "}" * 500,
        r"\sqrt" * 400,
        r"\not" * 400,
        "x" + "^{x" * 300 + "}" * 300,
    ],
)
def test_what_cannot_be_shown_exactly_stays_text(latex):
    assert parse_latex(latex) is None
    assert "$" in latex or "<math" not in show_formulas(f"${latex}$")


#: What a command shows besides its arguments, as the characters of its name, and what it hides.
HIDDEN = re.compile(r"\\(?:sqrt|frac|begin\{[a-z*]+\}|end\{[a-z*]+\}|[A-Za-z]+|.)", re.DOTALL)


@given(LATEX)
@example(r"\frac12\sqrt[3]{1{,}234}x_1^{22}\begin{pmatrix}1&2\\3&4\end{pmatrix}")
def test_the_mathml_is_well_formed_and_has_the_digits_and_letters_of_the_source(latex):
    markup = to_mathml(latex)
    if markup is None:
        return
    root = ET.fromstring(f"<math>{markup}</math>")
    tags = {tag for tag, _ in KINDS.values()}
    assert {node.tag for node in root.iter()} <= tags | {"math"}
    text = unicodedata.normalize("NFKC", "".join(root.itertext()))
    # A fraction sign such as ½ is one character in both.
    source = unicodedata.normalize("NFKC", HIDDEN.sub(" ", latex))
    digits = re.compile(r"[0-9]")
    assert sorted(digits.findall(text)) == sorted(digits.findall(source))
    for letter in "xabw中文<>":
        names = sum(name in latex for name in ("\\le", "\\%"))
        assert text.count(letter) >= source.count(letter) or names


@given(st.lists(LATEX | st.sampled_from([r"\(", r"\)", r"\[", "$$", "[asy]", "```", "$"])))
@example(["$", "x", "$"])
@example(["He has $5 and she has $10, or 5$/kg and 6$/kg, US$3 or A$4."])
def test_every_text_is_shown_whole_and_escaped(pieces):
    text = "".join(pieces).replace("\r", "")
    markup = show_formulas(text)
    sources = re.sub(r"<math.*?</math>", "", markup, flags=re.DOTALL)
    plain = re.sub(r"</?span[^>]*>|<wbr>", "", sources)
    for sign, name in (
        ("<", "&lt;"),
        (">", "&gt;"),
        ("'", "&#39;"),
        ('"', "&#34;"),
        ("&", "&amp;"),
    ):
        plain = plain.replace(name, sign)
    assert plain == text
    places = [(formula.start, formula.end) for formula in find_formulas(text)]
    assert all(start < end for start, end in places)
    assert all(a[1] <= b[0] for a, b in pairwise(places))


@pytest.mark.parametrize(
    "text",
    [
        "He has $5 and pays $10.",
        "3*$5=$<<3*5=15>>15, then $15-$<<1>>3",
        "US$5 or A$6",
        "5$/kg, 6$/kg",
        "a $ b $ c",
        "no end $x + 1",
        "`$` and \\$5 and \\$6",
        "[asy] label($A$, (0,0)); [/asy]",
        "```\n$x$\n```",
        r"\\(x\\)",
    ],
)
def test_dollars_that_mean_money_and_code_are_not_formulas(text):
    assert list(find_formulas(text)) == []


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("Find $x^2$ and \\(y\\).", ["$x^2$", r"\(y\)"]),
        ("设$x$为整数", ["$x$"]),
        ("It is \\boxed{\\frac{1}{2}}.", [r"\boxed{\frac{1}{2}}"]),
        ("so\n  \\[ x \\]  \nand", ["  \\[ x \\]  \n"]),
        ("$$x$$ costs $5", ["$$x$$"]),
        ("\\begin{align*} x &= 1 \\end{align*}", ["\\begin{align*} x &= 1 \\end{align*}"]),
    ],
)
def test_formulas_are_found_with_their_delimiters(text, sources):
    assert [text[formula.start : formula.end] for formula in find_formulas(text)] == sources


def test_an_answer_is_a_formula_as_a_whole():
    assert find_value(r"\frac{1}{2}")
    assert find_value("$ (0, 3) $")
    assert find_value("x^2 + 1")
    assert not find_value("Paris")
    assert not find_value("my_name")
    assert not find_value("12")


@pytest.mark.full
@pytest.mark.parametrize(
    "piece",
    ["$", "\\(", "\\[", "\\boxed{", "$x$", "[asy]", "```", "\\begin{align}", "{", "$1{", "\\", " "],
)
def test_a_text_of_a_megabyte_takes_linear_time(piece):
    text = piece * (1_000_000 // len(piece))
    start = time.process_time()
    formulas = list(find_formulas(text))
    assert time.process_time() - start < 10
    assert len(formulas) <= MAX_FORMULAS


def test_packed_formulas_count_as_javascript_does_and_have_known_kinds():
    text = "\N{GRINNING FACE} $x$ \N{GRINNING FACE}$\\frac12$"
    packed = pack_formulas(find_formulas(text), text)
    assert [item[:3] for item in packed] == [[3, 3, 0], [3, 9, 0]]
    one, two = (KIND_CODES["number"] + digit for digit in "12")
    assert packed[1][3] == [[KIND_CODES["fraction"], one, two]]
    assert set(KIND_CODES) == set(KINDS)


def test_hostile_latex_makes_no_element():
    for latex in (r"\text{<script>alert(1)</script>}", "<img src=x onerror=alert(1)>", '">'):
        markup = show_formulas(f"${latex}$ \\boxed{{{latex}}}")
        assert "<script" not in markup
        assert "<img" not in markup
