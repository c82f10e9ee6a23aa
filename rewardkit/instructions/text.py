"""Words, sentences and paragraphs of a text, in linear time, also where no space stands between them."""

import re
from functools import lru_cache
from string import punctuation

PUNCTUATION = punctuation
_NO_PUNCTUATION = str.maketrans("", "", punctuation)

#: Chinese, Japanese kana and Thai are written without spaces: each character counts as a word.
_UNSPACED = "\u0e00-\u0e4f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])\w)+")
_TOKEN = re.compile(r"\w+(?:[-.,'’&/]\w+)*|[^\w\s]")
_SUFFIX = re.compile(r"(?:n['’]t|['’](?:s|m|d|re|ve|ll))$", re.IGNORECASE)

#: What ends a sentence, with the marks that close it, and what has to follow.
_END = re.compile(r"[.!?…]+[\"'”’)\]*_]*(?=\s|$)|[。！？｡]+[”’」』）\"]*")
_ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof sr jr st vs etc e.g i.e u.s u.k u.n a.m p.m ph.d inc ltd co corp no fig vol "
    "gen col capt lt sgt rev hon gov sen rep mt ave dept est approx jan feb mar apr jun jul aug sep "
    "sept oct nov dec p.s p.p.s d.c b.c a.d cf al".split()
)


def words(text: str) -> list[str]:
    """Return the words: runs of letters and digits, and each Chinese, Japanese or Thai character."""
    return _WORD.findall(text)


@lru_cache(maxsize=16)
def tokens(text: str) -> tuple[str, ...]:
    """Return words and punctuation signs; `don't` is `do` and `n't`, `well-known` is one word."""
    result: list[str] = []
    for token in _TOKEN.findall(text):
        match = _SUFFIX.search(token)
        if match and match.start():
            result += (token[: match.start()], match[0])
        else:
            result.append(token)
    return tuple(result)


def plain_words(text: str) -> list[str]:
    """Return what stands between white space, without ASCII punctuation."""
    return text.translate(_NO_PUNCTUATION).split()


@lru_cache(maxsize=16)
def sentences(text: str) -> tuple[str, ...]:
    """Return the sentences, stripped.

    A sentence ends at `.`, `!`, `?` or `…` before white space, or at a Chinese sign. A point after an
    initial or a known abbreviation does not end one, nor do `...` or a closing quotation mark before a
    small letter. A line end alone ends none.
    """
    result, start = [], 0
    for match in _END.finditer(text):
        if _goes_on(text, match):
            continue
        result.append(text[start : match.end()].strip())
        start = match.end()
    result.append(text[start:].strip())
    return tuple(filter(None, result))


def _goes_on(text: str, match: "re.Match[str]") -> bool:
    rest = text[match.end() : match.end() + 40].lstrip()
    if match[0] != ".":
        return rest[:1].islower() and (match[0].startswith(("..", "…")) or match[0][-1] in '"”’')
    before = text[max(match.start() - 24, 0) : match.start()].split()
    word = before[-1].lstrip("(\"'“‘[*_").lower() if before else ""
    is_initial = len(word) == 1 and word.isalpha() and word != "i"
    return bool(rest) and (is_initial or word in _ABBREVIATIONS)


def lines(text: str) -> list[str]:
    """Return the lines that are not blank."""
    return [line for line in text.split("\n") if line.strip()]


def parts(text: str, separator: str) -> list[str] | None:
    """Return the stripped parts between separators; None if one in the middle is empty.

    Empty parts before the first and after the last separator are left out.
    """
    pieces = [piece.strip() for piece in text.split(separator)]
    if not all(pieces[1:-1]):
        return None
    return [piece for piece in pieces if piece]


def occurrences(text: str, keyword: str) -> int:
    """Return how often a keyword stands in a text, whatever its case, also inside a word."""
    return text.lower().count(keyword.lower())


def has_word(text: str, word: str) -> bool:
    """Return whether a word or phrase stands in a text by itself, whatever its case."""
    text, word = text.lower(), word.lower()
    place = text.find(word)
    while place >= 0 and word:
        end = place + len(word)
        if _is_edge(text, place) and _is_edge(text, end):
            return True
        place = text.find(word, end)
    return False


def _is_edge(text: str, place: int) -> bool:
    """Whether a word begins or ends at a place; Chinese has no such places, so any counts."""
    one, other = text[place - 1 : place] if place else "", text[place : place + 1]
    if not (_is_letter(one) and _is_letter(other)):
        return _is_letter(one) or _is_letter(other) or True
    return len(_WORD.findall(one + other)) > 1


def _is_letter(character: str) -> bool:
    return character.isalnum() or character == "_"
