"""The words that deny, doubt, bound, change or take back an answer, for every part that reads answers.

Each extractor composes from these groups what it looks for. English and Chinese are complete groups;
other languages have the few words that stand beside an answer.
"""

import re

from rewardkit.answers.parsing.vocabulary import split_words

# --- words beside a number or in its label

#: Words after a number that make it a different number.
SCALING_WORDS = split_words(
    "mil bn mn tn lakh lakhs crore crores score gross dozens grand tens hundreds thousands millions"
    " billions trillions tenths hundredths thousandths halves thirds fourths fifths sixths sevenths"
    " eighths ninths doubled halved tripled squared cubed"
)
#: Words after a number that retract it, at any distance.
RETRACTIONS = split_words(
    "excluded rejected removed missing impossible extraneous invalid discarded fails ruled"
    " contradicts root debt below loss upwards wrong incorrect"
)
#: Words beside a number that change, bound or retract it. No unit contains one of them.
NUMBER_MODIFIERS = (
    SCALING_WORDS
    | RETRACTIONS
    | split_words(
        "reciprocal inverse untrue conjectured unlikely assuming guess estimated exclusive excluding point"
        " base upper lower bound short shy complement supplement one two three four five six seven eight"
        " nine ten by choose half not no nor neither never isn't is are was be or and but if unless except"
        " than more less fewer least most over under above between to until through up twice double triple"
        " thrice times plus minus divided multiplied mod modulo factorial negative positive maybe perhaps"
        " possibly either else instead rather other others another any different equal equals greater"
        " smaller larger at out versus vs about almost nearly approximately question unknown undefined"
        " false true also too remainder january february march april june july august september october"
        " november december may am pm choices given where when for because since so then however non"
        " without only"
    )
)
#: Words of a label that leave open whether its value is the answer.
LABEL_DOUBTS = split_words(
    "let suppose assume find compute determine calculate evaluate not no nor never neither nothing none"
    " nobody cannot can't couldn't isn't aren't wasn't could might may maybe perhaps possibly probably"
    " guess wrong incorrect false except unless besides instead negative minus"
)
#: Operations that a label applies to its value: the reciprocal of 5 is not 5.
LABEL_OPERATIONS = split_words(
    "square cube root reciprocal opposite inverse half double twice triple third quarter bound"
    " negation complement"
)
#: Chinese after a number, and in a label, that denies, bounds or changes the number.
CHINESE_NUMBER_MODIFIERS = tuple(
    "的 几 进制 为负 舍 增根 不 错 误 非 未 或 和 与 及 至 到 超过 以上 以下 以内 以外 少于 多 大于 小于 除 倍 折 成 半 分之 次方 的平方 左右".split()
)
CHINESE_LABEL_MODIFIERS = tuple(
    "不 错 误 非 未 舍 增根 平方 立方 倒数 相反数 一半 倍 余数 最多 最少 至少 至多 可能 大约是 超过 大于 小于".split()
)
#: Words before a number that keep a sentence from stating the number.
STATEMENT_BLOCKERS = (LABEL_DOUBTS | LABEL_OPERATIONS | NUMBER_MODIFIERS) - split_words(
    "is are was be to and for from since because so then when at out until through without also too by"
    " given over other others another about almost nearly however"
)


# --- sentences that take back the answer before them: `The answer is 12. No, that is wrong`

#: Characters after an answer that are searched for a retraction.
MAX_CHARS = 2000

#: A sentence takes an answer back if it calls it wrong, or if it hesitates and states nothing but
#: another value: `Wait, it is 13.` One that checks it (`Wait, let me verify: 5 + 7 = 12`) does not.
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
