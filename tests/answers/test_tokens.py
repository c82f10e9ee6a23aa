"""Text -> tokens: every sign has one name, blanks are recorded, and no text is read in part."""

import unicodedata
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rewardkit.answers.parsing.tokens import (
    MAX_CHARS,
    MAX_DIGITS,
    MAX_EXPONENT,
    MAX_TOKENS,
    Token,
    UnreadableError,
    tokenize,
)
from rewardkit.answers.parsing.vocabulary import (
    FRACTIONS,
    HALF_WIDTH,
    SIGNS,
    SUBSCRIPTS,
    SUPERSCRIPTS,
)
from tests.tables import every


def kinds(text):
    """Return `kind:text` of every token except the end token."""
    *tokens, end = tokenize(text)
    assert end.kind == "end"
    return " ".join(f"{token.kind}:{token.text}" for token in tokens)


def texts(text):
    return [token.text for token in tokenize(text)[:-1]]


@every(
    ("text", "tokens"),
    [
        ("18", "num:18"), ("1.50", "num:1.50"), (".5", "num:.5"), ("1.", "num:1 op:."), ("1,234.5", "num:1,234.5"), ("1,23", "num:1 op:, num:23"),
        ("1,2345", "num:1 op:, num:2345"), ("12,345,678", "num:12,345,678"), ("1{,}234", "num:1234"), (r"1\,234", "num:1234"), (r"1\!234", "num:1234"),
        ("1 234", "num:1234"), ("12 34", "num:12 num:34"), ("0.5 123", "num:0.5 num:123"), ("1 2345", "num:1 num:2345"),
        ("1.5e3", "num:1.5e3"), ("2E-3", "num:2E-3"), ("1e5x", "num:1 word:e num:5 word:x"), ("2e", "num:2 word:e"),
        ("0.1(6)", "rep:0.1(6)"), ("0.(3)", "rep:0.(3)"), ("2(3)", "num:2 op:( num:3 op:)"), ("0.5(2)x", "num:0.5 op:( num:2 op:) word:x"),
        ("xy", "word:xy"), ("sin", r"cmd:\sin"), ("sqrt(2)", r"cmd:\sqrt op:( num:2 op:)"), ("oo", r"cmd:\infty"),
        (r"\dfrac12", r"cmd:\frac num:12"), (r"\leqslant", r"cmd:\le"), (r"\lvert x\rvert", "op:| word:x op:|"), (r"5\%", "num:5 op:%"),
        (r"\text{cm}", "text:cm"), (r"\mathrm{kg}x", "text:kg word:x"), (r"\text{a {b} c}d", "text:a op:{ text:b op:} text:c word:d"),
        (r"\operatorname{lcm}(4,6)", r"cmd:\lcm op:( num:4 op:, num:6 op:)"), (r"\text{a.m.}", "text:a text:m"),
        ("平方厘米", "han:平方厘米"), ("5个苹果", "num:5 han:个苹果"), ("Größe", "text:Größe"),
        (r"\left(1\right)", "op:( num:1 op:)"), (r"\displaystyle x", "word:x"), (r"\mathbf{x}", "op:{ word:x op:}"), (r"\boxed{5}", "op:{ num:5 op:}"),
        *((f"{dash}5", "op:- num:5") for dash in "-−–—‐‑‒―﹣"), (r"\color{red}x", "word:x"), (r"\hspace{1em}x", "word:x"),
        (r"\color{red}5", "num:5"), (r"\phantom{6}5", "num:5"), (r"\hspace{1cm}5", "num:5"),
        (r"\mathbb{R}", r"cmd:\mathbb{R}"), (r"\mathbb R", r"cmd:\mathbb{R}"), ("ℝ", r"cmd:\mathbb{R}"),
        ("<=", r"cmd:\le"), (">=", r"cmd:\ge"), ("!=", r"cmd:\ne"), ("->", r"cmd:\to"), ("...", r"cmd:\dots"), ("**", "op:^"), ("==", "op:="),
        ("√15", r"cmd:\surd num:15"), ("x²", "word:x op:^ op:{ num:2 op:}"), ("x⁻¹²", "word:x op:^ op:{ op:- num:12 op:}"), ("x₁", "word:x op:_ op:{ num:1 op:}"),
        ("½", r"cmd:\frac op:{ num:1 op:} op:{ num:2 op:}"), ("20℃", "num:20 text:°C"), ("5°", r"num:5 cmd:\degree"),
        ("$5$", "num:5"), (r"\(5\)", "num:5"), (r"\[5\]", "num:5"), ("", ""), (" ", ""),
        (r"\\frac12", r"cmd:\frac num:12"), (r"\begin{x}1\\2\end{x}", "cmd:\\begin op:{ word:x op:} num:1 op:\\\\ num:2 cmd:\\end op:{ word:x op:}"),
        ("**18**", "num:18"), ("２＋３", "num:2 op:+ num:3"), ("x\u200b y", "word:x word:y"),
    ],
)  # fmt: skip
def test_a_text_has_these_tokens(text, tokens):
    assert kinds(text) == tokens


@every("blank", [" ", "\t", "\n", "~", r"\,", r"\;", r"\:", r"\!", r"\ ", r"\quad ", r"\qquad ", "\u3000", "\xa0"])  # fmt: skip
def test_a_blank_of_any_kind_is_not_a_token_but_sets_follows_space(blank):
    assert tokenize(f"x{blank}y")[:2] == [
        Token("word", "x"),
        Token("word", "y", follows_space=True),
    ]
    assert tokenize("xy")[0] == Token("word", "xy")


def test_full_width_characters_are_their_ascii():
    full_width = "".join(chr(0xFF01 + n) for n in range(94) if chr(0x21 + n) != "\\")
    ascii_only = "".join(chr(0x21 + n) for n in range(94) if chr(0x21 + n) != "\\")
    assert texts(full_width) == texts(ascii_only)
    assert all(len(replacement) == 1 for replacement in HALF_WIDTH.values())


@every("char", [*SIGNS, *FRACTIONS, *SUPERSCRIPTS, *SUBSCRIPTS])
def test_every_sign_of_the_tables_has_one_meaning_everywhere(char):
    """No sign of the tables remains, neither as a letter nor as itself."""
    alone, beside = texts(char), texts(f"x{char}")
    assert beside[1:] == alone != [char] or char == "．"


@every(
    ("at", "beyond"),
    [
        ("1" + " " * (MAX_CHARS - 1), "1" + " " * MAX_CHARS),
        ("+" * MAX_TOKENS, "+" * (MAX_TOKENS + 1)), ("7" * MAX_DIGITS, "7" * (MAX_DIGITS + 1)),
        (f"1e{MAX_EXPONENT}", f"1e{MAX_EXPONENT + 1}"),
        (f"1e-{MAX_EXPONENT}", f"1e-{MAX_EXPONENT + 1}"),
    ],
    ids=["characters", "tokens", "digits", "exponent", "negative exponent"],
)  # fmt: skip
def test_a_text_over_a_limit_has_no_tokens(at, beyond):
    tokenize(at)
    with pytest.raises(UnreadableError):
        tokenize(beyond)


# --- any text

SOURCE = st.text(st.characters(codec="utf-8"), max_size=60) | st.text(
    st.sampled_from([*"\\{}$ 1,.()xe^_²₃½√度～＋"]), max_size=60
)


@given(SOURCE)
def test_any_text_has_tokens_of_known_kinds_or_is_over_a_limit(text):
    try:
        tokens = tokenize(text)
    except UnreadableError:
        return
    assert {token.kind for token in tokens[:-1]} <= {*"num rep cmd word text han op".split()}
    assert [token.kind for token in tokens].index("end") == len(tokens) - 1
    assert all(token.text and not token.text.isspace() for token in tokens[:-1])
    assert all(token.text.replace(",", "").isascii() for token in tokens if token.kind == "num")


@given(SOURCE)
def test_blanks_around_a_text_are_not_read(text):
    assume(not text.endswith("\\"))  # which makes a blank of the blank behind it
    try:
        tokens = tokenize(text)
    except UnreadableError:
        return
    assert [token[:2] for token in tokenize(f" {text}\n")] == [token[:2] for token in tokens]


def test_signs_of_unicode_are_the_characters_that_unicode_says():
    for sign, plain in {**SUPERSCRIPTS, **SUBSCRIPTS}.items():
        assert unicodedata.normalize("NFKC", sign).replace("\u2212", "-") == plain
    for sign, value in FRACTIONS.items():
        assert Fraction(value) == Fraction(unicodedata.numeric(sign)).limit_denominator(10)
