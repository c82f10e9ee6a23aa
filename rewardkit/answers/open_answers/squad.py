"""The rules of SQuAD: exact match and F1 of words, after removal of case, punctuation and articles."""

import re
import string
from collections import Counter

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize(text: str) -> str:
    """Return a text in lower case without ASCII punctuation, articles and repeated blanks."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def f1(answer: str, gold: str) -> float:
    """Return the F1 of the words of an answer, from 0 to 1: 2 * common / (of answer + of gold)."""
    mine, theirs = normalize(answer).split(), normalize(gold).split()
    common = sum((Counter(mine) & Counter(theirs)).values())
    return 2 * common / (len(mine) + len(theirs)) if common else 0.0
