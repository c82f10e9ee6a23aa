"""What an audit is made of: rows, the forms answers are put in, attacks, and the report."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeAlias

from rewardkit.answers.choices import DEFAULT_LETTERS
from rewardkit.answers.number import read_number
from rewardkit.preprocess.quality import another_answer

Kind: TypeAlias = Literal["hole", "miss", "conduct"]
Severity: TypeAlias = Literal["high", "medium", "low"]

#: From the worst on.
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low")

#: Failing pairs kept of each attack, and characters of a text in them.
EXAMPLES = 5
CLIP = 200

#: The place of the answer in what a scorer's `respond` gives.
MARK = "@ANSWER@"

_NUMBER = re.compile(r"-?(?:[0-9,]*\.?[0-9]+|[0-9]+/[0-9]+|\\[dt]?frac\{[0-9]+\}\{[0-9]+\})")
_CHOICE = re.compile(r"(?:\\text\{)?\(?([A-J]+)\)?\}?")


@dataclass(frozen=True)
class Case:
    """A row to audit with: what the policy is asked, and what verl hands to the reward."""

    prompt: str
    gold: str
    data_source: str
    extra_info: Mapping[str, Any]


@dataclass(frozen=True)
class Form:
    """A way to put an answer: what stands before it and behind it."""

    name: str
    before: str
    after: str = ""

    def __call__(self, answer: str) -> str:
        """A response that gives the answer."""
        return f"{self.before}{answer}{self.after}"


#: The forms in use. `bare` is the answer and nothing else.
FORMS = (
    Form("hash", "#### "),
    Form("box", r"\boxed{", "}"),
    Form("answer", "Answer: "),
    Form("tag", "<answer>", "</answer>"),
    Form("tag box", r"<think></think><answer>\boxed{", "}</answer>"),
    Form("says", "The answer is ", "."),
    Form("bare", ""),
)


@dataclass(frozen=True)
class Target:
    """A row and the form in which it is attacked: all that an attack knows."""

    case: Case
    form: Form

    def say(self, answer: str) -> str:
        """A response in the form."""
        return self.form(answer)

    @property
    def gold(self) -> str:
        """The right answer."""
        return self.case.gold

    @cached_property
    def wrong(self) -> str:
        """An answer of the gold's kind that is certainly wrong."""
        other = another_answer(self.letters or self.gold)
        return "7919" if other == "0" else other

    @cached_property
    def number(self) -> Fraction | None:
        """The gold's value if it is one plain number."""
        if not _NUMBER.fullmatch(self.gold):
            return None
        value = read_number(self.gold)
        return value if isinstance(value, Fraction) else None

    @property
    def integer(self) -> int | None:
        """The gold's value if it is written as an integer."""
        return int(self.gold) if re.fullmatch(r"-?[0-9]{1,300}", self.gold) else None

    @cached_property
    def letters(self) -> str:
        """The gold's letters if it is a choice, else ""."""
        choice = _CHOICE.fullmatch(self.gold)
        return choice[1] if choice else ""

    @cached_property
    def choices(self) -> str:
        """The letters of the options."""
        options = self.case.extra_info.get("options") or ()
        return "".join(sorted(DEFAULT_LETTERS))[: len(options) or 5]


@dataclass(frozen=True)
class Attack:
    """One way to cheat a scorer, or to be right and get nothing.

    Attributes:
        name: of the attack.
        kind: `hole`: no response may be paid; `miss`: each must be; `conduct`: how it behaves.
        severity: of a failure.
        about: what it tries, in a line.
        responses: what it says about a row; none of a conduct check.
        golds: golds it is tried against in place of the row's.
        first: how many rows of each data source it is tried on; 0 for all.
    """

    name: str
    kind: Kind
    severity: Severity
    about: str
    responses: Callable[[Target], Iterator[str]]
    golds: tuple[str, ...] = ()
    first: int = 0


@dataclass(frozen=True)
class Failure:
    """A pair that got what a sound scorer would not have given; texts are clipped."""

    response: str
    gold: str
    got: str

    @property
    def text(self) -> str:
        """The pair in a line."""
        return f"response {self.response!r}, gold {self.gold!r}: {self.got}"


@dataclass(frozen=True)
class Finding:
    """What became of an attack.

    Attributes:
        attack: its name.
        kind: of the attack.
        severity: of the attack.
        about: what it tries.
        tried: how many calls.
        failed: how many of them went wrong.
        failures: the first of these.
    """

    attack: str
    kind: Kind
    severity: Severity
    about: str
    tried: int
    failed: int
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True)
class Reading:
    """How a scorer reads and pays the rows of a data source.

    Attributes:
        data_source: of the rows.
        rows: how many there are.
        form: the form the scorer asks for: that of its `respond`, else the best paid.
        forms: the names of all forms in which it pays for most golds.
        right: what the gold gets in the scorer's form.
        wrong: what another answer gets in it.
        declared: whether the scorer itself says which form it asks for.
    """

    data_source: str
    rows: int
    form: Form
    forms: tuple[Form, ...]
    right: float
    wrong: float
    declared: bool = False

    @property
    def threshold(self) -> float:
        """A score above this is paid."""
        return (self.right + self.wrong) / 2 if self.right > self.wrong else 0.5


@dataclass(frozen=True)
class AuditReport:
    """What an audit found.

    Attributes:
        scorer: as it was named.
        options: of the scorer.
        readings: what it was audited on.
        findings: one for each attack that found something to try.
        calls: how many calls were made.
        median_ms: time of a call on an ordinary response.
        worst_ms: the longest call of all.
        left_out: data sources of the packaged rows that the scorer does not judge.
    """

    scorer: str
    options: Mapping[str, Any]
    readings: tuple[Reading, ...]
    findings: tuple[Finding, ...]
    calls: int
    median_ms: float
    worst_ms: float
    left_out: tuple[str, ...] = ()
    grade: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "grade", grade(self.findings))

    @property
    def failed(self) -> tuple[Finding, ...]:
        """The attacks that went through, the worst first."""
        found = (finding for finding in self.findings if finding.failed)
        return tuple(sorted(found, key=lambda f: SEVERITIES.index(f.severity)))

    def at_least(self, severity: Severity) -> tuple[Finding, ...]:
        """The attacks that went through and are as severe, or worse."""
        worst = SEVERITIES[: SEVERITIES.index(severity) + 1]
        return tuple(finding for finding in self.failed if finding.severity in worst)


#: Attacks without which nothing else says much: a scorer that fails one of them is graded F.
BASICS = frozenset({"gold_in_its_form", "wrong_answer"})


def grade(findings: tuple[Finding, ...]) -> str:
    """A to F by what failed.

    F: four attacks or more of high severity, the gold gets nothing, or a plainly wrong answer is
    paid; D: one to three of high severity; C: four or more of medium; B: one to three of medium;
    A: nothing worse than low.
    """
    failed = [finding for finding in findings if finding.failed]
    high = sum(finding.severity == "high" for finding in failed)
    medium = sum(finding.severity == "medium" for finding in failed)
    if high > 3 or any(finding.attack in BASICS for finding in failed):
        return "F"
    if high:
        return "D"
    return "C" if medium > 3 else "B" if medium else "A"


def clipped(text: str) -> str:
    """A text short enough to be shown, with how much was cut out of its middle."""
    if len(text) <= CLIP:
        return text
    half = CLIP // 2
    return f"{text[:half]} ...[{len(text) - CLIP:,} characters]... {text[-half:]}"
