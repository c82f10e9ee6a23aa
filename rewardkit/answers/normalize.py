r"""Text -> text: one spelling for each sign before an answer is read.

Full-width and typographic characters become ASCII or TeX, TeX that only arranges (`\left`, `\,`,
`$`) goes, outer wrappers (`\boxed{}`, `\( \)`) come off.
"""

from __future__ import annotations

import re

from rewardkit.answers.chinese import in_digits

_CHARS = str.maketrans(
    {
        **{chr(0xFF01 + i): chr(0x21 + i) for i in range(94)},  # full-width ASCII
        "\u3000": " ", "\xa0": " ", "\u2009": " ", "\u202f": " ", "、": ",", "。": ".", "﹣": "-",
        "−": "-", "–": "-", "—": "-", "‐": "-", "×": r"\times ", "✕": r"\times ", "·": r"\cdot ",
        "⋅": r"\cdot ", "∙": r"\cdot ", "÷": r"\div ", "≤": r"\le ", "⩽": r"\le ", "≥": r"\ge ",
        "⩾": r"\ge ", "≠": r"\ne ", "≈": r"\approx ", "π": r"\pi ", "∞": r"\infty ",
        "√": r"\sqrt ", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ", "±": r"\pm ", "∓": r"\mp ",
        "°": r"^\circ ", "²": "^2", "³": "^3", "½": r"\frac{1}{2}", "¼": r"\frac{1}{4}",
        "¾": r"\frac{3}{4}", "⅓": r"\frac{1}{3}", "⅔": r"\frac{2}{3}", "α": r"\alpha ",
        "β": r"\beta ", "θ": r"\theta ", "λ": r"\lambda ", "φ": r"\phi ", "∅": r"\emptyset ",
        "∀": r"\forall ", "∖": r"\setminus ", "|": "|", "∣": "|", "′": "'", "’": "'", "“": '"',
        "”": '"', "¥": r"\text{元}", "€": r"\text{€}", "£": r"\text{£}", "\u200b": "", "\u200e": "", "\ufeff": "",
    }
)  # fmt: skip

_ARRANGE = re.compile(
    r"\\(?:left|right|middle|bigl|bigr|Bigl|Bigr|biggl|biggr|Biggl|Biggr|big|Big|bigg|Bigg"
    r"|displaystyle|textstyle|limits|mathstrut|hfill|nonumber|boldsymbol|bm|rm|bf|it)(?![A-Za-z])\s?"
)
_THIN = re.compile(r"(?<=\d)(?:\{,\}|,?\\[,!;: ]\s?|,?~)(?=\d{3}(?!\d))")
_THOUSANDS_SPACE = re.compile(r"(?<![\d.,])(\d{1,3}(?: \d{3})+)(?![\d,])")
_PERIOD = re.compile(r"(?<=\d)\.\((\d{1,20})\)(?!\w)")
_SPACE = re.compile(r"(?<!\\)\\[,;:! >]|\\q?quad(?![A-Za-z])|~|\\\\(?=\s*$)")
_DOUBLED = re.compile(r"\\\\(?=[A-Za-z])")
_WRAP = re.compile(r"\\[()\[\]]|\$+")
_MONEY = re.compile(r"\\\$")
_SUP = re.compile(r"<su([pb])>(.{1,40}?)</su\1>")
_TEMPERATURE = re.compile(
    r"\^ ?\{? ?\\circ ?\}? ?(?:\\(?:text|mathrm) ?\{)? ?([CF])\}?(?![A-Za-z])"
)
_ORDINAL = re.compile(
    r"(?<=\d) ?(?:\^ ?)?\{?(?:\\(?:text|mathrm) ?\{)?(?:st|nd|rd|th)\}{0,2}(?![A-Za-z])"
)


#: Markdown's bold where an answer begins: nothing stands before it that could have a power.
_BOLD = re.compile(r"\A\s*\*\*(?=[^\s*])([^*]{1,200})(?<!\s)\*\*(?![\w*])")

_LEAD_IN = re.compile(
    r"(?:[A-Za-z]{2,} ){1,5}[A-Za-z]{2,} ?= ?|(?:approximately|approx\.?|about|roughly) ",
    re.IGNORECASE,
)


def clean(text: str) -> str:
    """One spelling for each sign; nothing that changes what is said."""
    if not text.isascii():
        text = in_digits(text.translate(_CHARS).strip())
    if "<su" in text:
        text = _SUP.sub(lambda m: ("^{" if m[1] == "p" else "_{") + m[2] + "}", text)
    if "\\\\" in text and r"\begin" not in text:
        text = _DOUBLED.sub(r"\\", text)
    if ".(" in text:
        text = _PERIOD.sub(r".\\overline{\1}", text)
    text = _THIN.sub("", text)
    text = _MONEY.sub(r"\\text{usd}", text)
    text = _SPACE.sub(" ", _WRAP.sub(" ", _ARRANGE.sub("", text)))
    if r"\circ" in text:
        text = _TEMPERATURE.sub(r"\\text{°\1}", text)
    if r"angle" in text:
        text = text.replace(r"\langle", "(").replace(r"\rangle", ")")
    text = _ORDINAL.sub(" ", text)
    text = _THOUSANDS_SPACE.sub(lambda m: m[1].replace(" ", ""), text)
    text = _BOLD.sub(r"\1", text).replace("**", "^").strip()
    lead = _LEAD_IN.match(text)
    return _trim(text[lead.end() :] if lead else text)


def _trim(text: str) -> str:
    stripped = text.rstrip(" \t\r\n.,;:。")
    return text if stripped.endswith("\\") else stripped


_WORD = re.compile(r"[^\W_]+(?:\.\d+)?|[-+*/^=<>|()\[\]{}%]")
_TEX_TEXT = re.compile(
    r"\\(?:text(?:bf|it|rm|normal|tt)?|textnormal|mathrm|mathbf|mathit|mbox|operatorname)\b"
)
_ARTICLE = frozenset({"a", "an", "the"})


def words(text: str) -> str:
    """The words of a text answer: casefolded, without TeX wrappers, articles and punctuation.

    The last word is no article: `Plan A` is not `Plan`.
    """
    found = _WORD.findall(_TEX_TEXT.sub(" ", text).replace("{", " ").replace("}", " ").casefold())
    return " ".join([word for word in found[:-1] if word not in _ARTICLE] + found[-1:])
