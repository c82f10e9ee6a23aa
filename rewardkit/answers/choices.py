"""Finds where a response states its choice: in the last box or `<answer>`, else in words.

`rewardkit.answers.option_letters` reads which options a text picks.

Words count only with `final_letter`. They are searched in this order:

* a last line of letters alone;
* the last statement of the answer: `The answer is (B)`, `Solution: Choice_B`, `it must be (D)`,
  `Choice B is the correct answer`, `答案：AC`, `本题选B`, `B是正确答案`;
* a last sentence that names an option as its result: `The clock shows (C) 5:30`, `面积为D`;
* a last line that is an option's text, if the options are known;
* verdicts on single options, if all affirmed ones agree: `B is correct`, `B项正确`;
* a first line that is an option, if no other option is named after it.

A letter that is denied, doubted, supposed or asked (`I doubt that the answer is B`, `如果答案是B`) is
not stated, and one that is taken back, or that another letter contradicts, is ambiguous.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from rewardkit.answers.denial import DENIAL, is_box_denied, is_denied_after, is_doubted
from rewardkit.answers.extract import boxes
from rewardkit.answers.option_letters import (
    AMBIGUOUS,
    DEFAULT_LETTERS,
    JOINT,
    OR,
    Letters,
    denies_letter,
    matching_options,
    read_gold,
    read_letter_list,
    read_letters,
    strip_lead_words,
    strip_markup,
)

__all__ = ["AMBIGUOUS", "DEFAULT_LETTERS", "final_choice", "read_gold", "read_letters"]

#: Most characters of a line after `The answer is`, and between two statements side by side.
MAX_LINE, MAX_GAP = 200, 80
#: Most statements and `<answer>` blocks that are read, from the last one back.
MAX_STATEMENTS, MAX_BLOCKS = 16, 4
#: Characters at the end that are searched for statements, and for the last sentence.
STATEMENT_CHARS, SENTENCE_CHARS = 20_000, 600
#: Characters before a statement, and after it, whose words may keep it from counting.
BEFORE_CHARS, AFTER_CHARS = 160, 1000

# These patterns match text after `strip_markup`.
_LETTERS = r"[(\[{*]{0,3}[A-Z]{1,10}(?![A-Za-z0-9])[)\]}*]{0,3}"
_LETTER_RUN = r"[(\[{]{0,3}(?:[A-Z]{1,10}|[a-z])(?![A-Za-z0-9])[)\]}]{0,3}(?:选?项)?"
_JOINT = rf"(?: ?(?:{JOINT})){{0,2}} ?"
_BE = r"(?:is|are|(?:must|should|has to|would|will)(?: then)? be)"
_COPULA = rf"{_BE}(?: (?:therefore|thus|hence|indeed|clearly|definitely|certainly|likely|most likely|both|also))?"
_BEFORE_LETTERS = rf"(?= ?(?:[Oo]ption |[Cc]hoice )?{_LETTERS})"

#: Words that state the answer before its letter, or, in a group, after it. A lookahead for their
#: first characters comes first, so that the alternatives are not tried at every position.
_STATEMENT = re.compile(
    r"(?<![A-Za-z])(?=[AaSsOoCcRrBbmIWwHhTti])(?:"
    r"(?i:answers?|solutions?|option|choice|(?:correct|right|best) (?:options|choices|letter)|ans\.?)"
    rf"(?![A-Za-z])[*_)\]】]{{0,2}}(?: ?(?:[:=]|(?i:{_BE})\b)"
    rf"|(?! ?[(\[]?[A-Z](?![A-Za-z]))(?:[ ,][^.:\n?!;]{{1,40}}?)?(?: (?i:{_BE})\b| ?(?:[-=]>|[-–—→])){_BEFORE_LETTERS})"
    r"|(?:must be|(?:I|We|we)(?:['’](?:ll|d)| will| would)? (?:choose|pick|select|go with))"
    rf"(?= )(?: answer)?{_BEFORE_LETTERS}"
    r"|(?:[Ss]o|[Hh]ence|[Tt]hus|[Tt]herefore),? "
    r"(?=(?:[Oo]ption |[Cc]hoice )?[(\[*]{0,2}[A-Z][)\]*]{0,2}\.?(?:\n|$))"
    rf"|({_COPULA} (?:the|my|our)(?: [a-z]+){{0,3}} (?:answer|choice|option|solution|one)s?\b))"
    r"|(?=[答正故应我可则即因所综最本该此选\n项才是为都均])(?:"
    r"(?:答案|正确选项|正确的(?=[是为选答])|选项(?=[是为] ?[(\[]?[A-Z][)\]]?(?![A-Za-z、,和])))"
    r"[*_)\]】]{0,2} ?(?:选项|应该?|就)?(?:[是为]|选择?)?:?"
    r"|(?:[故应我可则即]|因此|所以|综上|最终|[本该此]题),?(?:[本该此]题)?应?选择?:?|答:"
    rf"|选择?:?{_BEFORE_LETTERS}|\n选择?:?"
    rf"|((?:选?项)?(?:才?(?:是|(?<![认以])为)|[都均]是)(?:最?(?:正确|佳|终)|本题)?的?(?:答案|选项)))"
    r"|(?:[Aa]ntwort|[Rr]éponse|[Rr]espuesta|[Оо]твет|答えは|正解は|정답은)"
    rf"(?: correcte| correcta)?(?: ?:| ist| est| es|(?<=[は은])){_BEFORE_LETTERS}"
)
#: Words that affirm the option before them, or name it; it counts if no other option is affirmed.
_VERDICT = re.compile(
    rf"(?<![A-Za-z])(?:({_COPULA} (?:correct\b|right(?=[.,;!*]|$)))"
    rf"|(?:is|be|matches|corresponds to)(?= (?:[Cc]hoice|[Oo]ption)[ _]{{0,2}}{_LETTERS}))"
    rf"|(?=[选项是为都均也最正符])((?:选?项)?[是为都均也]?最?(?:正确|符合题意))"
)
_LETTERS_BEFORE = re.compile(rf"(?<![A-Za-z0-9])({_LETTERS}(?:{_JOINT}{_LETTERS}){{0,9}}) ?$")
#: Letters at the start of a line and what may follow them; a group holds what leaves them open.
_LEADING_LETTERS = re.compile(
    rf"({_LETTER_RUN}(?:{_JOINT}{_LETTER_RUN})*)(?:(,? ?(?:and/)?(?:or(?![a-z])|或者?|还是|/))"
    r"| ?(?:$|[.;:!。<]|[,、](?! ?[A-Z](?![A-Za-z ]))|(?:because|since|as|for|due|which|where)(?![a-z])"
    r"|因|由于|正确(?!吗)|不是|了|です|입니다|(?:not|rather than|instead of) (?=\(?[A-Z](?![A-Za-z])))| [-–—(])"
)
#: What leaves the letter before it open: another one, with its text or at the end, or `and others`.
_ALTERNATIVE = re.compile(
    rf"[^.。]{{0,30}}?(?:{OR}|,|、|also|as well as)(?:也?可能是)? ?[(\[]?[B-J](?:[)\]]|(?= ?\(|\W*$))"
    r"|[A-J, 、]*(?:等(?!于)|,? (?:etc|and (?:others|so on)))"
)
_LIST_ITEM = re.compile(r"\n\s*(?:[-*•]|[(\[]?\w[.)、:])")
#: A letter that is neither the article nor the pronoun.
_LETTER_NAME = re.compile(
    r"(?<![A-Za-z0-9])([B-HJ]|A(?! (?!(?:is|was)\b)[a-z]))(?![A-Za-z0-9])[)*]{0,3}(?:选?项)?"
)
#: A letter; it is an option's by its word or its signs: `option C`, `(C)`, `C)`, `C. its text`.
_MENTION = re.compile(
    r"(?<![A-Za-z0-9])(?P<word>(?:[Oo]ption|[Cc]hoice)[ _]{1,2}|选?项 ?)?(?P<open>[(\[])?"
    r"(?<![A-Za-z0-9])(?P<letter>[A-J])(?![A-Za-z0-9])(?P<close>[)\]]|[.:](?= ?\S))?"
)
#: Where an option's text may end before its sentence does.
_TEXT_END = re.compile(
    r"[.。!\n](?! ?\d)|,? (?:because|since|as|for)(?![a-z])|[,;](?! ?(?:or|and|not|which|but|和|或|不))"
)

# --- what keeps a statement from counting

#: The text up to the clause of a statement, which begins with its sentence or its conclusion.
_UP_TO_CLAUSE = re.compile(
    r".*(?:[.!?](?=\s)|[。!?;\n]|:(?!\d)|\b(?:[Tt]herefore|[Tt]hus|[Hh]ence|[Hh]owever)\b|[,;] ?but\b"
    r"|(?:^|,) ?(?:and )?[Ss]o\b(?! (?:sure|certain))|所以|因此|,?故|综上|于是|但)",
    re.DOTALL,
)
#: Words anywhere in a clause that suppose what it states.
_CONDITION = re.compile(
    r"(?<![A-Za-z])(?:if|unless|suppos(?:e|ing)|assum(?:e|ing)|imagine|maybe|perhaps|possibly)(?![A-Za-z])|如果|若|假[如设]|除非|只有当|也许|或许",
    re.IGNORECASE,
)
#: Words after its last comma that say that others state it, or that the letter is not that of the answer.
_NOT_THE_ANSWER = re.compile(
    r"(?<![A-Za-z])(?:except|other than|refuse|rejected|trap|opposite|least|prove|explain|to show|nobody|students?|people|said|first|second"
    r"|last|next|old|previous)(?![A-Za-z])|有人|同学|学生|老师|[他她谁]|证明|据说",
    re.IGNORECASE,
)
_NO_DOUBT = re.compile(
    r"(?:no|without(?: a| any)?|beyond) doubt|\b(?:I|we) (?:believe|think)\b|not only|most (?:likely|probable)|不难",
    re.IGNORECASE,
)
#: Words right before a statement that keep it from counting.
_DOUBT_BEFORE = re.compile(
    r"(?<![A-Za-z])(?:each|every|which|(?:all|any|every|no)(?:thing|one)?(?: options| choices)? but)"
    r"(?: (?:the|correct|right|final|best|option|choice|answer|only))*[ _*(]*$"
    r"|(?:[不非没勿别误错未]|为什么|为何|怎么|无法|不一定)[有是选应该能可要会的正确答案项]*$"
    r"|(?:(?<![A-Za-z])(?:statement|proposition|claim|conclusion|figure|graph|point|set|event)s?|说法|结论|命题|图|点) ?$",
    re.IGNORECASE,
)
#: Words after a statement or its letters that make a question or a condition of it.
_OPEN_AFTER = re.compile(
    rf"(?:[^.!。\n]|\.\.){{0,80}}[?吗]|(?:{_LETTERS})?,? ?(?:(?:only )?(?:if|when)|unless|provided|assuming|says?|said)(?![A-Za-z])"
)
_ASIDE = re.compile(r", ?(?!而?不是)")
#: A hesitation after a statement and the text in which it may name another letter: `Sorry, it is A`.
_CORRECTION = re.compile(
    r"(?:(?:[.,;!?。\n…-]|^)[\s.]*(?:(?i:no|wait|sorry|actually|correction|hmm+|oops|hold on|on second thoughts?"
    r"|I mean|I made an? (?:mistake|error)|or rather)\b|不对|等等|更正|抱歉)|, ?(?:but\b|但))([^.\n。]{0,60})"
)

# --- the last sentence

#: Closing words after an answer.
_COURTESY = re.compile(
    r"(?:(?<=[.!?。\n])\s*(?:(?:I )?[Hh]ope (?:this|it|that)|(?:Please )?(?:[Ll]et me know|[Ff]eel free)|Thank you"
    r"|希望|如有|如果[你您])[^\n.!?。]{0,200}[.!?。]*)+\s*$"
)
_SENTENCE_END = re.compile(r"(?<=[!?。;])|(?<![ (][A-Z]\.)(?<=\.)\s+|\n")
#: Words before an option that name it as the result.
_NAMES_OPTION = re.compile(
    r"(?:(?<![A-Za-z])(?:is|are|be|match(?:es)?|corresponds? to|agrees? with|left with|gives?(?: us)?|leads?(?: us)? to|namely|i\.e\.,?|choose|select|pick|by)"
    r"|(?:is|are|equals|[=为是]).{0,60}[,(=]|即|对应|为|是|选择?) ?(?:the )?[(]?$"
)
_IS = re.compile(r"(?:(?<![A-Za-z])(?:is|are|equals)|[为是:]|等于) ?")
#: A quantity, whose value cannot be a letter.
_QUANTITY_IS = re.compile(
    r"(?<![A-Za-z])(?:area|perimeter|volume|length|width|height|distance|measure|value|number|amount|sum"
    r"|total|ratio|difference|probability|percentage)(?![A-Za-z])[^.,;]{0,40} (?:is|equals) $"
    r"|(?:面积|体积|周长|长度?|度数|值|距离|数量?|个数|速度|概率)(?:等于|[为是]) ?$|\b[Tt]his (?:matches|is) $|^[Ii]t(?: is|['’]s) $"
)
#: Words in the last sentence that bound its result, or make a point or a list of options of it.
_NOT_A_RESULT = re.compile(
    r"(?<![A-Za-z])(?:than|at (?:least|most)|half|twice|between|moment|options?|choices?|contradicts?|rules?"
    r"|excludes?|points?|now|consider|vertex|cent(?:er|re))(?![A-Za-z])|[不非未点]|可能|至[少多]|[大小多少高低]于|心|集合",
    re.IGNORECASE,
)


class _Statement(NamedTuple):
    text: str
    letters: Letters
    start: int
    end: int


def final_choice(
    response: str,
    legal: frozenset[str],
    options: Mapping[str, str] | None = None,
    *,
    final_letter: bool = False,
) -> tuple[str, Letters]:
    r"""Return the text of a response's final answer, "" without one, and the letters it picks.

    The final answer is the last run of boxes, or all `<answer>` blocks and the boxes after them.
    Different answers side by side (`\boxed{A} or \boxed{B}`) are ambiguous, and a last box that its
    sentence denies picks nothing. What follows `</think>` takes precedence over the thought.

    `legal` has the letters of the question, `options` their texts if the row has them. Words count
    (`The answer is (B)`) with `final_letter`, if no box or block states a choice.
    """
    options = options or {}
    answer = response.rpartition("</think>")[2]
    marked = _marked_answers(answer) or _marked_answers(response)
    picks = [read_letters(text, legal, options) for text in marked]
    text, letters = (marked[-1], picks[-1]) if marked else ("", None)
    if letters is not None and {*picks} - {letters, None}:
        letters = AMBIGUOUS
    if isinstance(letters, frozenset) and _is_last_box_denied(response):
        letters = None
    if letters is None and final_letter:
        words = strip_markup(answer[-STATEMENT_CHARS:], STATEMENT_CHARS)
        statement = _read_words(words, legal, options)
        return (text, None) if statement[1] is None else statement
    return text, letters


def _is_last_box_denied(response: str) -> bool:
    start = max(response.rfind("\\boxed"), response.rfind("\\fbox"))
    end = response.find("}", start) + 1
    before, after = response[max(0, start - BEFORE_CHARS) : start], response[end:]
    if not 0 <= start < end:
        return False
    return bool(
        is_box_denied(before, after)
        or _DOUBT_BEFORE.search(before[-MAX_GAP:].rstrip(" $"))
        or _ALTERNATIVE.match(strip_markup(after[:MAX_GAP]))
    )


def _marked_answers(text: str) -> list[str]:
    parts = [part.partition("</answer>") for part in text.rsplit("<answer>", MAX_BLOCKS)[1:]]
    blocks = [block for block, close, _ in parts if close]
    answers = [" or ".join(boxes(block)) or block.strip() for block in blocks]
    answers.append(" or ".join(boxes(text.rpartition("</answer>")[2] if blocks else text)))
    return [answer for answer in answers if answer]


def _read_words(
    text: str, legal: frozenset[str], options: Mapping[str, str]
) -> tuple[str, Letters]:
    """Return the text and the letters of the choice that a text without markup states in words."""
    text = text[:-SENTENCE_CHARS] + _COURTESY.sub("", text[-SENTENCE_CHARS:]).rstrip()
    line = text.rpartition("\n")[2][-MAX_LINE:].strip()
    is_bare = line.isupper() and strip_lead_words(line) == line
    if is_bare and (letters := read_letter_list(line, legal)) is not None:
        return line, letters
    statements = [*islice(_statements(_STATEMENT, text, legal, options), 2)]
    result = _last_result(text, legal, options)
    if statements:
        last = statements[0]
        is_open = result not in (None, last.letters) or _is_revised(*statements, text=text)
        return last.text, AMBIGUOUS if is_open else last.letters
    if result is not None:
        return line, result
    if verdicts := [*_statements(_VERDICT, text, legal, options)]:
        agree = len({verdict.letters for verdict in verdicts}) == 1
        return verdicts[0].text, verdicts[0].letters if agree else AMBIGUOUS
    if options and (letters := _read_line(line, legal, options)):
        return line, letters
    return _read_opening(text, legal, options)


def _statements(
    pattern: re.Pattern[str], text: str, legal: frozenset[str], options: Mapping[str, str]
) -> Iterator[_Statement]:
    until = len(text)
    for match in reversed(deque(pattern.finditer(text), maxlen=MAX_STATEMENTS)):
        start, end = match.span()
        if match.lastindex:
            before = _LETTERS_BEFORE.search(text, max(0, start - BEFORE_CHARS), start)
            line, start = (before[1], before.start()) if before else ("", start)
            letters = read_letter_list(line, legal)
        else:
            line, _, more = text[end : min(until, end + MAX_LINE)].partition("\n")
            if not line.strip(" *_:") and not _LIST_ITEM.search(more.lstrip()):
                line = more.lstrip().partition("\n")[0]
            line = line.strip()
            letters = _read_leading_letters(line, legal, options)
        start += text[start] == "\n"
        before_it = text[max(0, start - BEFORE_CHARS) : start]
        if letters is None or _OPEN_AFTER.match(text[end : end + MAX_LINE].lstrip(" *_")):
            continue
        if not _is_in_doubt(before_it, text[start:end]):
            yield _Statement(line, letters, start, end)
            until = start


def _read_leading_letters(line: str, legal: frozenset[str], options: Mapping[str, str]) -> Letters:
    """Return the letters at the start of a line, or those of the whole line."""
    text = " ".join(strip_lead_words(line).split())
    if labelled := _labelled(text, options):
        return labelled
    match = _LEADING_LETTERS.match(text)
    letters = read_letter_list(match[1], legal) if match else None
    if match is None or letters is None:
        letters = read_letters(line, legal, options)
        return letters if letters is not None else _option_of(text, options) or None
    if match[2]:  # "B or 8 kg" picks B if 8 kg is its text
        own = matching_options(text[match.end() :], options, by_value=True)
        return letters if own == letters else AMBIGUOUS
    if _ALTERNATIVE.match(text, match.end(1)):
        return AMBIGUOUS
    if denies_letter(text[match.end(1) :].lstrip(" .:,、。-–—")):
        return None
    same = matching_options(line, options)
    return letters if not same or same == letters else AMBIGUOUS


def _labelled(text: str, options: Mapping[str, str]) -> Letters:
    """Return the letter at the start of a text that an option's text follows, None for other texts."""
    label = _MENTION.match(text)
    own = _option_of(text[label.end() :].lstrip(" .:,*"), options) if label else None
    if not label or not own:
        return None
    is_open = own != {label["letter"]} or _ALTERNATIVE.match(text, label.end())
    return AMBIGUOUS if is_open else own


def _option_of(text: str, options: Mapping[str, str]) -> frozenset[str]:
    """Return the options whose text, or else value, a text is or begins with."""
    ends = (end.start() for end in islice(_TEXT_END.finditer(text), 3))
    parts = (text[:end] for end in (*ends, len(text)) if options)
    same = (matching_options(part, options, by_value=True) for part in parts)
    return next(filter(None, same), frozenset())


def _last_result(text: str, legal: frozenset[str], options: Mapping[str, str]) -> Letters:
    """Return the letter that the last sentence names as its result, None for no or several."""
    sentence = _SENTENCE_END.split(text[-SENTENCE_CHARS:].rstrip(" .。*_"))[-1]
    mentions = [
        m for m in _MENTION.finditer(sentence) if m[0] != m["letter"] or m.end() == len(sentence)
    ]
    if len({mention["letter"] for mention in mentions}) != 1 or mentions[0]["letter"] not in legal:
        return None
    mention = mentions[-1]
    letter = frozenset(mention["letter"])
    before, after = sentence[: mention.start()], sentence[mention.end() :].strip(" ,;:*)")
    own = strip_markup(options.get(mention["letter"], ""))
    rest = (
        re.sub(rf"(?<![A-Za-z0-9]){re.escape(own)}(?![A-Za-z0-9])", "=", before) if own else before
    )
    clause = _last_clause(rest)
    *_, value = _IS.split(clause)
    is_followed, has_value = (_option_of(part, options) == letter for part in (after, value))
    if (after and not is_followed) or _NOT_A_RESULT.search(clause) or _is_in_doubt(rest, ""):
        return None
    if not (before if mention[0] == mention["letter"] else clause).strip(" ,*:("):
        return None if after and not before.strip() else letter
    is_own = rest != before or is_followed or has_value or not value
    states = (
        (mention["word"] and _NAMES_OPTION.search(clause))
        or ((mention["open"] or mention["close"]) and is_own)
        or _QUANTITY_IS.search(clause)
    )
    return letter if states else None


def _read_opening(
    text: str, legal: frozenset[str], options: Mapping[str, str]
) -> tuple[str, Letters]:
    """Return the option in the first line of a text whose other lines name no other option."""
    line, _, rest = text.partition("\n")
    label = _MENTION.match(line.strip())
    others = {mention["letter"] for mention in _MENTION.finditer(rest)}
    if not label or is_denied_after(text) or others & legal - {label["letter"]}:
        return "", None
    return line, _read_line(line.strip(), legal, options)


def _read_line(line: str, legal: frozenset[str], options: Mapping[str, str]) -> Letters:
    is_open = _OPEN_AFTER.match(line) or _CORRECTION.search(line, 1) or is_denied_after(line)
    if is_open or strip_lead_words(line) != line:
        return None
    return _read_leading_letters(line, legal, options)


def _last_clause(text: str) -> str:
    match = _UP_TO_CLAUSE.match(text)
    return text[match.end() :] if match else text


def _is_in_doubt(before: str, head: str) -> bool:
    """Return whether the words before letters, of which `head` states them, keep them from counting."""
    before, head = _NO_DOUBT.sub("", before), _NO_DOUBT.sub("", head)
    clause = _last_clause(before)
    part = clause.rpartition(",")[2] if "," not in head else ""
    return bool(
        _DOUBT_BEFORE.search(before[-MAX_GAP:])
        or _CONDITION.search(clause + head)
        or DENIAL.search(part + head)
        or _NOT_THE_ANSWER.search(part + head)
        or is_doubted(f"{part} answer {head}")
    )


def _is_revised(last: _Statement, before: _Statement | None = None, *, text: str) -> bool:
    """Return whether another statement beside the last one differs, or text after it revises it."""
    between = text[before.end : last.start] if before else ""
    # If only letters and filler words separate two statements, neither is the last one.
    differ = before and before.letters != last.letters and len(between) <= MAX_GAP
    if differ and read_letter_list(f"A {between} A", DEFAULT_LETTERS) is not None:
        return True
    if not isinstance(last.letters, frozenset):
        return False
    rest = text[last.end : last.end + AFTER_CHARS]
    own = [rest[m.end() :] for m in _LETTER_NAME.finditer(rest) if m[1] in last.letters]
    others = (_LETTER_NAME.findall(match[1]) for match in _CORRECTION.finditer(rest))
    return bool(
        is_denied_after(f". {rest}")
        or any(_ASIDE.match(after) and is_denied_after(after) for after in own[:1])
        or any(denies_letter(after[:MAX_GAP]) for after in own)
        or any({*letters} - last.letters for letters in others)
    )
