"""The 25 functions of `allenai/RLVR-IFeval`, by the `func_name` of its ground truths.

They are IFEval's constraints with other names, amounts (`N`) and relations (`quantifier`: at least, at most,
around); around means a tenth, or one sentence. See `ifeval` for what a function gets.
"""

from collections.abc import Callable, Mapping

from rewardkit.instructions import text as split
from rewardkit.instructions.ifeval import CHECKS as IFEVAL
from rewardkit.instructions.ifeval import holds


def _tenth(number: int) -> int:
    return max(round(number / 10), 1)


def _letter_frequency(text: str, letter: str, number: int) -> bool:
    return text.count(letter) == number


def _paragraph_count(text: str, number: int) -> bool:
    pieces = split.parts(text.replace("* * *", "***"), "***")
    return pieces is not None and len(pieces) == number


def _paragraphs(text: str, number: int, first_word: str, i: int) -> bool:
    pieces = [piece.strip() for piece in text.split("\n\n") if piece.strip()]
    return len(pieces) == number and 0 < i <= number and pieces[i - 1].startswith(first_word)


def _sections(text: str, number: int, section_splitter: str) -> bool:
    pieces = text.split(section_splitter)
    return len(pieces) - (not pieces[0].strip()) == number


CHECKS: Mapping[str, Callable[..., bool]] = {
    "verify_keywords": IFEVAL["keywords:existence"],
    "verify_keyword_frequency": lambda text, word, number: (
        [each.lower() for each in split.words(text)].count(word.lower()) == number
    ),
    "validate_forbidden_words": IFEVAL["keywords:forbidden_words"],
    "verify_letter_frequency": _letter_frequency,
    "validate_response_language": IFEVAL["language:response_language"],
    "verify_paragraph_count": _paragraph_count,
    "validate_word_constraint": lambda text, number, quantifier: holds(
        len(text.split()), quantifier, number, _tenth(number)
    ),
    "verify_sentence_constraint": lambda text, number, quantifier: holds(
        len(split.sentences(text)), quantifier, number, 1
    ),
    "validate_paragraphs": _paragraphs,
    "verify_postscript": lambda text, postscript_marker: bool(
        text.partition(postscript_marker)[2].strip()
    ),
    "validate_placeholders": IFEVAL["detectable_content:number_placeholders"],
    "verify_bullet_points": IFEVAL["detectable_format:number_bullet_lists"],
    "validate_title": IFEVAL["detectable_format:title"],
    "validate_choice": lambda text, options: any(
        split.has_word(text, option) for option in options
    ),
    "validate_highlighted_sections": IFEVAL["detectable_format:number_highlighted_sections"],
    "validate_sections": _sections,
    "validate_json_format": IFEVAL["detectable_format:json_format"],
    "validate_repeat_prompt": IFEVAL["combination:repeat_prompt"],
    "validate_two_responses": IFEVAL["combination:two_responses"],
    "validate_uppercase": lambda text: text == text.upper(),
    "validate_lowercase": lambda text: text == text.lower(),
    "validate_frequency_capital_words": lambda text, number, quantifier: holds(
        sum(map(str.isupper, split.words(text))), quantifier, number, _tenth(number)
    ),
    "validate_end": IFEVAL["startend:end_checker"],
    "validate_quotation": IFEVAL["startend:quotation"],
    "validate_no_commas": IFEVAL["punctuation:no_comma"],
}
