"""Whether a response and a row say the same of what was asked and of the answer.

Each function returns True if both sides agree, False if they contradict each other, and None if
that cannot be told: one side says nothing, or the difference may be one of form.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from rewardkit.answers.equal import compare
from rewardkit.answers.extract import gold_answer, last_hash
from rewardkit.preprocess.duplicates import gold_key

#: Characters of two texts that must be equal where one of them may have been cut.
WINDOW = 32

#: Longest gold, in characters, that is looked at for another spelling.
MAX_RESPELLED = 1_000

#: A list of one item, and choices with marks between them: other spellings of a gold.
_LIST_OF_ONE = re.compile(r"""\s*\[\s*(['"]?)([^'"]*)\1\s*\]\s*""")
_CHOICES = re.compile(r"[A-Z](?:[\s,、;]+[A-Z])+")

#: What a tokenizer makes of half a character.
_BROKEN = "\ufffd"


def squeeze(text: str) -> str:
    """A text without white space, in Unicode's composed form.

    Tokenizers compose characters and drop spaces before punctuation, templates strip messages.
    """
    return "".join(unicodedata.normalize("NFC", text).split())


def prompt_agrees(
    text: str, main: str, others: Iterable[str], rivals: Iterable[str]
) -> bool | None:
    """Whether a response was given a row's prompt.

    Args:
        text: what the response was given, squeezed, as are all texts here.
        main: the row's message.
        others: other texts of which one is as good, such as the bare question.
        rivals: messages of other rows, whose prompts the text contains in full.
    """
    if not text or not main:
        return None
    known = next((each for each in (main, *others) if each and each in text), "")
    if known:
        return not any(known in rival for rival in rivals)
    if any(rival not in main for rival in rivals):
        return False
    return None if _may_be_cut(text, main) else False


def question_agrees(asked: str, question: str, main: str) -> bool | None:
    """Whether the question that a response carries is the row's, or else part of its message."""
    if not asked or not (question or main):
        return None
    if not question:
        return asked in main or main in asked
    if asked == question:
        return True
    return None if asked in main or question in asked else False


def gold_agrees(gold: str, known: str) -> bool | None:
    """Whether the gold that a response carries is the row's: `18`, `18.0`, `['18']`, `#### 18`."""
    if not gold.strip() or not known.strip():
        return None
    if golds(gold) & golds(known):
        return True
    gold, known = _bare_item(gold), _bare_item(known)
    outcome = compare(gold_answer(gold), gold_answer(known)).outcome
    if outcome in ("equal", "different"):
        return outcome == "equal"
    one, other = squeeze(gold).casefold(), squeeze(known).casefold()
    return None if outcome == "ambiguous" or one in other or other in one else False


def golds(gold: str) -> frozenset[str]:
    """The keys under which a gold is looked up: of what it is, and of what it ends on."""
    spellings = [gold, _bare_item(gold)]
    if len(gold) <= MAX_RESPELLED and _CHOICES.fullmatch(gold):
        spellings.append("".join(filter(str.isalpha, gold)))
    elif gold.lstrip().startswith("{"):  # Python's quotes, or JSON's
        spellings.append(gold.replace("'", '"'))
    elif end := last_hash(gold):
        spellings.append(end)
    return frozenset(map(gold_key, spellings))


def _bare_item(gold: str) -> str:
    one = _LIST_OF_ONE.fullmatch(gold) if len(gold) <= MAX_RESPELLED else None
    return one[2] if one else gold


def _may_be_cut(text: str, main: str) -> bool:
    """Whether a text may be what a limit on the prompt's length left of a message.

    verl cuts at the left, at the right or in the middle (`data.truncation`).
    """
    text = text.strip(_BROKEN)
    if text in main:
        return True
    end = main.find(text[:WINDOW])
    if end >= 0 and text.startswith(main[end:]):
        return True
    begin = main.rfind(text[-WINDOW:])
    if begin >= 0 and text.endswith(main[: begin + WINDOW]):
        return True
    start = text.find(main[:WINDOW])
    if start < 0:
        return False
    rest = text[start:]
    pairs = enumerate(zip(rest, main, strict=False))
    same = next((at for at, (one, other) in pairs if one != other), 0)
    rest = rest[same:].lstrip(_BROKEN)
    end = main.find(rest[:WINDOW], same + WINDOW)
    return end >= 0 and rest.startswith(main[end:])
