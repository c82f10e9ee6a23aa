"""The 29 training constraints of IF-RLVR (Pyatkin et al., 2025, arXiv:2507.02833), by their ids.

They are the ones of open-instruct's `IFEvalG` beside IFEval's own; see `ifeval` for what a function gets.
"""

import re
from collections.abc import Callable, Mapping
from itertools import pairwise

from rewardkit.instructions import text as split
from rewardkit.instructions.ifeval import CHECKS as IFEVAL
from rewardkit.instructions.ifeval import holds

_SMALL_WORD = re.compile(r"\b[a-z]+\b")
_LETTER = re.compile(r"[a-zA-Z]")
#: A sentence's end with white space on a side of the hyphen that follows.
_LOOSE_HYPHEN = re.compile(r"[.!?](?:\s+-|-\s)")
MIN_PALINDROME = 3


def is_same(text: str, other: str) -> bool:
    """Return whether two texts are equal but for case and the white space around them."""
    return text.strip().lower() == other.strip().lower()


def bare(word: str) -> str:
    """Return a word in small letters without the punctuation around it."""
    return word.strip(split.PUNCTUATION + "“”‘’«»…").lower()


def _repeat_phrase(text: str, phrase: str, small_n: int) -> bool:
    words, expected = [bare(word) for word in text.split()], [bare(w) for w in phrase.split()]
    size, differences = len(expected), []
    if size < 3:
        return False
    for place in range(len(words) - size + 1):
        window = words[place : place + size]
        if window[0] == expected[0] and window[-1] == expected[-1]:
            count = sum(map(str.__ne__, window, expected))
            differences += [count] if count < 2 else []
    return differences == [1] * small_n


def _copy(text: str, prompt_to_repeat: str) -> bool:
    return is_same(text, prompt_to_repeat)


def _no_adjacent_consecutive(text: str) -> bool:
    letters = [word[0] for word in map(bare, text.split()) if word]
    return not any(ord(after) - ord(before) == 1 for before, after in pairwise(letters))


def _first_word_answer(text: str, first_word: str) -> bool:
    return bare(text.split(maxsplit=1)[0]) == bare(first_word)


def _last_word_answer(text: str, last_word: str) -> bool:
    return bare(text.rsplit(maxsplit=1)[-1]) == bare(last_word)


def _bigram_wrapping(text: str) -> bool:
    words = text.split()
    pairs = zip(words[::2], words[1::2], strict=False)
    return all(one.startswith("<<") and other.endswith(">>") for one, other in pairs)


def _copying_multiple(text: str, prompt_to_repeat: str, number: int) -> bool:
    copies = text.split("******")
    return len(copies) == number and all(is_same(each, prompt_to_repeat) for each in copies)


def _counting_composition(text: str, n_sent: int, n_words: int) -> bool:
    pieces = split.parts(text, "***") or []
    counts = [[len(split.plain_words(each)) for each in split.sentences(piece)] for piece in pieces]
    return counts == [[n_words] * n_sent] * 3


def _count_unique(text: str) -> bool:
    words = [word for word in map(bare, text.split()) if word]
    return len(words) == len(set(words))


def _palindrome(text: str) -> bool:
    words = map(bare, text.split())
    return any(len(word) >= MIN_PALINDROME and word == word[::-1] for word in words)


def keyword_specific_position(text: str, keyword: str, n: int, m: int) -> bool:
    """Return whether word `m` of sentence `n` is the keyword, both counted from 1."""
    words = split.plain_words("".join(split.sentences(text)[n - 1 : n])) if n else []
    return [word.lower() for word in words[m - 1 : m]] == [keyword.lower()] and m > 0


def _start_end(text: str) -> bool:
    tokens = split.tokens(text)
    return len(tokens) > 1 and tokens[0].lower() == tokens[-1].lower()


CHECKS: Mapping[str, Callable[..., bool]] = {
    "copy:repeat_phrase": _repeat_phrase,
    "copy:copy": _copy,
    "copy:copying_simple": _copy,
    "copy:copying_multiple": _copying_multiple,
    "new:copy_span_idx": lambda text, prompt_to_repeat, n_start, n_end: any(
        is_same(text, prompt_to_repeat[n_start:end]) for end in (n_end, n_end + 1)
    ),
    "detectable_format:sentence_hyphens": lambda text: (
        len(split.sentences(text)) == 1 and not _LOOSE_HYPHEN.search(text)
    ),
    "detectable_format:square_brackets": lambda text: all(
        word[0] == "[" and word[-1] == "]" for word in text.split()
    ),
    "detectable_format:bigram_wrapping": _bigram_wrapping,
    "keywords:no_adjacent_consecutive": _no_adjacent_consecutive,
    "keywords:word_once": lambda text, keyword: split.occurrences(text, keyword) == 1,
    "keywords:word_count_different_numbers": IFEVAL["keywords:frequency"],
    "keywords:exclude_word_harder": lambda text, keyword: not split.has_word(text, keyword),
    "keywords:palindrome": _palindrome,
    "keywords:keyword_specific_position": keyword_specific_position,
    "keywords:start_end": _start_end,
    "paragraphs:paragraphs": lambda text: IFEVAL["length_constraints:number_paragraphs"](text, 2),
    "paragraphs:paragraphs2": lambda text: (
        sum(bool(part.strip()) for part in text.split("\n\n")) == 2
    ),
    "first_word:first_word_sent": lambda text, first_word: all(
        _first_word_answer(sentence, first_word) for sentence in split.sentences(text)
    ),
    "first_word:first_word_answer": _first_word_answer,
    "last_word:last_word_sent": lambda text, last_word: all(
        _last_word_answer(sentence, last_word) for sentence in split.sentences(text)
    ),
    "last_word:last_word_answer": _last_word_answer,
    "punctuation:punctuation_dot": lambda text: "." not in text,
    "punctuation:punctuation_exclamation": lambda text: "!" not in text,
    "count:lowercase_counting": lambda text, number: len(_SMALL_WORD.findall(text)) <= number,
    "count:counting_composition": _counting_composition,
    "count:count_unique": _count_unique,
    "count:count_increment_word": lambda text, keyword1, keyword2: (
        [split.occurrences(text, each) for each in (keyword1, keyword2)] == [1, 2]
    ),
    "letters:letter_counting": lambda text, number, relation: holds(
        len(_LETTER.findall(text)), relation, number
    ),
    "letters:letter_counting2": IFEVAL["keywords:letter_frequency"],
}
