r"""Reads which options of a multiple-choice question an answer picks: text -> set of letters.

An answer is a list of letters in any dress (`AC`, `(A)`, `\text{A}`, `A、C`, `A和C`, `选A`), an
option's letter with its text (`A. 980万元`), or the option's text alone. What remains unread after
separators and a few harmless words (`the answer is`, `正确答案是`) makes the answer no list of
letters, so that `Apple` is not A.

* `A+C` is a sum, unless the question is known to be multiple choice (`plus`).
* `A or C` and `A/C` are ambiguous, whatever the gold.
* Where the row's options are known, a letter with another text than its option's is ambiguous, and
  so is a text that two options share. Texts are compared after NFKC, without spaces, case, TeX's
  text commands and `$`; if none is the same, short mathematics is compared by its value, so that
  `\frac12` is the option `1/2`. Where they are not known, the letter of `A. 980万元` counts.
* A letter that is rejected is left out: `不选A，选C` is C, and `~A`, `\cancel{A}` and `(A) is wrong`
  pick nothing.
* In a run of letters none occurs twice (`AAA` is a rating), and small letters ascend (`bad`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from string import ascii_uppercase
from typing import Any, Final, TypeAlias
from unicodedata import normalize

#: The letters of a question whose options are not known. MMLU-Pro goes up to J.
DEFAULT_LETTERS: Final = frozenset("ABCDEFGHIJ")
#: Longest answer, in characters, that is read.
MAX_CHARS: Final = 4096
#: Longest mathematics, in characters, and most options that are compared by their value.
MAX_FORMULA: Final = 120
MAX_OPTIONS: Final = 10

#: Stands for an answer that leaves open which options it picks.
AMBIGUOUS: Final = object()
#: What an answer picks: letters, `AMBIGUOUS`, or None.
Letters: TypeAlias = frozenset[str] | object | None

_ALPHABET = frozenset(ascii_uppercase)
_WRAPPER = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|normal)?|math(?:rm|bf|it|sf|tt|normal|bb|cal)|mbox|fbox|boxed"
    r"|boldsymbol|bm|operatorname|underline|emph)(?![A-Za-z])\s*\{([^{}]*)\}"
)
#: A `~` before a letter joins it to what stands before it; where nothing does, it negates it.
_TEX_SPACE = re.compile(
    r"\\[ ,;:!\n\\]|\\q?quad(?![A-Za-z])"
    r"|~(?!\s?[({$]{0,2}[A-Za-z](?![A-Za-z]))|(?<=[^\s({\[$~])~"
)
_TEX_NOISE = re.compile(
    r"\\(?:left|right|displaystyle|large|Large|bf|it|rm)(?![A-Za-z])|\\(?=[$%&#_{}()\[\]])|\$"
)
_MARKDOWN = re.compile(r"\*\*|__|`")

_OR = r"[/|]|(?<![A-Za-z])or(?![A-Za-z])|或者?|还是"
_AND = r"[,;、&]|(?<![A-Za-z])and(?![A-Za-z])|以及|[和及与跟]"
_NOISE = (
    r"(?<![A-Za-z])(?:the|my|final|correct|right|best|answers?|options?|choices?|is|are|both|either|so"
    r"|therefore|thus|hence|but|rather)(?![A-Za-z])"
    r"|正确|最终|最佳|答案|选项|选择|因此|所以|综上|本题|该题|而是|应该|[两三四五]?项|(?<!还)是|[故应选为的都均对即而]"
)
_PLUS = re.compile(r"\+(?=\s?[(\[]?[A-Za-z])")
_OR_WORD = re.compile(_OR, re.IGNORECASE)
_NOISE_WORD = re.compile(_NOISE, re.IGNORECASE)
_SEPARATOR = re.compile(rf"(?:[\s.:。()\[\]{{}}《》【】\"'“”‘’*_]|{_AND}|{_OR})+", re.IGNORECASE)
_LEAD = re.compile(rf"(?:[\s:,。*_]|{_NOISE})*", re.IGNORECASE)
_REJECTION = re.compile(
    r"(?:不(?:应该?|能|该|可)?(?:选择?|是)|排除|(?<![A-Za-z])not)\s*"
    r"\(?[A-Za-z](?:\s*[,、和及]\s*[A-Za-z])*(?![A-Za-z])\)?"
)
_DENIAL = re.compile(
    r"\s*\(?\s*(?:(?:is|are|was|were)(?:n['’]t| not| never) (?:the |an? |my )?"
    r"(?:correct|right|best|answers?|choices?|options?|it)(?![A-Za-z])"
    r"|(?:is|are|was|were)(?: \w+)? (?:wrong|incorrect|false|invalid|impossible|eliminated|excluded"
    r"|rejected|ruled out|a distractor)(?![A-Za-z])"
    r"|是(?:错|不[正对]))",
    re.IGNORECASE,
)
_SHORT_DENIAL = re.compile(
    r"\s*\(?\s*(?:(?:wrong|incorrect|eliminated|excluded|rejected|ruled out)(?![A-Za-z])"
    r"|(?:probably |certainly |definitely )?not\W*$|不(?:正确|对|成立)|不(?:是|能选|应选|选)(?!\s*\(?[A-Za-z])|错误?的|有误"
    r"|被?排除)",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"(?<![^\s,;、。])(?:[(\[]([A-Za-z])[)\]][.:、]?|([A-Za-z]) ?[.:、)]|([A-Z])(?= \([^()]*\)[.。]?$))"
)
_HEDGE = re.compile(rf"(?:{_OR})\s*\(?[A-Z](?![A-Z])|、\s?[A-Z](?![A-Z]| ?[.:)])", re.IGNORECASE)
_TEXT_END = ",;、.。和及与"
_NO_TEXT = frozenset("+=^*?")
_BLANK = re.compile(r"[\s~]+")
_FORMULA = re.compile(r"[\d\\=+*/^<>]")
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}|[\u4e00-\u9fff]{2}")


def read_letters(
    text: str,
    legal: frozenset[str],
    options: Mapping[str, str] | None = None,
    *,
    plus: bool = False,
) -> Letters:
    """The letters that an answer picks; `AMBIGUOUS` if it leaves them open; None if it has none.

    Args:
        text: the answer, such as the content of a box.
        legal: the letters there are, in upper case.
        options: the text of each option, where the row tells it.
        plus: whether `A+C` is a list, as it is where the answer is known to be a choice.
    """
    bare = _bare(text, legal)
    if bare and (len(text) == 1 or not _ends_an_option(text, options)):
        return bare
    plain = undress(text)
    letters = list_letters(plain, legal, plus=plus)
    if options:
        return _by_options(plain, text, options, letters)
    return _by_label(plain, legal) if letters is None else letters


def read_gold(text: str, legal: frozenset[str], *, plus: bool = False) -> frozenset[str] | None:
    """The letters of a gold answer: upper case, in any of the separators; None for all else.

    Args:
        text: the gold answer.
        legal: the letters there are, in upper case.
        plus: whether `A+C` is a list, as it is where the gold is known to be a choice.
    """
    bare = _bare(text, legal)
    if bare:
        return bare
    plain = undress(text)
    letters = list_letters(plain, legal, plus=plus) if plain.isupper() else None
    return letters if isinstance(letters, frozenset) else None


def option_texts(options: Any) -> dict[str, str] | None:
    """The text of each option by letter, from a list or a mapping; None if it is neither."""
    if hasattr(options, "tolist"):  # what pandas makes of a list in a parquet
        options = options.tolist()
    if isinstance(options, (list, tuple)):
        pairs = zip(ascii_uppercase, options, strict=False)
        return {letter: str(text) for letter, text in pairs if text is not None} or None
    if not isinstance(options, Mapping):
        return None
    texts = {str(key).strip().upper(): str(t) for key, t in options.items() if t is not None}
    return texts if texts and _ALPHABET.issuperset(texts) else None


def undress(text: str) -> str:
    """The text without TeX's and Markdown's dress; "" if it is too long to be an answer."""
    if len(text) > MAX_CHARS:
        return ""
    if not text.isascii():
        text = normalize("NFKC", text)[:MAX_CHARS]
    if "\\" in text or "~" in text:
        text = _unwrap(_TEX_SPACE.sub(" ", text))
    return _MARKDOWN.sub("", _TEX_NOISE.sub("", text)).strip()


def list_letters(plain: str, legal: frozenset[str], *, plus: bool = False) -> Letters:
    """The letters of an undressed text that has letters, separators and harmless words only."""
    if plus and "+" in plain:
        plain = _PLUS.sub(",", plain)
    text, noise = _NOISE_WORD.subn(" ", _REJECTION.sub(" ", plain))
    runs = [run for run in _SEPARATOR.split(text) if run]
    letters = frozenset("".join(runs).upper())
    if not runs or not letters <= legal or not all(map(_is_run, runs)):
        return None
    if noise and not all(map(str.isupper, runs)):  # "is a correct option": an article, no letter
        return None
    return AMBIGUOUS if len(letters) > 1 and _OR_WORD.search(text) else letters


def after_lead(plain: str) -> str:
    """An undressed text from its first word that is not harmless: `the answer is A` from `A` on."""
    lead = _LEAD.match(plain)
    return plain[lead.end() :] if lead else plain


def is_gap(text: str) -> bool:
    """Whether a text between two answers says nothing, so that they stand side by side."""
    return not _SEPARATOR.sub("", _NOISE_WORD.sub(" ", undress(text)))


def has_or(text: str) -> bool:
    """Whether a text has `or`, `/`, `或` or the like."""
    return _OR_WORD.search(text) is not None


def denies(text: str, *, has_stop: bool = False) -> bool:
    """Whether what follows a letter says that it is not the answer: `is wrong`, `不正确`.

    After `B.` and the like (`has_stop`) a short `不正确` is an option's text.
    """
    return bool(_DENIAL.match(text) or (not has_stop and _SHORT_DENIAL.match(text)))


def option_of(text: str, options: Mapping[str, str], *, by_value: bool = False) -> Letters:
    """The letter of the option that has this text, `AMBIGUOUS` if several options have it.

    Args:
        text: undressed text, or any text for `by_value`.
        options: the text of each option.
        by_value: whether short mathematics counts as well that no option has, but one has in value.
    """
    letters = _options_of(text, options, by_value=by_value)
    return AMBIGUOUS if len(letters) > 1 else letters or None


def is_text_of(text: str, letter: str, options: Mapping[str, str]) -> bool:
    """Whether an undressed text is that of an option, in its characters or in its value."""
    return letter in options and letter in _options_of(text, options, by_value=True)


def _options_of(text: str, options: Mapping[str, str], *, by_value: bool) -> frozenset[str]:
    """The options that have a text, else those that have its value."""
    key = _key(text)
    letters = frozenset(
        letter for letter, option in options.items() if key and key == _option_key(letter, option)
    )
    if letters or not by_value or len(options) > MAX_OPTIONS:
        return letters
    text = text.strip(" \n" + _TEXT_END)
    return frozenset(
        letter for letter, option in options.items() if _same_value(text, letter, option)
    )


def _bare(text: str, legal: frozenset[str]) -> frozenset[str] | None:
    """The letters of a text that is nothing but different letters: the shortcut for most."""
    if len(text) > len(legal):
        return None
    letters = frozenset(text)
    return letters if len(letters) == len(text) and letters <= legal else None


def _ends_an_option(text: str, options: Mapping[str, str] | None) -> bool:
    return options is not None and any(option.endswith(text) for option in options.values())


def _unwrap(text: str) -> str:
    for _ in range(4):  # \textbf{\text{A}}: nobody nests deeper
        text, count = _WRAPPER.subn(r"\1", text)
        if not count:
            break
    return text


def _is_run(run: str) -> bool:
    if len(set(run)) < len(run):
        return False
    return run.isupper() or (run.islower() and list(run) == sorted(run))


def _by_label(plain: str, legal: frozenset[str]) -> Letters:
    """The letters of `A. some text`, or of several such items."""
    text, labels = _labels(plain)
    if not labels or _letter(labels[0]) not in legal:
        return None
    rest = text[labels[0].end() :].lstrip()
    if rest[:1] in _NO_TEXT or _ANOTHER_VALUE.match(rest):
        return None
    if _HEDGE.search(text) or _OR_WORD.match(rest):
        return AMBIGUOUS
    if denies(rest, has_stop=labels[0][2] is not None):
        return None
    return legal.intersection(map(_letter, labels))


#: A value beside a letter is no text of its option: `(C), 4397`.
_ANOTHER_VALUE = re.compile(r"[,;]\s*[-\d$\\]")


def _labels(plain: str) -> tuple[str, list[re.Match[str]]]:
    """The text after harmless words, and its labels; none if it does not begin with one."""
    text = after_lead(plain)
    labels = list(_LABEL.finditer(text))
    return text, labels if labels and labels[0].start() == 0 else []


def _letter(label: re.Match[str]) -> str:
    return label[1] or label[2] or label[3]


def _by_options(plain: str, raw: str, options: Mapping[str, str], letters: Letters) -> Letters:
    """The letters that a text picks of known options, given what it picks as a list of letters."""
    text, labels = _labels(plain)
    own = _with_own_texts(text, labels, options)
    if own is not None:
        return own
    option = option_of(plain, options)
    if letters is None:
        option = option or option_of(text, options)
        if labels and _letter(labels[0]) in options:
            return option or AMBIGUOUS
        return option or option_of(raw if text == plain else text, options, by_value=True)
    if letters == frozenset(text[:1]) or labels:  # "A. 对" where A is "错"
        option = option_of(text[labels[0].end() if labels else 1 :], options) or option
    # An option's text may itself list letters: "A和C", or "II" where there is an option I.
    return AMBIGUOUS if option is not None and option != letters and len(plain) > 1 else letters


def _with_own_texts(
    text: str, labels: list[re.Match[str]], options: Mapping[str, str]
) -> frozenset[str] | None:
    """The letters of a text that gives every letter with its own option's text."""
    if text[:1] in options and _follows(text[1:], text[0], options):  # "A 980万元"
        return frozenset(text[:1])
    if labels and is_text_of(text[labels[0].end() :], _letter(labels[0]), options):
        return frozenset(_letter(labels[0]))
    ends = [label.start() for label in labels[1:]] + [len(text)]
    items = [
        (text[label.end() : end], _letter(label)) for label, end in zip(labels, ends, strict=False)
    ]
    own = len(items) > 1 and all(is_text_of(item, letter, options) for item, letter in items)
    return frozenset(letter for _, letter in items) if own else None


def _follows(rest: str, letter: str, options: Mapping[str, str]) -> bool:
    """Whether a letter's option follows it without a stop; `A = 3` and `A - 3` are mathematics."""
    if _key(rest) == _option_key(letter, options[letter]) != "":
        return True
    beside = rest[:1] == " " and rest[1:2] not in "-=+*/^<>"
    return (beside or rest[:1] + rest[-1:] == "()") and is_text_of(rest, letter, options)


def _same_value(text: str, letter: str, option: str) -> bool:
    option = _own_text(letter, option)
    if not (_is_formula(text) and _is_formula(option)):
        return False
    from rewardkit.answers.equal import compare

    return compare(text, option).outcome == "equal"


def _is_formula(text: str) -> bool:
    return (
        len(text) <= MAX_FORMULA and bool(_FORMULA.search(text)) and len(_WORD.findall(text)) <= 2
    )


def _own_text(letter: str, option: str) -> str:
    """An option's text, its own label taken off."""
    label = _LABEL.match(option)
    return option[label.end() :].strip() if label and _letter(label) == letter else option.strip()


@lru_cache(maxsize=4096)  # one question is answered many times in RL
def _option_key(letter: str, option: str) -> str:
    """What identifies an option's text."""
    return _key(_own_text(letter, undress(option)))


def _key(plain: str) -> str:
    """What is compared of a text: no spaces, no case, and nothing that leads to the next item."""
    text = _BLANK.sub("", plain).casefold().rstrip(_TEXT_END)
    text = text.removesuffix("and").rstrip(_TEXT_END)
    in_brackets = text[:1] == "(" and text.find(")") == len(text) - 1
    return text[1:-1] if in_brackets else text
