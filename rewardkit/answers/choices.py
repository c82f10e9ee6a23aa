r"""Reads which options of a multiple-choice question an answer picks: text -> set of letters.

An answer is a list of letters in any dress (`AC`, `(A)`, `\text{A}`, `A、C`, `A和C`, `选A`), an
option's letter with its text (`A. 980万元`), or the option's text alone. What remains unread after
separators and a few harmless words (`the answer is`, `正确答案是`) makes the answer no list of
letters, so that `Apple` is not A.

* `A or C` and `A/C` are ambiguous, whatever the gold.
* Where the row's options are known, a letter with another text than its option's is ambiguous, and
  so is a text that two options share. Texts are compared after NFKC, without spaces, case, TeX's
  text commands and `$`. Where they are not known, the letter of `A. 980万元` counts.
* A rejected letter is left out: `不选A，选C` is C.
* In a run of letters none occurs twice (`AAA` is a rating), and small letters ascend (`bad`).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from functools import lru_cache
from string import ascii_uppercase
from typing import Any, Final, TypeAlias
from unicodedata import normalize

from rewardkit.answers.extract import last_boxed

#: The letters of a question whose options are not known. MMLU-Pro goes up to J.
DEFAULT_LETTERS: Final = frozenset("ABCDEFGHIJ")
#: Longest answer, in characters, that is read.
MAX_CHARS: Final = 4096
#: Longest line that is read after `The answer is`, and longest box beside another.
MAX_LINE: Final = 200
#: Longest text between two answers that stand side by side.
MAX_GAP: Final = 80
#: How many of the last statements or `<answer>` blocks are looked at.
MAX_STATEMENTS: Final = 16
MAX_BLOCKS: Final = 4
#: Characters at the end that are searched for statements.
STATED_CHARS: Final = 20_000

#: Stands for an answer that leaves open which options it picks.
AMBIGUOUS: Final = object()
#: What an answer picks: letters, `AMBIGUOUS`, or None.
Letters: TypeAlias = frozenset[str] | object | None

_ALPHABET = frozenset(ascii_uppercase)
_WRAPPER = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|normal)?|math(?:rm|bf|it|sf|tt|normal|bb|cal)|mbox|fbox|boxed"
    r"|boldsymbol|bm|operatorname|underline|emph)(?![A-Za-z])\s*\{([^{}]*)\}"
)
_TEX_SPACE = re.compile(r"\\[ ,;:!\n\\]|\\q?quad(?![A-Za-z])|~")
_TEX_NOISE = re.compile(
    r"\\(?:left|right|displaystyle|large|Large|bf|it|rm)(?![A-Za-z])|\\(?=[$%&#_{}()\[\]])|\$"
)
_MARKDOWN = re.compile(r"\*\*|__|`")

_OR = r"[/|]|(?<![A-Za-z])or(?![A-Za-z])|或者?|还是"
_AND = r"[,;、&]|\+(?=\s?[(\[]?[A-Za-z])|(?<![A-Za-z])and(?![A-Za-z])|以及|[和及与跟]"
_NOISE = (
    r"(?<![A-Za-z])(?:the|my|final|correct|right|best|answers?|options?|choices?|is|are|both|either|so"
    r"|therefore|thus|hence|but|rather)(?![A-Za-z])"
    r"|正确|最终|最佳|答案|选项|选择|因此|所以|综上|本题|该题|而是|应该|[两三四五]?项|(?<!还)是|[故应选为的都均对即而]"
)
_OR_WORD = re.compile(_OR, re.IGNORECASE)
_NOISE_WORD = re.compile(_NOISE, re.IGNORECASE)
_SEPARATOR = re.compile(rf"(?:[\s.:。()\[\]{{}}《》【】\"'“”‘’*_]|{_AND}|{_OR})+", re.IGNORECASE)
_LEAD = re.compile(rf"(?:[\s:,。*_]|{_NOISE})*", re.IGNORECASE)
_NEGATED = re.compile(
    r"(?:不(?:应该?|能|该|可)?(?:选择?|是)|(?<![A-Za-z])not)\s*"
    r"\(?[A-Za-z](?:\s*[,、和及]\s*[A-Za-z])*(?![A-Za-z])\)?"
)
_LABEL = re.compile(r"(?<![^\s,;、。])(?:[(\[]([A-Za-z])[)\]][.:、]?|([A-Za-z]) ?[.:、)])")
_HEDGE = re.compile(rf"(?:{_OR})\s*\(?[A-Z](?![A-Z])|、\s?[A-Z](?![A-Z]| ?[.:)])", re.IGNORECASE)
_SPACE = re.compile(r"\s+")
_TEXT_END = ",;、.。和及与"

_STATED = re.compile(
    r"(?<![A-Za-z])(?:answer|option|choice)s?(?![A-Za-z])[*_】)\]]{0,4} ?(?:[:：=]|(?:is|are)\b)"
    r"|(?:答案|正确选项|正确的(?=[是为选答]))[*_】)\]]{0,4} ?(?:选项|应该?|就)?(?:[是为]|选择?)?[:：]?"
    r"|(?:[故应我可则即]|因此|所以|综上|最终)[,，]?(?:[本该]题)?应?选择?[:：]?|(?<=\n)选择?[:：]?",
    re.IGNORECASE,
)
_RUN = r"[(\[{]{0,3}(?:[A-Z]{1,10}|[a-z])(?![A-Za-z0-9])[)\]}]{0,3}(?:选?项)?"
_JOINT = r" ?(?:[,;、&+/|] ?)?(?:(?:and(?![a-z])|or(?![a-z])|以及|或者?|还是|[和及与跟]) ?)?"
_LEADING = re.compile(
    rf"({_RUN}(?:{_JOINT}{_RUN})*)"
    r" ?(?:$|[.;:!。<]|[,、](?! ?[A-Z](?![A-Za-z ]))|(?:because|since|as|for|due)(?![a-z])|因|由于|正确|不是)"
)


def read_letters(
    text: str, legal: frozenset[str], options: Mapping[str, str] | None = None
) -> Letters:
    """The letters that an answer picks; `AMBIGUOUS` if it leaves them open; None if it has none.

    Args:
        text: the answer, such as the content of a box.
        legal: the letters there are, in upper case.
        options: the text of each option, where the row tells it.
    """
    bare = _bare(text, legal)
    if bare and (len(text) == 1 or not _ends_an_option(text, options)):
        return bare
    plain = _plain(text)
    listed = _listed(plain, legal)
    if options:
        return _against_options(plain, options, listed)
    return _labelled(plain, legal) if listed is None else listed


def read_gold(text: str, legal: frozenset[str]) -> frozenset[str] | None:
    """The letters of a gold answer: upper case, in any of the separators; None for all else."""
    bare = _bare(text, legal)
    if bare:
        return bare
    plain = _plain(text)
    letters = _listed(plain, legal) if plain.isupper() else None
    return letters if isinstance(letters, frozenset) else None


def final_choice(
    response: str,
    legal: frozenset[str],
    options: Mapping[str, str] | None = None,
    *,
    final_letter: bool = False,
) -> tuple[str, Letters]:
    r"""The text of a response's final answer, "" without one, and the letters it picks.

    The final answer is the last balanced box, or every `<answer>` block and the last box after
    them. Answers that stand side by side (`\boxed{A} or \boxed{B}`) and differ are ambiguous.
    What follows `</think>` goes before what was thought.

    Args:
        response: the model's text.
        legal: the letters there are.
        options: the text of each option, where the row tells it.
        final_letter: whether lines such as `The answer is (B)` and `答案：AC`, and a last line of
            letters alone, count where no box or block tells a choice.
    """
    said = response.rpartition("</think>")[2] if "</think>" in response else response
    texts = _marked(said) or (_marked(response) if said is not response else [])
    choice = _last(texts, [read_letters(text, legal, options) for text in texts])
    if choice[1] is None and final_letter:
        stated = _stated(said[-STATED_CHARS:], legal, options)
        return choice if stated[1] is None else stated
    return choice


def option_texts(options: Any) -> dict[str, str] | None:
    """The text of each option by letter, from a list or a mapping; None if it is neither."""
    if hasattr(options, "tolist"):  # what pandas makes of a list in a parquet
        options = options.tolist()
    if isinstance(options, (list, tuple)):
        found = zip(ascii_uppercase, options, strict=False)
        return {letter: str(text) for letter, text in found if text is not None} or None
    if not isinstance(options, Mapping):
        return None
    texts = {str(key).strip().upper(): str(t) for key, t in options.items() if t is not None}
    return texts if texts and _ALPHABET.issuperset(texts) else None


def _bare(text: str, legal: frozenset[str]) -> frozenset[str] | None:
    """The letters of a text that is nothing but different letters: the shortcut for most."""
    if len(text) > len(legal):
        return None
    letters = frozenset(text)
    return letters if len(letters) == len(text) and letters <= legal else None


def _ends_an_option(text: str, options: Mapping[str, str] | None) -> bool:
    return options is not None and any(option.endswith(text) for option in options.values())


def _plain(text: str) -> str:
    """The text without dress; "" if it is too long to be an answer."""
    if len(text) > MAX_CHARS:
        return ""
    if not text.isascii():
        text = normalize("NFKC", text)[:MAX_CHARS]
    if "\\" in text or "~" in text:
        text = _unwrapped(_TEX_SPACE.sub(" ", text))
    return _MARKDOWN.sub("", _TEX_NOISE.sub("", text)).strip()


def _unwrapped(text: str) -> str:
    for _ in range(4):  # \textbf{\text{A}}: nobody nests deeper
        text, count = _WRAPPER.subn(r"\1", text)
        if not count:
            break
    return text


def _listed(plain: str, legal: frozenset[str]) -> Letters:
    """The letters of a text that holds letters, separators and harmless words only."""
    text, noise = _NOISE_WORD.subn(" ", _NEGATED.sub(" ", plain))
    runs = [run for run in _SEPARATOR.split(text) if run]
    letters = frozenset("".join(runs).upper())
    if not runs or not letters <= legal or not all(map(_is_run, runs)):
        return None
    if noise and not all(map(str.isupper, runs)):  # "is a correct option": an article, no letter
        return None
    return AMBIGUOUS if len(letters) > 1 and _OR_WORD.search(text) else letters


def _is_run(run: str) -> bool:
    if len(set(run)) < len(run):
        return False
    return run.isupper() or (run.islower() and list(run) == sorted(run))


def _labelled(plain: str, legal: frozenset[str]) -> Letters:
    """The letters of `A. some text`, or of several such items."""
    text, labels = _labels(plain)
    if not labels or _letter(labels[0]) not in legal:
        return None
    if _HEDGE.search(text) or _OR_WORD.match(text[labels[0].end() :].lstrip()):
        return AMBIGUOUS
    return legal.intersection(map(_letter, labels))


def _labels(plain: str) -> tuple[str, list[re.Match[str]]]:
    """The text after harmless words, and its labels; none if it does not begin with one."""
    lead = _LEAD.match(plain)
    text = plain[lead.end() :] if lead else plain
    labels = list(_LABEL.finditer(text))
    return text, labels if labels and labels[0].start() == 0 else []


def _letter(label: re.Match[str]) -> str:
    return label[1] or label[2]


def _against_options(plain: str, options: Mapping[str, str], listed: Letters) -> Letters:
    text, labels = _labels(plain)
    spelled = _spelled(text, labels, options)
    if spelled is not None:
        return spelled
    named = _named(plain, options)
    if listed is None:
        return AMBIGUOUS if named is None and labels and _letter(labels[0]) in options else named
    if listed == frozenset(text[:1]) or labels:  # "A. 对" where A is "错"
        named = _named(text[labels[0].end() if labels else 1 :], options) or named
    # An option's text may itself list letters: "A和C", or "II" where there is an option I.
    return AMBIGUOUS if named is not None and named != listed and len(plain) > 1 else listed


def _spelled(
    text: str, labels: list[re.Match[str]], options: Mapping[str, str]
) -> frozenset[str] | None:
    """The letters of a text that gives every letter with its own option's text."""
    if _says(text[1:], text[:1], options):  # "A 980万元"
        return frozenset(text[:1])
    if labels and _says(text[labels[0].end() :], _letter(labels[0]), options):
        return frozenset(_letter(labels[0]))
    ends = [label.start() for label in labels[1:]] + [len(text)]
    items = [
        (text[label.end() : end], _letter(label)) for label, end in zip(labels, ends, strict=False)
    ]
    said = items and all(_says(item, letter, options) for item, letter in items)
    return frozenset(letter for _, letter in items) if said else None


def _named(plain: str, options: Mapping[str, str]) -> Letters:
    """The letter of the option whose text this is."""
    key = _key(plain)
    letters = frozenset(
        letter for letter, t in options.items() if key and key == _option_key(letter, t)
    )
    return AMBIGUOUS if len(letters) > 1 else letters or None


def _says(text: str, letter: str, options: Mapping[str, str]) -> bool:
    key = _key(text) if letter in options else ""
    return key != "" and key == _option_key(letter, options[letter])


@lru_cache(maxsize=4096)  # one question is answered many times in RL
def _option_key(letter: str, option: str) -> str:
    """What identifies an option's text, its own label taken off."""
    text = _plain(option)
    label = _LABEL.match(text)
    return _key(text[label.end() :] if label and _letter(label) == letter else text)


def _key(plain: str) -> str:
    """What is compared of a text: no spaces, no case, and nothing that leads to the next item."""
    text = _SPACE.sub("", plain).casefold().rstrip(_TEXT_END)
    return text.removesuffix("and").rstrip(_TEXT_END)


def _marked(text: str) -> list[str]:
    """The texts of the final answers in boxes and `<answer>` blocks, the last one last."""
    blocks = _last_blocks(text)
    if not blocks:
        return _boxes(text)
    texts = [answer for block in blocks for answer in _boxes(block[-MAX_CHARS:]) or [block]]
    texts += _boxes(text.rpartition("</answer>")[2])
    return [answer.strip() for answer in texts if answer.strip()]


def _last_blocks(text: str) -> list[str]:
    """What the last `<answer>` blocks hold, in order."""
    blocks: list[str] = []
    start = len(text)
    while len(blocks) < MAX_BLOCKS:
        end = text.rfind("</answer>", 0, start)
        start = text.rfind("<answer>", 0, end) if end >= 0 else -1
        if start < 0:
            break
        blocks.append(text[start + 8 : end])
    return blocks[::-1]


def _boxes(text: str) -> list[str]:
    """The last balanced box, after the box right before it, if there is one."""
    last = last_boxed(text)
    if last is None:
        return []
    start = _last_opening(text, 0, len(text))
    end = text.rfind("}", max(start - MAX_GAP, 0), start)
    opening = _last_opening(text, max(end - MAX_LINE, 0), end) if end > 0 else -1
    if opening < 0 or not _is_gap(text[end + 1 : start]):
        return [last]
    before = last_boxed(text[opening : end + 1])
    if before is not None and _OR_WORD.search(text[end + 1 : start]):
        return [f"{before} or {last}"]
    beside = before is not None and text[opening:end].rstrip().endswith(before)
    return [before, last] if before is not None and beside else [last]


def _last_opening(text: str, start: int, end: int) -> int:
    at = text.rfind("\\boxed", start, end)
    return max(at, text.rfind("\\fbox", max(at, start), end))


def _is_gap(text: str) -> bool:
    """Whether a text between two answers says nothing, so that they stand side by side."""
    return not _SEPARATOR.sub("", _NOISE_WORD.sub(" ", _plain(text)))


def _last(texts: list[str], readings: list[Letters]) -> tuple[str, Letters]:
    """The last of the answers, ambiguous if another says something else."""
    if not texts:
        return "", None
    last = readings[-1]
    others = [reading for reading in readings if reading is not None and reading != last]
    return texts[-1], AMBIGUOUS if others and last is not None else last


def _stated(
    text: str, legal: frozenset[str], options: Mapping[str, str] | None
) -> tuple[str, Letters]:
    """The last line of letters alone, or else the last statement such as `The answer is (B)`."""
    line = text.rstrip().rpartition("\n")[2][-MAX_LINE - 1 :].strip()
    if line.isupper() and not _NOISE_WORD.search(_NEGATED.sub("", line)):
        letters = _listed(_plain(line), legal)
        if letters is not None:
            return line, letters
    return _last_statement(text, legal, options)


def _last_statement(
    text: str, legal: frozenset[str], options: Mapping[str, str] | None
) -> tuple[str, Letters]:
    found = _statements(text, legal, options)
    said, letters, start, _ = next(found, ("", None, 0, 0))
    _, before, _, end = next(found, ("", None, 0, 0))
    if before is None or before == letters or start - end > MAX_GAP:
        return said, letters
    # Only the letters of the statement before, and words that say nothing, lie between the two.
    beside = _listed(_plain(text[end:start]), legal) == before
    return said, AMBIGUOUS if beside else letters


def _statements(
    text: str, legal: frozenset[str], options: Mapping[str, str] | None
) -> Iterator[tuple[str, frozenset[str] | object, int, int]]:
    """What follows each of the last statements' words, its letters, and where the words lie."""
    until = len(text)
    for match in reversed(deque(_STATED.finditer(text), maxlen=MAX_STATEMENTS)):
        said = text[match.end() : min(until, match.end() + MAX_LINE)].partition("\n")[0].strip()
        letters = _read_line(_plain(said), legal, options)
        if letters is not None:
            yield said, letters, match.start(), match.end()
            until = match.start()


def _read_line(plain: str, legal: frozenset[str], options: Mapping[str, str] | None) -> Letters:
    """The letters at the beginning of a line, or those of the whole line."""
    lead = _LEAD.match(plain)
    text = plain[lead.end() :] if lead else plain
    match = _LEADING.match(_SPACE.sub(" ", text))
    letters = _listed(match[1], legal) if match else None
    if match is None or letters is None:
        return read_letters(plain, legal, options)
    named = _named(match.string[match.end(1) :].lstrip(" .:,、。"), options) if options else None
    return letters if named is None or named == letters else AMBIGUOUS
