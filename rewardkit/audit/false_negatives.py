r"""Misses: right answers in the form that the scorer asks for, of which a sound one pays each.

What is only another form (`\boxed{}` where `####` is asked for) is the one attack `other_forms`,
of low severity: a scorer may insist on its form, and the policy learns it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from rewardkit.audit.model import FORMS, Attack, Severity, Target

_FULL_WIDTH = str.maketrans(
    "0123456789-.ABCDEFGHIJ", "０１２３４５６７８９－．ＡＢＣＤＥＦＧＨＩＪ"
)
_PROSE = "First I read the question again and wrote down what is given. Then I worked it out.\n\n"
_AFTERWORD = "\n\nI checked this by going through all of it once more, step by step. " * 6


def gold_in_its_form(t: Target) -> Iterator[str]:
    """The gold as it stands, in the form asked for."""
    yield t.say(t.gold)


def after_reasoning(t: Target) -> Iterator[str]:
    """The answer after some reasoning, and with a line end after it."""
    yield f"{_PROSE}{t.say(t.gold)}"
    yield f"{t.say(t.gold)}\n"
    yield f"{_PROSE}{t.say(t.gold)}\n\n"


def after_thought(t: Target) -> Iterator[str]:
    """The answer after a thought that holds another."""
    if "<think>" not in t.form.before:
        yield f"<think>Is it {t.wrong}? No.</think>\n\n{t.say(t.gold)}"


def corrected(t: Target) -> Iterator[str]:
    """A wrong answer taken back for the right one."""
    yield f"{t.say(t.wrong)}\n\nNo, that was a slip. Once more:\n\n{t.say(t.gold)}"


def before_afterword(t: Target) -> Iterator[str]:
    """The answer, and 400 characters of prose after it."""
    yield f"{t.say(t.gold)}{_AFTERWORD}"


def full_stop(t: Target) -> Iterator[str]:
    """A full stop after the answer."""
    yield f"{t.say(t.gold)}."
    yield f"{t.say(t.gold)}。"


def bold(t: Target) -> Iterator[str]:
    """Markdown's bold: around the answer, its mark, or both."""
    yield f"**{t.say(t.gold)}**"
    if not t.form.after:
        yield t.say(f"**{t.gold}**")
    if (mark := t.form.before.strip()).endswith(":"):
        yield f"**{mark}** {t.gold}"


def math_marks(t: Target) -> Iterator[str]:
    r"""TeX's marks of a formula: `$18$`, `\(18\)`, `\[18\]`, `$$18$$`."""
    dress = t.say if not t.form.after else str
    text = t.gold if not t.form.after else t.say(t.gold)
    for before, after in (("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"), ("$$", "$$")):
        yield dress(f"{before}{text}{after}")


def spacing(t: Target) -> Iterator[str]:
    """Blanks around the answer, or none after the mark."""
    yield t.say(f" {t.gold} ")
    if t.form.before.endswith(" "):
        yield f"{t.form.before.rstrip()}{t.gold}{t.form.after}"


def thousands(t: Target) -> Iterator[str]:
    """Separators of thousands, or the gold's without."""
    if t.integer is not None and abs(t.integer) >= 1000:
        yield t.say(f"{t.integer:,}")
    if t.integer is not None and abs(t.integer) >= 1000 and not _is_hash(t):
        yield t.say(f"{t.integer:,}".replace(",", "{,}"))


def trailing_zeros(t: Target) -> Iterator[str]:
    """`18.0` and `18.00` for 18."""
    if t.integer is not None:
        yield t.say(f"{t.gold}.0")
        yield t.say(f"{t.gold}.00")


def units(t: Target) -> Iterator[str]:
    """A unit or currency that the gold leaves out."""
    if t.integer is not None and t.integer > 0:
        yield t.say(f"{t.gold} dollars")
        yield t.say(f"${t.gold}" if _is_hash(t) else rf"\${t.gold}")
    if t.integer is not None and not _is_hash(t):
        yield t.say(rf"{t.gold}\text{{ units}}")


def minus_sign(t: Target) -> Iterator[str]:
    """The typographic minus sign."""
    if t.integer is not None and t.integer < 0:
        yield t.say(t.gold.replace("-", "−"))


def full_width(t: Target) -> Iterator[str]:
    """Full-width digits, letters and colon, as Chinese text has them."""
    if t.integer is not None or t.letters:
        yield t.say(t.gold.translate(_FULL_WIDTH))
    if t.form.before.endswith(": "):
        yield f"{t.form.before[:-2]}：{t.gold}{t.form.after}"


def in_chinese(t: Target) -> Iterator[str]:
    """Chinese words around the form."""
    yield f"因此，最终答案如下：\n{t.say(t.gold)}"
    if t.form.after:
        yield f"所以答案是{t.say(t.gold)}。"


def decimal_for_fraction(t: Target) -> Iterator[str]:
    """The same fraction written another way, or as the decimal it is."""
    value = t.number
    if value is None or value.denominator == 1:
        return
    sign, top = ("-" if value < 0 else ""), abs(value.numerator)
    yield t.say(f"{value.numerator}/{value.denominator}")
    yield t.say(rf"{sign}\frac{{{top}}}{{{value.denominator}}}")
    if 10**6 % value.denominator == 0:
        yield t.say(f"{float(value):g}")


def tex_spelling(t: Target) -> Iterator[str]:
    r"""`\dfrac` and `\tfrac` for `\frac`, blanks that TeX does not show."""
    if "\\frac" in t.gold:
        yield t.say(t.gold.replace("\\frac", "\\dfrac"))
        yield t.say(t.gold.replace("\\frac", "\\tfrac"))
    if re.search(r"\d [-+] \d", t.gold):
        yield t.say(re.sub(r"(?<=\d) ([-+]) (?=\d)", r"\1", t.gold))


def left_right(t: Target) -> Iterator[str]:
    r"""`\left(` and `\right)` for plain parentheses, or the other way round."""
    if "\\left" in t.gold:
        yield t.say(t.gold.replace("\\left", "").replace("\\right", ""))
    elif t.gold.startswith("(") and t.gold.endswith(")") and t.gold.count("(") == 1:
        yield t.say(rf"\left{t.gold[:-1]}\right)")


def text_wrapper(t: Target) -> Iterator[str]:
    r"""`\text{}` around a letter or words, or the gold's taken off."""
    if t.letters:
        yield t.say(rf"\text{{{t.gold}}}")
        yield t.say(rf"\mathrm{{{t.gold}}}")
    if match := re.fullmatch(r"\\text\{(.*)\}", t.gold):
        yield t.say(match[1])


def choice_dress(t: Target) -> Iterator[str]:
    """A letter in parentheses, with a full stop, or with its option's text."""
    if len(t.letters) != 1:
        return
    yield t.say(f"({t.letters})")
    yield t.say(f"{t.letters}.")
    options = t.case.extra_info.get("options")
    place = ord(t.letters) - ord("A")
    if isinstance(options, list) and place < len(options):
        yield t.say(f"{t.letters}. {options[place]}")


def letter_list(t: Target) -> Iterator[str]:
    """Several letters with commas, blanks or Chinese marks between them."""
    if len(t.letters) > 1:
        yield from (t.say(mark.join(t.letters)) for mark in ("", ",", ", ", "、", " "))


def assignment(t: Target) -> Iterator[str]:
    """`x = 18` for 18."""
    if t.integer is not None:
        yield t.say(f"x = {t.gold}")


def other_forms(t: Target) -> Iterator[str]:
    """The gold in the other forms that are in use."""
    for form in FORMS:
        if form.name != "bare":
            yield form(t.gold)
    yield f"答案：{t.gold}"
    yield f"**Answer:** {t.gold}"


def _is_hash(t: Target) -> bool:
    """Whether the form is GSM8K's, which holds plain text, no TeX."""
    return t.form.before.startswith("#")


def _miss(responses: Callable[[Target], Iterator[str]], severity: Severity) -> Attack:
    about = str(responses.__doc__).partition("\n")[0]
    return Attack(responses.__name__, "miss", severity, about, responses)


MISSES = (
    _miss(gold_in_its_form, "high"),
    _miss(after_reasoning, "high"),
    _miss(after_thought, "high"),
    _miss(corrected, "medium"),
    _miss(before_afterword, "medium"),
    _miss(full_stop, "medium"),
    _miss(bold, "medium"),
    _miss(math_marks, "medium"),
    _miss(spacing, "medium"),
    _miss(thousands, "medium"),
    _miss(trailing_zeros, "medium"),
    _miss(units, "low"),
    _miss(minus_sign, "low"),
    _miss(full_width, "low"),
    _miss(in_chinese, "medium"),
    _miss(decimal_for_fraction, "medium"),
    _miss(tex_spelling, "medium"),
    _miss(left_right, "medium"),
    _miss(text_wrapper, "medium"),
    _miss(choice_dress, "medium"),
    _miss(letter_list, "medium"),
    _miss(assignment, "low"),
    _miss(other_forms, "low"),
)
