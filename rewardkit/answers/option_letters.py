r"""Reads which options of a multiple-choice question an answer picks: text -> set of letters.

An answer is a list of letters in any typesetting (`AC`, `(A)`, `\text{A}`, `A、C`, `A和C`, `选A`), an
option's letter with its text (`A. 980万元`), or the option's text alone. A list of letters may also
hold separators and a few filler words (`the answer is`, `正确答案是`) and nothing else, so that
`Apple` is not A.

* `A or C` and `A/C` are ambiguous, whatever the gold.
* If the row's options are known, a letter with a text that differs from its option's is ambiguous,
  and so is a text that two options share. Texts are compared after NFKC, without spaces, case,
  TeX's text commands and `$`. If no text is the same, short mathematics is compared by its value, so that
  `\frac12` is the option `1/2`. If the options are not known, the letter of `A. 980万元` counts.
* A rejected letter does not count: `不选A，选C` is C, and `~A`, `\cancel{A}` and `(A) is wrong` pick
  nothing.
* No letter occurs twice in a run of letters, because `AAA` is a rating, and small letters ascend,
  because `bad` is a word.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from string import ascii_uppercase
from typing import Any, TypeAlias
from unicodedata import normalize

#: The letters of a question whose options are not known. MMLU-Pro goes up to J.
DEFAULT_LETTERS = frozenset("ABCDEFGHIJ")
#: Most characters of an answer.
MAX_CHARS = 4096
#: Most characters of mathematics, and most options, that are compared by value.
MAX_FORMULA = 120
MAX_OPTIONS = 10

#: Marks an answer that leaves open which options it picks.
AMBIGUOUS = object()
#: The letters that an answer picks, `AMBIGUOUS`, or None for no choice.
Letters: TypeAlias = frozenset[str] | object | None

OR = r"[/|]|(?<![A-Za-z])or(?![A-Za-z])|或者?|还是"
#: Signs and words that join letters. `A+C` is a list; a caller rules out that it is a sum.
JOINT = rf"{OR}|[,;、&]|\+(?=\s?[(\[]?[A-Za-z])|(?<![A-Za-z])and(?![A-Za-z])|以及|[和及与跟]"
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
_OR_WORD = re.compile(OR, re.IGNORECASE)
_FILLER_WORD = re.compile(_FILLER, re.IGNORECASE)
_SEPARATOR = re.compile(rf"(?:[\s.:。()\[\]{{}}《》【】\"'“”‘’*_]|{JOINT})+", re.IGNORECASE)
_LEAD_WORDS = re.compile(
    rf"(?:[\s:,。*_]|{_FILLER}"
    r"|(?:letter|figure|picture|diagram|image|graph) (?=[(\[]?[A-Z](?![A-Za-z])))*",
    re.IGNORECASE,
)
_REJECTION = re.compile(
    r"(?:不(?:应该?|能|该|可)?(?:选择?|是)|排除|(?<![A-Za-z])not)\s*"
    r"\(?[A-Za-z](?:\s*[,、和及]\s*[A-Za-z])*(?![A-Za-z])\)?"
)
_WRONG = r"(?:wrong|incorrect|eliminated|excluded|rejected|ruled out)(?![A-Za-z])"
#: Words that say that the letter before them is wrong; `short` if they may be an option's text.
_DENIAL = re.compile(
    r"[\s,(]*(?:(?:which|this|that) |这)?(?:(?:is|are|was|were)(?:(?:n['’]t| not| never) (?:the |an? |my )?"
    r"(?:correct|right|best|answers?|choices?|options?|it)(?![A-Za-z])"
    rf"|(?: \w+)? (?:{_WRONG}|(?:false|invalid|impossible|a distractor)(?![A-Za-z])))"
    r"|是(?:错|不[正对])"
    rf"|(?P<short>{_WRONG}|(?:probably |certainly |definitely )?not(?: really| quite)?\W*$|不(?:正确|对|成立)"
    r"|不(?:是|能选|应选|选)(?!\s*\(?[A-Za-z])|错误?的|有误|被?排除))",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"(?<![^\s,;、。])[(\[]?([A-Za-z])(?:[)\]][.:、]?| ?[.:、]|(?<=[A-Z])(?= \([^()]*\)[.。]?$))"
)
_HEDGE = re.compile(rf"(?:{OR})\s*\(?[A-Z](?![A-Z])|、\s?[A-Z](?![A-Z]| ?[.:)])", re.IGNORECASE)
#: Text after a letter that is not a label: `A. = 3`, or `(C), 4397` with a value beside it.
_NOT_AN_OPTION_TEXT = re.compile(r"[+=^*?]|[,;]\s*[-\d$\\]")
_OPTION_LINE = re.compile(r"^\s*\(?([A-J])[.:)] *(.+)$", re.MULTILINE)
_TRAILING_SIGNS = ",;、.。和及与"
_FORMULA = re.compile(r"[\d\\=+*/^<>]")
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}|[\u4e00-\u9fff]{2}")


def read_letters(
    text: str, legal: frozenset[str], options: Mapping[str, str] | None = None
) -> Letters:
    """Return the letters that an answer picks; `AMBIGUOUS` if it leaves them open, else None.

    `legal` has the letters of the question in upper case, `options` their texts, if known.
    """
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
    letters = frozenset(plain)
    if letters and len(letters) == len(plain) and letters <= legal:  # a shortcut for most answers
        return letters
    text, noise = _FILLER_WORD.subn(" ", _REJECTION.sub(" ", plain))
    runs = [run for run in _SEPARATOR.split(text) if run]
    letters = frozenset("".join(runs).upper())
    if not runs or not letters <= legal or not all(map(_is_run, runs)):
        return None
    if noise and not all(map(str.isupper, runs)):  # "a" of "is a correct option" is an article
        return None
    return AMBIGUOUS if len(letters) > 1 and _OR_WORD.search(text) else letters


def strip_lead_words(plain: str) -> str:
    """Return a text without its leading filler words: `A` of `the answer is A`."""
    return _LEAD_WORDS.sub("", plain, count=1)


def denies_letter(text: str, *, has_stop: bool = False) -> bool:
    """Whether the text after a letter says that it is not the answer: `is wrong`, `不正确`.

    After `B.` and the like (`has_stop`) a short `不正确` is an option's text, not a denial.
    """
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
        same = [letter for letter in own if _same_value(text, own[letter])]
    return frozenset(same)


def _is_run(run: str) -> bool:
    if len(set(run)) < len(run):
        return False
    return run.isupper() or (run.islower() and list(run) == sorted(run))


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
    if len(text) > MAX_FORMULA or not _FORMULA.search(text):
        return False
    return len(_WORD.findall(text)) <= 2


def _same_value(text: str, option: str) -> bool:
    from rewardkit.answers.equal import compare

    return _is_formula(option) and compare(text, option).outcome == "equal"


def _text_without_label(letter: str, option: str) -> str:
    label = _LABEL.match(option)
    return option[label.end() :].strip() if label and label[1] == letter else option.strip()


@lru_cache(maxsize=4096)  # because RL samples many answers to one question
def _option_key(letter: str, option: str) -> str:
    return _text_key(_text_without_label(letter, strip_markup(option)))


def _text_key(plain: str) -> str:
    """Return the key by which texts are compared, without spaces, case and trailing conjunction."""
    text = "".join(plain.replace("~", "").split()).casefold().rstrip(_TRAILING_SIGNS)
    text = text.removesuffix("and").rstrip(_TRAILING_SIGNS)
    in_brackets = text[:1] == "(" and text.find(")") == len(text) - 1
    return text[1:-1] if in_brackets else text
