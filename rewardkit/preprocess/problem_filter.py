"""Which problems of a dataset become rows: complete texts, of one language, each question once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rewardkit.preprocess.base import Dropped, Problem
from rewardkit.preprocess.duplicates import question_key, same_gold

Language: TypeAlias = Literal["en", "zh", "all"]

#: The problems to drop, by the place of their raw rows.
RepeatedProblems: TypeAlias = Mapping[int, Dropped]

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")


@dataclass(frozen=True)
class ProblemFilter:
    """Which problems to keep.

    Attributes:
        language: the language of the questions to keep.
        dedup: keep one row of each question, and none of a question with several golds.
    """

    language: Language = "all"
    dedup: bool = False


def language_fault(question: str, language: Language) -> str:
    """Return why a question is not in the language; "" if it is.

    A question with a Han character is Chinese. In DAPO-Math-17k formulae outweigh the words of
    many Chinese questions, and no English question has a Han character.
    """
    if language == "all":
        return ""
    actual = "zh" if _HAN.search(question) else "en"
    return "" if actual == language else f"language is {actual}"


def text_fault(problem: Problem) -> str:
    """Return why a problem cannot be written to a parquet of strings; "" if it can."""
    if not isinstance(problem.options, (tuple, list)):
        return "options are not a list"
    texts = (
        problem.question,
        problem.ground_truth,
        problem.answer,
        problem.source_id,
        problem.subject,
        problem.level,
        *problem.options,
    )
    if not all(isinstance(text, str) for text in texts):
        return "unexpected type"
    if not all(isinstance(image, bytes) for image in problem.images or ()):
        return "an image is not bytes"
    if not problem.question.strip():
        return "the question is empty"
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return "text is not valid Unicode"
    return ""


def find_repeated(problems: Iterable[tuple[int, Problem]]) -> RepeatedProblems:
    """Return the problems to drop so that each question remains once and with one gold.

    If the golds of a question differ, all its problems are dropped, because none is known to be
    right.

    Args:
        problems: each with the place of its raw row.
    """
    groups: dict[bytes, list[tuple[int, str]]] = {}
    for index, problem in problems:
        key = question_key(problem.question, problem.images or ())
        groups.setdefault(key, []).append((index, problem.ground_truth))
    dropped: dict[int, Dropped] = {}
    for group in groups.values():
        if len(group) > 1:
            dropped.update(_drop_repeats(group))
    return dropped


def _drop_repeats(group: list[tuple[int, str]]) -> RepeatedProblems:
    first, first_gold = group[0]
    golds = dict.fromkeys(gold for _, gold in group if not same_gold(gold, first_gold))
    if not golds:
        return {i: Dropped("duplicate question", f"as row {first}") for i, _ in group[1:]}
    texts = " and ".join(repr(gold[:60]) for gold in (first_gold, *golds))
    return {
        i: Dropped("conflicting golds", f"row {first} has the same question; golds {texts}")
        for i, _ in group
    }
