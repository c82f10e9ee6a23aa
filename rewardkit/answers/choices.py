r"""Finds where a response states its choice, and reads which options of the question it picks.

An answer is a list of letters in any typesetting (`AC`, `(A)`, `\text{A}`, `A、C`, `A和C`, `选A`), an
option's letter with its text (`A. 980万元`), or the option's text alone. A list of letters may also
hold separators and a few filler words (`the answer is`, `正确答案是`) and nothing else, so that
`Apple` is not A.

* `A or C` and `A/C` are ambiguous, and so is a letter with a text that differs from its known option's, or a
  text that two options share. Short mathematics is compared by its value: `\frac12` is the option `1/2`.
* A rejected letter does not count: `~A`, `\cancel{A}` and `(A) is wrong` pick nothing.
* No letter occurs twice in a run (`AAA` is a rating), and small letters ascend (`bad` is a word).

The answer stands in the last box or `<answer>`. Words count only with `final_letter`, in this order:

* a last line of letters alone;
* the last statement of the answer: `The answer is (B)`, `it must be (D)`, `答案：AC`, `B是正确答案`;
* a last sentence that names an option as its result: `The clock shows (C) 5:30`;
* verdicts on single options, if all affirmed ones agree: `B is correct`, `B项正确`;
* a last line, or a first one after which no other option is named, that is an option.

A letter that is denied, doubted, supposed or asked (`I doubt that the answer is B`, `如果答案是B`) is
not stated, and one that is taken back, or that another letter contradicts, is ambiguous.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from string import ascii_uppercase
from typing import Any, NamedTuple, TypeAlias
from unicodedata import normalize

from rewardkit.answers.denial import (
    DENIAL,
    DOUBT,
    NO_DOUBT,
    is_box_denied,
    is_denied_after,
    is_governed,
)
from rewardkit.answers.doubt import CJK_HENCE, HENCE, HESITATION, OR
from rewardkit.answers.equal import compare
from rewardkit.answers.extract import boxes

#: The letters of a question whose options are not known; MMLU-Pro goes up to J.
DEFAULT_LETTERS = frozenset("ABCDEFGHIJ")
#: Most characters of an answer; and of mathematics, and most options, that are compared by value.
MAX_CHARS, MAX_FORMULA, MAX_OPTIONS = 4096, 120, 10

AMBIGUOUS = object()  # marks an answer that leaves open which options it picks
#: The letters that an answer picks, `AMBIGUOUS`, or None for no choice.
Letters: TypeAlias = frozenset[str] | object | None

_OR = f"[/|]|{OR}"
#: Signs and words that join letters. `A+C` is a list; a caller rules out that it is a sum.
JOINT = rf"{_OR}|[,;、&]|\+(?=\s?[(\[]?[A-Za-z])|(?<![A-Za-z])and(?![A-Za-z])|以及|[和及与跟]"
_FILLER = (
    r"(?<![A-Za-z])(?:the|my|final|correct|right|best|answers?|options?|choices?|is|are|both|either|so"
    r"|therefore|thus|hence|indeed|clearly|definitely|certainly|but|rather)(?![A-Za-z])"
    r"|正确|最终|最佳|答案|选项|选择|因此|所以|综上|本题|该题|而是|应该|[两三四五]?项|(?<!还)是|[故应选为的都均对即而]"
)
_WRAPPER = re.compile(
    r"\\(?:text(?:[a-z]{2}|normal)?|math(?:[a-z]{2,3}|normal)|[mf]box|boxed|boldsymbol|bm"
    r"|operatorname|underline|emph)(?![A-Za-z])\s*\{([^{}]*)\}"
)
#: A `~` before a letter is a space after other text, and a negation at the start.
_TEX_SPACE = re.compile(
    r"\\[ ,;:!\n\\]|\\q?quad(?![A-Za-z])"
    r"|~(?!\s?[({$]{0,2}[A-Za-z](?![A-Za-z]))|(?<=[^\s({\[$~:])~"
)
_MARKUP = re.compile(
    r"\\(?:left|right|displaystyle|[lL]arge|bf|it|rm)(?![A-Za-z])|\\(?=[$%&#_{}()\[\]])|\$|\*\*|__|`"
)
_OR_WORD = re.compile(_OR, re.IGNORECASE)
_FILLER_WORD = re.compile(_FILLER, re.IGNORECASE)
_SEPARATOR = re.compile(rf"(?:[\s.:。()\[\]{{}}《》【】\"'“”‘’*_]|{JOINT})+", re.IGNORECASE)
_LEAD_WORDS = re.compile(
    rf"(?i)(?:[\s:,。*_]|{_FILLER}"
    r"|(?:letter|figure|picture|diagram|image|graph) (?=[(\[]?[A-Z](?![A-Za-z])))*"
)
_REJECTION = re.compile(
    r"(?:不(?:应该?|能|该|可)?(?:选择?|是)|排除|(?<![A-Za-z])not)\s*"
    r"\(?[A-Za-z](?:\s*[,、和及]\s*[A-Za-z])*(?![A-Za-z])\)?"
)
_WRONG = r"(?:wrong|incorrect|eliminated|excluded|rejected|ruled out)(?![A-Za-z])"
#: Words that say that the letter before them is wrong; `short` if they may be an option's text.
_DENIAL = re.compile(
    r"(?i)[\s,(]*(?:(?:which|this|that) |这)?(?:(?:is|are|was|were)(?:(?:n['’]t| not| never) (?:the |an? |my )?"
    r"(?:correct|right|best|answers?|choices?|options?|it)(?![A-Za-z])"
    rf"|(?: \w+)? (?:{_WRONG}|(?:false|invalid|impossible|a distractor)(?![A-Za-z])))"
    r"|是(?:错|不[正对])"
    rf"|(?P<short>{_WRONG}|(?:probably |certainly |definitely )?not(?: really| quite)?\W*$|不(?:正确|对|成立)"
    r"|不(?:是|能选|应选|选)(?!\s*\(?[A-Za-z])|错误?的|有误|被?排除))"
)
_LABEL = re.compile(
    r"(?<![^\s,;、。])[(\[]?([A-Za-z])(?:[)\]][.:、]?| ?[.:、]|(?<=[A-Z])(?= \([^()]*\)[.。]?$))"
)
_HEDGE = re.compile(rf"(?:{_OR})\s*\(?[A-Z](?![A-Z])|、\s?[A-Z](?![A-Z]| ?[.:)])", re.IGNORECASE)
#: Text after a letter that is not a label: `A. = 3`, or `(C), 4397` with a value beside it.
_NOT_AN_OPTION_TEXT = re.compile(r"[+=^*?]|[,;]\s*[-\d$\\]")
_OPTION_LINE = re.compile(r"^\s*\(?([A-J])[.:)] *(.+)$", re.MULTILINE)
_TRAILING_SIGNS = ",;、.。和及与"
_FORMULA = re.compile(r"[\d\\=+*/^<>]")
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}|[\u4e00-\u9fff]{2}")


def read_letters(
    text: str, legal: frozenset[str], options: Mapping[str, str] | None = None
) -> Letters:
    """Return which of the `legal` letters an answer picks; `AMBIGUOUS` if it leaves them open, else None."""
    plain = strip_markup(text)
    letters = read_letter_list(plain, legal)
    if options:
        return _read_with_options(plain, options, letters)
    return _read_labels(plain, legal) if letters is None else letters


def read_gold(text: str, legal: frozenset[str]) -> frozenset[str] | None:
    """Return the letters of a gold in upper case, with any separators; None for any other text."""
    plain = strip_markup(text)
    letters = read_letter_list(plain, legal) if plain.isupper() else None
    return letters if isinstance(letters, frozenset) else None


def option_texts(options: Any) -> dict[str, str] | None:
    """Return the text of each option by letter from a list, a mapping or labelled lines, else None."""
    if hasattr(options, "tolist"):  # pandas reads a list of a parquet file as an array
        options = options.tolist()
    if isinstance(options, str):
        options = dict(_OPTION_LINE.findall(options)) if "\n" in options else None
    if isinstance(options, (list, tuple)):
        options = dict(zip(ascii_uppercase, options, strict=False))
    if not isinstance(options, Mapping):
        return None
    by_letter = {str(key).strip().upper(): str(t) for key, t in options.items() if t is not None}
    return by_letter if by_letter and by_letter.keys() <= set(ascii_uppercase) else None


def strip_markup(text: str, longest: int = MAX_CHARS) -> str:
    """Return the text without markup of TeX and Markdown; "" if it is longer than `longest`."""
    if len(text) > longest:
        return ""
    if not text.isascii():
        text = normalize("NFKC", text)[-longest:]
    if "\\" in text or "~" in text:
        text = _TEX_SPACE.sub(" ", text)
        for _ in range(4):  # deeper nesting than \textbf{\text{A}} does not occur
            text = _WRAPPER.sub(r"\1", text)
    return _MARKUP.sub("", text).strip()


def read_letter_list(plain: str, legal: frozenset[str]) -> Letters:
    """Return the letters of a text that holds only letters, separators and fillers, else None."""
    text, noise = _FILLER_WORD.subn(" ", _REJECTION.sub(" ", plain))
    runs = [run for run in _SEPARATOR.split(text) if run]
    letters = frozenset("".join(runs).upper())
    are_runs = all(
        len(set(run)) == len(run) and (run.isupper() or (run.islower() and [*run] == sorted(run)))
        for run in runs
    )
    if not runs or not letters <= legal or not are_runs:
        return None
    if noise and not all(map(str.isupper, runs)):  # "a" of "is a correct option" is an article
        return None
    return AMBIGUOUS if len(letters) > 1 and _OR_WORD.search(text) else letters


def strip_lead_words(plain: str) -> str:
    """Return a text without its leading filler words: `A` of `the answer is A`."""
    return _LEAD_WORDS.sub("", plain, count=1)


def denies_letter(text: str, *, has_stop: bool = False) -> bool:
    """Whether the text after a letter denies it; after `B.` (`has_stop`) a short `不正确` is an option's text."""
    denial = _DENIAL.match(text)
    return denial is not None and not (has_stop and denial["short"])


def matching_options(
    text: str, options: Mapping[str, str], *, by_value: bool = False
) -> frozenset[str]:
    """Return the letters of the options with this text, or if there is none, with its value."""
    key = _text_key(text)
    same = [letter for letter in options if key and key == _option_key(letter, options[letter])]
    text = text.strip(" \n" + _TRAILING_SIGNS)
    if not same and by_value and len(options) <= MAX_OPTIONS and _is_formula(text):
        own = {letter: _text_without_label(letter, option) for letter, option in options.items()}
        formulas = filter(lambda letter: _is_formula(own[letter]), own)
        same = [letter for letter in formulas if compare(text, own[letter]).outcome == "equal"]
    return frozenset(same)


def _labels(text: str) -> list[re.Match[str]]:
    labels = list(_LABEL.finditer(text))
    return labels if labels and labels[0].start() == 0 else []


def _read_labels(plain: str, legal: frozenset[str]) -> Letters:
    text = strip_lead_words(plain)
    labels = _labels(text)
    if not labels or labels[0][1] not in legal:
        return None
    rest = text[labels[0].end() :].lstrip()
    has_stop = text[0] == labels[0][1] != labels[0][0]
    if _NOT_AN_OPTION_TEXT.match(rest) or denies_letter(rest, has_stop=has_stop):
        return None
    if _HEDGE.search(text) or _OR_WORD.match(rest):
        return AMBIGUOUS
    return legal.intersection(label[1] for label in labels)


def _read_with_options(plain: str, options: Mapping[str, str], letters: Letters) -> Letters:
    """Return the letters that a text picks of known options; `letters` is its reading as a list."""
    text = strip_lead_words(plain)
    labels = _labels(text)
    first = labels[0][1] if labels else text[:1]
    rest = text[labels[0].end() if labels else 1 :]
    ends = [label.start() for label in labels[1:]] + [len(text)]
    items = [(label[1], text[label.end() : end]) for label, end in zip(labels, ends, strict=False)]
    for pairs in ([(first, rest)], items):
        if pairs and all(
            letter in options and letter in matching_options(own, options, by_value=True)
            for letter, own in pairs
        ):
            return frozenset(letter for letter, _ in pairs)
    same = matching_options(plain, options)
    if letters is None:
        is_labelled = labels and first in options
        same = same or matching_options(text, options, by_value=not is_labelled)
        return same if len(same) == 1 else AMBIGUOUS if same or is_labelled else None
    if letters == frozenset(text[:1]) or labels:  # "A. 对" is ambiguous if A is "错"
        same = matching_options(rest, options) or same
    # An option's text may be a list of letters: "A和C", or "II" if there is an option I.
    return AMBIGUOUS if same and same != letters and len(plain) > 1 else letters


def _is_formula(text: str) -> bool:
    is_short = len(text) <= MAX_FORMULA and _FORMULA.search(text)
    return bool(is_short) and len(_WORD.findall(text)) <= 2


def _text_without_label(letter: str, option: str) -> str:
    label = _LABEL.match(option)
    return option[label.end() :].strip() if label and label[1] == letter else option.strip()


@lru_cache(maxsize=4096)  # because RL samples many answers to one question
def _option_key(letter: str, option: str) -> str:
    return _text_key(_text_without_label(letter, strip_markup(option)))


def _text_key(plain: str) -> str:
    """Return the key by which texts are compared, without spaces, case and trailing conjunction."""
    text = "".join(plain.replace("~", "").split()).casefold().rstrip(_TRAILING_SIGNS)
    return text.removesuffix("and").rstrip(_TRAILING_SIGNS)


# --- where a response states its choice

#: Most characters of a line after `The answer is`, and between two statements side by side.
MAX_LINE, MAX_GAP = 200, 80
#: Most statements and `<answer>` blocks that are read, from the last one back.
MAX_STATEMENTS, MAX_BLOCKS = 16, 4
#: Characters at the end that are searched for statements, and for the last sentence.
STATEMENT_CHARS, SENTENCE_CHARS = 10_000, 600
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
    rf"[^.。]{{0,30}}?(?:{_OR}|,|、|also|as well as)(?:也?可能是)? ?[(\[]?[B-J](?:[)\]]|(?= ?\(|\W*$))"
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
    rf"(?s)\A.*(?:[.!?](?=\s)|[。!?;\n]|:(?!\d)|\b(?i:{HENCE}|however)\b|[,;] ?but\b"
    rf"|(?:^|,) ?(?:and )?[Ss]o\b(?! (?:sure|certain))|,?(?:{CJK_HENCE})|但)"
)
#: Words after its last comma that say that others state it, or that the letter is not that of the answer.
_NOT_THE_ANSWER = re.compile(
    r"(?i)(?<![A-Za-z])(?:except|other than|refuse|rejected|trap|opposite|least|prove|explain|to show|nobody|students?|people|said|first|second"
    r"|last|next|old|previous)(?![A-Za-z])|有人|同学|学生|老师|[他她谁]|证明|据说"
)
_NO_DOUBT = re.compile(
    rf"(?i){NO_DOUBT.pattern}|\b(?:I|we) (?:believe|think)\b|not only|most (?:likely|probable)"
)
#: Words right before a statement that keep it from counting.
_DOUBT_BEFORE = re.compile(
    r"(?i)(?<![A-Za-z])(?:each|every|which|(?:all|any|every|no)(?:thing|one)?(?: options| choices)? but)"
    r"(?: (?:the|correct|right|final|best|option|choice|answer|only))*[ _*(]*$"
    r"|(?:[不非没勿别误错未]|为什么|为何|怎么|无法|不一定)[有是选应该能可要会的正确答案项]*$"
    r"|(?:(?<![A-Za-z])(?:statement|proposition|claim|conclusion|figure|graph|point|set|event)s?|说法|结论|命题|图|点) ?$"
)
#: Words after a statement or its letters that make a question or a condition of it.
_OPEN_AFTER = re.compile(
    rf"(?:[^.!。\n]|\.\.){{0,80}}[?吗]|(?:{_LETTERS})?,? ?(?:(?:only )?(?:if|when)|unless|provided|assuming|says?|said)(?![A-Za-z])"
)
_ASIDE = re.compile(r", ?(?!而?不是)")
#: A hesitation after a statement and the text in which it may name another letter: `Sorry, it is A`.
_CORRECTION = re.compile(
    rf"(?:(?:[.,;!?。\n…-]|^)[\s.]*(?i:{HESITATION}|(?:I mean|I made an? (?:mistake|error)|or rather)\b|更正)"
    r"|, ?(?:but\b|但))([^.\n。]{0,60})"
)

# --- the last sentence

_SENTENCE_END = re.compile(r"(?<=[!?。;])|(?<![ (][A-Z]\.)(?<=\.)\s+|\n")
_IS = re.compile(r"(?:(?<![A-Za-z])(?:is|are|equals)|[为是:]|等于) ?")
#: Words in the last sentence that bound its result, or make a point or a list of options of it.
_NOT_A_RESULT = re.compile(
    r"(?i)(?<![A-Za-z])(?:than|at (?:least|most)|half|twice|between|moment|options?|choices?|contradicts?|rules?"
    r"|excludes?|points?|now|next|consider|vertex|cent(?:er|re))(?![A-Za-z])|[不非未点]|可能|至[少多]|[大小多少高低]于|心|集合"
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
    """Return the text of a response's final answer, "" without one, and the letters it picks.

    The final answer is the last run of boxes, or all `<answer>` blocks and the boxes after them; different
    ones are ambiguous. What follows `</think>` takes precedence over the thought. Words count
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
    return 0 <= start < end and bool(
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
    line = text.rpartition("\n")[2][-MAX_LINE:].strip()
    is_bare = line.isupper() and strip_lead_words(line) == line
    if is_bare and (letters := read_letter_list(line, legal)) is not None:
        return line, letters
    result = _last_result(text, legal, options)
    if statements := [*islice(_statements(_STATEMENT, text, legal, options), 2)]:
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
    line, _, rest = text.partition("\n")
    label = _MENTION.match(line.strip())
    others = {mention["letter"] for mention in _MENTION.finditer(rest)} & legal
    if not label or is_denied_after(text) or others - {label["letter"]}:
        return "", None
    return line, _read_line(line.strip(), legal, options)


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
    label = _MENTION.match(text)
    own = label and _option_of(text[label.end() :].lstrip(" .:,*"), options)
    if label and own:
        is_open = own != {label["letter"]} or _ALTERNATIVE.match(text, label.end())
        return AMBIGUOUS if is_open else own
    match = _LEADING_LETTERS.match(text)
    letters = read_letter_list(match[1], legal) if match else None
    if match is None or letters is None:
        letters = read_letters(line, legal, options)
        return letters if letters is not None else _option_of(text, options) or None
    if match[2] or _ALTERNATIVE.match(text, match.end(1)):
        return AMBIGUOUS
    if denies_letter(text[match.end(1) :].lstrip(" .:,、。-–—")):
        return None
    same = matching_options(line, options)
    return letters if not same or same == letters else AMBIGUOUS


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
    own = strip_markup(options.get(mention["letter"], "")) or "\n"
    rest = re.sub(rf"(?<![A-Za-z0-9]){re.escape(own)}(?![A-Za-z0-9])", "=", before)
    clause = _UP_TO_CLAUSE.sub("", rest, count=1)
    *_, value = _IS.split(clause)
    is_followed = _option_of(after, options) == letter
    if (after and not is_followed) or _NOT_A_RESULT.search(clause) or _is_in_doubt(clause, ""):
        return None
    is_own = is_followed or rest != before or not value or _option_of(value, options) == letter
    is_signed = (mention["open"] or mention["close"]) and is_own
    return letter if is_signed or mention["word"] or not before.strip(" ,*:(") else None


def _read_line(line: str, legal: frozenset[str], options: Mapping[str, str]) -> Letters:
    is_open = _OPEN_AFTER.match(line) or _CORRECTION.search(line, 1) or is_denied_after(line)
    if is_open or strip_lead_words(line) != line:
        return None
    return _read_leading_letters(line, legal, options)


def _is_in_doubt(before: str, head: str) -> bool:
    """Return whether the words before letters, of which `head` states them, keep them from counting."""
    before, head = _NO_DOUBT.sub("", before), _NO_DOUBT.sub("", head)
    clause = _UP_TO_CLAUSE.sub("", before, count=1)
    part = clause.rpartition(",")[2]
    return bool(
        _DOUBT_BEFORE.search(before[-MAX_GAP:])
        or DOUBT.search(clause + head)
        or DENIAL.search(part + head)
        or _NOT_THE_ANSWER.search(part + head)
        or is_governed(part)
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
