"""The 25 constraints of IFEval (Zhou et al., 2023, arXiv:2311.07911), by their ids.

Each function gets a response that is not blank and the arguments of its row by their names there, and
returns whether the response follows the constraint.
"""

import json
import re
from collections.abc import Callable, Mapping
from itertools import takewhile

from rewardkit.instructions import text as split
from rewardkit.instructions.languages import is_language

#: The answers that `detectable_format:constrained_response` allows.
_ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_HIGHLIGHT = re.compile(r"\*([^\n*]*)\*")
_DOUBLE_HIGHLIGHT = re.compile(r"\*\*([^\n*]*)\*\*")
_FENCE = re.compile(r"\A```(?:json)?|```\Z", re.IGNORECASE)
_POSTSCRIPTS = {"P.P.S": re.compile(r"p\.\s?p\.\s?s"), "P.S.": re.compile(r"p\.\s?s\.")}


def holds(count: int, relation: str, bound: int, tolerance: int = 0) -> bool:
    """Return whether a count is `less than`, `at least`, `at most`, `exactly` or `around` a bound."""
    return {
        "less than": count < bound,
        "at least": count >= bound,
        "at most": count <= bound,
        "exactly": count == bound,
        "around": abs(count - bound) <= tolerance,
    }[relation]


def _existence(text: str, keywords: list[str]) -> bool:
    return all(split.occurrences(text, keyword) for keyword in keywords)


def _frequency(text: str, keyword: str, frequency: int, relation: str) -> bool:
    return holds(split.occurrences(text, keyword), relation, frequency)


def _forbidden_words(text: str, forbidden_words: list[str]) -> bool:
    return not any(split.has_word(text, word) for word in forbidden_words)


def _letter_frequency(text: str, letter: str, let_frequency: int, let_relation: str) -> bool:
    return holds(split.occurrences(text, letter), let_relation, let_frequency)


def _response_language(text: str, language: str) -> bool:
    return is_language(text, language)


def _number_paragraphs(text: str, num_paragraphs: int) -> bool:
    paragraphs = split.parts(text, "***")
    return paragraphs is not None and len(paragraphs) == num_paragraphs


def _nth_paragraph_first_word(
    text: str, num_paragraphs: int, nth_paragraph: int, first_word: str
) -> bool:
    paragraphs = [part for part in text.split("\n\n") if part.strip()]
    if len(paragraphs) != num_paragraphs or not 0 < nth_paragraph <= num_paragraphs:
        return False
    expected, words = first_word.lower().split(), paragraphs[nth_paragraph - 1].lower().split()
    start = [_bare_start(word) for word in words[: len(expected)]]
    return start == [_bare_start(word) for word in expected]


def _bare_start(word: str) -> str:
    """Return a word from its quotation marks to its first punctuation sign."""
    return "".join(takewhile(lambda sign: sign not in ".,?!'\"", word.lstrip("'\"*_#“‘")))


def _number_placeholders(text: str, num_placeholders: int) -> bool:
    count = sum("[" in part for line in text.split("\n") for part in line.split("]")[:-1])
    return count >= num_placeholders


def _postscript(text: str, postscript_marker: str) -> bool:
    pattern = _POSTSCRIPTS.get(postscript_marker.strip())
    text = text.lower()
    return bool(pattern.search(text)) if pattern else postscript_marker.strip().lower() in text


def _number_bullet_lists(text: str, num_bullets: int) -> bool:
    return sum(map(_is_bullet, text.split("\n"))) == num_bullets


def _is_bullet(line: str) -> bool:
    line = line.strip()
    return line.startswith("-") or (line.startswith("*") and line[1:2] not in ("", "*"))


def _number_highlighted_sections(text: str, num_highlights: int) -> bool:
    highlights = [*_HIGHLIGHT.findall(text), *_DOUBLE_HIGHLIGHT.findall(text)]
    return sum(bool(highlight.strip()) for highlight in highlights) >= num_highlights


def _json_format(text: str) -> bool:
    text = text.strip()
    for _ in range(2):
        text = _FENCE.sub("", text)
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _title(text: str) -> bool:
    for line in text.split("\n"):
        start, end = line.find("<<"), line.rfind(">>")
        if 0 <= start < end and line[start:end].strip("<> \t\r"):
            return True
    return False


def _two_responses(text: str) -> bool:
    responses = split.parts(text, "******")
    return responses is not None and len(responses) == 2 and responses[0] != responses[1]


def _repeat_prompt(text: str, prompt_to_repeat: str) -> bool:
    return text.strip().lower().startswith(prompt_to_repeat.strip().lower())


def _end_checker(text: str, end_phrase: str) -> bool:
    return text.strip().strip('"').lower().endswith(end_phrase.strip().lower())


def _capital_word_frequency(text: str, capital_frequency: int, capital_relation: str) -> bool:
    count = sum(token.isupper() for token in split.tokens(text))
    return holds(count, capital_relation, capital_frequency)


def _no_comma(text: str) -> bool:
    return "," not in text


def _quotation(text: str) -> bool:
    text = text.strip()
    return len(text) > 1 and text[0] == text[-1] == '"'


CHECKS: Mapping[str, Callable[..., bool]] = {
    "keywords:existence": _existence,
    "keywords:frequency": _frequency,
    "keywords:forbidden_words": _forbidden_words,
    "keywords:letter_frequency": _letter_frequency,
    "language:response_language": _response_language,
    "length_constraints:number_sentences": lambda text, num_sentences, relation: holds(
        len(split.sentences(text)), relation, num_sentences
    ),
    "length_constraints:number_paragraphs": _number_paragraphs,
    "length_constraints:number_words": lambda text, num_words, relation: holds(
        len(split.words(text)), relation, num_words
    ),
    "length_constraints:nth_paragraph_first_word": _nth_paragraph_first_word,
    "detectable_content:number_placeholders": _number_placeholders,
    "detectable_content:postscript": _postscript,
    "detectable_format:number_bullet_lists": _number_bullet_lists,
    "detectable_format:constrained_response": lambda text: any(
        answer in text for answer in _ANSWERS
    ),
    "detectable_format:number_highlighted_sections": _number_highlighted_sections,
    "detectable_format:multiple_sections": lambda text, section_spliter, num_sections: (
        len(re.findall(rf"{re.escape(section_spliter.strip())}\s?\d", text)) >= num_sections
    ),
    "detectable_format:json_format": _json_format,
    "detectable_format:title": _title,
    "combination:two_responses": _two_responses,
    "combination:repeat_prompt": _repeat_prompt,
    "startend:end_checker": _end_checker,
    "startend:quotation": _quotation,
    "change_case:capital_word_frequency": _capital_word_frequency,
    "change_case:english_capital": lambda text: text.isupper() and is_language(text, "en"),
    "change_case:english_lowercase": lambda text: text.islower() and is_language(text, "en"),
    "punctuation:no_comma": _no_comma,
}
