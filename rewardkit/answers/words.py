r"""Golds that are words.

A gold in words is met by the same words, by a truth value with a clause (`Yes, it is continuous`), by the
same date, and by a sentence whose other words have no content or are the question's (`Tom is the tallest`).
"""

import re
from collections.abc import Iterator

from rewardkit.answers import doubt
from rewardkit.answers.denial import DOUBT
from rewardkit.answers.open_answers.golds import Date, dates_in
from rewardkit.answers.open_answers.words import stem
from rewardkit.answers.open_answers.words import words as open_words
from rewardkit.answers.parsing.tokens import fold_case
from rewardkit.answers.parsing.tree import Node, num
from rewardkit.answers.parsing.vocabulary import split_words

MAX_CHARS = 200  # most characters of an answer, and of the end of a question
MAX_QUESTION_CHARS = 600
_MARKUP = re.compile(r"\\(?:text|mathrm|mbox|textbf)\s*\{|\\[ ,;!]|[${}*_`\"“”]|~")
#: A gold that is words, no name of a quantity such as `AB`.
_WORDS = re.compile("(?=.*(?:[A-Za-z][a-z]{2}|[\u4e00-\u9fff]))[^\\W\\d_]+(?:[ ,'’-]+[^\\W\\d_]+)*")
_CHINESE = re.compile("[\u4e00-\u9fff]")

_TRUTH_VALUES = {
    **dict.fromkeys("yes Y true T 是 是的 对 正确 √ ✓".split(), True),
    **dict.fromkeys("no N false F 否 错 错误 不是 不对 不正确 × ✗".split(), False),
}
_TRUTH = re.compile(
    r"(?si)(?:(?:it|this|that|the (?:statement|claim|assertion)) is |(?:这|这个|该)?(?:命题|说法|判断|结论)是?|这是)?"
    r"(?P<word>yes|no|true|false|[yntf]|是的?|否|不是|不对|不正确|对|错误?|正确|[√✓×✗])的?"
    r"(?:[\s,，.;:：。；—–-]*(?P<reason>\s(?:because|since|as)\s.+|(?:因为|由于).+)"
    r"|\s*[,，.;:：。；—–-]\s*(?P<clause>.+))?"
)
_DENIAL = re.compile(rf"{doubt.NOT}|\b(?:no|fails?|false)\b|[不没非无比]", re.IGNORECASE)
#: Words that, besides those of `doubt`, turn or restrict a statement, or join another one.
_TURN = re.compile(
    r"(?i)\b(?:yes|or|but|however|although|though|yet|wait|actually|probably|likely|would|when|for|except|only|some"
    r"|sometimes|almost|nearly|partly|than|both|depends|depending|wrong|incorrect|otherwise|hardly)\b|[?？/]"
    r"|[或但而且又除只既]|可能|大概|不过|其实|至少|至多|最多|超过"
)

_MONTH = "|".join(sorted({month[:3] for month in doubt.MONTHS}))
#: The name of a month, or the first parts of a date in figures.
_DATE = re.compile(rf"(?i)(?:{_MONTH})[a-z]*\.?\s\d|\d\S*\s(?:of\s)?(?:{_MONTH})|\d{{4}}[-年/]\d")
_CHINESE_DATE = re.compile(r"(\d{4})年(\d{1,2})月(\d{1,2})[日号]")

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
#: Words without content of their own, and the kinds of thing that a gold may name beside its value.
_EMPTY_WORDS = split_words(
    "a an the any it it's is was are were be this that these those he she they there we i so therefore thus hence then"
    " answer must get have on in at my our final correct"
)
_KIND_WORDS = split_words("number numbers solution solutions value values")
#: Words that say nothing without the kind after them.
_COUNTS = split_words("no not all every each many more some one two three both other")
#: Words with which a question asks for something that no part of the question says.
_MODIFIERS = split_words(
    "first second third fourth fifth last next previous other not no never least except false incorrect wrong loses lose"
)
_OFFERS = re.compile(r"([\w-]+),? or (?:the |an? )?([\w-]+)")
_SENTENCE_END = re.compile(r"(?<=[.?!])\s+(?=[A-Z$\\(])")
#: Signs of a formula, which an answer in words does not hold.
_FORMULA_SIGN = re.compile(r"[=<>+^\\|()\[\]]")
_OTHERS = re.compile(r"\b(?:and|neither|n?or|none)\b")
_CHINESE_LEAD = re.compile(
    r"^(?:所以|因此|故|答案|应?该?[是为]|它|该|此|这|其)+|(?:应?[是为]|的)+$"
)
_CHINESE_END = re.compile("(?:同学|条件|数|函数|三角形|的|。)?")
#: Words that make another one of the words after them, as in 充分必要 and 正相关.
_CHINESE_ADJECTIVE = re.compile(
    "(?:充分|必要|绝对|条件|严格|局部|等[腰边]|[锐直钝]角|[正负左右真假])$"
)

_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
_ASKED_SCALE = re.compile(
    r"(?i)\b(?:in|how many)\s(?:\w+\s(?:of\s)?){0,2}(thousand|million|billion)s?\b"
)
_ASKED_PERCENT = re.compile(r"%|\bper ?cent|百分")

_TEXT = r"(?:\\(?:text|mathrm|mbox)\s{0,3}\{|\\[ ,;]|\\q?quad|[\s$~])"
#: Where a value is taken on, why it holds, and how it is meant.
_REMARK = (
    r"(?:(?:(?:attained|achieved|reached|occur(?:s|ring)|(?:with )?equality)\b|at\b[^=]{1,20}=|当且仅当"
    r"|当[^()（）]{1,20}时|此时)[^()（）]{0,100}|(?:(?:since|because)\b|因为)[^()（）=]{0,100}"
    r"|(?:exact|final|square units|the only)(?: [a-z]{1,20})?)"
)
_REMARK_AFTER = re.compile(
    rf"{_TEXT}{{0,5}}(?:[(（]{_TEXT}{{0,5}}{_REMARK}[)）]"
    rf"|(?:[,，;；]|(?<=\s)(?=at\s)){_TEXT}{{0,5}}{_REMARK})[\s.。$}}]{{0,5}}$"
)
_UNSURE = re.compile(
    rf"\b(?:or|nor?t?|but|however|{doubt.MAYBE}|wrong|mistake|also|bound|least|most|than)\b"
    r"|;|；|[,，]\s?\d|[或不非错误]|可能"
)
#: A noun that says of what kind the value after it is.
_KIND = re.compile(
    r"(?:(?:the|an?)\s)?(?:ordered\s)?(?:function|number|integer|value|point|pair|triple|interval|set|line|curve"
    r"|circle|parabola|ellipse|matrix|vector|polynomial|expression|fraction)s?\s(?=[$\\(\[{\d+-]|[A-Za-z]\b)"
    r"|(?:函数|点|区间|集合|直线|曲线|圆|抛物线|椭圆|矩阵|向量|多项式)\s?(?=[$\\(\[{\d]|[A-Za-z])"
)
#: A change and its size: `decreased by 15%`.
_CHANGE = re.compile(
    r"(?i)(?:an?\s)?((?:in|de)creas|reduc|drop|rose|ris|gr[eo]w|fell|fall|declin)\w*\s(?:by|of)\s([-+$\\]{0,2}\d\S*)"
)


def same_words(pred: str, gold: str, question: str) -> bool:
    """Whether an answer states a gold that is words."""
    if max(len(pred), len(gold)) > MAX_CHARS:
        return False
    p, g = _plain(pred), _plain(gold)
    if (truth := _truth_value(g)) is not None:
        are_names = p.isascii() and len(p) == len(g) == 1  # another letter is another name
        return not are_names and _stated_truth(p) == truth
    if date := _date(g):
        return _date(p) == date
    if not _WORDS.fullmatch(g):
        return False
    states = _states_in_chinese if _CHINESE.search(g) else _states_in_english
    return states(p, g, question[-MAX_QUESTION_CHARS:])


def _plain(text: str) -> str:
    return " ".join(_MARKUP.sub(" ", text).split()).strip(" .。!！,，;；:：")


def _truth_value(word: str) -> bool | None:
    return _TRUTH_VALUES.get(word if len(word) == 1 else word.casefold())


def _turns(clause: str) -> bool:
    return bool(_TURN.search(clause) or DOUBT.search(clause))


def _stated_truth(text: str) -> bool | None:
    """Return what an answer such as `No, it is not` says; None if its clause turns or contradicts it.

    A reason may have any words; any other clause of a `no` must deny and that of a `yes` must not.
    """
    match = _TRUTH.fullmatch(text)
    if match is None or _turns(match["reason"] or match["clause"] or ""):
        return None
    truth = _truth_value(match["word"])
    is_consistent = not match["clause"] or truth is not bool(_DENIAL.search(match["clause"]))
    return truth if is_consistent else None


def _date(text: str) -> Date | None:
    """Return the date that a text is; None if it is more or less than a day of a month."""
    if not _DATE.search(text):
        return None
    parts = open_words(_CHINESE_DATE.sub(r"\1-\2-\3", text))
    dates = dates_in(parts)
    is_whole = len(dates) == 1 and dates[0][1] == (0, len(parts)) and dates[0][0].day
    return dates[0][0] if is_whole else None


def _denies(rest: str) -> bool:
    return _turns(rest) or bool(_DENIAL.search(rest) or _OTHERS.search(rest))


def _states_in_english(pred: str, gold: str, question: str) -> bool:
    p, g = (_content_words(text) for text in (pred, gold))
    starts = [i for i in range(len(p) - len(g) + 1) if p[i : i + len(g)] == g]
    if len(starts) != 1 or _FORMULA_SIGN.search(pred):
        return False
    before, after = p[: starts[0]], p[starts[0] + len(g) :]
    rest = [*before, *after]
    has_adverb = any(word.endswith("ly") for word in rest)
    if not rest or has_adverb or _denies(" ".join(rest)):
        return not rest
    # a word right before the gold's is its subject (`the series converges`), or changes it
    is_changed = before and f"{before[-1]} {g[0]}" in pred.casefold() and g[-1][-1:] != "s"
    return not is_changed and set(map(stem, rest)) <= _asked_words(question)


def _content_words(text: str) -> list[str]:
    words = list(map(fold_case, _WORD.findall(text)))
    content = [word for word in words if word.casefold() not in _EMPTY_WORDS]
    values = [word for word in content if word not in _KIND_WORDS]
    return content or words if _COUNTS.issuperset(values) else values


def _asked_words(question: str) -> set[str]:
    """Return the stems of the last sentence of a question, without names and the alternatives it offers."""
    *_, sentence = _SENTENCE_END.split(question.strip())
    words = _WORD.findall(sentence)
    if not _MODIFIERS.isdisjoint(map(str.casefold, words)):
        return set()
    offers = (word for pair in _OFFERS.findall(sentence) for word in pair)
    return {stem(word) for word in words if word.islower()} - set(map(stem, offers))


def _states_in_chinese(pred: str, gold: str, question: str) -> bool:
    before, _, after = pred.replace(" ", "").partition(gold)
    if gold not in pred or not _CHINESE_END.fullmatch(after) or _denies(before):
        return False
    if not (rest := _CHINESE_LEAD.sub("", before)):
        return True
    asked = re.sub(r"[\s$]", "", question)
    is_other = len(rest) == 1 or rest in re.split("[或、，,“”/（）]|还是", asked)
    is_other |= len(gold) == 1 and before[-1] not in "是为"  # 乙胜甲
    return rest in asked and not is_other and not _CHINESE_ADJECTIVE.search(rest)


def in_asked_scale(text: str, value: Node, question: str) -> Iterator[Node]:
    """Yield a value in the scale that its question asks for: `$94 million` in millions is 94."""
    *_, sentence = _SENTENCE_END.split(question[-MAX_QUESTION_CHARS:].strip())
    if value[0] == "percent" and _ASKED_PERCENT.search(sentence):
        yield value[1]
    number = value[1] if value[0] == "quantity" else value
    if number[0] == "num" and (scale := _ASKED_SCALE.search(sentence)) and scale[1].lower() in text:
        scaled = num(number[1] / _SCALES[scale[1].lower()])
        yield ("quantity", scaled, value[2]) if value[0] == "quantity" else scaled


def value_without_remark(text: str, question: str) -> str:
    """Return an answer without the words around its value that add nothing to it.

    A change is its size if the question has its word: `decreased by 15%` is `15%`.
    """
    if len(text) > MAX_CHARS:
        return text
    if (remark := _REMARK_AFTER.search(text)) and not _UNSURE.search(remark[0]):
        text = text[: remark.start()]
        text += "}" * (text.count("{") - text.count("}"))
    if kind := _KIND.match(text):
        text = text[kind.end() :]
    change = _CHANGE.fullmatch(text)
    return change[2] if change and (not question or change[1].lower() in question) else text
