"""One spelling for each sign: what `clean` makes of a text, and which words of it count."""

import pytest

from rewardkit.answers.normalize import clean, words
from tests.tables import every


@every(
    ("signs", "spelling"),
    [
        ("\u3000 \xa0 \u2009 \u202f", " "), ("、", ","), ("。", "."), ("﹣−–—‐", "-"), ("×✕", r"\times "),
        ("·⋅∙", r"\cdot "), ("÷", r"\div "), ("≤⩽", r"\le "), ("≥⩾", r"\ge "), ("≠", r"\ne "), ("≈", r"\approx "),
        ("π", r"\pi "), ("∞", r"\infty "), ("√", r"\sqrt "), ("∪", r"\cup "), ("∩", r"\cap "), ("∈", r"\in "),
        ("±", r"\pm "), ("∓", r"\mp "), ("°", r"^\circ "), ("²", "^2"), ("³", "^3"), ("½", r"\frac{1}{2}"),
        ("¼", r"\frac{1}{4}"), ("¾", r"\frac{3}{4}"), ("⅓", r"\frac{1}{3}"), ("⅔", r"\frac{2}{3}"),
        ("α", r"\alpha "), ("β", r"\beta "), ("θ", r"\theta "), ("λ", r"\lambda "), ("φ", r"\phi "),
        ("∅", r"\emptyset "), ("∀", r"\forall "), ("∖", r"\setminus "), ("∣", "|"), ("′’", "'"), ("“”", '"'),
        ("€", r"\text{€}"), ("£", r"\text{£}"), ("\u200b\u200e\ufeff", ""),
    ],
)  # fmt: skip
def test_every_typographic_sign_has_one_spelling(signs, spelling):
    for sign in signs.split(" ") if " " in signs else signs:
        assert clean(f"x{sign}y") == f"x{spelling}y"


def test_full_width_characters_are_their_ascii():
    full_width = "".join(chr(0xFF01 + n) for n in range(94) if chr(0x21 + n) not in r"$\~*.,")
    ascii_only = "".join(chr(0x21 + n) for n in range(94) if chr(0x21 + n) not in r"$\~*.,")
    assert clean(full_width) == ascii_only
    assert clean("１．５，２ x") == "1.5,2 x"


@every(
    "arranged",
    [
        r"\left(x\right)", r"\bigl(x\bigr)", r"\Bigl(x\Bigr)", r"\biggl(x\biggr)", r"\Biggl(x\Biggr)",
        r"\big(x\big)", r"\Big(x\Big)", r"\bigg(x\bigg)", r"\Bigg(x\Bigg)", r"\displaystyle(x)", r"\textstyle (x)",
        r"\mathstrut(x)", r"(x)\hfill", r"(x)\nonumber", r"\boldsymbol(x)", r"\bm(x)", r"\rm (x)", r"\bf (x)", r"\it (x)",
        r"\(\left( x \right)\)", "$(x)$", "$$(x)$$", r"\[(x)\]", r"(x)\\", r"\,(x)\,", r"\quad (x) \qquad", "~(x)~",
    ],
)  # fmt: skip
def test_what_only_arranges_goes(arranged):
    assert clean(arranged).replace(" ", "") == "(x)"


@pytest.mark.parametrize(
    "command", [r"\leftarrow x", r"\bigcup x", r"\rmd x", r"\item x", r"\quadx"]
)
def test_a_command_that_begins_like_one_of_them_stays(command):
    assert clean(command) == command


@every(
    ("text", "spelling"),
    [
        # groups of three digits
        *((f"1{space}000", "1000") for space in (r"\,", "{,}", r"\!", r",\!", "~", r"\;", r"\:", r"\ ")),
        (r"1\,0000", "1 0000"), ("1 000 000", "1000000"), ("1 000,5", "1 000,5"), ("0.5 000", "0.5 000"), ("12 345", "12345"),
        ("1234 567", "1234 567"), ("1 0000", "1 0000"),
        # periods, subscripts, money, degrees of temperature, ordinals
        ("0.(3)", r"0.\overline{3}"), ("2.(12)", r"2.\overline{12}"), ("f.(3)", "f.(3)"), ("0.(3)x", "0.(3)x"),
        ("x<sup>2</sup>", "x^{2}"), ("x<sub>1</sub>", "x_{1}"), ("x<sup>2</sub>", "x<sup>2</sub>"), (r"\$5", r"\text{usd}5"),
        (r"20^\circ C", r"20\text{°C}"), ("20°F", r"20\text{°F}"), (r"20^{\circ}\text{C}", r"20\text{°C}"),
        (r"20^\circ\mathrm{F}", r"20\text{°F}"), (r"20^\circ", r"20^\circ"), (r"20^\circ Cx", r"20^\circ Cx"),
        *((f"{number}{end}", number) for number, end in (("1", "st"), ("2", "nd"), ("3", "rd"), ("4", "th"))),
        ("3^{rd}", "3"), (r"3^\text{rd}", "3"), (r"3\text{ rd}", r"3\text{ rd}"), ("3 rd", "3"), ("3rds", "3rds"),
        # brackets, powers, doubled backslashes
        ("|x|≤2", r"|x|\le 2"), (r"\langle1,2\rangle", "(1,2)"), (r"\angle A", r"\angle A"), ("2**3", "2^3"), (r"\\frac12", r"\frac12"),
        (r"\begin{matrix}1\\x\end{matrix}", r"\begin{matrix}1\\x\end{matrix}"),
        # what leads to the answer, and what ends it
        *((f"{lead} 5", "5") for lead in ("about", "approximately", "approx.", "approx", "roughly", "About")),
        ("total number of cats = 5", "5"), ("x = 5", "x = 5"), ("ab = 5", "ab = 5"), ("two words = 5", "5"),
        ("5.", "5"), (" 5 .,;: ", "5"), ("5。", "5"), ("5.\\", "5.\\"), ("5!", "5!"),
    ],
)  # fmt: skip
def test_a_text_is_cleaned_to_this(text, spelling):
    assert clean(text) == spelling


@every(
    ("text", "counted"),
    [
        ("The cat", "cat"), ("an apple, a pear; the end!", "apple pear end"), (r"\text{New   York}", "new york"),
        *((rf"\{command}{{Word}}", "word") for command in ("text", "textbf", "textit", "textrm", "textnormal", "texttt")),
        *((rf"\{command}{{Word}}", "word") for command in ("mathrm", "mathbf", "mathit", "mbox", "operatorname")),
        ("3.5 kg", "3.5 kg"), ("x-y", "x - y"), ("Ünï ÄÖ", "ünï äö"), ("{word}", "word"), ("", ""), ("a, an; the", "the"),
    ],
)  # fmt: skip
def test_the_words_of_a_text_are_counted_without_dress_and_articles(text, counted):
    assert words(text) == counted
