r"""False negatives: correct answers in the form that the scorer asks for, which it must reward.

Answers in another form (`\boxed{}` where the scorer asks for `####`) are the one attack
`other_forms`, of low severity: a scorer may insist on its form, and the policy learns it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rewardkit.audit.model import FORMS, Attack, ResponseWriter, Severity, Target

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


def gold_in_its_form(t: Target) -> Iterator[str]:
    """The gold unchanged, in the form asked for."""
    yield t.respond(t.gold)


def after_reasoning(t: Target) -> Iterator[str]:
    """The answer after some reasoning, and before a line break."""
    yield f"{_PROSE}{t.respond(t.gold)}"
    yield f"{t.respond(t.gold)}\n"
    yield f"{_PROSE}{t.respond(t.gold)}\n\n"


def after_thought(t: Target) -> Iterator[str]:
    """The answer after a thought that contains another answer."""
    if "<think>" not in t.form.before:
        yield f"<think>Is it {t.wrong}? No.</think>\n\n{t.respond(t.gold)}"


def corrected(t: Target) -> Iterator[str]:
    """A wrong answer that is corrected afterwards."""
    yield f"{t.respond(t.wrong)}\n\nNo, that was a slip. Once more:\n\n{t.respond(t.gold)}"


def before_afterword(t: Target) -> Iterator[str]:
    """The answer before 400 characters of prose."""
    yield f"{t.respond(t.gold)}{_AFTERWORD}"


def before_numbers(t: Target) -> Iterator[str]:
    """The answer before a sentence with other numbers, such as `This is for 2 days`."""
    for sentence in _NUMBERED_AFTERWORDS:
        if t.form.after:  # the form says where the answer ends
            yield f"{t.respond(t.gold).removesuffix('.')}. {sentence}"
        yield f"{t.respond(t.gold)}\n\n{sentence}"


def full_stop(t: Target) -> Iterator[str]:
    """A full stop after the answer."""
    yield f"{t.respond(t.gold)}."
    yield f"{t.respond(t.gold)}。"


def bold(t: Target) -> Iterator[str]:
    """Markdown bold around the answer, its mark, or both."""
    yield f"**{t.respond(t.gold)}**"
    if not t.form.after:
        yield t.respond(f"**{t.gold}**")
    if (mark := t.form.before.strip()).endswith(":"):
        yield f"**{mark}** {t.gold}"


def math_marks(t: Target) -> Iterator[str]:
    r"""TeX delimiters of a formula: `$18$`, `\(18\)`, `\[18\]`, `$$18$$`."""
    for before, after in (("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"), ("$$", "$$")):
        if t.form.after:
            yield f"{before}{t.respond(t.gold)}{after}"
        else:
            yield t.respond(f"{before}{t.gold}{after}")


def spacing(t: Target) -> Iterator[str]:
    """Spaces around the answer, or no space after the mark."""
    yield t.respond(f" {t.gold} ")
    if t.form.before.endswith(" "):
        yield f"{t.form.before.rstrip()}{t.gold}{t.form.after}"


def thousands(t: Target) -> Iterator[str]:
    """Thousands separators."""
    if t.integer is not None and abs(t.integer) >= 1000:
        yield t.respond(f"{t.integer:,}")
    if t.integer is not None and abs(t.integer) >= 1000 and not _is_hash(t):
        yield t.respond(f"{t.integer:,}".replace(",", "{,}"))


def trailing_zeros(t: Target) -> Iterator[str]:
    """`18.0` and `18.00` for 18."""
    if t.integer is not None:
        yield t.respond(f"{t.gold}.0")
        yield t.respond(f"{t.gold}.00")


def units(t: Target) -> Iterator[str]:
    """A unit or currency that the gold does not have."""
    if t.integer is not None and t.integer > 0:
        yield t.respond(f"{t.gold} dollars")
        yield t.respond(f"${t.gold}" if _is_hash(t) else rf"\${t.gold}")
    if t.integer is not None and not _is_hash(t):
        yield t.respond(rf"{t.gold}\text{{ units}}")


def minus_sign(t: Target) -> Iterator[str]:
    """The typographic minus sign."""
    if t.integer is not None and t.integer < 0:
        yield t.respond(t.gold.replace("-", "−"))


def full_width(t: Target) -> Iterator[str]:
    """Full-width digits, letters and colon, as Chinese text has them."""
    if t.integer is not None or t.letters:
        yield t.respond(t.gold.translate(_FULL_WIDTH))
    if t.form.before.endswith(": "):
        yield f"{t.form.before[:-2]}：{t.gold}{t.form.after}"


def in_chinese(t: Target) -> Iterator[str]:
    """Chinese words around the form."""
    yield f"因此，最终答案如下：\n{t.respond(t.gold)}"
    if t.form.after:
        yield f"所以答案是{t.respond(t.gold)}。"


def decimal_for_fraction(t: Target) -> Iterator[str]:
    """The same fraction written another way, or as a decimal."""
    value = t.number
    if value is None or value.denominator == 1:
        return
    sign, top = ("-" if value < 0 else ""), abs(value.numerator)
    yield t.respond(f"{value.numerator}/{value.denominator}")
    yield t.respond(rf"{sign}\frac{{{top}}}{{{value.denominator}}}")
    if 10**6 % value.denominator == 0:
        yield t.respond(f"{float(value):g}")


def tex_spelling(t: Target) -> Iterator[str]:
    r"""`\dfrac` and `\tfrac` for `\frac`, and without spaces that TeX does not show."""
    if "\\frac" in t.gold:
        yield t.respond(t.gold.replace("\\frac", "\\dfrac"))
        yield t.respond(t.gold.replace("\\frac", "\\tfrac"))
    if re.search(r"\d [-+] \d", t.gold):
        yield t.respond(re.sub(r"(?<=\d) ([-+]) (?=\d)", r"\1", t.gold))


def left_right(t: Target) -> Iterator[str]:
    r"""`\left(` and `\right)` for plain parentheses, or the other way round."""
    if "\\left" in t.gold:
        yield t.respond(t.gold.replace("\\left", "").replace("\\right", ""))
    elif t.gold.startswith("(") and t.gold.endswith(")") and t.gold.count("(") == 1:
        yield t.respond(rf"\left{t.gold[:-1]}\right)")


def text_wrapper(t: Target) -> Iterator[str]:
    r"""`\text{}` around a letter, or the gold without its `\text{}`."""
    if t.letters:
        yield t.respond(rf"\text{{{t.gold}}}")
        yield t.respond(rf"\mathrm{{{t.gold}}}")
    if match := re.fullmatch(r"\\text\{(.*)\}", t.gold):
        yield t.respond(match[1])


def choice_dress(t: Target) -> Iterator[str]:
    """A letter in parentheses, with a full stop, or with the text of its option."""
    if len(t.letters) != 1:
        return
    yield t.respond(f"({t.letters})")
    yield t.respond(f"{t.letters}.")
    options = t.row.extra_info.get("options")
    place = ord(t.letters) - ord("A")
    if isinstance(options, list) and place < len(options):
        yield t.respond(f"{t.letters}. {options[place]}")


def letter_list(t: Target) -> Iterator[str]:
    """Several letters with commas, spaces or Chinese marks between them."""
    if len(t.letters) > 1:
        yield from (t.respond(mark.join(t.letters)) for mark in ("", ",", ", ", "、", " "))


def assignment(t: Target) -> Iterator[str]:
    """`x = 18` for 18."""
    if t.integer is not None:
        yield t.respond(f"x = {t.gold}")


def other_forms(t: Target) -> Iterator[str]:
    """The gold in the other common forms."""
    for form in FORMS:
        if form.name != "bare":
            yield form(t.gold)
    yield f"答案：{t.gold}"
    yield f"**Answer:** {t.gold}"


def _is_hash(t: Target) -> bool:
    """Whether the form is GSM8K's, which has plain text and not TeX."""
    return t.form.before.startswith("#")


_SEVERITIES: tuple[tuple[ResponseWriter, Severity], ...] = (
    (gold_in_its_form, "high"),
    (after_reasoning, "high"),
    (after_thought, "high"),
    (corrected, "medium"),
    (before_afterword, "medium"),
    (before_numbers, "medium"),
    (full_stop, "medium"),
    (bold, "medium"),
    (math_marks, "medium"),
    (spacing, "medium"),
    (thousands, "medium"),
    (trailing_zeros, "medium"),
    (units, "low"),
    (minus_sign, "low"),
    (full_width, "low"),
    (in_chinese, "medium"),
    (decimal_for_fraction, "medium"),
    (tex_spelling, "medium"),
    (left_right, "medium"),
    (text_wrapper, "medium"),
    (choice_dress, "medium"),
    (letter_list, "medium"),
    (assignment, "low"),
    (other_forms, "low"),
)

FALSE_NEGATIVES = tuple(
    Attack.of(responses, "miss", severity) for responses, severity in _SEVERITIES
)
