"""The data types of an audit: rows, forms of answers, attacks, and the report."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeAlias

from rewardkit.answers.choices import DEFAULT_LETTERS
from rewardkit.answers.number import read_number
from rewardkit.scorers.gold import alternatives, another_answer

#: A `hole` is a false positive, a `miss` a false negative, `conduct` a check of behaviour.
Kind: TypeAlias = Literal["hole", "miss", "conduct"]
Severity: TypeAlias = Literal["high", "medium", "low"]

#: The worst first.
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low")

#: Failures of each attack that a report shows, and characters of each text in them.
MAX_EXAMPLES = 5
MAX_TEXT_CHARACTERS = 200

#: The answer with which a scorer's `respond` is called to learn its form.
ANSWER_MARK = "@ANSWER@"

#: Calls of a scorer that asks a model that are made at once.
REQUESTS_AT_ONCE = 16

_NUMBER = re.compile(r"-?(?:[0-9,]*\.?[0-9]+|[0-9]+/[0-9]+|\\[dt]?frac\{[0-9]+\}\{[0-9]+\})")
_CHOICE = re.compile(r"(?:\\text\{)?\(?([A-J]+)\)?\}?")


@dataclass(frozen=True, kw_only=True)
class AuditRow:
    """A row of an audit: the text that the policy reads, and the values that verl passes to the reward.

    Attributes:
        prompt: all messages, as one text.
        gold: the ground truth.
        data_source: verl's key of the row.
        extra_info: the row's other fields, as JSON values.
    """

    prompt: str
    gold: str
    data_source: str
    extra_info: Mapping[str, Any]


@dataclass(frozen=True)
class AnswerForm:
    """A way to state an answer: the text before it and the text after it."""

    name: str
    before: str
    after: str = ""

    def __call__(self, answer: str) -> str:
        """Return a response that states the answer."""
        return f"{self.before}{answer}{self.after}"


#: The common forms. `bare` is the answer alone.
FORMS = (
    AnswerForm("hash", "#### "),
    AnswerForm("box", r"\boxed{", "}"),
    AnswerForm("answer", "Answer: "),
    AnswerForm("tag", "<answer>", "</answer>"),
    AnswerForm("tag box", r"<think></think><answer>\boxed{", "}</answer>"),
    AnswerForm("says", "The answer is ", "."),
    AnswerForm("bare", ""),
)


@dataclass(frozen=True)
class Target:
    """A row and the form of the responses: the input of an attack."""

    row: AuditRow
    form: AnswerForm

    def respond(self, answer: str) -> str:
        """Return a response in the form."""
        return self.form(answer)

    @cached_property
    def gold(self) -> str:
        """The correct answer; the first one if the row has alternatives."""
        return alternatives(self.row.gold)[0] if self.has_alternatives else self.row.gold

    @cached_property
    def has_alternatives(self) -> bool:
        """Whether the row's gold is a list of alternative words, or an object with one."""
        if self.row.gold[:1] not in ("[", "{"):
            return False
        texts = alternatives(self.row.gold)
        return any(len(text) > 2 and text[0].isalpha() for text in texts)

    @cached_property
    def wrong(self) -> str:
        """An answer of the gold's kind that is certainly wrong."""
        if self.has_alternatives:
            return another_answer(*alternatives(self.row.gold))
        return another_answer(self.letters or self.gold)

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
        options = self.row.extra_info.get("options") or ()
        return "".join(sorted(DEFAULT_LETTERS))[: len(options) or 5]


#: Writes the responses of an attack on a row. Its docstring describes the attack.
ResponseWriter: TypeAlias = Callable[[Target], Iterator[str]]


@dataclass(frozen=True, kw_only=True)
class Attack:
    """A way to cheat a scorer, or to write a correct answer that may get no reward.

    Attributes:
        name: name of the attack.
        kind: `hole`: no response may be rewarded; `miss`: each must be; `conduct`: how the scorer
            behaves.
        severity: severity of a failure.
        about: description in one line.
        responses: writes the responses to try on a row; none for a check of behaviour.
        golds: ground truths that replace that of the row.
        max_rows: maximum number of rows of each data source; 0 for all.
    """

    name: str
    kind: Kind
    severity: Severity
    about: str
    responses: ResponseWriter
    golds: tuple[str, ...] = ()
    max_rows: int = 0

    @classmethod
    def of(
        cls,
        responses: ResponseWriter,
        kind: Kind,
        severity: Severity,
        golds: tuple[str, ...] = (),
        max_rows: int = 0,
    ) -> Attack:
        """Return the attack with the name of a function and the first line of its docstring."""
        return cls(
            name=responses.__name__,
            kind=kind,
            severity=severity,
            about=str(responses.__doc__).partition("\n")[0],
            responses=responses,
            golds=golds,
            max_rows=max_rows,
        )

    def result(self, tried: int, failed: int, failures: Iterable[Failure]) -> AttackResult:
        """Return the result of the attack, with its first failures."""
        return AttackResult(
            attack=self.name,
            kind=self.kind,
            severity=self.severity,
            about=self.about,
            tried=tried,
            failed=failed,
            failures=tuple(failures)[:MAX_EXAMPLES],
        )


@dataclass(frozen=True)
class Failure:
    """A call with an outcome that a sound scorer does not have. The texts are clipped."""

    response: str
    gold: str
    got: str

    @classmethod
    def of(cls, response: str, gold: str, got: str) -> Failure:
        """Return the failure with clipped texts."""
        return cls(shorten_middle(response), shorten_middle(gold), shorten_middle(got))

    @property
    def text(self) -> str:
        """The call in one line."""
        return f"response {self.response!r}, gold {self.gold!r}: {self.got}"


@dataclass(frozen=True, kw_only=True)
class AttackResult:
    """The result of an attack.

    Attributes:
        attack: name of the attack.
        kind: kind of the attack.
        severity: severity of the attack.
        about: description of the attack.
        tried: number of calls.
        failed: number of these calls that failed.
        failures: the first failures.
    """

    attack: str
    kind: Kind
    severity: Severity
    about: str
    tried: int
    failed: int
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ScorerProfile:
    """How a scorer reads and rewards the rows of a data source.

    Attributes:
        data_source: data source of the rows.
        rows: number of rows.
        form: the form of the scorer's `respond`, else the form with the best rewards.
        forms: all forms in which it rewards most golds; `form` is the first.
        right: median score of the gold in `form`; None if half of the calls have no score.
        wrong: median score of a wrong answer in `form`; None if half of the calls have no score.
        declared: whether the scorer itself declares `form`.
        others: the median scores of the gold and of a wrong answer in each other form of `forms`.
    """

    data_source: str
    rows: int
    form: AnswerForm
    forms: tuple[AnswerForm, ...]
    right: float | None
    wrong: float | None
    declared: bool = False
    others: tuple[tuple[float, float], ...] = ()

    @property
    def threshold(self) -> float:
        """A score above this is a reward: halfway from the best wrong answer to the least right one.

        A wrong answer may get more in one form than in another, as where a reward pays for the form.
        """
        if self.right is None or not self.rewards_golds:
            return 0.5
        wrong = min(0.0, self.right - 1) if self.wrong is None else self.wrong
        least = min([self.right, *(right for right, _ in self.others)])
        most = max([wrong, *(other for _, other in self.others)])
        return (least + most) / 2 if least > most else (self.right + wrong) / 2

    @property
    def rewards_golds(self) -> bool:
        """Whether the gold gets more than a wrong answer; no score is less than any."""
        return self.right is not None and (self.wrong is None or self.right > self.wrong)

    @property
    def scores(self) -> str:
        """The scores of the gold and of a wrong answer, in words."""
        right, wrong = (format_score(score) for score in (self.right, self.wrong))
        is_mostly_free = self.rewards_golds and (self.wrong or 0.0) > (self.right or 0.0) / 2
        note = ": most of the reward is not for the answer" if is_mostly_free else ""
        return f"the gold gets {right}, a wrong answer {wrong}{note}"


def format_score(score: float | None) -> str:
    """Return a score as text; the scorer may have returned none."""
    return "no score" if score is None else f"{score:g}"


@dataclass(frozen=True, kw_only=True)
class AuditReport:
    """The result of an audit.

    Attributes:
        scorer: name of the scorer.
        options: options of the scorer.
        readings: a profile of the scorer for each data source.
        findings: a result for each attack that applied to a row.
        calls: number of calls.
        median_ms: median duration of a call on an ordinary response.
        worst_ms: longest duration of a call.
        left_out: data sources of the packaged rows that the scorer does not reward.
        is_stopped: whether the scorer hung or ended its process too often to go on.
        grade: A to F.
    """

    scorer: str
    options: Mapping[str, Any]
    readings: tuple[ScorerProfile, ...]
    findings: tuple[AttackResult, ...]
    calls: int
    median_ms: float
    worst_ms: float
    left_out: tuple[str, ...] = ()
    is_stopped: bool = False
    grade: str = field(init=False)

    def __post_init__(self) -> None:
        has_score = not self.readings or any(it.right is not None for it in self.readings)
        object.__setattr__(self, "grade", grade(self.findings) if has_score else "F")

    @property
    def failed(self) -> tuple[AttackResult, ...]:
        """The attacks that went through, the worst first."""
        failed = (result for result in self.findings if result.failed)
        return tuple(sorted(failed, key=lambda result: SEVERITIES.index(result.severity)))

    def at_least(self, severity: Severity) -> tuple[AttackResult, ...]:
        """Return the attacks of this severity or worse that went through."""
        severities = SEVERITIES[: SEVERITIES.index(severity) + 1]
        return tuple(result for result in self.failed if result.severity in severities)


#: What each grade says about a scorer; `grade` assigns them.
GRADE_MEANINGS = {
    "A": "No attack worse than low severity succeeded: the scorer is fit for training.",
    "B": "One to three attacks of medium severity succeeded: read them before a long run.",
    "C": "Four attacks or more of medium severity succeeded: fix those that your data can meet.",
    "D": "One to three attacks of high severity succeeded: fix them before training.",
    "F": "Four attacks or more of high severity succeeded, or the gold is not rewarded, or a plainly "
    "wrong answer is: do not train with this scorer.",
}
#: What to know about an audit that `is_stopped`.
STOPPED_EARLY = (
    "The audit stopped early, because the scorer hung or ended its process too often: the attacks that "
    "are missing may succeed, too."
)
#: A scorer that fails one of these attacks gets the grade F.
BASIC_ATTACKS = frozenset({"gold_in_its_form", "wrong_answer"})


def grade(results: tuple[AttackResult, ...]) -> str:
    """Return the grade from A to F, by the attacks that went through.

    F: four attacks or more of high severity, the gold gets nothing, or a plainly wrong answer is
    rewarded; D: one to three of high severity; C: four or more of medium; B: one to three of medium;
    A: nothing worse than low.
    """
    failed = [result for result in results if result.failed]
    high = sum(result.severity == "high" for result in failed)
    medium = sum(result.severity == "medium" for result in failed)
    if high > 3 or any(result.attack in BASIC_ATTACKS for result in failed):
        return "F"
    if high:
        return "D"
    return "C" if medium > 3 else "B" if medium else "A"


def shorten_middle(text: str) -> str:
    """Return a text; if it is long, the number of characters replaces its middle."""
    if len(text) <= MAX_TEXT_CHARACTERS:
        return text
    half = MAX_TEXT_CHARACTERS // 2
    return f"{text[:half]} ...[{len(text) - MAX_TEXT_CHARACTERS:,} characters]... {text[-half:]}"
