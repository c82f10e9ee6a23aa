"""A rubric: what a judge is asked, in a person's words, read from a small YAML file.

    kind: criteria                 # or equivalence: one question, answered yes or no
    instructions: You grade answers to questions about our product.
    criteria:
      helpfulness: {description: Does it solve the person's problem?, weight: 2, scale: [1, 5]}
      correctness: {description: Are all statements true?}
    examples: [{question: How do I reset it?, response: Hold the button., verdict: {helpfulness: 4,
      correctness: 5}}]

| key | meaning | default |
|---|---|---|
| `kind` | `equivalence` or `criteria` | required |
| `instructions` | what the judge has to know; it comes first | "" |
| `question` | the yes-or-no question of `equivalence` | the same answer as the reference? |
| `criteria` | by name: `description`, `weight` (1), `scale` ([1, 5]) | required for `criteria` |
| `examples` | each with `question`, `gold`, `response`, `verdict` and `reason` | none |
| `see` | `answer`: the judge sees the final answer only; `response`: all after the thoughts | `answer` for `equivalence` |
| `gold` | whether the judge sees the gold | true for `equivalence` |
| `reason` | whether the judge gives its reason before the verdict | true |
| `threshold` | the least weighted mean, from 0 to 1, that counts as correct | 0.5 |
| `failed_score` | the score of a sample that the judge failed on | 0.0 |
| `max_characters` | characters of the response that the judge sees | 2000 for `answer`, else 12000 |
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from rewardkit.errors import DataError, UsageError
from rewardkit.registry import did_you_mean
from rewardkit.strict_yaml import read_yaml_file

#: The rubrics of this package, by name.
BUILT_IN = ("math", "open", "qa")

#: Keys of metrics that every judge has, so that no criterion may have these names.
METRICS = ("failed", "cached", "over_budget", "seconds", "tokens", "cost")

#: Limits of a rubric.
MAX_CRITERIA, MAX_EXAMPLES, MAX_STEPS = 20, 20, 101

#: Limits of `max_characters`.
MIN_CHARACTERS, MAX_CHARACTERS = 100, 200_000

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_KEYS = (
    *("kind", "instructions", "question", "criteria", "examples", "see", "gold", "reason"),
    *("threshold", "failed_score", "max_characters"),
)
_QUESTION = "Does the response give the same final answer as the reference?"


@dataclass(frozen=True)
class Criterion:
    """One criterion, which the judge grades with a whole number.

    Attributes:
        name: the key of its grade in the verdict.
        description: what the judge looks at.
        weight: its factor in the weighted mean.
        least: the worst grade.
        most: the best grade.
    """

    name: str
    description: str
    weight: float = 1.0
    least: int = 1
    most: int = 5


@dataclass(frozen=True)
class Example:
    """A response with the verdict that the judge should give.

    Attributes:
        question: the question; "" for none.
        gold: the reference answer; "" for none.
        response: the response.
        reason: the reason for the verdict; "" for none.
        verdict: `(name, value)` of each key of the verdict.
    """

    question: str
    gold: str
    response: str
    reason: str
    verdict: tuple[tuple[str, str | int], ...]


@dataclass(frozen=True)
class Rubric:
    """What a judge is asked; the docstring of the module has the meaning of each field.

    `right` is the answer to the question of `equivalence` that a correct response gets.
    """

    name: str
    kind: Literal["equivalence", "criteria"]
    instructions: str = ""
    question: str = _QUESTION
    criteria: tuple[Criterion, ...] = ()
    examples: tuple[Example, ...] = ()
    see: Literal["answer", "response"] = "answer"
    gold: bool = True
    reason: bool = True
    threshold: float = 0.5
    failed_score: float = 0.0
    max_characters: int = 2000
    right: Literal["yes", "no"] = "yes"

    @property
    def digest(self) -> str:
        """The content as a hash, which identifies the rubric whatever its file is called."""
        return _digest(self)

    def summary(self) -> str:
        """Return what is asked, in one line."""
        if self.kind == "equivalence":
            return self.question
        return ", ".join(each.name for each in self.criteria)

    def choices(self) -> dict[str, tuple[str | int, ...]]:
        """Return the values that each key of a verdict may have."""
        if self.kind == "equivalence":
            return {"verdict": ("yes", "no")}
        return {each.name: tuple(range(each.least, each.most + 1)) for each in self.criteria}


@cache
def _digest(rubric: Rubric) -> str:
    return sha256(json.dumps({**asdict(rubric), "name": ""}).encode()).hexdigest()


@cache
def read_rubric(name: str) -> Rubric:
    """Return a built-in rubric, or the rubric of a YAML file.

    Raises:
        SourceError: the file cannot be opened.
        UsageError: it does not exist, or has an unknown key or an invalid value.
    """
    if name in BUILT_IN:
        path = Path(__file__).parent / "rubrics" / f"{name}.yaml"
    elif name.endswith((".yaml", ".yml")):
        path = Path(name).expanduser()
    else:
        near = did_you_mean(name, list(BUILT_IN))
        raise UsageError(f"no rubric {name!r}.{near} Name {', '.join(BUILT_IN)} or a .yaml file.")
    try:
        return parse_rubric(read_yaml_file(path), str(path))
    except DataError as error:
        raise UsageError(str(error)) from error


def parse_rubric(value: Any, where: str) -> Rubric:
    """Return the rubric in a mapping of the YAML's form; `where` is its place, for messages.

    Raises:
        UsageError: a key is unknown or missing, or a value is invalid.
    """
    fields = _Fields(where, value, _KEYS)
    kind = fields.choice("kind", None, ("equivalence", "criteria"))
    is_question = kind == "equivalence"
    see = fields.choice("see", "answer" if is_question else "response", ("answer", "response"))
    if not is_question and "question" in fields.values:
        raise fields.error("question is for kind: equivalence; write criteria instead.")
    named = _Fields(f"{where}: criteria", fields.values.get("criteria", {})).values
    if len(named) > MAX_CRITERIA:
        raise fields.error(f"more than {MAX_CRITERIA} criteria.")
    criteria = tuple(
        _criterion(f"{where}: criteria.{name}", name, each) for name, each in named.items()
    )
    if is_question == bool(criteria):
        need = "has no criteria" if is_question else "needs criteria"
        raise fields.error(f"kind: {kind} {need}.")
    limits = (MIN_CHARACTERS, MAX_CHARACTERS)
    rubric = Rubric(
        name=where,
        kind="equivalence" if is_question else "criteria",
        instructions=fields.text("instructions"),
        question=fields.text("question", _QUESTION),
        criteria=criteria,
        see="answer" if see == "answer" else "response",
        gold=fields.boolean("gold", is_question),
        reason=fields.boolean("reason", True),
        threshold=fields.number("threshold", 0.5, 0, 1),
        failed_score=fields.number("failed_score", 0.0),
        max_characters=int(
            fields.number("max_characters", 2000 if see == "answer" else 12_000, *limits)
        ),
    )
    examples = fields.values.get("examples", [])
    if not isinstance(examples, list) or len(examples) > MAX_EXAMPLES:
        raise fields.error(f"examples: give a list of at most {MAX_EXAMPLES}.")
    return replace(
        rubric,
        examples=tuple(
            _example(f"{where}: examples[{i}]", each, rubric) for i, each in enumerate(examples)
        ),
    )


def _criterion(where: str, name: str, value: Any) -> Criterion:
    fields = _Fields(where, value, ("description", "weight", "scale"))
    if not _NAME.fullmatch(name) or name in (*METRICS, "reason", "verdict"):
        raise fields.error("choose another name, of small letters, digits and _.")
    weight = fields.number("weight", 1.0, 0)
    if not weight:
        raise fields.error("weight: 0; leave the criterion out.")
    match fields.values.get("scale", [1, 5]):
        case [int(least), int(most)] if 0 < most - least < MAX_STEPS and abs(least) <= 1000:
            scale = (least, most)
        case other:
            raise fields.error(
                f"scale: {other!r}; give the worst and the best grade, such as [1, 5], at most "
                f"{MAX_STEPS - 1} apart."
            )
    description = fields.text("description")
    if not description.strip():
        raise fields.error("write a description.")
    return Criterion(name, description, weight, *scale)


def _example(where: str, value: Any, rubric: Rubric) -> Example:
    fields = _Fields(where, value, ("question", "gold", "response", "verdict", "reason"))
    verdict, choices = fields.values.get("verdict"), rubric.choices()
    given = {"verdict": verdict} if rubric.kind == "equivalence" else verdict
    grades = _Fields(f"{where}: verdict", given, tuple(choices)).values
    for name, valid in choices.items():
        grade = grades.get(name)
        if type(grade) is not type(valid[0]) or grade not in valid:
            shown = map(str, valid) if len(valid) <= 10 else [f"{valid[0]} to {valid[-1]}"]
            raise fields.error(f"verdict: {name} must be one of {', '.join(shown)}.")
    texts = {key: fields.text(key) for key in ("question", "gold", "response", "reason")}
    return Example(**texts, verdict=tuple((name, grades[name]) for name in choices))


class _Fields:
    """The values of a mapping of the YAML, each read with its type and its default."""

    def __init__(self, where: str, value: Any, keys: tuple[str, ...] = ()) -> None:
        self.where, self.values = where, value
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise self.error(f"give `key: value` pairs, not {type(value).__name__}.")
        for key in value:
            if keys and key not in keys:
                near = did_you_mean(key, list(keys))
                raise self.error(f"unknown key {key!r}.{near} Known: {', '.join(keys)}.")

    def error(self, message: str) -> UsageError:
        return UsageError(f"{self.where}: {message}")

    def choice(self, key: str, default: str | None, valid: tuple[str, ...]) -> str:
        value = self.values.get(key, default)
        if value not in valid:
            raise self.error(f"{key}: {value!r}; give {' or '.join(valid)}.")
        return str(value)

    def text(self, key: str, default: str = "") -> str:
        value = self.values.get(key, default)
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            raise self.error(f"{key}: {value!r}; give text.")
        return str(value)

    def boolean(self, key: str, default: bool) -> bool:
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            raise self.error(f"{key}: {value!r}; give true or false.")
        return value

    def number(self, key: str, default: float, least: float = -1e9, most: float = 1e9) -> float:
        value = self.values.get(key, default)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not least <= value <= most:  # also of NaN
            raise self.error(f"{key}: {value!r}; give a number from {least:g} to {most:g}.")
        return float(value)


def reverse_rubric(rubric: Rubric) -> Rubric:
    """Return a rubric that asks the other way round: whether a response has to be rejected.

    A judge that says yes to whatever it reads contradicts itself if it is asked both questions.

    Raises:
        UsageError: the rubric has criteria.
    """
    if rubric.kind != "equivalence":
        raise UsageError(f"rubric {rubric.name}: only a question of equivalence can be reversed.")
    examples = tuple(
        replace(each, verdict=tuple((key, _OPPOSITE[value]) for key, value in each.verdict))
        for each in rubric.examples
    )
    return replace(rubric, question=_REVERSE_QUESTION, examples=examples, right="no")


_OPPOSITE: Mapping[Any, str] = {"yes": "no", "no": "yes"}
_REVERSE_QUESTION = (
    "Does the response have to be rejected, because its final answer differs from the reference or "
    "because it does not commit to one final answer?"
)
