"""What the words around an answer do to it: they deny, doubt, suppose, ask or take it back.

`answers.extract` asks about the text before and after a mark, `answers.prose` about a sentence without one.
`answers.doubt` has the words.
"""

import re
from typing import Literal

from rewardkit.answers import doubt
from rewardkit.answers.parsing.vocabulary import split_words

#: Words that join another value to an answer.
ALTERNATIVELY = f"(?:or|alternatively|otherwise|else|{doubt.MAYBE})"
_SIGNS = r"[\s$*_\\([{:：]*"

# --- a sentence

#: Words that deny what a sentence says, and words that doubt or ask it. `可能是` doubts, `可能的` does not.
DENIAL = re.compile(
    rf"(?i){doubt.NOT}|\b(?:neither|nor|kein|wrong|incorrect)\b|{doubt.CJK_NOT}|错误"
)
DOUBT = re.compile(
    rf"(?i)[?？][^\w?？]*$|\b(?:{doubt.MAYBE}|{doubt.IF}|unsure|could|might|(?-i:may)|guess|either|should have|let|assume|seems?|appears?"
    r"|possible(?=\W*$|\s+(?:answers?|that)\b)|supposed|used to|(?:says|claims|thinks)\s+(?:it|that)|exceeds?|tempting|had we|believes"
    r"|vielleicht|peut-être|quizás?|forse|talvez|возможно)\b"
    r"|可能[是为有]|猜|好像|似乎|答案(?:至[少多]|最[少多]|不?超过|[小大]于|接近)|也许|或许|如果|假设|若|^设|吗|かもしれ|もし|아마"
)

# --- a clause that governs the answer after it: `I don't think the answer is 12`

CLAUSE_CHARS = 120  # characters before an answer that are searched for such a clause
#: Words that may stand between the start of a clause and `answer` in a statement of it.
_LEAD_WORDS = split_words(
    "the a an my our this that its it it's i we one us is are am to at now here so thus hence therefore then and but"
    " which finally indeed also again in fact conclusion summary total overall can get gets got have obtain obtained"
    " find found conclude concluded know think believe see say means mean implies imply shows gives give giving proves proved turns out"
    " follows clear obvious sure certain confident confirm confirms deduce determine determined note arrive arrived"
    " end all together everything well ok okay yes consequently accordingly ultimately clearly obviously evidently simply just"
    " check checked verify verified seen shown easy easily be can must will should"
    " final correct right true best exact closest nearest integer whole numeric numerical simplified reduced required"
    " desired expected requested actual short main real definitive accurate decimal"
    " box boxed eos_token assistant solution response step leaving making makes with"
    " la le les el los die das der il lo o os donc ainsi alors por tanto entonces también daher somit folglich"
    " portanto assim então logo quindi dunque perciò итак поэтому значит следовательно finale finalement finalmente"
    " correcta correcte bonne corretta correta richtige endgültige правильный окончательный"
)
#: First words of a clause that gives a reason for the answer after it: `since x is odd the answer is 3`.
_REASONS = split_words("since because after by with using from given for to as in on under")
_SUPPOSES = re.compile(rf"\b(?:{doubt.IF}|let|ob|si)\b", re.IGNORECASE)
#: What denies, doubts or supposes the Chinese, Japanese or Korean clause after it.
_CJK_GOVERNS = re.compile(
    rf"不(?!难|等式|同|变|妨)|难说|看起来|证明|(?<![我们])认为|没|未|非|有人|他|她|某|学生|同学|怀疑|否认|误|错|难道|希望|{doubt.CJK_HEDGE}"
    rf"|({doubt.CJK_IF}|设|检验|验证)"
)
_CJK = re.compile(r"[\u3040-\u9fff\uac00-\ud7af]")
_LEAD_START = re.compile(
    rf"(?i)[.,:()\[\]{{}}$<>=\\|#→，：（）、✅]|\b(?:so|{doubt.HENCE}|then|and|but|which)\b"
)
NO_DOUBT = re.compile(
    r"\b(?:(?:there is |i have )?no|without(?: an?y?)?|beyond(?: any)?) doubt|not (?:hard|difficult) to|不难",
    re.IGNORECASE,
)
_LEAD_WORD = re.compile(r"[^\W\d]+(?:['’][a-z]+)?")
_THINK = r"(?:think|believe|say|see|know|mean|claim|expect|agree|accept|guess)s?"
_IS_NOT = (
    rf"{doubt.NOT}(?:\s+\w+ly|\s+quite)?"
    rf"(?:\s+(?:{_THINK}|sure|certain|clear|true|likely|possible|the\s+case))?"
)
_DOUBTS = (
    r"false|untrue|unlikely|impossible|doubtful|uncertain|unclear|unsure|disagree|deny|wonder|hope|wish"
    r"|reject|discard|ignore|disregard|forget|scrap|cross\s+out|replace|instead\s+of|(?:take|took)\s+back"
    r"|(?:do\s+not|don['’]t)\s+(?:write|put|use|answer)|(?:i|we|you|they|would|really|strongly)\s+doubt"
    r"|(?:wrong|mistake|no\s+reason)\s+to\s+\w+|no\s+(?:way|proof|evidence)"
    r"|pas\s+que|nicht,?\s+dass|no\s+creo\s+que|non\s+credo\s+che|не\s+думаю,?\s+что"
)
_OTHERS_SAY = (
    r"(?:might|may|naive\s+\w+|someone|some|many|people|others|students)\s+(?:\w+\s+)?"
    rf"(?:{_THINK}|claimed|said|thought|guessed)|(?:might|may|would|could)\s+(?:write|answer|say)"
    r"|tempting(?:\s+to(?:\s+\w+)?)?|(?:thinks|claims|says|believes|guesses|argues)"
)
#: What denies, doubts or supposes the clause after it, around a box.
_GOVERNS = (
    rf"{_IS_NOT}|\b(?:{_DOUBTS}|{_OTHERS_SAY}|{doubt.IF})"
    rf"|不(?:认为|觉得|相信|能说|敢说|确定|是说)|怀疑|否认|并非|误以为|未必|难道|有人[说认]\w?|{doubt.CJK_IF}|设"
)
#: Words between such a clause and its subject.
_BETWEEN = (
    r"(?:\b(?:that|the|my|our|your|this|its|a|la|die|el|das|final|correct|right|true|actual|real)\b"
    r"|最终|正确|最后|这道题|这题|本题|此题|该题|的|是|\s)*"
)
#: The subject, the verb and the signs before a box.
_BOX_LEAD = re.compile(
    r"(?i)(?:(?:\b(?:answer|result|value|solution|number|sum|total|it|(?<!['’])[a-z])|答案|结果)\s*)?"
    r"(?:\b(?:(?:must|would|should|could)\s+be|is|are|was|be|equals?|equal\s+to|exactly)|=|[是为])?"
    rf"{_SIGNS}$"
)
_HEDGED = re.compile(
    rf"(?i)(?:\b(?:{doubt.HEDGE})\s*,?|{doubt.CJK_HEDGE}|\b(?:not )?(?:false|wrong|incorrect|rejected|true(?<=not true)|untrue"
    r"|hypothetically|allegedly|supposedly|by mistake)[\s,:]*)$"
)
_GOVERNED_BOX = re.compile(rf"(?:{_GOVERNS}){_BETWEEN}$", re.IGNORECASE)
#: The same before a subject of several words: `I doubt that the number of ways is \boxed{12}`.
_GOVERNED_CLAUSE = re.compile(
    rf"(?i)(?:(?:{_GOVERNS})\s+that\s+(?:[a-z]+\s+){{1,7}}?(?:is|are|was|equals)"
    rf"|\bif\s+(?:[a-z]+\s+){{1,6}}?were){_SIGNS}$"
)
_ANSWER_IS = re.compile(rf"(?:\banswers?\s+(?:is|are|was)\b|答案[是为]?){_SIGNS}$", re.IGNORECASE)
#: The denial right before a box.
_NOT_BOX = re.compile(
    rf"(?i)(?:(?:{doubt.NOT}|\b(?:nie\s+jest)|\\neq?|≠|不(?:是|为|等于|可能)?|并非|绝不|舍去|排除)(?:\s+be|\s+equal\s+to)?"
    r"|\b(?:would\s+have\s+been|your\s+(?:final\s+)?answer\s+(?:as|in|within|inside|like)|for\s+example,?))$"
)
#: Words of the patterns above that govern only beside another word of them: `do not write`.
_COMMON = _LEAD_WORDS | _REASONS | split_words(
    "of equal you they s n ly do use like answer take put way within inside write reason possible quite really"
)  # fmt: skip
#: In an ASCII text these patterns need one of their other words; looking for them is cheap.
_GOVERNING_WORDS = {
    *re.findall(r"(?<![\\a-z])[a-z]+", f"{_GOVERNS}|{_NOT_BOX.pattern}|ne|neq|were")
} - _COMMON
_ASCII_WORD = re.compile("[a-z]+")
#: What most responses say before `answer is`: nothing is searched in it.
_USUAL_LEADS = frozenset(
    "|the|final|the final|therefore, the|therefore, the final|so the|thus, the".split("|")
)
_CLAUSE_START = re.compile(r"[.!?;](?=\s|$)|[。！？；\n]")

# --- the text after an answer

MAX_CHARS = 2000  # characters after an answer that are searched for a retraction
_NO_OBJECT = r"(?!\s+(?:to|that|if|for|when)\b)"
_IS_WRONG = (
    rf"(?:(?:{doubt.WRONG}|invalid|impossible|rejected|discarded|excluded|extraneous|ruled\s+out|my\s+first"
    rf"|an?\s+(?:\w+\s+)?(?:mistake|error|misconception)|an?\s+(?:{doubt.WRONG})\s+\w+"
    r"|not\s+(?:right|correct|true|valid|possible|a\s+solution|it|(?:the|my)\s+(?:\w+\s+)?answer)"
    rf"|falsch|fausse?|faux|incorrect[ao]|sbagliat[ao]|errad[ao]|неверно|неправильно)\b{_NO_OBJECT})"
)
_FAILS = (
    r"(?:(?:cannot|can['’]?t|could\s?n['’]t)\s+(?:possibly\b|be\s+(?:right|correct|true|the|it|valid|possible)\b)"
    r"|does(?:n['’]t|\s+not)\s+(?:work|satisfy|hold|check|fit|match|make)"
    r"|fails\b|contradicts\b|would\s+have\s+been\b|contains\s+an?\s+(?:error|mistake))"
)
_DIGIT = r"[$(\[+-]{0,3}\\?\d"
#: Words right after an answer that deny it, or the question mark of its sentence.
_DENIED_AFTER = re.compile(
    r"(?i)[\s$*_\\)\]}…]*(?:\.\.\.\s?)?(?:[?？]|[,，]?\s?[(（←]?\s*(?:(?:but\s+)?(?:this|that|which|it)\s+)?"
    rf"(?:(?:(?:is|was|seems|looks|must\s+be|should\s+be|ist|est|es|è|é|está)\s+)?{_IS_WRONG}|{_FAILS}"
    r"|would\s+be\s[^.\n]{1,40}\sif\b)"
    rf"|\s?[,→—–-]\s?(?:wait|no|or\s+rather|i\s+mean|make\s+that)\b[\s,:]{{0,3}}{_DIGIT}"
    rf"|[,，]?\s?[(（]?但?(?:这|它|其实)?是?(?:显然)?(?:{doubt.CJK_WRONG}|不是|是?错的?|应?舍去|不可能"
    r"|では?な|では?あり|じゃな|は間違|[은는이가]?\s?(?:아니|아닙|틀)))"
)
#: A sentence takes an answer back if it calls it wrong, or if it hesitates and states nothing but
#: another value: `Wait, it is 13.` One that checks it (`Wait, let me verify: 5 + 7 = 12`) does not.
_SENTENCE_START = r"(?:[.!?;。！？；\n]|[-–—]\s)[\s*_\"')\]]{0,8}"
_HESITATES = rf"(?:(?:{doubt.HESITATION})[\s,，.:!…–—-]{{0,4}})"
_THIS_IS_WRONG = (
    rf"(?:that|this|it)(?:(?:['’]s|\s+(?:is|was|must\s+be))\s+{_IS_WRONG}"
    rf"|\s+isn['’]t\s+(?:right|correct)|\s+{_FAILS})"
)
_CALLS_IT_WRONG = (
    r"(?:(?:(?:that|this|the|my|our)\s+)?(?:(?:above|previous|final)\s+)?(?:above|answer|result|solution)(?:\s+above)?"
    rf"\s+(?:is|was)\s+{_IS_WRONG}"
    rf"|(?:that|this|it)(?:['’]s|\s+(?:is|was))\s+(?:wrong|incorrect|a\s+mistake|not\s+(?:right|correct))\b{_NO_OBJECT}"
    r"|(?:that|this)\s+isn['’]t\s+(?:right|correct)\b"
    rf"|there\s+(?:is|was)\s+an?\s+(?:error|mistake)\b|i\s+meant\s+(?:to\s+(?:write|say)\s+)?{_DIGIT}"
    r"|(?:please\s+)?(?:strike|scratch|ignore|disregard|forget)\s+(?:that|this|it|the\s+above|my\s+answer)\b"
    r"|i\s+(?:misread|miscounted|miscalculated|was\s+wrong|take\s+(?:that|it)\s+back)\b"
    r"|i\s+(?:made|see|found|have)\s+(?:an?|the|my|some)\s+(?:\w+\s+)?(?:error|mistake)s?(?=\s*(?:[.!]|$|,?\s+so\b))"
    r"|(?:[我这此]|刚才|上面|前面|上述|以上)?个?(?:答案|结果)?"
    rf"(?:是?(?:{doubt.CJK_WRONG})的?|[算弄]?错了|更正)(?=[\s，,。：:！!、；]|$))"
)
_OTHER_VALUE = (
    r"(?:(?:it|that|this|the\s+[a-z]{1,10}|i|we)\s*"
    r"(?:['’]s|is|was|meant?|get|equals|(?:should|must|would)\s+be|has\s+to\s+be)\s+"
    r"(?:(?:actually|really|just)\s+)?|(?:正确答案)?(?:应该?)?[是为]?)\s*"
    rf"{_DIGIT}[^\n.;。；]{{0,20}}(?:[.;。；\n]|$)"
)
_TAKEN_BACK = re.compile(
    rf"(?i){_SENTENCE_START}(?:{_HESITATES}{{0,3}}{_CALLS_IT_WRONG}|{_HESITATES}{{1,3}}(?:{_OTHER_VALUE}|{_THIS_IS_WRONG}"
    rf"|[^.\n]{{1,80}}\b(?:so|hence|and)\s+(?:it|this|that)\s+is\s+{_IS_WRONG}))"
)
#: The next sentence may also call it wrong after `but` and the like, and in more words.
_TAKEN_BACK_NEXT = re.compile(
    rf"(?i)[\s$*_\\)\]}}]*{_SENTENCE_START}\s*"
    rf"(?:(?:but wait|but|however|unfortunately|yet|on reflection|so|{doubt.HENCE}|但是?|然而|可是)[\s,，]{{0,3}}){{0,2}}"
    rf"(?:{_CALLS_IT_WRONG}|{_THIS_IS_WRONG}|(?:this|that|my|the)\s+(?:value|approach)\s+{_FAILS})"
)
#: Blank lines are one, because the patterns above try each blank in several places.
_BLANK_LINES = re.compile(r"\n\s+")
_NOTHING_AFTER = re.compile(r"[\s$.)}\]*]*(?:\\[)\]])?[\s$.*]*$")


def _clause(before: str) -> str:
    return _CLAUSE_START.split(before[-CLAUSE_CHARS:].rpartition("\n")[2])[-1]


def governs(before: str) -> Literal["denies", "supposes", ""]:
    """Return what the clause before `answer is` does to the answer: `I doubt that` denies it, `if` supposes it.

    A clause of other words than those of a statement denies the answer: `Tom says that`, `a common wrong`.
    """
    if before.endswith('"'):  # a key of JSON
        return ""
    clause = _clause(before)
    if clause.strip(" *_#$").lower() in _USUAL_LEADS:
        return ""
    lead = NO_DOUBT.sub("", _LEAD_START.split(clause)[-1])
    if _HEDGED.search(clause.removesuffix(lead)):
        return "denies"
    if _CJK.search(lead):
        governor = _CJK_GOVERNS.search(lead)
        return "" if governor is None else "supposes" if governor[1] else "denies"
    if _SUPPOSES.search(lead):
        return "supposes"
    words = _LEAD_WORD.findall(lead.lower())
    is_reason = words and words[0] in _REASONS and not _GOVERNED_BOX.search(lead)
    return "" if is_reason or _LEAD_WORDS.issuperset(words) else "denies"


def is_governed(before: str) -> bool:
    """Return whether a text ends in words that deny, doubt or suppose what follows."""
    return bool(_GOVERNED_BOX.search(before) or _HEDGED.search(before))


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
    if clause.isascii() and _GOVERNING_WORDS.isdisjoint(_ASCII_WORD.findall(clause.lower())):
        return False
    verb = _BOX_LEAD.search(clause, max(0, len(clause) - 40))
    lead = clause[: verb and verb.start()].rstrip()
    is_long = "that" in clause or "were" in clause
    return bool(
        _GOVERNED_BOX.search(lead)
        or _NOT_BOX.search(lead)
        or (is_long and _GOVERNED_CLAUSE.search(clause))
    )
