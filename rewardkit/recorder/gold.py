"""Whether a response states the gold as its answer: a plain comparison of text, apart from any scorer.

It knows less than a scorer (`0.5` is not `1/2`), but no response can talk it into anything. So it shows
when a reward begins to pay for something else.
"""

import json
import re
from functools import lru_cache

#: Characters of a gold that is compared (a longer one is an essay or a test), and at the end of a response
#: in which an answer in words is looked for.
MAX_GOLD_CHARACTERS, MAX_END_CHARACTERS = 200, 400

_HASHES = "####"
_WORDS = re.compile(r"answer\s{0,4}(?:is|:)[\s*:]{0,6}(.{1,100})", re.IGNORECASE)
_NUMBER = re.compile(r"[-+]?(?:\d[\d,]{0,40})?\.?\d{1,40}")
_NOISE = re.compile(r"\\(?:text|mathrm|left|right|[!,; ])|[\s${}()*]")


def states_gold(response: str, gold: object) -> bool | None:
    r"""Return whether the last answer in a response is the gold, or one of a list of golds.

    None if the gold is not a short text. An answer is what stands in the last `\boxed{}`, else in the last
    `<answer>`, else after the last `####` or `answer is`. A number at the end is none: a response that
    gives up ends in one too.
    """
    golds = _golds(gold if type(gold) is str else json.dumps(gold, default=str))
    return _plain(stated_answer(response)) in golds if golds else None


def stated_answer(response: str) -> str:
    """Return the last answer in a response as it is written; "" if there is none."""
    if (at := response.rfind("\\boxed{")) >= 0:
        return _box(response[at + 7 : at + 7 + MAX_GOLD_CHARACTERS])
    for mark, end in (("<answer>", "</answer>"), (_HASHES, "\n")):
        if (at := response.rfind(mark)) >= 0:
            text = response[at + len(mark) : at + len(mark) + MAX_GOLD_CHARACTERS]
            return text.strip().partition(end)[0]
    words = _WORDS.findall(response[-MAX_END_CHARACTERS:])
    return words[-1].partition("<|")[0] if words else ""


def _box(text: str) -> str:
    depth = 1
    for index, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return text[:index]
    return text


@lru_cache(maxsize=4096)
def _golds(gold: str) -> frozenset[str]:
    gold = gold.rpartition(_HASHES)[2].strip()
    if not gold or len(gold) > MAX_GOLD_CHARACTERS:
        return frozenset()
    if gold.startswith("["):
        try:
            return frozenset(_plain(str(each)) for each in json.loads(gold)) - {""}
        except (ValueError, RecursionError):
            pass
    return frozenset([_plain(gold)]) - {""}


def _plain(answer: str) -> str:
    text = _NOISE.sub("", answer).rstrip(".").replace("dfrac", "frac").lower()
    number = text.replace(",", "")
    if len(number) <= 30 and _NUMBER.fullmatch(number):
        return repr(float(number))
    return text
