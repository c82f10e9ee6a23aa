"""Whether a response and a row have the same prompt, question and gold.

Each function returns True if the two agree, False if they contradict each other, and None if
neither is certain: one of them lacks the value, or the difference may be one of form.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from rewardkit.answers.equal import compare
from rewardkit.answers.extract import gold_answer, last_hash
from rewardkit.preprocess.duplicates import gold_key

#: Characters that two texts must share where one of them may have been cut.
WINDOW_CHARACTERS = 32

#: Longest gold whose other spellings are tried, in characters.
MAX_RESPELLED_CHARACTERS = 1_000

#: Other spellings of a gold: a list of one item, and choices with separators.
_LIST_OF_ONE = re.compile(r"""\s*\[\s*(['"]?)([^'"]*)\1\s*\]\s*""")
_CHOICES = re.compile(r"[A-Z](?:[\s,、;]+[A-Z])+")

#: A tokenizer decodes half a character to this.
_BROKEN_CHARACTER = "\ufffd"


def squeeze(text: str) -> str:
    """Return a text without white space, in Unicode's composed form.

    Tokenizers compose characters and drop spaces before punctuation; templates strip messages.
    """
    return "".join(unicodedata.normalize("NFC", text).split())


def prompt_agrees(
    text: str, main: str, others: Iterable[str], rivals: Iterable[str]
) -> bool | None:
    """Whether a response was given a row's prompt.

    Args:
        text: the prompt that the response carries, squeezed, as are all texts here.
        main: the row's message.
        others: other texts of the row, such as its question, each as good as the message.
        rivals: messages of other rows whose prompts the text contains in full.
    """
    if not text or not main:
        return None
    own = next((other for other in (main, *others) if other and other in text), "")
    if own:
        return not any(own in rival for rival in rivals)
    if any(rival not in main for rival in rivals):
        return False
    return None if _may_be_cut(text, main) else False


def question_agrees(response_question: str, question: str, main: str) -> bool | None:
    """Whether the question that a response carries is the row's, or is part of its message."""
    if not response_question or not (question or main):
        return None
    if not question:
        return response_question in main or main in response_question
    if response_question == question:
        return True
    is_part = response_question in main or question in response_question
    return None if is_part else False


def gold_agrees(response_gold: str, row_gold: str) -> bool | None:
    """Whether the golds of a response and a row are one value, as `18.0`, `['18']`, `#### 18` are."""
    if not response_gold.strip() or not row_gold.strip():
        return None
    if gold_keys(response_gold) & gold_keys(row_gold):
        return True
    a, b = _only_item(response_gold), _only_item(row_gold)
    outcome = compare(gold_answer(a), gold_answer(b)).outcome
    if outcome in ("equal", "different"):
        return outcome == "equal"
    a, b = squeeze(a).casefold(), squeeze(b).casefold()
    return None if outcome == "ambiguous" or a in b or b in a else False


def gold_keys(gold: str) -> frozenset[str]:
    """Return the keys to look up a gold: those of its spellings, and of its `####` line."""
    spellings = [gold, _only_item(gold)]
    if len(gold) <= MAX_RESPELLED_CHARACTERS and _CHOICES.fullmatch(gold):
        spellings.append("".join(filter(str.isalpha, gold)))
    elif gold.lstrip().startswith("{"):  # Python's quotes, or JSON's
        spellings.append(gold.replace("'", '"'))
    elif end := last_hash(gold):
        spellings.append(end)
    return frozenset(map(gold_key, spellings))


def _only_item(gold: str) -> str:
    match = _LIST_OF_ONE.fullmatch(gold) if len(gold) <= MAX_RESPELLED_CHARACTERS else None
    return match[2] if match else gold


def _may_be_cut(text: str, main: str) -> bool:
    """Whether a text may be a message that a limit on the prompt's length cut.

    verl cuts on the left, on the right or in the middle (`data.truncation`).
    """
    text = text.strip(_BROKEN_CHARACTER)
    if text in main:
        return True
    end = main.find(text[:WINDOW_CHARACTERS])
    if end >= 0 and text.startswith(main[end:]):
        return True
    begin = main.rfind(text[-WINDOW_CHARACTERS:])
    if begin >= 0 and text.endswith(main[: begin + WINDOW_CHARACTERS]):
        return True
    start = text.find(main[:WINDOW_CHARACTERS])
    if start < 0:
        return False
    rest = text[start:]
    pairs = enumerate(zip(rest, main, strict=False))
    same = next((at for at, (one, other) in pairs if one != other), 0)
    rest = rest[same:].lstrip(_BROKEN_CHARACTER)
    end = main.find(rest[:WINDOW_CHARACTERS], same + WINDOW_CHARACTERS)
    return end >= 0 and rest.startswith(main[end:])
