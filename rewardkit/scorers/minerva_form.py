"""Minerva's normal form of an answer, as verl's math_dapo computes it, in linear time.

It is a module of its own because verl's reward manager `remote` pickles the file of a scorer, and a
cached function pickles only where its module can be imported.
"""

import re
from functools import lru_cache

#: Longer texts are not worth the memory of the cache.
MAX_CACHED_CHARS = 300

# Minerva's normalisation deletes or replaces these one after the other, and the order matters: "an
# apple" loses its article before all blanks go, and `\text{}` appears and is then deleted.
# `_REPLACED` has the few that are replaced.
_STEPS = (
    *("an ", "a ", ".$", r"\$", r"\ ", " ", "mbox", r",\text{and}", r"\text{and}", r"\text{m}"),
    *("square", "ways", "integers", "dollars", "mph", "inches", "hours", "km", "units", r"\ldots"),
    *("sue", "points", "feet", "minutes", "digits", "cents", "degrees", "cm", "gm", "pounds"),
    *("meters", "meals", "edges", "students", "childrentickets", "multiples", r"\text{s}"),
    *(r"\text{.}", "\\text{\ns}", r"\text{}^2", r"\text{}^3", "\\text{\n}", r"\text{}"),
    *(r"\mathrm{th}", r"^\circ", r"^{\circ}", r"\;", r",\!", "{,}", '"', r"\dots"),
)
_REPLACED = {
    ".$": "$",
    "mbox": "text",
    r",\text{and}": ",",
    r"\text{and}": ",",
    r"\text{m}": r"\text{}",
}
_TABLE = tuple((step, _REPLACED.get(step, "")) for step in _STEPS)
# No step adds a backslash, so text without one skips half of the table.
_TABLE_WITHOUT_TEX = tuple(row for row in _TABLE if "\\" not in row[0])

# For text without these characters only the removal of blanks and the last step matter.
_NEEDS_THE_TABLE = re.compile(r'[A-Za-z\\${"]')
_BOX = r"\boxed{"
_WRAPPERS = tuple(re.compile(rf"\\{name}\{{([^}}]*)\}}") for name in ("text", "textbf", "overline"))
_FIRST_FORMULA = re.compile(r"^[^$\n]*\$([^$\n]*)\$.*", re.MULTILINE)
_BARE_FRACTION = re.compile(r"frac([^{])(.)")
_BARE_ROOT = re.compile(r"sqrt([^{])")


def normalize(text: str) -> str:
    """Return Minerva's normal form of an answer, as verl computes it, in linear time."""
    # Golds and answers recur in every group of rollouts.
    return _cached(text) if len(text) <= MAX_CACHED_CHARS else _normalize(text)


def _normalize(text: str) -> str:
    text = text.rpartition("=")[2]
    if _NEEDS_THE_TABLE.search(text):
        for before, after in _TABLE if "\\" in text else _TABLE_WITHOUT_TEX:
            text = text.replace(before, after)
        text = _remove_tex(text)
    else:
        text = text.replace(" ", "")
    digits = text.replace(",", "")
    return (digits if digits.isdigit() else text).strip()


_cached = lru_cache(maxsize=8192)(_normalize)


def _remove_tex(text: str) -> str:
    r"""Remove the TeX around formulas and words; add braces to a bare `\frac12` and `\sqrt2`."""
    if "$" in text:
        text = _FIRST_FORMULA.sub(r"$\1$", text)
    if "\\" in text:  # verl's patterns do not cross line ends
        text = "\n".join(map(_unwrap_line, text.split("\n")))
    text = _BARE_FRACTION.sub(r"frac{\1}{\2}", text)
    text = _BARE_ROOT.sub(r"sqrt{\1}", text)
    return text.replace("$", "")


def _unwrap_line(line: str) -> str:
    r"""Remove `\text{}` and similar wrappers and the widest `\boxed{}` from a line."""
    for wrapper in _WRAPPERS:
        # After the last brace nothing closes, and each opening would search for its end in vain.
        head, brace, tail = line.rpartition("}")
        line = wrapper.sub(r"\1", head + brace) + tail
    before, boxed, rest = line.partition(_BOX)
    inside, closed, after = rest.rpartition("}")
    return before + inside + after if boxed and closed else line
