"""The words that deny, doubt, bound, change or take back an answer, for every part that reads answers.

Each extractor composes from these groups what it looks for. English and Chinese are complete groups;
other languages have the few words that stand beside an answer.
"""

import re
from typing import Literal

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
    "的 几 进制 为负 舍 增根 不 错 误 非 未 或 和 与 及 至 到 超过 以上 以下 以内 以外 少于 多 大于 小于 除 倍 折 成 半 分之 次方 的平方 左右 では じゃ 아니 아닙 また もしくは 또는 혹은".split()
)
CHINESE_LABEL_MODIFIERS = tuple(
    "不 否 错 误 非 未 舍 增根 平方 立方 倒数 相反数 一半 倍 余数 最多 最少 至少 至多 可能 大约是 超过 大于 小于".split()
)
#: Words before a number that keep a sentence from stating the number.
STATEMENT_BLOCKERS = (LABEL_DOUBTS | LABEL_OPERATIONS | NUMBER_MODIFIERS) - split_words(
    "is are was be to and for from since because so then when at out until through without also too by"
    " given over other others another about almost nearly however"
)


# --- a sentence that keeps its value from being stated

#: Words that deny or doubt what a sentence says, or ask it. `可能是` doubts, `可能的` does not.
DENIAL = re.compile(
    r"\b(?:not|cannot|never|neither|nor|wrong|incorrect|nicht|kein|pas|no es|non è|não é|не)\b|n['’]t\b"
    r"|不(?:是|为|等于|能|会|可能|对|成立|存在|知道|确定)|并非|无法|没有|未必|错误|ない|ません|아니|아닙",
    re.IGNORECASE,
)
DOUBT = re.compile(
    r"[?？][^\w?？]*$|\b(?:unsure|could|might|(?-i:may)|maybe|perhaps|possibly|guess|assume|suppose|let|if|whether"
    r"|either|unless|should have|possible(?=\W*$|\s+answers?\b)|vielleicht|peut-être|quizás?|forse|talvez|возможно)\b"
    r"|可能[是为]|答案(?:至[少多]|最[少多]|不?超过|[小大]于|接近)|也许|或许|如果|假设|若|^设|吗|かもしれ|もし|아마",
    re.IGNORECASE,
)


# --- a clause that governs the answer after it: `I don't think the answer is 12`

#: Characters before an answer that are searched for such a clause.
CLAUSE_CHARS = 120

_NO = r"(?:\b(?:not|never|cannot|pas|nicht)|n['’]t)"
_THINK = r"(?:think|believe|say|see|know|mean|claim|expect|agree|accept|guess)s?"
#: What denies the clause after it.
_DENIES = (
    rf"{_NO}(?:\s+\w+ly|\s+quite)?(?:\s+(?:{_THINK}|sure|certain|clear|true|likely|possible|the\s+case))?"
    r"|\b(?:false|untrue|unlikely|impossible|doubtful|uncertain|unclear|unsure|disagree|deny|wonder"
    r"|(?:i|we|you|they|would|really|strongly)\s+doubt|(?:wrong|mistake|no\s+reason)\s+to\s+\w+|no\s+(?:way|proof|evidence))"
    rf"|\b(?:might|may|naive\s+\w+|someone|some|many|people|others|students)\s+(?:\w+\s+)?{_THINK}"
    r"|\bpas\s+que|\bnicht,?\s+dass|\bno\s+creo\s+que|\bnon\s+credo\s+che|не\s+думаю,?\s+что"
    r"|不(?:认为|觉得|相信|能说|敢说|确定|是说)|怀疑|否认|并非|误以为|未必|难道"
)
#: What leaves it open.
_HEDGES = (
    r"\b(?:maybe|perhaps|possibly|probably|likely|guess|suspect|vielleicht|peut-être|quizás?|forse|talvez)\s*,?"
    r"|猜测?|可能|也许|或许|大概|恐怕"
)
#: What only supposes or asks it.
_SUPPOSES = (
    r"\b(?:if|whether|unless|suppos(?:e|ing)|assum(?:e|ing)|imagine|pretend|let|in\s+case|provided|wenn|falls|ob|si)"
    r"|如果|假设|假如|若|要是|倘若|是否|设"
)
#: Words between such a clause and its subject.
_BETWEEN = (
    r"(?:\b(?:that|the|my|our|your|this|its|a|la|die|el|das|final|correct|right|true|actual|real)\b"
    r"|最终|正确|最后|这道题|这题|本题|此题|该题|的|是|\s)*"
)
_SUBJECT = r"(?:\b(?:answers?|results?|values?|solutions?|it|la|le|el|die|das|a|o)\b|答案|结果)"
#: The subject, the verb and the signs before a box.
_BOX_LEAD = re.compile(
    r"(?:(?:\b(?:answer|result|value|solution|number|sum|total|it|(?<!['’])[a-z])|答案|结果)\s*)?"
    r"(?:\b(?:(?:must|would|should|could)\s+be|is|are|was|be|equals?|equal\s+to|exactly)|=|[是为])?[\s$*_\\([{:：]*$",
    re.IGNORECASE,
)
_DENYING = re.compile(rf"(?:{_DENIES}|{_HEDGES}){_BETWEEN}$", re.IGNORECASE)
_SUPPOSING = re.compile(rf"(?:{_SUPPOSES}){_BETWEEN}$", re.IGNORECASE)
_DENYING_BOX = re.compile(rf"(?:{_DENIES}|{_SUPPOSES}){_BETWEEN}$", re.IGNORECASE)
_GOVERNED = re.compile(rf"(?:{_DENIES}|{_HEDGES}|{_SUPPOSES}){_BETWEEN}{_SUBJECT}", re.IGNORECASE)
#: The denial right before a box, and a contrast to the answer before it.
_NOT_BOX = re.compile(
    rf"(?:{_NO}|\\neq?|≠|不(?:是|为|等于)?)(?:\s+be|\s+equal\s+to)?$", re.IGNORECASE
)
_CONTRAST = re.compile(
    r"(?:[,，(]\s*(?:and\s+|but\s+)?not|\brather\s+than|\binstead\s+of|而不是|而非)[\s$*_\\([{]*$",
    re.IGNORECASE,
)
_CLAUSE_START = re.compile(r"[.!?;](?=\s|$)|[。！？；\n]")


def _clause(before: str) -> str:
    return _CLAUSE_START.split(before[-CLAUSE_CHARS:])[-1]


def governs(before: str) -> Literal["denies", "supposes", ""]:
    """Return what the clause before `answer is` does to the answer: `I doubt that` denies it, `if` supposes it."""
    clause = _clause(before)
    if _DENYING.search(clause):
        return "denies"
    return "supposes" if _SUPPOSING.search(clause) else ""


def is_doubted(sentence: str) -> bool:
    """Return whether a sentence asks, supposes or leaves open what it says."""
    return bool(DOUBT.search(sentence) or _GOVERNED.search(sentence))


def is_contrast(before: str) -> bool:
    """Return whether a text ends in `, not` or the like, after which a wrong value stands."""
    return bool(_CONTRAST.search(before[-CLAUSE_CHARS:]))


def is_box_denied(before: str, after: str) -> bool:
    """Return whether the text around a box denies, supposes, asks or takes back its content."""
    lead = _BOX_LEAD.sub("", _clause(before), count=1).rstrip()
    return bool(
        _NOT_BOX.search(lead)
        or _DENYING_BOX.search(lead)
        or _DENIED_AFTER.match(after[:CLAUSE_CHARS])
        or is_taken_back(after)
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
    r"|i\s+(?:made|see|found|have)\s+(?:an?|the|my|some)\s+(?:error|mistake)s?(?=\s*(?:[.!]|$|,?\s+so\b))"
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

#: Words right after a box that deny it, or the question mark of its sentence.
_DENIED_AFTER = re.compile(
    r"[\s$*_\\)\]}]*(?:[?？]|[,，]?\s?[(（]?\s*(?:(?:this|that|which|it)\s+)?(?:(?:is|was|seems|looks)\s+)?"
    r"(?:wrong|incorrect|false|invalid|impossible|rejected|a\s+mistake|not\s+(?:right|correct|true|(?:the|my)\s+(?:\w+\s+)?answer))\b"
    r"|[,，]?\s?[(（]?(?:不对|不是|是?错误?的?|舍去))",
    re.IGNORECASE,
)


def is_taken_back(rest: str) -> bool:
    """Return whether a text that begins with an answer takes it back in a later sentence."""
    return bool(_TAKEN_BACK.search(rest, 0, MAX_CHARS))
