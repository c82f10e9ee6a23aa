"""Which problems of a dataset are kept: texts, of a language, and one of each question."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rewardkit.preprocess.base import Dropped, Problem
from rewardkit.preprocess.duplicates import gold_key, question_key

Language: TypeAlias = Literal["en", "zh", "all"]
RepeatedProblems: TypeAlias = Mapping[int, Dropped]

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")


@dataclass(frozen=True)
class ProblemFilter:
    """What is kept: questions of a language, and with `dedup` one row of each question."""

    language: Language = "all"
    dedup: bool = False


def language_fault(question: str, wanted: Language) -> str:
    """Why a question is not of the language wanted, "" if it is.

    A question is Chinese if it has a Han character: in DAPO-Math-17k formulae outweigh the words
    of many a Chinese question, and no English one has any.
    """
    if wanted == "all":
        return ""
    found = "zh" if _HAN.search(question) else "en"
    return "" if found == wanted else f"language is {found}"


def text_fault(problem: Problem) -> str:
    """What keeps a problem out of a parquet of strings, "" if nothing does."""
    if not isinstance(problem.options, (tuple, list)):
        return "options are no list"
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
    """The problems to drop so that every question is left once, with one gold, by index.

    Of a question whose golds differ every problem is dropped: nobody knows which is right.
    """
    groups: dict[bytes, list[tuple[int, str]]] = {}
    for index, problem in problems:
        key = question_key(problem.question, problem.images or ())
        groups.setdefault(key, []).append((index, problem.ground_truth))
    dropped: dict[int, Dropped] = {}
    for group in groups.values():
        if len(group) > 1:
            dropped.update(_all_but_one(group))
    return dropped


def _all_but_one(group: list[tuple[int, str]]) -> RepeatedProblems:
    golds = {gold_key(gold): gold for _, gold in group}
    first = group[0][0]
    if len(golds) == 1:
        return {i: Dropped("duplicate question", f"as row {first}") for i, _ in group[1:]}
    several = " and ".join(repr(gold[:60]) for gold in golds.values())
    return {
        i: Dropped("conflicting golds", f"row {first} has the same question; golds {several}")
        for i, _ in group
    }
