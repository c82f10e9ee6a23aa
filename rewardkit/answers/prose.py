r"""The answer of a response without a mark: the statement of its last line or sentence.

An answer is a line that holds nothing else, or a sentence that states a result: `so x = 12`, `there are 12
ways`, `故共有12种`. It is the whole run of values with the words after it, never the last digits. A sentence
that denies, doubts, asks or only mentions a number does not state a result.
"""

import re
from typing import Literal, NamedTuple

from rewardkit.answers.denial import ALTERNATIVELY, DENIAL, DOUBT
from rewardkit.answers.doubt import CJK_HENCE, HENCE, MONTHS

TAIL_CHARS = 2000  # characters at the end of a response that are searched
#: Most words after a value at the end of its sentence, and of an answer in words.
MAX_WORDS_AROUND = 3
MAX_RUNS = 20  # most runs of values that are read, from the last one back
MAX_ASIDES = 3  # most asides with values at the end of a sentence: `12 km/h for car 2`
#: A span of mathematics. Dollar signs before digits are money.
MATH_SPAN = re.compile(
    r"\$\$(.{1,500}?)\$\$|\$(?!\s*\n|\d[^$\n]{0,100}\s\$)([^$]{1,500})\$(?!\d)"
    r"|\\\((.{1,300}?)\\\)|\\\[(.{1,300}?)\\\]",
    re.DOTALL,
)
#: Special tokens, and the emphasis of HTML and Markdown.
DECORATION = re.compile(
    r"<\|[^<>|\n]{1,30}\|>|</?(?:s|b|i|u|p|em|strong|br|div|span|center)\s?/?>"
    r"|(?<![\w)\]}])\*\*(?=\S)|(?<=\S)\*\*(?![\w(])"
)
#: A value in bold. If a response has one such value only, that is its answer.
_BOLD_VALUE = re.compile(r"\*\*([-+$(]?\d[^*\n]{0,40})\*\*")
_VALUE_NEXT = r"(?=[-+(\[]?[\d$\\])"
#: A value at the end that a contrast denies: `There are 12 ways, not 8.`
_DENIED_END = re.compile(
    rf"(?i),\s(?:not|não|pas|nicht|non)\s{_VALUE_NEXT}[^\s,;?？]{{1,40}}[\s.]*$"
)
#: A sentence that gives up the answer, not only a part of the work.
_UNKNOWN = re.compile(
    r"(?i)\b(?:(?:I|we) (?:cannot|can['’]t|do not|don['’]t)|it is impossible to) (?:tell|say|know|determine)"
    r"(?: (?:the|this) (?:answer|question|problem)| it)?\s*[.;!]|(?:无法|不能)(?:确定|回答)(?:答案)?[。！]",
)
#: End of a statement: the end of its sentence (but `12. Or 13` continues), a reason, or a value
#: that is denied (`12, not 13`).
STATEMENT_END = re.compile(
    r"(?i)[.。．；!！](?=[\"'*_`)\]]*(?:\s|$))"
    rf"(?!\s+(?:{ALTERNATIVELY}|it\s+(?:could|might|may))\b)"
    r"|(?<=[?？])(?=[\"'*_`)\]]*(?:\s|$))|。|;(?!\s*or\b)(?:\s|$)|です|である|입니다|이다"
    r"|,\s+(?:because|since|so|which|where)\b|\s(?:because|since)\s"
    r"|，(?=其中|因为|由于|所以|理由|此时|这|即)"
    rf"|[,(\s]\s?(?:(?:and|but)\s)?(?:not|não|pas|nicht|rather than|instead of)\s{_VALUE_NEXT}"
    rf"|[，,]?\s?(?:而不是|而非|不是)\s?{_VALUE_NEXT}"
)

_STOP = re.compile(r"(?<=[.．！!？?；])(?=\s|$)|(?<=[。！？；])|\s(?=¡)|;\s(?![A-Za-z]\w?\s?=)")
_CONTENTFUL = re.compile(r"[\W_]*[^\W_]")
#: A remark without a value: it speaks to the reader, exclaims, or says that the work is done.
_REMARK = re.compile(
    r"(?i)(?!.*[\d$\\])(?:.*(?:\b(?:you|your|me|te|vous|ihnen|dir|вам)\b|[!！]\W*$|[你您我祝谢]|お役|ください)"
    r"|\W*(?:so |and |this means (?:that )?)?(?:we(?:'re| are) done|done\b|q\.?e\.?d|any questions|is there (?:any|some)thing"
    r"|does (?:that|this|it) make sense|is (?:that|this|it) clear|(?:i )?hope\b|feel free|请随时|希望"
    r"|(?:this|that|which) (?:matches|agrees|confirms|completes|checks|makes sense|works|is (?:consistent|the only))"
    r"|(?:espero|j['’]espère|n['’]hésitez|hoffe|spero|надеюсь)))"
)
_GIVES_UP = re.compile(
    r"(?i)\b(?:sorry|give up|stuck|no idea|unclear to|incomplete|how m(?:any|uch)|what)\b|抱歉|多少|几"
)

_WORDS = re.compile(r"\s*(?:\$|\\text\s*\{)*[^\W\d_]{2,}(?:[\s,'’-]{1,3}[^\W\d_]{1,40}){0,7}\W*")
#: Words that introduce a conclusion.
_CONCLUSION = re.compile(
    rf"(?i)(?:\b(?:so|{HENCE}|finally|altogether|donc|ainsi|entonces|daher|somit|итак|значит|поэтому)\b|^(?:and|then)\b"
    r"|\bin (?:total|all|conclusion)\b|\b(?:this|that) means\b|\bwe conclude\b|\b(?:en|au) total"
    rf"|{CJK_HENCE}|可得|[,，]则|即|共|答[:：]|∴|всего|итого|insgesamt"
    r"|全部で|合計|모두|총|よって|したがって|ゆえに|따라서|그러므로)[,，、:：]?\s*"
)
_FILLERS = (
    r"(?: (?:a|an|the|about|approximately|approx|roughly|around|exactly|precisely|only|just|simply"
    r"|us|me|you|him|her|them|to|total|of|altogether|also|therefore|thus|then|now|number|value|(?:a|an|the) [a-z]{1,20} of))*$"
)
#: Words before a value that state it.
_STATING_WORDS = re.compile(
    r"(?:(?<!\S)(?:is|are|was|were|be|equals?|it['’]s|there['’]s|gives?|gets?|got|makes|remain|have|has|had|find"
    r"|conclude|obtain|that|yields?|answer|ans|result|output|solution|sum|total"
    r"|hay|há|il y a|es gibt|ci sono|ist|lautet|beträgt|est|es|è|é|son|sind|wynosi|равно|равн[ао]|равен)"
    rf"|等于|[:=为是有得需要用剩：]){_FILLERS}"
)
#: Words that state a value near the end of a sentence (`arrives at 10:45`, `costs 12 euros`), or no
#: words for a value alone.
_FINAL_VERB = re.compile(
    r"^(?:only)?$"
    r"|\S (?:at|to|after|(?:up|down|rise|rose|fall|fell|drop|drops|grew|grows?|(?:in|de)creases|(?:(?:in|de)creas|dropp)ed) by"
    r"|(?:cost|weigh|pay|need|take|earn|spend|score|save|make|leave|measure|last|contain|require|become|remain"
    r"|use|sell|buy|collect|receive|produce|travel|run|walk|drive|cover)(?:s|d|ed)?"
    rf"|paid|took|spent|made|sold|bought){_FILLERS}"
)
#: Words before a number that names something, is a bound, or is not stated.
_MENTION = re.compile(
    r"(?<!\S)(?:steps?|problem|cases?|equation|eq|theorem|lemma|figure|page|line|question|section"
    r"|chapter|part|example|table|exercise|no|formula|where|when|since|let|using|setting|substituting"
    r"|given|input|hint|note|consider|try|check|put|plug|least|most|than|between|over|under|nearly"
    r"|almost|from|within|(?:exclud|reject|discard|eliminat|ignor|remov|drop)(?:es?|s|ing)?)"
    rf":?{_FILLERS}|(?:大于|小于|超过|多于|少于|高于|低于|至少|至多|不足|不到|排除|舍去)$"
)
#: Words before a setting such as `for n = 12`, in contrast to the statement `sells it for 12`.
_SETTING = re.compile(r"(?<!\S)(?:for|with|by|of|at|from|in)$")
_CJK = "\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef"
_TOKEN = re.compile(rf"{MATH_SPAN.pattern}|[Ii]l y a|[{_CJK}]+|[^\s{_CJK}]+", re.DOTALL)
_MONTH = "|".join(map(str.title, MONTHS))
_WORD = re.compile(
    rf"\W*(?:\d+-)?(?!(?:{_MONTH})\W*$)[^\W\d_]{{2,}}(?:['’/-][^\W\d_]+)*\W*|\W*[aAI]\W*"
)
_VALUE = re.compile(rf"[\d&=+*/^<>≤≥≈√π∞°\\$×·]|^\W*(?:[A-Za-zΑ-ω]|{_MONTH})\W*$|^[-−÷]$")
_CONTENT = re.compile(r"[^\W_]|[∞∅]")
_JOINS = re.compile(r"and|or|to|by|[,，、和或且]")
_AND = re.compile(r"\b(?:and|or|but)\b|[和或且]")
_TRAILING_IS_THE_ANSWER = re.compile(
    r"\s(?:en|au|no) total\W*$|\s(?:is|are) (?:what\b.*|(?:the|our|my) (?:\w+ )?(?:answer|result|solution)s?\W*"
    r"|the (?:smallest|largest|least|greatest|minimum|maximum|required|desired|requested)(?: [a-z]+){1,6}\W*)$"
)
#: Words that begin an aside about a value: `12 km/h for car B`, `12 blocks that have 3 houses`.
_ASIDE = re.compile(
    r"(?:(?<=[(（,，])|\s?[(（,，])\s?(?:which is\s)?(?:attained|achieved|reached|occurring|when|where|此时|当|取|其中)[^;；]{0,60}$"
    r"|(?<![,，])\s(?:for|in|on|with|during|among|that|which|who)\s(?!base\b)[^,;:=和或]{0,60}$"
)
_TWO_VALUES = re.compile(r"\b(?:and|or|but|not|is|are|was|were)\b")
#: Arithmetic before its result.
_ARITHMETIC = re.compile(
    r"^[^=\d]{0,40}=(?:\s?[\d.,]{1,20}\s?[A-Za-z²³°%$€£]{0,12}\s?[-+*/×·÷]){1,9}\s?[\d.,]{1,20}\s?[A-Za-z²³°%]{0,12}\s?=(?=[^=]*$)"
    r"|^(?:[\d\s+\-*/×·().,%$£€^÷=]|(?<=[\d) ])x(?=\s?[(\d]))*=(?=[^=]*$)"
)
#: Three words in a row, outside TeX.
PROSE_WORDS = re.compile(r"(?<![\\A-Za-z{])[A-Za-z]{2,}(?:[\s,]+[A-Za-z]{2,}){2}")
_COPULA = re.compile(r"\b(?:is|are|was|were|be|it['’]s|there['’]s)\s+|[为是：]|:\s*", re.IGNORECASE)
_YES_OR_NO = re.compile(r"\W*(?:yes|no)\b,", re.IGNORECASE)


def last_statement(response: str, gold: str) -> tuple[str, Literal["line", "sentence"]] | None:
    """Return the statement at the end of a response and where it is; None without a statement.

    The last `TAIL_CHARS` characters are searched. Words count only if the gold answer is words.
    """
    tail = response[-TAIL_CHARS:]
    if _UNKNOWN.search(tail):
        return None
    sentence = _last_sentence(DECORATION.sub("", tail))
    statement = _stated(sentence, gold)
    if not statement and len({bold[1].strip(" .:") for bold in _BOLD_VALUE.finditer(tail)}) == 1:
        *_, bold = _BOLD_VALUE.finditer(tail)
        statement = _stated(_last_sentence(DECORATION.sub("", tail[: bold.end()])), "")
    if not statement:
        return None
    statement = statement.replace("\\$", "$") if MATH_SPAN.search(statement) is None else statement
    return statement, "line" if statement == strip_statement(sentence) else "sentence"


def _stated(sentence: str, gold: str) -> str:
    sentence = _DENIED_END.sub("", _TRAILING_IS_THE_ANSWER.sub("", sentence))
    if DOUBT.search(sentence) or sentence.count("{") != sentence.count("}"):
        return ""
    statement = _words_stated(sentence) if _WORDS.fullmatch(gold) else ""
    return statement or ("" if DENIAL.search(sentence) else _values_stated(sentence))


def strip_statement(text: str) -> str:
    """Return a statement stripped, and without its delimiters if it is one span of mathematics."""
    text = text.rstrip(" \t\r\n*_`#\"'✅∎■□≈~=.。．,，;；!").lstrip(" \t\r\n*_`#\"'≈~=，")
    math = MATH_SPAN.match(text)
    if not math or math.end() < len(text):
        return text
    content: str = next(filter(None, math.groups()))
    return content.rstrip(" \t\n.,").lstrip()


def _is_remark(sentence: str) -> bool:
    gives_up = DENIAL.search(sentence) or _GIVES_UP.search(sentence)
    return bool(_REMARK.match(sentence) and not gives_up)


def _last_sentence(text: str) -> str:
    text = MATH_SPAN.sub(lambda span: span[0].replace("\n", " "), text.strip()).strip()
    for line in filter(str.strip, reversed(text.split("\n"))):
        sentences = list(filter(_CONTENTFUL.match, _STOP.split(line)))
        stated = [sentence for sentence in sentences if not _is_remark(sentence)]
        if stated or not sentences:
            return stated[-1].strip() if stated else ""
    return ""


class _ValueRun(NamedTuple):
    start: int
    end: int
    before: str


def _words_stated(sentence: str) -> str:
    if _YES_OR_NO.match(sentence):
        return strip_statement(sentence)
    verb = max((verb.end() for verb in _COPULA.finditer(sentence)), default=0)
    statement = strip_statement(sentence[verb:])
    is_short = verb or len(statement.split()) <= MAX_WORDS_AROUND
    stated = is_short and _WORDS.fullmatch(statement) and not DENIAL.search(sentence, 0, verb)
    return statement if stated else ""


def _values_stated(sentence: str) -> str:
    if len(letter := strip_statement(sentence)) == 1:
        return letter
    if not (runs := _value_runs(sentence)[-MAX_RUNS:]):
        return ""
    last, stop = runs[-1], len(sentence)
    for _ in range(MAX_ASIDES):
        if len(runs) > 1 and (aside := _aside(sentence, runs[-2].end, last.start)):
            runs, last, stop = runs[:-1], runs[-2], aside
    hence = max((m.end() for m in _CONCLUSION.finditer(sentence, 0, last.start)), default=0)
    runs = [run for run in runs if run.start >= hence]
    is_equation = "=" in sentence[last.start : last.end]
    if _MENTION.search(last.before) or (is_equation and _SETTING.search(last.before)):
        return ""
    concludes = is_equation or (hence > 0 and len(runs) == 1)
    words_after = sentence[last.end : _aside(sentence, last.end, stop) or stop].split()
    ends_on_it = _FINAL_VERB.search(last.before) and len(words_after) <= MAX_WORDS_AROUND
    if not (concludes or ends_on_it or _STATING_WORDS.search(last.before)):
        return ""
    for run in runs:  # because `12 for John and 13 for Mary` states two values
        if run is last or (
            _STATING_WORDS.search(run.before) and _AND.search(sentence, run.end, last.start)
        ):
            break
    end = STATEMENT_END.search(sentence, last.end, stop)
    statement = sentence[run.start : end.start() if end else stop]
    if run.before and not MATH_SPAN.match(statement):
        statement = _ARITHMETIC.sub("", statement)
    return strip_statement(statement)


def _aside(sentence: str, start: int, stop: int) -> int:
    """Return where an aside from `start` to `stop` begins; 0 without one."""
    aside = _ASIDE.search(sentence, start, stop)
    return aside.start() if aside and not _TWO_VALUES.search(aside[0]) else 0


def _value_runs(clause: str) -> list[_ValueRun]:
    """Return the runs of values of a clause; `and`, `or` and commas between values join them."""
    runs: list[_ValueRun] = []
    words: list[str] = []
    for token in _TOKEN.finditer(clause):
        if not _VALUE.search(token[0]) or _WORD.fullmatch(token[0]):
            words.append(token[0].strip(",.;!*_\"'()[]").lower() or token[0])
            continue
        if runs and all(map(_JOINS.fullmatch, words)):
            runs[-1] = runs[-1]._replace(end=token.end())
        else:
            runs.append(_ValueRun(token.start(), token.end(), " ".join(words[-8:])))
        words = []
    return [run for run in runs if _CONTENT.search(clause, run.start, run.end)]
