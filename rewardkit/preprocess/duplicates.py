"""Questions that are asked twice: what counts as the same question, and as the same gold."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from fractions import Fraction

#: Spelling that does not change a question: white space, dollars, LaTeX's spaces and sizes.
_DRESS = re.compile(
    r"\s+|\$|\\[,;:!()\[\] ]|\\(?:left|right|displaystyle|quad|qquad|bigl?|bigr?|Bigl?|Bigr?)"
    r"(?![a-zA-Z])"
)
_SAME_COMMAND = re.compile(r"\\[dt]frac(?![a-zA-Z])")
_NUMBER = re.compile(r"[-+]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,400})(?:\.[0-9]{1,400})?")
_END = ".,;:?!。．，；：？！、"


def question_key(text: str, images: Iterable[bytes] = ()) -> bytes:
    r"""A digest (16 bytes) that is equal for two spellings of one question.

    White space, case, width (NFKC), `$`, LaTeX's spaces and sizes and punctuation at the end do
    not count; every other symbol does, because `x+1` is not `x-1`. Pictures count byte by byte:
    a third of Geometry3k asks "Find x." of different figures.
    """
    plain = _DRESS.sub("", unicodedata.normalize("NFKC", text)).casefold()
    if "frac" in plain:
        plain = _SAME_COMMAND.sub(r"\\frac", plain)
    plain = plain.rstrip(_END)
    digest = hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=16)
    for image in images:
        digest.update(hashlib.blake2b(image, digest_size=16).digest())
    return digest.digest()


def gold_key(gold: str) -> str:
    """Equal for two spellings of one gold: numbers by their exact value, else the text's letters.

    `025` is `25` and `1,000` is `1000`; integers beyond 2^53 stay apart.
    """
    text = "".join(gold.split())
    return str(Fraction(text.replace(",", ""))) if _NUMBER.fullmatch(text) else text.casefold()
