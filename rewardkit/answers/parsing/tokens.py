r"""Text -> tokens, in one pass over TeX, Unicode and words.

The text is not rewritten first. A token has a kind, its canonical text, and `follows_space`, which
says whether a blank precedes it.

| kind | text | example |
|---|---|---|
| `num` | digits, with a point, grouping commas or an exponent | `1,234.5`, `1.5e3` |
| `rep` | a repeating decimal, the period in brackets | `0.1(6)` |
| `cmd` | a TeX command, one name for those that look alike | `\frac` for `\dfrac` |
| `word` | letters in a row in mathematics | `xy`, `cm` |
| `text` | a word inside `\text{}` and the like, or of letters outside ASCII | `apples` |
| `han` | Chinese characters in a row | `平方厘米` |
| `op` | any other sign | `+`, `<=`, `(` |
| `end` | the end | |
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from rewardkit.answers.parsing.units import UNITS
from rewardkit.answers.parsing.vocabulary import (
    COMMAND_ALIASES,
    FRACTIONS,
    HALF_WIDTH,
    OPERATOR_COMMANDS,
    SIGNS,
    SUBSCRIPTS,
    SUPERSCRIPTS,
    WORD_COMMANDS,
)

#: Most characters and tokens of a text.
MAX_CHARS = 2000
MAX_TOKENS = 400
#: Most digits in a row.
MAX_DIGITS = 256
#: Largest power of ten in scientific notation.
MAX_EXPONENT = 300


class UnreadableError(ValueError):
    """The parser does not accept a text, or the text is over a limit. Internal to `answers`."""


class Token(NamedTuple):
    """One sign, number or word."""

    kind: str
    text: str
    follows_space: bool = False

    @property
    def low(self) -> str:
        """The text without its case."""
        return self.text.casefold()

    @property
    def is_word(self) -> bool:
        """Whether it is letters or Chinese characters in a row."""
        return self.kind in ("word", "text", "han")

    def is_sign(self, *texts: str) -> bool:
        """Whether it is one of these operators or commands."""
        return self.text in texts and self.kind in ("op", "cmd")


END_TOKEN = Token("end", "")

_TEXT_COMMANDS = (
    r"text(?:normal|rm|up|md|sf|tt|it|bf|sc)?|mbox|hbox|mathrm|mathop|operatorname\*?|mathsf|mathtt"
)
_DECORATION = (
    r"left|right|middle|[bB]igg?[lrm]?|displaystyle|textstyle|scriptstyle|limits|nolimits|mathstrut"
    r"|hfill|nonumber|notag|boldsymbol|bm|mathbf|mathit|mathnormal|bf|it|rm|sf|tt|large|Large|LARGE"
    r"|huge|Huge|small|normalsize|tiny|footnotesize|underline|emph|boxed|fbox|mathopen|mathclose"
    r"|mathrel|mathbin|mathord|enspace|thinspace"
)
_WITH_ARGUMENT = (
    r"[hv]?phantom\s*\{[^{}]*\}|hspace\*?\s*\{[^{}]*\}|(?:text)?color\s*\{\w*\}|tag\*?\s*\{[^{}]*\}"
)


def _pattern(backslash: str) -> re.Pattern[str]:
    return re.compile(
        rf"""
        (?P<gap>(?:\s|~|{backslash}(?:[,;:!>\s/()\[\]]|(?:left|right)\s*\.(?!\d))|\$)+)
      | (?P<before>\d{{0,20}}\.\d{{0,20}})(?P<rep>\(\d{{1,20}}\)(?![\w^])
          |{backslash}(?:overline|bar)\s*\{{\d{{1,20}}\}}
          |{backslash}dot\s*\{{?\d\}}?(?:\d{{0,20}}{backslash}dot\s*\{{?\d\}}?)?)
      | (?P<group>(?<![\d.,])[1-9]\d{{0,2}}(?:(?:\s?\{{,(?:\s|\\[,;:!])*\}}|,?\s?\\!\s?|\\[,;:\ ]|~|\ )\d{{3}})+(?![\d,])(?:\.\d+)?)
      | (?P<comma>(?<![\d.}}])\d+\{{,\}}\d+(?![\d{{]))
      | (?P<num>\d{{1,3}}(?:,\d{{3}})+(?!\d|,\d)(?:\.\d+)?
          |\d+(?:\.\d+)?[eE][-+]?\d{{1,4}}(?![\dA-Za-z])|\d+(?:\.\d+)?|\.\d+)
      | {backslash}(?:(?:{_DECORATION})(?![A-Za-z])|q?quad|{_WITH_ARGUMENT})(?P<decoration>)
      | {backslash}(?:{_TEXT_COMMANDS})(?![A-Za-z])\s*(?P<mode>\{{)
      | {backslash}mathbb\s*\{{?\s*(?P<set>[A-Z])\s*\}}?
      | {backslash}(?P<cmd>[A-Za-z]+|[{{}}|%&\#_$])
      | (?P<derivative>d[A-Za-z]/d[A-Za-z](?![A-Za-z]))
      | (?P<word>[A-Za-z]+(?![A-Za-zÀ-ÖØ-öø-ɏ]))
      | (?P<han>[\u4e00-\u9fff]+)
      | (?P<sign>[{re.escape("".join(SIGNS))}])
      | (?P<fraction>[⁰¹²³⁴⁵⁶⁷⁸⁹]+[/⁄][₀₁₂₃₄₅₆₇₈₉]+|[{"".join(FRACTIONS)}])
      | (?P<script>[{"".join(SUPERSCRIPTS)}]+|[{"".join(SUBSCRIPTS)}]+)
      | (?P<letters>[^\W\d_]+)
      | (?P<op>\\\\|\{{[,:]\}}|<=|>=|!=|==|=>|->|\*\*|\.\.\.?|.)
        """,
        re.VERBOSE | re.DOTALL,
    )


_SINGLE_BACKSLASH = _pattern(r"\\")
#: For texts without rows, in which a doubled backslash before a command was escaped twice.
_DOUBLED_BACKSLASH = _pattern(r"\\{1,2}")
#: A decimal digit of another script, which `\d` and `int` read as well.
_OTHER_DIGIT = re.compile(r"(?![0-9])\d")
_NOT_A_DIGIT = re.compile(r"[^\d.]")
_BOLD = re.compile(r"(\s*)(\*{1,2})(?=[^\s*])([^*]{1,200})(?<!\s)\2(?![\w*])(.*)", re.DOTALL)
_DOLLARS = re.compile(r"(?<!\\)\$\$?")
#: A function's name directly followed by a variable, as in `\sinx`; no command has such a name.
_JOINED = re.compile(r"(sin|cos|tan|cot|ln|log)([xyzt])")
_POWER_OF_TEN = re.compile(r"[\s}]{0,9}10\s{0,9}(?:\^\s{0,9}\{?\s{0,9}[-+]?\d|[⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹])")
#: What may follow the secant; without it, `sec` is a second.
_ARGUMENT = re.compile(r"\s{0,9}(?:\{\s{0,9})?[\w\\(^]")
_SCRIPTS = str.maketrans({**SUPERSCRIPTS, **SUBSCRIPTS, **FRACTIONS, "⁄": "/"})
_SCRIPT_PART = re.compile(r"\d+|.")
_OPERATORS = {
    **SIGNS,
    "<=": r"\le", ">=": r"\ge", "!=": r"\ne", "=>": r"\Rightarrow", "->": r"\to", "...": r"\dots",
    "..": r"\dots", "==": "=", "**": "^", "{,}": ",", "{:}": ":",
}  # fmt: skip


def tokenize(text: str) -> list[Token]:
    """Return the tokens of an answer, the end token last.

    Raises:
        UnreadableError: the text is over a limit.
    """
    if len(text) > MAX_CHARS:
        raise UnreadableError("too long")
    if not text.isascii():
        text = text.translate(HALF_WIDTH)
        text = _OTHER_DIGIT.sub(lambda match: str(unicodedata.decimal(match[0])), text)
    if "*" in text and (bold := _BOLD.fullmatch(text)):
        text = bold[1] + bold[3] + bold[4]
    pattern = _SINGLE_BACKSLASH if "\\begin" in text or "\\\\" not in text else _DOUBLED_BACKSLASH
    if text.count("$") == 1 and "\\$" not in text:
        text = text.replace("$", "\\$")  # because one sign alone means money
    scanner = _Scanner(has_formulas=len(_DOLLARS.findall(text)) > 1)
    for match in pattern.finditer(text):
        scanner.read(match.lastgroup or "", match)
        if len(scanner.tokens) > MAX_TOKENS:
            raise UnreadableError("too many tokens")
    return [*scanner.tokens, END_TOKEN]


class _Scanner:
    r"""The state of one pass: whether a blank came last, and which braces belong to `\text{`."""

    def __init__(self, *, has_formulas: bool) -> None:
        self.tokens: list[Token] = []
        self.is_outside_math = has_formulas  # outside `$...$` words are text
        self.follows_space = False
        self.text_braces: list[bool] = []
        self.text_depth = 0

    def add(self, kind: str, text: str) -> None:
        self.tokens.append(Token(kind, text, self.follows_space))
        self.follows_space = False

    def read(self, kind: str, match: re.Match[str]) -> None:
        """Append the tokens of one match."""
        text = match[kind]
        match kind:
            case "gap":
                self._read_space(text)
            case "num" | "group" | "comma":
                text = text.replace("{,}", ".") if kind == "comma" else text
                self._read_number(text if kind == "num" else _NOT_A_DIGIT.sub("", text))
            case "word" | "letters":
                self._read_word(text, kind, match)
            case "cmd":
                self._read_command(text)
            case "op" | "sign":
                self._read_operator(text)
            case "mode" | "decoration":
                self.text_depth += kind == "mode"
                self.text_braces += [True] * (kind == "mode")
                self.follows_space |= kind == "mode" or "quad" in match[0] or "space" in match[0]
            case "rep":
                self.add("rep", f"{match['before']}({_NOT_A_DIGIT.sub('', text)})")
            case "set":
                self.add("cmd", f"\\mathbb{{{text}}}")
            case "fraction" | "script":
                self._read_script(text, kind)
            case _:
                self.add("han" if kind == "han" else "cmd", text)

    def _read_space(self, text: str) -> None:
        if "$" in text and len(_DOLLARS.findall(text)) % 2:
            self.is_outside_math = not self.is_outside_math and bool(self.tokens)
        self.follows_space = True

    def _read_number(self, text: str) -> None:
        if len(text) > MAX_DIGITS:
            raise UnreadableError("too many digits")
        exponent = text.lower().partition("e")[2]
        if exponent and abs(int(exponent)) > MAX_EXPONENT:
            raise UnreadableError("too large an exponent")
        self.add("num", text)

    def _read_command(self, text: str) -> None:
        name = "\\" + text
        if joined := _JOINED.fullmatch(text):
            self.add("cmd", "\\" + joined[1])
            self.add("word", joined[2])
        elif name in OPERATOR_COMMANDS:
            self.add("op", OPERATOR_COMMANDS[name])
        else:
            self.add("cmd", COMMAND_ALIASES.get(name, name))

    def _read_word(self, word: str, kind: str, match: re.Match[str]) -> None:
        if kind == "letters":
            self.add("text", word)
        elif word in ("x", "X") and self._is_power_of_ten(match):
            self.add("cmd", r"\times")
        elif word in WORD_COMMANDS and not (
            word == "sec" and (self.text_depth or not _ARGUMENT.match(match.string, match.end()))
        ):
            self.add("cmd", WORD_COMMANDS[word])
        else:
            self.add("text" if self.text_depth or self.is_outside_math else "word", word)

    def _is_power_of_ten(self, match: re.Match[str]) -> bool:
        """Whether an `x` stands for the sign, as in `3 x 10^8`."""
        is_after_number = self.tokens[-1:] and self.tokens[-1].kind == "num"
        return bool(is_after_number and _POWER_OF_TEN.match(match.string, match.end()))

    def _read_operator(self, sign: str) -> None:
        if sign == "{":
            self.text_braces.append(False)
        elif sign == "}" and self.text_braces and self.text_braces.pop():
            self.text_depth -= 1
            self.follows_space = True
            return
        if sign == "." and self.text_depth and self.tokens and self.tokens[-1].kind == "text":
            self.follows_space = True  # the full stop of an abbreviation separates words
            return
        canonical = _OPERATORS.get(sign, sign)
        is_command = canonical[0] == "\\" and sign != r"\\"
        self.add("text" if canonical in ("°C", "°F") else "cmd" if is_command else "op", canonical)

    def _read_script(self, run: str, kind: str) -> None:
        r"""Add `⁻²` as `^{-2}`, and `½` as `\frac{1}{2}`; the `m` of `5m²` is a unit."""
        before = self.tokens[-2:]
        if run in "²³" and [token.kind for token in before] == ["num", "word"]:
            self.tokens[-1] = before[1]._replace(kind="text" if before[1].text == "m" else "word")
        if kind == "fraction":
            self.add("cmd", r"\frac")
        else:
            self.add("op", "^" if run[0] in SUPERSCRIPTS else "_")
        for group in run.translate(_SCRIPTS).split("/"):
            self.add("op", "{")
            for part in _SCRIPT_PART.findall(group):
                self.add("num" if part.isdigit() else "word" if part.isalpha() else "op", part)
            self.add("op", "}")


# --- folded tokens, which do not depend on typography

#: Texts of the folded tokens of a text, in order.
FoldedTokens = tuple[str, ...]

_ARTICLES = frozenset({"a", "an", "the"})
_END_SIGNS = frozenset({".", ",", ";", ":"})
_LETTERS = frozenset({"word", "text", "han"})


def fold(tokens: Sequence[Token]) -> FoldedTokens:
    """Return the folded tokens of a whole text, without the end token."""
    parts: list[str] = []
    depth = 0
    for token in tokens:
        depth += token.is_sign("(", "[", r"\{") - token.is_sign(")", "]", r"\}")
        if token.text.isdecimal() and parts[-1:] and parts[-1] in _DIGIT_COMMANDS:
            parts += token.text
        elif token.text == r"\circ" and parts[-1:] == ["^"]:
            parts[-1] = r"\degree"
        elif token.kind != "end":
            parts.append(token.text if token.kind == "num" and depth > 0 else _fold_token(token))
    for _ in range(2):  # inside and outside the braces around everything
        while parts and parts[-1] in _END_SIGNS:
            parts.pop()
        parts = _without_braces(parts)
    return tuple(_SAME_SIGNS.get(part, part) for part in parts)


def canonical_spelling(text: str) -> str:
    """Return one text for all typesettings of an answer; the text itself if it is over a limit."""
    try:
        parts_left = fold(tokenize(text.strip()))
    except UnreadableError:
        parts_left = ()
    return " ".join(parts_left) or text.strip()


def fold_words(tokens: Sequence[Token]) -> FoldedTokens | None:
    """Return the words of a text that consists of words, without case, articles and punctuation.

    None if the text holds anything else, or only single letters, whose case matters.
    """
    words = [fold_case(t.text) for t in tokens if t.kind in _LETTERS]
    others = {t.text for t in tokens if t.kind not in _LETTERS and t.kind != "end"}
    if not any(len(word) > 1 for word in words) or not others <= set(".,!'\"-;"):
        return None
    if any(len(word) == 1 and word != "a" for word in words):
        return tuple(words)  # `a` may be a name here, not an article
    return tuple([word for word in words[:-1] if word not in _ARTICLES] + words[-1:])


def fold_case(word: str) -> str:
    """Return a word without its case; a name or a symbol such as `Co` keeps its case."""
    low = word.casefold()
    is_mixed_case = not (word[1:].islower() or word.isupper())
    has_no_vowel = low.isascii() and not set("aeiouy") & set(low)
    is_short = len(word) <= 2 and low not in ("no", "ok", "if", "is", "a", "an", "it", "to")
    return word if is_mixed_case or has_no_vowel or is_short else low


def _fold_token(token: Token) -> str:
    if token.kind == "num":
        return token.text.replace(",", "")
    is_word = token.kind == "text" or (token.kind == "word" and len(token.text) > 4)
    is_code = token.text.isupper() or token.text in UNITS
    return fold_case(token.text) if is_word and not is_code else token.text


def _without_braces(parts: list[str]) -> list[str]:
    """Remove braces around one token, other braces or everything: they carry no meaning."""
    levels: list[list[str]] = [[]]
    for part in parts:
        if part == "{":
            levels.append([])
        elif part != "}":
            levels[-1].append(part)
        elif len(levels) > 1:
            inside = levels.pop()
            levels[-1] += inside if len(inside) < 2 else [f"{{ {' '.join(inside)} }}"]
    items = [item for level in levels for item in level]
    is_one_group = len(items) == 1 and items[0].startswith("{ ")
    return (items[0][2:-2] if is_one_group else " ".join(items)).split()


#: Commands that take one digit for each argument without braces.
_DIGIT_COMMANDS = frozenset({r"\frac", r"\binom", r"\sqrt"})
_SAME_SIGNS = {r"\surd": r"\sqrt", r"\mid": "|", r"\langle": "(", r"\rangle": ")"}
