"""What the words around an answer do to it: they deny, doubt, suppose, ask or take it back.

`answers.extract` asks about the text before and after a mark, `answers.prose` about a sentence without one.
`answers.doubt` has the words that change a number.
"""

import re
from typing import Literal

from rewardkit.answers.parsing.vocabulary import split_words

#: Words that join another value to an answer.
ALTERNATIVELY = "(?:or|alternatively|otherwise|else|maybe|perhaps|possibly)"

# --- a sentence

#: Words that deny or doubt what a sentence says, or ask it. `可能是` doubts, `可能的` does not.
DENIAL = re.compile(
    r"\b(?:not|cannot|never|neither|nor|wrong|incorrect|nicht|kein|pas|no es|non è|não é|не)\b|n['’]t\b"
    r"|不(?:是|为|等于|能|会|可能|对|成立|存在|知道|确定)|并非|无法|没有|未必|错误|ない|ません|아니|아닙",
    re.IGNORECASE,
)
DOUBT = re.compile(
    r"[?？][^\w?？]*$|\b(?:unsure|could|might|(?-i:may)|maybe|perhaps|possibly|guess|assume|suppose|let|if|whether"
    r"|either|unless|should have|possible(?=\W*$|\s+(?:answers?|that)\b)|seems?|appears?|supposed|used to"
    r"|exceeds?|tempting|had we|believes|vielleicht|peut-être|quizás?|forse|talvez|возможно)\b"
    r"|可能[是为有]|猜|好像|似乎|答案(?:至[少多]|最[少多]|不?超过|[小大]于|接近)|也许|或许|如果|假设|若|^设|吗|かもしれ|もし|아마",
    re.IGNORECASE,
)

# --- a clause that governs the answer after it: `I don't think the answer is 12`

#: Characters before an answer that are searched for such a clause.
CLAUSE_CHARS = 120
#: Words that may stand between the start of a clause and `answer` in a statement of it.
_LEAD_WORDS = split_words(
    "the a an my our this that its it it's i we one us is are am to at now here so thus hence therefore then and but"
    " which finally indeed also again in fact conclusion summary total overall can get gets got have obtain obtained"
    " find found conclude concluded know think believe see say means mean implies imply shows gives give giving proves proved turns out"
    " follows clear obvious sure certain confident confirm confirms deduce determine determined note arrive arrived"
    " end all together everything well ok okay yes consequently accordingly ultimately clearly obviously evidently simply just"
    " check checked verify verified seen shown easy easily be can must will should"
    " final correct right true best exact closest nearest integer whole numeric numerical simplified reduced required"
    " desired expected requested provided actual short main real definitive accurate decimal box boxed eos_token assistant solution response step leaving making makes with"
    " la le les el los die das der il lo o os donc ainsi alors por tanto entonces también daher somit folglich"
    " portanto assim então logo quindi dunque perciò итак поэтому значит следовательно finale finalement finalmente"
    " correcta correcte bonne corretta correta richtige endgültige правильный окончательный"
)
_USUAL_LEADS = frozenset(
    "|the|final|the final|therefore, the|therefore, the final|so the|thus, the".split("|")
)
#: First words of a clause that gives a reason for the answer after it: `since x is odd the answer is 3`.
_REASONS = split_words("since because after by with using from given for to as in on under")
#: Words that suppose or ask the clause after them.
_SUPPOSING = split_words(
    "if whether unless suppose supposing assume assuming imagine pretend let provided wenn falls ob si"
)
#: What denies, doubts or supposes the Chinese, Japanese or Korean clause after it.
_CJK_GOVERNS = re.compile(
    r"(?:不(?!难|等式|同|变|妨)|难说|好像|似乎|看起来|证明|(?<![我们])认为|没|未|非|有人|他|她|某|学生|同学|可能|也许|或许|大概|恐怕|猜|怀疑|否认|误|错|难道|希望)"
    r"|(如果|假设|假如|若|要是|倘若|是否|设|检验|验证|もし|만약)"
)
_CJK = re.compile(r"[\u3040-\u9fff\uac00-\ud7af]")
_LEAD_START = re.compile(
    r"[.,:()\[\]{}$<>=\\|#→，：（）、✅]|\b(?:so|thus|hence|therefore|then|and|but|which)\b",
    re.IGNORECASE,
)
_NO_DOUBT = re.compile(
    r"\b(?:(?:there is |i have )?no|without(?: an?y?)?|beyond(?: any)?) doubt|not (?:hard|difficult) to",
    re.IGNORECASE,
)
_LEAD_WORD = re.compile(r"[^\W\d]+(?:['’][a-z]+)?")
_NO = r"(?:\b(?:not|never|cannot|pas|nicht)|n['’]t)"
_THINK = r"(?:think|believe|say|see|know|mean|claim|expect|agree|accept|guess)s?"
#: What denies, doubts or supposes the clause after it, in a sentence without a mark and around a box.
_IS_NOT = rf"{_NO}(?:\s+\w+ly|\s+quite)?(?:\s+(?:{_THINK}|sure|certain|clear|true|likely|possible|the\s+case))?"
_DOUBTS = (
    r"false|untrue|unlikely|impossible|doubtful|uncertain|unclear|unsure|disagree|deny|wonder|reject|discard"
    r"|ignore|disregard|forget|scrap|cross\s+out|replace|instead\s+of|(?:take|took)\s+back|(?:do\s+not|don['’]t)\s+(?:write|put|use|answer)|hope|wish|(?:i|we|you|they|would|really|strongly)\s+doubt"
    r"|(?:wrong|mistake|no\s+reason)\s+to\s+\w+|no\s+(?:way|proof|evidence)"
    r"|pas\s+que|nicht,?\s+dass|no\s+creo\s+que|non\s+credo\s+che|не\s+думаю,?\s+что"
)
_OTHERS_SAY = (
    rf"(?:might|may|naive\s+\w+|someone|some|many|people|others|students)\s+(?:\w+\s+)?(?:{_THINK}|claimed|said|thought|guessed)"
    r"|(?:might|may|would|could)\s+(?:write|answer|say)|tempting(?:\s+to(?:\s+\w+)?)?"
    r"|(?:think|claim|say|believe|guesse|argue)s"
)
_SUPPOSES = "if|whether|unless|suppos(?:e|ing)|assum(?:e|ing)|imagine|pretend|in\\s+case|provided|wenn|falls"
_GOVERNS = (
    rf"{_IS_NOT}|\b(?:{_DOUBTS}|{_OTHERS_SAY}|{_SUPPOSES})"
    r"|不(?:认为|觉得|相信|能说|敢说|确定|是说)|怀疑|否认|并非|误以为|未必|难道|有人[说认]\w?|如果|假设|假如|若|要是|倘若|是否|设"
)
_HEDGES = r"\b(?:maybe|perhaps|possibly|probably|likely|guess|suspect)\s*,?|猜测?|可能|也许|或许|大概|恐怕"
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
_HEDGED = re.compile(
    rf"(?:{_HEDGES}|\b(?:not )?(?:false|wrong|incorrect|rejected|true(?<=not true)|untrue|hypothetically|allegedly|supposedly|by mistake)[\s,:]*)$",
    re.IGNORECASE,
)
_GOVERNED_BOX = re.compile(rf"(?:{_GOVERNS}){_BETWEEN}$", re.IGNORECASE)
#: The same before a subject of several words: `I doubt that the number of ways is \boxed{12}`.
_GOVERNED_CLAUSE = re.compile(
    rf"(?:(?:{_GOVERNS})\s+that\s+(?:[a-z]+\s+){{1,7}}?(?:is|are|was|equals)|\bif\s+(?:[a-z]+\s+){{1,6}}?were)[\s$*_\\([{{]*$",
    re.IGNORECASE,
)
_GOVERNED = re.compile(rf"(?:{_GOVERNS}|{_HEDGES}){_BETWEEN}{_SUBJECT}", re.IGNORECASE)
_ANSWER_IS = re.compile(
    r"(?:\banswers?\s+(?:is|are|was)\b|答案[是为]?)[\s:：$*_\\([{]*$", re.IGNORECASE
)
#: The denial right before a box, and a contrast to the answer before it.
_NOT_BOX = re.compile(
    rf"(?:(?:{_NO}|\b(?:no\s+es|non\s+è|não\s+é|не|niet|nie\s+jest)|\\neq?|≠|不(?:是|为|等于|可能)?|并非|绝不|舍去|排除)(?:\s+be|\s+equal\s+to)?"
    r"|\bwould\s+have\s+been"
    r"|\byour\s+(?:final\s+)?answer\s+(?:as|in|within|inside|like)|\bfor\s+example,?)$",
    re.IGNORECASE,
)
_CONTRAST = re.compile(
    r"(?:[,，(]\s*(?:and\s+|but\s+)?not|\brather\s+than|\binstead\s+of|而不是|而非)[\s$*_\\([{]*$",
    re.IGNORECASE,
)
_CLAUSE_START = re.compile(r"[.!?;](?=\s|$)|[。！？；\n]")
#: The patterns below need one of these words in an ASCII text; looking for them is cheap.
_GOVERNING_WORDS = split_words(
    "not never cannot t pas nicht non niet nie no ne neq false untrue unlikely impossible doubtful uncertain unclear unsure"
    " disagree deny wonder reject discard ignore disregard forget scrap cross replace instead back hope wish doubt wrong mistake might may could would naive someone"
    " some many people others students tempting thinks claims says believes guesses argues claimed said thought guessed que"
    " dass che if whether unless suppose supposing assume assuming imagine pretend case provided wenn falls been your"
    " example were maybe perhaps possibly probably likely guess suspect"
)
_ASCII_WORD = re.compile("[a-z]+")

# --- the text after an answer

#: Characters after an answer that are searched for a retraction.
MAX_CHARS = 2000
_WRONG = (
    r"(?:(?:wrong|incorrect|false|invalid|impossible|rejected|discarded|excluded|extraneous|ruled\s+out|my\s+first"
    r"|an?\s+(?:\w+\s+)?(?:mistake|error|misconception)|an?\s+(?:wrong|incorrect|false)\s+\w+"
    r"|not\s+(?:right|correct|true|valid|possible|a\s+solution|it|(?:the|my)\s+(?:\w+\s+)?answer)"
    r"|falsch|fausse?|faux|incorrect[ao]|sbagliat[ao]|errad[ao]|неверно|неправильно)\b(?!\s+(?:to|that|if|for|when)\b))"
)
_FAILS = (
    r"(?:(?:cannot|can['’]?t|could\s?n['’]t)\s+(?:possibly\b|be\s+(?:right|correct|true|the|it|valid|possible)\b)|does(?:n['’]t|\s+not)\s+(?:work|satisfy|hold|check|fit|match|make)"
    r"|fails\b|contradicts\b|would\s+have\s+been\b|contains\s+an?\s+(?:error|mistake))"
)
#: Words right after an answer that deny it, or the question mark of its sentence.
_DENIED_AFTER = re.compile(
    r"[\s$*_\\)\]}…]*(?:\.\.\.\s?)?(?:[?？]|[,，]?\s?[(（←]?\s*(?:(?:but\s+)?(?:this|that|which|it)\s+)?"
    rf"(?:(?:(?:is|was|seems|looks|must\s+be|should\s+be|ist|est|es|è|é|está)\s+)?{_WRONG}|{_FAILS}|would\s+be\s[^.\n]{{1,40}}\sif\b)"
    r"|\s?[,→—–-]\s?(?:wait|no|or\s+rather|i\s+mean|make\s+that)\b[\s,:]{0,3}[$(\[+-]{0,3}\\?\d"
    r"|[,，]?\s?[(（]?但?(?:这|它|其实)?是?(?:显然)?(?:不对|不是|是?错误?的?|应?舍去|不正确|不成立|不可能|では?な|では?あり|じゃな|は間違|[은는이가]?\s?(?:아니|아닙|틀)))",
    re.IGNORECASE,
)
#: A sentence takes an answer back if it calls it wrong, or if it hesitates and states nothing but
#: another value: `Wait, it is 13.` One that checks it (`Wait, let me verify: 5 + 7 = 12`) does not.
_SENTENCE_START = r"(?:[.!?;。！？；\n]|[-–—]\s)[\s*_\"')\]]{0,8}"
_HESITATION = (
    r"(?:(?:no(?=\s?[,.:!…–—-])|wait|actually|correction|edit|update|sorry|typo|oops|oh no|hold on|hm+|on second thoughts?|just kidding"
    r"|i changed my mind)\b"
    r"|不|等等|等一下|抱歉|其实)[\s,，.:!…–—-]{0,4}"
)
_THIS_IS_WRONG = rf"(?:that|this|it)(?:(?:['’]s|\s+(?:is|was|must\s+be))\s+{_WRONG}|\s+isn['’]t\s+(?:right|correct)|\s+{_FAILS})"
_CALLS_IT_WRONG = (
    r"(?:(?:(?:that|this|the|my|our)\s+)?(?:(?:above|previous|final)\s+)?(?:above|answer|result|solution)(?:\s+above)?\s+(?:is|was)\s+"
    rf"{_WRONG}|(?:that|this|it)(?:['’]s|\s+(?:is|was))\s+(?:wrong|incorrect|a\s+mistake|not\s+(?:right|correct))\b(?!\s+(?:to|that|if|for|when)\b)"
    r"|(?:that|this)\s+isn['’]t\s+(?:right|correct)\b"
    r"|there\s+(?:is|was)\s+an?\s+(?:error|mistake)\b|i\s+meant\s+(?:to\s+(?:write|say)\s+)?[$(\[+-]{0,3}\\?\d"
    r"|(?:please\s+)?(?:strike|scratch|ignore|disregard|forget)\s+(?:that|this|it|the\s+above|my\s+answer)\b"
    r"|i\s+(?:misread|miscounted|miscalculated|was\s+wrong|take\s+(?:that|it)\s+back)\b"
    r"|i\s+(?:made|see|found|have)\s+(?:an?|the|my|some)\s+(?:\w+\s+)?(?:error|mistake)s?(?=\s*(?:[.!]|$|,?\s+so\b))"
    r"|(?:[我这此]|刚才|上面|前面|上述|以上)?个?(?:答案|结果)?(?:是?不对|算错了|弄错了|错了|更正|有误|不正确|是错误?的)(?=[\s，,。：:！!、；]|$))"
)
_OTHER_VALUE = (
    r"(?:(?:it|that|this|the\s+[a-z]{1,10}|i|we)\s*"
    r"(?:['’]s|is|was|meant?|get|equals|(?:should|must|would)\s+be|has\s+to\s+be)\s+"
    r"(?:(?:actually|really|just)\s+)?|(?:正确答案)?(?:应该?)?[是为]?)\s*"
    r"[$(\[+-]{0,3}\\?\d[^\n.;。；]{0,20}(?:[.;。；\n]|$)"
)
_TAKEN_BACK = re.compile(
    f"{_SENTENCE_START}(?:(?:{_HESITATION}){{0,3}}{_CALLS_IT_WRONG}|(?:{_HESITATION}){{1,3}}(?:{_OTHER_VALUE}|{_THIS_IS_WRONG}"
    f"|[^.\\n]{{1,80}}\\b(?:so|hence|and)\\s+(?:it|this|that)\\s+is\\s+{_WRONG}))",
    re.IGNORECASE,
)
#: The next sentence may also call it wrong after `but` and the like, and in more words.
_TAKEN_BACK_NEXT = re.compile(
    rf"[\s$*_\\)\]}}]*{_SENTENCE_START}\s*(?:(?:but wait|but|however|unfortunately|so|therefore|thus|yet|on reflection|但是?|然而|可是)[\s,，]{{0,3}}){{0,2}}"
    rf"(?:{_CALLS_IT_WRONG}|{_THIS_IS_WRONG}|(?:this|that|my|the)\s+(?:value|approach)\s+{_FAILS})",
    re.IGNORECASE,
)
#: Blank lines are one, because the patterns above try each blank in several places.
_BLANK_LINES = re.compile(r"\n\s+")
_NOTHING_AFTER = re.compile(r"[\s$.)}\]*]*(?:\\[)\]])?[\s$.*]*$")


def _clause(before: str) -> str:
    return _CLAUSE_START.split(before[-CLAUSE_CHARS:].rpartition("\n")[2])[-1]


def _may_govern(text: str) -> bool:
    return not text.isascii() or not _GOVERNING_WORDS.isdisjoint(_ASCII_WORD.findall(text.lower()))


def governs(before: str) -> Literal["denies", "supposes", ""]:
    """Return what the clause before `answer is` does to the answer: `I doubt that` denies it, `if` supposes it.

    A clause of other words than those of a statement denies the answer: `Tom says that`, `a common wrong`.
    """
    if before.endswith('"'):  # a key of JSON
        return ""
    clause = _clause(before)
    if clause.strip(" *_#$").lower() in _USUAL_LEADS:
        return ""
    lead = _NO_DOUBT.sub("", _LEAD_START.split(clause)[-1])
    if _HEDGED.search(clause.removesuffix(lead)):
        return "denies"
    if _CJK.search(lead):
        governor = _CJK_GOVERNS.search(lead)
        return "" if governor is None else "supposes" if governor[1] else "denies"
    words = _LEAD_WORD.findall(lead.lower())
    if not _SUPPOSING.isdisjoint(words):
        return "supposes"
    is_reason = words and words[0] in _REASONS and not _GOVERNED_BOX.search(lead)
    return "" if is_reason or _LEAD_WORDS.issuperset(words) else "denies"


def is_doubted(sentence: str) -> bool:
    """Return whether a sentence asks, supposes or leaves open what it says."""
    return bool(DOUBT.search(sentence) or (_may_govern(sentence) and _GOVERNED.search(sentence)))


def is_contrast(before: str) -> bool:
    """Return whether a text ends in `, not` or the like, after which a wrong value stands."""
    tail = before[-40:]
    may_be = "not" in tail or "rather" in tail or "instead" in tail or "而" in tail
    return may_be and bool(_CONTRAST.search(tail))


def is_denied_after(after: str) -> bool:
    """Return whether a text after an answer denies it, or takes it back in a later sentence."""
    after = _BLANK_LINES.sub("\n", after[:MAX_CHARS])
    return bool(
        _DENIED_AFTER.match(after[:CLAUSE_CHARS])
        or _TAKEN_BACK_NEXT.match(after[:CLAUSE_CHARS])
        or _TAKEN_BACK.search(after)
    )


def is_box_denied(before: str, after: str) -> bool:
    """Return whether the text around a box denies, supposes, asks or takes back its content."""
    if not _NOTHING_AFTER.match(after[:CLAUSE_CHARS]) and is_denied_after(after):
        return True
    clause = _clause(before)
    phrase = ("nswer" in clause or "答案" in clause) and _ANSWER_IS.search(clause)
    if phrase and governs(clause[: phrase.start()]) == "denies":
        return True
    if not _may_govern(clause):
        return False
    lead = _BOX_LEAD.sub("", clause, count=1).rstrip()
    is_governed = _GOVERNED_BOX.search(lead) or _GOVERNED_CLAUSE.search(clause)
    return bool(is_governed or _NOT_BOX.search(lead))
