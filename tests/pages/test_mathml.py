"""A formula is shown as it was written or as its text, whatever it is, and has no effect."""

import html
import re
import time
import unicodedata
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markupsafe import Markup

from rewardkit.pages.formulas import (
    MAX_FORMULA_CHARACTERS,
    MAX_FORMULAS,
    find_formulas,
    find_value,
    node_markup,
    pack_formulas,
    parse_latex,
    show_formulas,
)
from tests.tables import every

#: All that the MathML of a page may be made of.
TAGS = set(
    "math mrow mi mn mo mtext mspace mfrac msqrt mroot msub msup msubsup munder mover munderover "
    "mtable mtr mtd mstyle".split()
)
ATTRIBUTES = set(
    "stretchy fence form accent accentunder movablelimits mathvariant columnalign displaystyle "
    "scriptlevel width minsize maxsize linethickness class".split()
)

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
        if node.tag in ("mrow", "mstyle") and not node.attributes:
            return " ".join(map(short, node.parts))
        inside = ", ".join(map(short, node.parts))
        kind = dict(node.attributes).get("class") or node.tag[1:]
        return f"{kind}({inside})" if node.parts else node.text or f"[{kind}]"

    return " ".join(map(short, parse_latex(latex) or ()))


def to_mathml(latex):
    """Return a formula as MathML; None if it is shown as text."""
    parts = parse_latex(latex)
    return None if parts is None else Markup("").join(map(node_markup, parts))


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"\frac12", "frac(1, 2)"),
        (r"2\frac{3}{4}", "2 frac(3, 4)"),
        ("-x^2", "− sup(x, 2)"),
        (r"\sqrt[3]{x}", "root(x, 3)"),
        ("(1,2]", "( 1 , 2 ]"),
        (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "( table(tr(td(1), td(2)), tr(td(3), td(4))) )"),
        (r"5\%", "5 %"),
        (r"\text{a cm}^2", "sup(a\xa0cm, 2)"),
        (r"\sum_{i=1}^n i", "subsup(∑, i = 1, n) i"),
        (r"\{x \mid x>0\}", "{ x ∣ x > 0 }"),
        (r"90^\circ", "sup(90, ∘)"),
        (r"\boxed{42}", "boxed(42)"),
        (r"\left(\frac12, x\right]", "( frac(1, 2) , x ]"),
    ],
)
def test_a_formula_is_shown_as_it_was_written(latex, expected):
    assert shown(latex) == expected


@pytest.mark.parametrize(
    "latex",
    [
        # LaTeX shows 2 to the power of 1, then 0; the line of an array would be lost; \phantom hides
        "2^10", "x^-1", "x_12", r"\frac{1}", r"\unknown{x}", "the answer is five", "x^2^3", "a & b",
        r"\begin{array}{c|c}1&2\end{array}", r"\hspace{x}", r"\text{if $x$}", r"\phantom{wrong} 4",
        r"\color{white} 4 \newcommand{\x}{5}", r"\def\x{\x\x}\x", r"\href{javascript:alert(1)}{x}",
        r"\style{position:fixed}{x}", r"\rule{99em}{99em}", r"\hspace{-9em} x", "5 % of it",
        "see & also", r"a \\ b", "{", "}", r"\left( x", r"\boxed{}", "x\u202ey", "x\0", "\ud800", "",
        " ", r"\0", "x" * (MAX_FORMULA_CHARACTERS + 1), "{" * 500 + "x" + "}" * 500, r"\sqrt" * 400,
        r"\not" * 400, "x" + "^{x" * 300 + "}" * 300,
    ],
)  # fmt: skip
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
    assert {node.tag for node in root.iter()} <= TAGS
    assert {name for node in root.iter() for name in node.attrib} <= ATTRIBUTES
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
    assert html.unescape(plain) == text
    places = [(formula.start, formula.end) for formula in find_formulas(text)]
    assert all(start < end for start, end in places)
    assert all(a[1] <= b[0] for a, b in pairwise(places))


@pytest.mark.parametrize(
    "text",
    [
        "He has $5 and pays $10.", "3*$5=$<<3*5=15>>15, then $15-$<<1>>3", "US$5 or A$6",
        "5$/kg, 6$/kg", "a $ b $ c", "no end $x + 1", "`$` and \\$5 and \\$6",
        "[asy] label($A$, (0,0)); [/asy]", "```\n$x$\n```", r"\\(x\\)",
    ],
)  # fmt: skip
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
    assert all(find_value(text) for text in (r"\frac{1}{2}", "$ (0, 3) $", "x^2 + 1"))
    assert not any(find_value(text) for text in ("Paris", "my_name", "12"))


@pytest.mark.full
@every(
    "piece", ["$", r"\(", r"\[", r"\boxed{", "$x$", "[asy]", "```", r"\begin{align}", "{", "$1{"]
)
def test_a_text_of_a_megabyte_takes_linear_time(piece):
    text = piece * (1_000_000 // len(piece))
    start = time.process_time()
    formulas = list(find_formulas(text))
    assert time.process_time() - start < 10
    assert len(formulas) <= MAX_FORMULAS


def test_packed_formulas_count_as_javascript_does():
    text = "\N{GRINNING FACE} $x$ \N{GRINNING FACE}$\\frac12$"
    packed = pack_formulas(find_formulas(text), text)
    assert [item[:3] for item in packed] == [[3, 3, 0], [3, 9, 0]]
    [tag, attributes, *parts] = packed[1][3][0]
    assert (tag, attributes) == ("mfrac", {})
    assert "1" in str(parts[0])


HOSTILE = [
    "<script>alert(1)</script>", "</math><script>alert(1)</script>",
    "</annotation-xml><img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" x=\'', "&lt;script&gt;", "&#x0003C;script&#x0003E;",
    r"\unicode{x3C}script\unicode{x3E}", r"\href{javascript:alert(1)}{x}",
    r"\href{https://example.org/\"onclick=alert(1)}{x}",
    r"\style{background:url(https://example.org)}{x}", r"\class{tex-switch}{x}",
    r"\cssId{chunks}{x}", r"\color{red;background:url(x)}{x}", r"\colorbox{red}{x}",
    r"\includegraphics{https://example.org/x.png}", r"\require{action}\toggle{a}{b}\endtoggle",
    r"\newcommand{\x}{<script>}\x", r"\def\x{<script>}\x", r"\verb|<script>|",
    r"\operatorname{<script>}", r"\hspace{1em;background:url(x)}",
    r"\genfrac{<}{>}{url(x)}{0}{1}{2}", r"\begin{array}{c\"onclick=alert(1)}x\end{array}",
    r"\begin{<script>}x\end{<script>}", "\ud800\u202e\0",
]  # fmt: skip


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_latex_makes_no_element_and_no_address(hostile):
    for latex in (hostile, rf"\text{{{hostile}}}", rf"\mathrm{{{hostile}}}", rf"x^{{{hostile}}}"):
        markup = show_formulas(f"${latex}$ \\boxed{{{latex}}}")
        for math in re.findall("<math.*?</math>", markup, re.DOTALL):
            nodes = [*ET.fromstring(math).iter()]
            assert {node.tag for node in nodes} <= TAGS
            values = {name: value for node in nodes for name, value in node.attrib.items()}
            assert set(values) <= ATTRIBUTES
            assert all(re.fullmatch(r"[a-z0-9.-]+", value) for value in values.values())
        assert set(re.findall(r"<([a-z-]+)", markup)) <= TAGS | {"span", "wbr"}


#: Pieces that are slow to read or that nest in each other.
SLOW = (
    r"\frac \sqrt \left( ^{x _{ { x' √' \pmod \substack{ \begin{align*} {a\over \not x_1^2".split()
)


@pytest.mark.parametrize("piece", SLOW)
def test_the_longest_formula_takes_less_than_half_a_second(piece):
    latex = piece * (MAX_FORMULA_CHARACTERS // len(piece))
    start = time.process_time()
    parse_latex(latex)
    assert time.process_time() - start < 0.5
