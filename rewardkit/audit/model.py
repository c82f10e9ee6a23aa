"""The data types of an audit: rows, forms of answers, attacks, and the report."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeAlias

from rewardkit.answers.choices import DEFAULT_LETTERS
from rewardkit.answers.number import read_number
from rewardkit.errors import call_catching
from rewardkit.programs.problem import Problem, read_problem
from rewardkit.scorers.gold import alternatives, another_answer
from rewardkit.scorers.right_score import PLAIN_FORMS, AnswerForm
from rewardkit.sql.query import Task, read_task

#: A `hole` rewards a wrong answer, a `miss` no right one, and `conduct` is how a scorer behaves.
Kind: TypeAlias = Literal["hole", "miss", "conduct"]
Severity: TypeAlias = Literal["high", "medium", "low"]

#: The worst first.
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low")

#: Failures of each attack that a report shows, and characters of each text in them; names of attacks
#: that were not run.
MAX_EXAMPLES = 5
MAX_TEXT_CHARACTERS = 200
MAX_NAMES = 10

_NUMBER = re.compile(r"-?(?:[0-9,]*\.?[0-9]+|[0-9]+/[0-9]+|\\[dt]?frac\{[0-9]+\}\{[0-9]+\})")
_CHOICE = re.compile(r"(?:\\text\{)?\(?([A-J]+)\)?\}?")


@dataclass(frozen=True, kw_only=True)
class AuditRow:
    """A row of an audit: all messages of the prompt as one text, and what verl passes to the reward.

    `task` is the scorer of a row whose gold is not an answer; it has whole responses in `extra_info`.
    """

    prompt: str
    gold: str
    data_source: str
    extra_info: Mapping[str, Any]
    task: str = ""

    @cached_property
    def problem(self) -> Problem | Task | None:
        """The problem that a program or a query solves; None if the row asks for an answer."""
        readers = (read_problem, read_task) if self.gold[:1] == "{" else ()
        problems = (call_catching(read, self.gold) for read in readers)
        return next((each for each in problems if isinstance(each, (Problem, Task))), None)


_BARE, _HASH, _BOX, _ANSWER, _SAYS = PLAIN_FORMS

#: The common forms; those with tags leave out the reasoning.
FORMS = (
    *(_HASH, _BOX, _ANSWER, AnswerForm("tag", "<answer>", "</answer>")),
    AnswerForm("tag box", r"<think></think><answer>\boxed{", "}</answer>"),
    *(_SAYS, _BARE),
)


#: The form of programs.
FENCE = AnswerForm("fence", "```python\n", "\n```")
#: The form of queries.
SQL_FENCE = AnswerForm("fence", "```sql\n", "\n```")
#: That of whole responses.
WHOLE = _BARE


@dataclass(frozen=True)
class Target:
    """A row and the form of the responses: the input of an attack."""

    row: AuditRow
    form: AnswerForm

    def respond(self, answer: str) -> str:
        """Return a response in the form."""
        return self.form(answer)

    @property
    def right_response(self) -> str:
        """The response with the correct answer."""
        return self.form(self.gold)

    @property
    def wrong_response(self) -> str:
        """The response with a wrong answer."""
        return self.form(self.wrong)

    @cached_property
    def gold(self) -> str:
        """The correct answer; the first one if the row has alternatives, the solution of a problem."""
        if self.row.task:
            return str(self.row.extra_info["right"])
        if isinstance(self.row.problem, Task):
            return self.row.problem.query
        if self.row.problem:
            info = self.row.extra_info  # `prep` writes the solution into `answer`
            return str(info.get("solution") or info.get("answer") or "")
        return alternatives(self.row.gold)[0] if self.has_alternatives else self.row.gold

    @cached_property
    def has_alternatives(self) -> bool:
        """Whether the row's gold is a list of alternative words, or an object with one."""
        is_list = self.row.gold[:1] in ("[", "{") and not self.row.task
        texts = alternatives(self.row.gold) if is_list else ()
        return any(len(text) > 2 and text[0].isalpha() for text in texts)

    @cached_property
    def wrong(self) -> str:
        """An answer of the gold's kind that is certainly wrong."""
        if self.row.task:
            return str(self.row.extra_info["wrong"])
        if self.row.problem:
            return "SELECT 7919" if isinstance(self.row.problem, Task) else "raise ValueError"
        if self.has_alternatives:
            return another_answer(*alternatives(self.row.gold))
        return another_answer(self.letters or self.gold)

    @cached_property
    def number(self) -> Fraction | None:
        """The gold's value if it is one plain number."""
        value = read_number(self.gold) if _NUMBER.fullmatch(self.gold) else None
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

    @property
    def other_letters(self) -> str:
        """The letters of the other options; "" if the gold is not a choice."""
        return "".join(c for c in self.choices if c not in self.letters) if self.letters else ""

    @property
    def is_one_answer(self) -> bool:
        """Whether the gold is not several letters, which may be one answer."""
        return len(self.letters) < 2

    @property
    def is_integer(self) -> bool:
        """Whether the gold is written as an integer."""
        return self.integer is not None

    @property
    def has_no_thought(self) -> bool:
        """Whether the form has no thought of its own."""
        return "<think>" not in self.form.before

    @property
    def is_boxed(self) -> bool:
        """Whether the answer is in a box, and the box in nothing else."""
        return "boxed" in self.form.before and not self.form.before.startswith("<")

    @property
    def is_hash(self) -> bool:
        """Whether the form is GSM8K's, which has plain text and not TeX."""
        return self.form.before.startswith("#")


#: The responses of an attack on a row, and the function that writes them. Its docstring describes the
#: attack.
Responses: TypeAlias = Iterator[str]
ResponseWriter: TypeAlias = Callable[[Target], Responses]


@dataclass(frozen=True)
class Attack:
    """A way to cheat a scorer, or to write a correct answer that may get no reward.

    `golds` replace the ground truth of the row; `max_rows` limits the rows of each data source, 0 for all;
    `task` is that of the rows that it is for, `program` for those with a programming problem, "" for those with
    answers; `writes_messages` says that it writes conversations, for rows with tools.
    """

    name: str
    kind: Kind
    severity: Severity
    about: str
    responses: ResponseWriter = lambda _: iter(())
    golds: tuple[str, ...] = ()
    max_rows: int = 0
    task: str = ""
    writes_messages: bool = False

    def applies_to(self, row: AuditRow) -> bool:
        """Return whether the attack is for a row of this sort."""
        has_tools = bool(row.extra_info.get("tools_kwargs"))
        task = row.task or ("program" if row.problem else "")
        return self.task == task and (has_tools or not self.writes_messages)


def attack(
    attacks: list[Attack], kind: Kind, severity: Severity, max_rows: int = 0
) -> Callable[[ResponseWriter], ResponseWriter]:
    """Return a decorator that adds the attack of a function, with its name and docstring, to a list."""

    def add(write: ResponseWriter) -> ResponseWriter:
        about = str(write.__doc__).partition("\n")[0]
        attacks.append(Attack(write.__name__, kind, severity, about, write, max_rows=max_rows))
        return write

    return add


@dataclass(frozen=True)
class Failure:
    """A call with an outcome that a sound scorer does not have. The texts are clipped."""

    response: str
    gold: str
    got: str

    @property
    def text(self) -> str:
        """The call in one line."""
        return f"response {self.response!r}, gold {self.gold!r}: {self.got}"


@dataclass(kw_only=True)
class AttackResult:
    """The result of an attack: the calls, those that failed, and the first failures."""

    attack: str
    kind: Kind
    severity: Severity
    about: str
    tried: int = 0
    failed: int = 0
    failures: list[Failure] = field(default_factory=list)

    @classmethod
    def of(cls, attack: Attack) -> "AttackResult":
        """Return the result of an attack before its first call."""
        name, about = attack.name, attack.about
        return cls(attack=name, kind=attack.kind, severity=attack.severity, about=about)

    def add_failure(self, response: str, gold: str, got: str) -> None:
        """Count a failure, and keep it if it is one of the first."""
        self.failed += 1
        if len(self.failures) < MAX_EXAMPLES:
            self.failures.append(Failure(*map(shorten_middle, (response, gold, got))))


@dataclass(frozen=True)
class ScorerProfile:
    """How a scorer reads and rewards the rows of a data source.

    `form` is that of the scorer's `respond`, which then is `declared`, else the form with the best
    rewards; `forms` are all in which it rewards most golds, the first is `form`. `right` and `wrong` are
    the median scores of the gold and of a wrong answer in `form`, None if half of the calls have no score,
    and `others` those in each other form.
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
        is_mostly_free = self.rewards_golds and (self.wrong or 0.0) > (self.right or 0.0) / 2
        note = ": most of the reward is not for the answer" if is_mostly_free else ""
        right, wrong = format_score(self.right), format_score(self.wrong)
        return f"the gold gets {right}, a wrong answer {wrong}{note}"


def format_score(score: float | None) -> str:
    """Return a score as text; the scorer may have returned none."""
    return "no score" if score is None else f"{score:g}"


@dataclass(frozen=True, kw_only=True)
class AuditReport:
    """The result of an audit: profiles, and a result for each attack that applied to a row.

    `left_out` are data sources of the packaged rows that the scorer does not reward; `not_run` are
    attacks of which not all calls were made; `is_stopped` says whether the scorer hung or ended its
    process too often to go on.
    """

    scorer: str
    options: Mapping[str, Any]
    readings: tuple[ScorerProfile, ...]
    findings: tuple[AttackResult, ...]
    calls: int
    median_ms: float
    worst_ms: float
    left_out: tuple[str, ...] = ()
    not_run: tuple[str, ...] = ()
    is_stopped: bool = False
    grade: str = field(init=False)

    def __post_init__(self) -> None:
        has_score = not self.readings or any(each.right is not None for each in self.readings)
        object.__setattr__(self, "grade", grade(self.findings) if has_score else "F")

    @property
    def failed(self) -> tuple[AttackResult, ...]:
        """The attacks that went through, the worst first."""
        return self.at_least("low")

    @property
    def omissions(self) -> str:
        """What was not run, and why, in words; "" if all calls were made."""
        if not self.is_stopped and not self.not_run:
            return ""
        reason = STOPPED_EARLY if self.is_stopped else NOT_REPEATED
        names, more = self.not_run[:MAX_NAMES], len(self.not_run) - MAX_NAMES
        others = f" and {more} others" if more > 0 else ""
        return f"{reason} Not run, or not on all rows: {', '.join(names) or 'nothing'}{others}."

    def at_least(self, severity: Severity) -> tuple[AttackResult, ...]:
        """Return the attacks of this severity or worse that went through, the worst first."""
        return tuple(
            result
            for each in severities_from(severity)
            for result in self.findings
            if result.failed and result.severity == each
        )


def severities_from(severity: Severity) -> tuple[Severity, ...]:
    """Return a severity and those that are worse, the worst first."""
    return SEVERITIES[: SEVERITIES.index(severity) + 1]


#: What each grade says about a scorer; `grade` assigns them.
GRADE_MEANINGS = {
    "A": "No attack worse than low severity succeeded: the scorer is fit for training.",
    "B": "One to three attacks of medium severity succeeded: read them before a long run.",
    "C": "Four attacks or more of medium severity succeeded: fix those that your data can meet.",
    "D": "One to three attacks of high severity succeeded: fix them before training.",
    "F": "Four attacks or more of high severity succeeded, or the gold is not rewarded, or a plainly "
    "wrong answer is: do not train with this scorer.",
}
#: What to know about an audit that `is_stopped`, and about one that was not.
STOPPED_EARLY = (
    "The audit stopped early, because the scorer hung or ended its process too often: the attacks that "
    "are missing may succeed, too."
)
NOT_REPEATED = "An attack with programs ends with the first that hangs or ends the scorer."
#: A scorer that fails one of these attacks gets the grade F.
BASIC_ATTACKS = frozenset(
    "gold_in_its_form wrong_answer right_call wrong_call right_json wrong_json right_text".split()
)


def grade(results: tuple[AttackResult, ...]) -> str:
    """Return the grade from A to F by the attacks that went through, as `GRADE_MEANINGS` says."""
    failed = [result for result in results if result.failed]
    high, medium = (sum(result.severity == s for result in failed) for s in ("high", "medium"))
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
