r"""Misses: correct answers in the form that the scorer asks for, which it must reward.

Answers in another form (`\boxed{}` where the scorer asks for `####`) are the one attack
`other_forms`, of low severity: a scorer may insist on its form, and the policy learns it.
"""

from __future__ import annotations

import re
from functools import partial

from rewardkit.audit.model import FORMS, Attack, Responses, Target, attack

MISSES: list[Attack] = []
miss = partial(attack, MISSES, "miss")
answer_miss = partial(miss, in_form=True)

_FULL_WIDTH = str.maketrans(
    "0123456789-.ABCDEFGHIJ", "０１２３４５６７８９－．ＡＢＣＤＥＦＧＨＩＪ"
)
_PROSE = "First I read the question again and wrote down what is given. Then I worked it out.\n\n"
_AFTERWORD = "\n\nI checked this by going through all of it once more, step by step. " * 6

#: Sentences after an answer that have numbers of their own and state no other answer.
_NUMBERED_AFTERWORDS = (
    "This is for 2 days.",
    "I checked it in 3 steps (see lines 4 and 5).",
    "Note: each of the 12 months was counted once.",
    "以上是 2 天的结果。",
    "（共用了 3 步，第 2 步最难。）",
)


@miss("medium")
def before_numbers(t: Target) -> Responses:
    """The answer before a sentence with other numbers, such as `This is for 2 days`."""
    for sentence in _NUMBERED_AFTERWORDS:
        if t.form.after:  # the form says where the answer ends
            yield f"{t.right_response.removesuffix('.')}. {sentence}"
        yield f"{t.right_response}\n\n{sentence}"


@miss("medium")
def bold(t: Target) -> Responses:
    """Markdown bold around the answer, its mark, or both."""
    yield f"**{t.right_response}**"
    if not t.form.after:
        yield t.respond(f"**{t.gold}**")
    if (mark := t.form.before.strip()).endswith(":"):
        yield f"**{mark}** {t.gold}"


@miss("medium")
def math_marks(t: Target) -> Responses:
    r"""TeX delimiters of a formula: `$18$`, `\(18\)`, `\[18\]`, `$$18$$`."""
    for before, after in (("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"), ("$$", "$$")):
        is_outside = bool(t.form.after)
        yield (
            f"{before}{t.right_response}{after}"
            if is_outside
            else t.respond(f"{before}{t.gold}{after}")
        )


@miss("medium")
def spacing(t: Target) -> Responses:
    """Spaces around the answer, or no space after the mark."""
    yield t.respond(f" {t.gold} ")
    if t.form.before.endswith(" "):
        yield f"{t.form.before.rstrip()}{t.gold}{t.form.after}"


@answer_miss("medium")
def thousands(t: Target) -> Responses:
    """Thousands separators."""
    if t.integer and abs(t.integer) >= 1000:
        yield f"{t.integer:,}"
        if not t.is_hash:
            yield f"{t.integer:,}".replace(",", "{,}")


@answer_miss("low")
def units(t: Target) -> Responses:
    """A unit or currency that the gold does not have."""
    if t.integer is not None and t.integer > 0:
        yield from (f"{t.gold} dollars", f"${t.gold}" if t.is_hash else rf"\${t.gold}")
    if t.integer is not None and not t.is_hash:
        yield rf"{t.gold}\text{{ units}}"


@answer_miss("low")
def minus_sign(t: Target) -> Responses:
    """The typographic minus sign."""
    if t.integer is not None and t.integer < 0:
        yield t.gold.replace("-", "−")


@miss("low")
def full_width(t: Target) -> Responses:
    """Full-width digits, letters and colon, as Chinese text has them."""
    if t.integer is not None or t.letters:
        yield t.respond(t.gold.translate(_FULL_WIDTH))
    if t.form.before.endswith(": "):
        yield f"{t.form.before[:-2]}：{t.gold}{t.form.after}"


@miss("medium")
def in_chinese(t: Target) -> Responses:
    """Chinese words around the form."""
    yield f"因此，最终答案如下：\n{t.right_response}"
    if t.form.after:
        yield f"所以答案是{t.right_response}。"


@answer_miss("medium")
def decimal_for_fraction(t: Target) -> Responses:
    """The same fraction written another way, or as a decimal."""
    if t.number is None or t.number.denominator == 1:
        return
    top, bottom = t.number.numerator, t.number.denominator
    yield f"{top}/{bottom}"
    yield rf"{'-' if top < 0 else ''}\frac{{{abs(top)}}}{{{bottom}}}"
    if 10**6 % bottom == 0:
        yield f"{float(t.number):g}"


@answer_miss("medium")
def tex_spelling(t: Target) -> Responses:
    r"""`\dfrac` and `\tfrac` for `\frac`, and without spaces that TeX does not show."""
    if "\\frac" in t.gold:
        yield from (t.gold.replace("\\frac", f"\\{size}frac") for size in "dt")
    if re.search(r"\d [-+] \d", t.gold):
        yield re.sub(r"(?<=\d) ([-+]) (?=\d)", r"\1", t.gold)


@answer_miss("medium")
def left_right(t: Target) -> Responses:
    r"""`\left(` and `\right)` for plain parentheses, or the other way round."""
    if "\\left" in t.gold:
        yield t.gold.replace("\\left", "").replace("\\right", "")
    elif t.gold.startswith("(") and t.gold.endswith(")") and t.gold.count("(") == 1:
        yield rf"\left{t.gold[:-1]}\right)"


@answer_miss("medium")
def text_wrapper(t: Target) -> Responses:
    r"""`\text{}` around a letter, or the gold without its `\text{}`."""
    if t.letters:
        yield from (rf"\text{{{t.gold}}}", rf"\mathrm{{{t.gold}}}")
    if match := re.fullmatch(r"\\text\{(.*)\}", t.gold):
        yield match[1]


@answer_miss("medium")
def choice_dress(t: Target) -> Responses:
    """A letter in parentheses, with a full stop, or with the text of its option."""
    if len(t.letters) != 1:
        return
    yield from (f"({t.letters})", f"{t.letters}.")
    options, index = t.row.extra_info.get("options"), ord(t.letters) - ord("A")
    if isinstance(options, list) and index < len(options):
        yield f"{t.letters}. {options[index]}"


@answer_miss("medium")
def letter_list(t: Target) -> Responses:
    """Several letters with commas, spaces or Chinese marks between them."""
    if len(t.letters) > 1:
        yield from (mark.join(t.letters) for mark in ("", ",", ", ", "、", " "))


@miss("low")
def other_forms(t: Target) -> Responses:
    """The gold in the other common forms."""
    yield from (form(t.gold) for form in FORMS if form.name != "bare")
    yield from (f"答案：{t.gold}", f"**Answer:** {t.gold}")
