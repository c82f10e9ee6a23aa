"""When two questions, or two golds, count as the same: keys that are equal for such pairs."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from fractions import Fraction

#: Markup that does not change a question: white space, dollars, LaTeX's spaces and sizes.
_MARKUP = re.compile(
    r"\s+|\$|\\[,;:!()\[\] ]|\\(?:left|right|displaystyle|quad|qquad|bigl?|bigr?|Bigl?|Bigr?)"
    r"(?![a-zA-Z])"
)
_FRACTION = re.compile(r"\\[dt]frac(?![a-zA-Z])")
_NUMBER = re.compile(r"[-+]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,400})(?:\.[0-9]{1,400})?")
_END_PUNCTUATION = ".,;:?!。．，；：？！、"


def question_key(text: str, images: Iterable[bytes] = ()) -> bytes:
    r"""Return a digest of 16 bytes that is equal for two spellings of one question.

    White space, case, width (NFKC), `$`, LaTeX's spaces and sizes and punctuation at the end do
    not count. Every other symbol does, because `x+1` is not `x-1`. Images count byte by byte: in
    Geometry3k a third of the rows ask "Find x." about different figures.
    """
    plain = unicodedata.normalize("NFKC", text)
    has_latex = "\\" in plain  # without it, the same takes a third of the time
    plain = _MARKUP.sub("", plain) if has_latex else "".join(plain.split()).replace("$", "")
    plain = plain.casefold()
    if "frac" in plain:
        plain = _FRACTION.sub(r"\\frac", plain)
    plain = plain.rstrip(_END_PUNCTUATION)
    digest = hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=16)
    for image in images:
        digest.update(hashlib.blake2b(image, digest_size=16).digest())
    return digest.digest()


def same_gold(gold: str, other: str) -> bool:
    """Return whether two golds are two spellings of one: equal keys, or equal as answers.

    `$1,000` is 1000, `1/2` is 0.5 and `七` is 7; see docs/answers.md.
    """
    if gold_key(gold) == gold_key(other):
        return True
    from rewardkit.answers.equal import (
        compare,  # the grammar of mathematics, which most runs do without
    )

    return any(compare(*pair).outcome == "equal" for pair in ((gold, other), (other, gold)))


def gold_key(gold: str) -> str:
    """Return a key that is equal for two spellings of one gold.

    For a number the key is its exact value: `025` equals `25`, `1,000` equals `1000`, and integers
    above 2^53 stay different. For other text it is the text without white space and case.
    """
    text = "".join(gold.split())
    return str(Fraction(text.replace(",", ""))) if _NUMBER.fullmatch(text) else text.casefold()
