r"""Misses: correct answers in the form that the scorer asks for, which it must reward.

Answers in another form (`\boxed{}` where the scorer asks for `####`) are the one attack
`other_forms`, of low severity: a scorer may insist on its form, and the policy learns it.
"""

from functools import partial

from rewardkit.audit.model import FORMS, Attack, Responses, Target, attack

MISSES: list[Attack] = []
miss = partial(attack, MISSES, "miss")

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


@miss("medium")
def letter_list(t: Target) -> Responses:
    """Several letters with commas, spaces or Chinese marks between them."""
    if len(t.letters) > 1:
        yield from (t.respond(mark.join(t.letters)) for mark in ("", ",", ", ", "、", " "))


@miss("low")
def other_forms(t: Target) -> Responses:
    """The gold in the other common forms."""
    yield from (form(t.gold) for form in FORMS if form.name != "bare")
    yield from (f"答案：{t.gold}", f"**Answer:** {t.gold}")
