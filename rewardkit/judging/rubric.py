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

import re
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, Field, PrivateAttr, model_validator

from rewardkit.errors import DataError, UsageError
from rewardkit.registry import did_you_mean
from rewardkit.strict_yaml import STRICT, read_yaml_file, validate

#: The rubrics of this package, by name.
BUILT_IN = ("math", "open", "qa")

#: Keys of metrics that every judge has, so that no criterion may have these names.
METRICS = ("failed", "cached", "over_budget", "seconds", "tokens", "cost")

#: Limits of a rubric: criteria and examples, and steps of a scale.
MAX_ITEMS, MAX_STEPS = 20, 101

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")

#: Text, also one that YAML reads as a number, such as a gold.
_Text = Annotated[str, BeforeValidator(lambda v: str(v) if type(v) in (int, float) else v)]
_Fraction = Annotated[float, Field(ge=0, le=1)]


class Criterion(BaseModel):
    """One criterion, which the judge grades with a whole number; `scale` has the worst and the best."""

    model_config = STRICT

    description: _Text
    weight: float = Field(1.0, gt=0, le=1e9)
    scale: list[int] = Field([1, 5], min_length=2, max_length=2)

    @model_validator(mode="after")
    def _require_scale(self) -> "Criterion":
        least, most = self.scale
        if not 0 < most - least < MAX_STEPS or abs(least) > 1000:
            raise ValueError(
                f"scale: {self.scale}; give the worst and the best grade, such as [1, 5], at most "
                f"{MAX_STEPS - 1} apart."
            )
        if not self.description.strip():
            raise ValueError("write a description.")
        return self

    def fraction(self, grade: int) -> float:
        """Return a grade as a fraction of the scale, from 0.0 to 1.0."""
        least, most = self.scale
        return (grade - least) / (most - least)


class Example(BaseModel):
    """A response with the verdict that the judge should give, and texts that may be "" for none."""

    model_config = STRICT

    question: _Text = ""
    gold: _Text = ""
    response: _Text = ""
    reason: _Text = ""
    verdict: Any = None


class Rubric(BaseModel):
    """What a judge is asked; the docstring of the module has the meaning of each field.

    Attributes:
        right: the answer to the question of `equivalence` that a correct response gets.
    """

    model_config = STRICT
    right: ClassVar[Literal["yes", "no"]] = "yes"

    kind: Literal["equivalence", "criteria"]
    instructions: _Text = ""
    question: _Text = "Does the response give the same final answer as the reference?"
    criteria: dict[str, Criterion] = Field({}, max_length=MAX_ITEMS)
    examples: list[Example] = Field([], max_length=MAX_ITEMS)
    see: Literal["answer", "response"]
    gold: bool
    reason: bool = True
    threshold: _Fraction = 0.5
    failed_score: float = Field(0.0, ge=-1e9, le=1e9)
    max_characters: int = Field(ge=100, le=200_000)

    _name: str = PrivateAttr("")

    @model_validator(mode="before")
    @classmethod
    def _with_defaults(cls, value: Any) -> Any:
        """Fill in what depends on the kind."""
        if not isinstance(value, dict):
            return value
        is_question = value.get("kind") == "equivalence"
        fields = {"see": "answer" if is_question else "response", "gold": is_question, **value}
        return {"max_characters": 2000 if fields["see"] == "answer" else 12_000, **fields}

    @model_validator(mode="after")
    def _require_consistency(self) -> "Rubric":
        is_question = self.kind == "equivalence"
        if not is_question and "question" in self.model_fields_set:
            raise ValueError("question is for kind: equivalence; write criteria instead.")
        if is_question == bool(self.criteria):
            need = "has no criteria" if is_question else "needs criteria"
            raise ValueError(f"kind: {self.kind} {need}.")
        for name in self.criteria:
            if not _NAME.fullmatch(name) or name in (*METRICS, "reason", "verdict"):
                raise ValueError(
                    f"criteria.{name}: choose another name, of small letters, digits and _."
                )
        for i, example in enumerate(self.examples):
            grades = self.grades_of(example)
            for name, valid in self.choices().items():
                grade = grades.get(name)
                if type(grade) is not type(valid[0]) or grade not in valid:
                    known = map(str, valid) if len(valid) <= 10 else [f"{valid[0]} to {valid[-1]}"]
                    raise ValueError(
                        f"examples[{i}]: verdict: {name} must be one of {', '.join(known)}."
                    )
            if unknown := grades.keys() - self.choices():
                raise ValueError(f"examples[{i}]: verdict: unknown key {min(unknown, key=str)!r}.")
        return self

    @property
    def name(self) -> str:
        """Where the rubric is from, for messages."""
        return self._name

    @cached_property
    def digest(self) -> str:
        """The content as a hash, which identifies the rubric whatever its file is called."""
        return sha256(
            f"{self.right} {self.model_dump_json(exclude={'failed_score'})}".encode()
        ).hexdigest()

    def __hash__(self) -> int:
        """Hash the content, so that what is made of a rubric can be cached."""
        return hash(self.digest)

    def summary(self) -> str:
        """Return what is asked, in one line."""
        return self.question if self.kind == "equivalence" else ", ".join(self.criteria)

    def choices(self) -> dict[str, tuple[str | int, ...]]:
        """Return the values that each key of a verdict may have."""
        if self.kind == "equivalence":
            return {"verdict": ("yes", "no")}
        scales = {name: each.scale for name, each in self.criteria.items()}
        return {name: tuple(range(least, most + 1)) for name, (least, most) in scales.items()}

    def grades_of(self, example: Example) -> dict[str, Any]:
        """Return the verdict of an example with the keys of `choices`."""
        if self.kind == "equivalence":
            return {"verdict": example.verdict}
        return example.verdict if isinstance(example.verdict, dict) else {}


class ReversedRubric(Rubric):
    """A rubric that asks the other way round: whether a response has to be rejected.

    A judge that says yes to whatever it reads contradicts itself if it is asked both questions.
    """

    right: ClassVar[Literal["yes", "no"]] = "no"
    question: _Text = (
        "Does the response have to be rejected, because its final answer differs from the reference "
        "or because it does not commit to one final answer?"
    )


def reverse_rubric(rubric: Rubric) -> Rubric:
    """Return a rubric with the opposite question and verdicts.

    Raises:
        UsageError: the rubric has criteria.
    """
    if rubric.kind != "equivalence":
        raise UsageError(f"rubric {rubric.name}: only a question of equivalence can be reversed.")
    fields = rubric.model_dump(exclude={"question"})
    for example in fields["examples"]:
        example["verdict"] = {"yes": "no", "no": "yes"}[example["verdict"]]
    return _named(ReversedRubric(**fields), rubric.name)


def _named(rubric: Rubric, name: str) -> Rubric:
    rubric._name = name  # noqa: SLF001 - a YAML may not set it
    return rubric


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
    return _named(validate(Rubric, value, where), where)
