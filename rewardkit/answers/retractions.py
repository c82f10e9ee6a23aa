r"""Sentences that take back the answer before them, as in `The answer is 12. No, that is wrong`.

A sentence takes an answer back if it calls it wrong, or if it hesitates and states nothing but another
value: `Wait, it is 13.` A sentence that checks the answer (`Wait, let me verify: 5 + 7 = 12`) does not.
"""

from __future__ import annotations

import re
from typing import Final

#: Characters after an answer that are searched.
MAX_CHARS: Final = 2000

_SENTENCE_START = r"(?:[.!?;。！？；\n]|[-–—]\s)[\s*_\"')\]]{0,8}"
_HESITATION = (
    r"(?:(?:no(?=\s?[,.:!…–—-])|wait|actually|correction|sorry|oops|hold on|scratch that|hm+|on second thoughts?)\b"
    r"|不|等等|等一下|抱歉|其实)[\s,，.:!…–—-]{0,4}"
)
_CALLS_IT_WRONG = (
    r"(?:(?:that|this|it)(?:['’]s|\s+(?:is|was))\s+(?:wrong|incorrect|a\s+mistake|not\s+(?:right|correct))\b"
    r"(?!\s+(?:to|that|if|for|when)\b)"
    r"|(?:that|this)\s+isn['’]t\s+(?:right|correct)\b"
    r"|(?:[我这]|刚才|上面|前面)?(?:不对|算错了|错了|更正)(?=[\s，,。：:！!、；]|$))"
)
_OTHER_VALUE = (
    r"(?:(?:it|that|this|the\s+[a-z]{1,10}|i|we)\s*"
    r"(?:['’]s|is|was|meant?|get|equals|(?:should|must|would)\s+be|has\s+to\s+be)\s+"
    r"(?:(?:actually|really|just)\s+)?|(?:应该?)?[是为]?)\s*"
    r"[$(\[+-]{0,3}\\?\d[^\n.;。；]{0,20}(?:[.;。；\n]|$)"
)
_TAKEN_BACK = re.compile(
    f"{_SENTENCE_START}(?:(?:{_HESITATION}){{0,3}}{_CALLS_IT_WRONG}"
    f"|(?:{_HESITATION}){{1,3}}{_OTHER_VALUE})",
    re.IGNORECASE,
)


def is_taken_back(rest: str) -> bool:
    """Return whether a text that begins with an answer takes it back in a later sentence."""
    return bool(_TAKEN_BACK.search(rest, 0, MAX_CHARS))
