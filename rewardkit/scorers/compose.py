"""A reward of several parts, from YAML or a few lines of Python, as a file that verl loads.

docs/reference/score.md has the keys of the YAML. A second scorer, such as a judge, is asked about what
rules did not call correct (TinyV, arXiv:2505.14625, asks a small model), or, with `ask: correct`, about
what they did: then its no makes the sample wrong, and nothing else changes. It is never asked about a
response without an answer, or where `error` is set. About wrong answers, only its yes changes a
verdict: the sample gets its score. Otherwise the rule's score stays, and if the second scorer fails,
`error` or `timeout` is 1.0 too. A function with verl's signature has no undecided answers, so ask about
`wrong` ones. verl logs for every sample `rule_decided`, `second_asked`, `second_changed`,
`second_contradicted` (its yes was not confirmed), and the judge's own numbers.

Where the messages of a rollout are known (see `conversation`), the scorers judge the model's last message,
and the parts read all of the model's messages, and none of a tool.

A scorer gets text, not tokens, so lengths are in characters; to penalise length in tokens, use the
overlong buffer of verl's `dapo` manager. In Python, it is
`Reward(gsm8k.score, (Part("brief", 0.1, lambda score, response: float(len(response) < 2000)),))`, whose
`compute_score` is the function for verl.
"""

import ast
import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import partial
from inspect import iscoroutinefunction
from math import fsum, isfinite
from pathlib import Path
from pprint import pformat
from textwrap import indent
from time import perf_counter
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, Field

from rewardkit import registry
from rewardkit.errors import DataError, UsageError, call_catching, call_catching_async
from rewardkit.output import atomic
from rewardkit.redact import process_redactor
from rewardkit.scorers.base import (
    RECORD,
    VERL_KWARGS,
    Score,
    Scorer,
    ScorerSpec,
    Status,
    error_line,
    failed_verl_score,
    failure_result,
    record_result,
    require_score,
    spec_of,
    text_or_type,
    to_verl,
    verl_score,
)
from rewardkit.scorers.conversation import (
    NO_MESSAGES,
    TURNS_OF_ONE,
    Conversation,
    read_conversation,
)
from rewardkit.scorers.load import load_scorer
from rewardkit.scorers.options import bound_options, has_option, inner_function, is_verl_function
from rewardkit.scorers.right_score import GoldRow
from rewardkit.scorers.score import LITERAL, RewardResult, RightRule
from rewardkit.scorers.shaping import PARTS
from rewardkit.strict_yaml import STRICT, read_yaml_file, validate

#: About which responses the second scorer is asked.
Ask: TypeAlias = Literal["wrong", "undecided", "correct", "never"]

#: What rules could not read. TIMEOUT is that of a rule, such as Math-Verify's.
_UNDECIDED = frozenset(
    {Status.UNPARSED_ANSWER, Status.AMBIGUOUS_ANSWER, Status.TOO_LONG, Status.TIMEOUT}
)
_ASKED: Mapping[Ask, frozenset[Status]] = {
    "wrong": _UNDECIDED | {Status.WRONG},
    "undecided": _UNDECIDED,
    "correct": frozenset({Status.CORRECT}),
    "never": frozenset(),
}
#: The statuses that are verdicts of rules.
_DECIDED = frozenset({Status.CORRECT, Status.WRONG, Status.NO_ANSWER})
#: The statuses of a second scorer that failed; any other one that is not correct is a no.
_FAILURES = (Status.FAILED, Status.BAD_GROUND_TRUTH, Status.UNKNOWN_DATA_SOURCE)

#: The number of a judge that had no budget left, which is not a no.
OVER_BUDGET = "judge_over_budget"

#: The numbers that verl gets of every sample of a reward with a second scorer.
METRICS = ("rule_decided", "second_asked", "second_changed", "second_contradicted")

#: Computes the value of a part from the scorer's score and the response, or the conversation.
Value: TypeAlias = Callable[[Score, Any], float]

#: Keys of the result that a part may not have: ours, and those that verl sets.
RESERVED = frozenset({*to_verl(Score.wrong()), *METRICS, "reward", "overlong", "overlong_reward"})

#: Keys that stand for a second scorer's settings.
_SECOND_KEYS = ("second_options", "second_right_score", "ask", "confirm")

#: The golds by which a custom scorer is tried: a number, a choice and a formula.
_GOLDS: tuple[GoldRow, ...] = (("42", {}), ("B", {}), (r"\frac{3}{4}", {}))

#: A larger file is not one that `compose` wrote.
_MAX_FILE_BYTES = 1 << 20

#: What asks for confirmation with the question asked the other way round.
_REVERSE = {"reverse": True}

T = TypeVar("T")
_Options: TypeAlias = dict[str, Any]


def _confirm_options(value: Any) -> Any:
    return {True: _REVERSE, False: None}[value] if isinstance(value, bool) else value


class RewardYaml(BaseModel):
    """The keys of a reward; docs/reference/score.md has their table."""

    model_config = STRICT

    scorer: str
    options: _Options = Field(default_factory=dict)
    right_score: float | None = None
    parts: _Options = Field(default_factory=dict)
    second: str | None = None
    second_options: _Options = Field(default_factory=dict)
    second_right_score: float | None = None
    ask: Ask = "undecided"
    confirm: Annotated[_Options | None, BeforeValidator(_confirm_options)] = None


@dataclass(frozen=True)
class Part:
    """One part of a reward: the key of its contribution in verl's log, its weight and its value.

    `value` takes the response, or a `Conversation` if `reads_conversation`.
    """

    name: str
    weight: float
    value: Value
    reads_conversation: bool = False

    def __post_init__(self) -> None:
        if not isfinite(self.weight):
            raise UsageError(f"part {self.name!r}: weight={self.weight!r}; give a number.")

    def finite_value(self, score: Score, conversation: Conversation) -> float:
        """Return the value for what the model wrote.

        Raises:
            ValueError: it is not finite, so that it would reach every weight of the policy.
        """
        text = "\n".join(conversation.turns)
        value = float(self.value(score, conversation if self.reads_conversation else text))
        if not isfinite(value):
            raise ValueError(f"part {self.name!r} is {value}")
        return value


@dataclass(frozen=True)
class Reward:
    """The weighted sum of several parts, which is itself a scorer.

    Attributes:
        scorer: judges the answer; `acc` and `pred` come from it.
        parts: the parts, in the order of their keys in verl's log.
        second: a second scorer, asked about what the first did not call correct; None for none.
        rule: which results of the scorer are right, unless it says so itself.
    """

    scorer: Scorer
    parts: tuple[Part, ...]
    second: "SecondOpinion | None" = None
    rule: RightRule = LITERAL

    def __post_init__(self) -> None:
        names = [part.name for part in self.parts]
        if not names:
            raise UsageError("a reward needs at least one part, such as correct: 1.0.")
        for name in names:
            if name in RESERVED or names.count(name) > 1:
                raise UsageError(f"part {name!r}: the name is in use; choose another.")

    @property
    def is_async(self) -> bool:
        """Whether verl should await `compute_score_async` instead of calling `compute_score`."""
        return self.second is not None and iscoroutinefunction(_verl_function(self.second.scorer))

    def spec(self, score: Scorer, text: str, verl_function: Callable[..., Any]) -> ScorerSpec:
        """Return the spec for the file of this reward."""
        second = self.second
        asks_server = spec_of(self.scorer).asks_server or bool(
            second and second.ask != "never" and spec_of(second.scorer).asks_server
        )
        respond = spec_of(self.scorer).respond
        return ScorerSpec(
            score, text, respond, asks_server=asks_server, verl_function=verl_function
        )

    def __call__(
        self,
        response: str,
        ground_truth: str,
        extra_info: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Score:
        """Return the scorer's score with the sum of the parts as its number."""
        conversation = read_conversation(extra_info) or Conversation((response,))
        last = conversation.turns[-1]
        conversation = conversation._replace(ground_truth=ground_truth)
        score = self.rule.judge(self.scorer(last, ground_truth, extra_info, **options))
        if self.second is not None:
            sample = VerlSample("", last, ground_truth, extra_info, {})
            score = _finish(self.second.revise(score, sample, _at_once)).score
        values = (part.weight * part.finite_value(score, conversation) for part in self.parts)
        return score._replace(score=fsum(values))

    def compute_score(
        self,
        data_source: Any,
        solution_str: Any,
        ground_truth: Any,
        extra_info: Any = None,
        **kwargs: Any,
    ) -> dict[str, float | str]:
        """Score a sample for verl, as `base.verl_result` does. Never raises.

        The weighted sum is the `score`, and the contribution of each part has its key. A part that
        fails contributes 0.0 and sets `error`.
        """
        sample = VerlSample(data_source, solution_str, ground_truth, extra_info, kwargs)
        return _finish(self._evaluate(sample, _at_once))

    async def compute_score_async(
        self,
        data_source: Any,
        solution_str: Any,
        ground_truth: Any,
        extra_info: Any = None,
        **kwargs: Any,
    ) -> dict[str, float | str]:
        """`compute_score`, which waits for the second scorer in verl's event loop."""
        sample = VerlSample(data_source, solution_str, ground_truth, extra_info, kwargs)
        # Rules run in a thread, as verl runs a reward that is not async: they may take their time.
        return await self._evaluate(sample, asyncio.to_thread)

    def _conversation(self, sample: "VerlSample") -> Conversation:
        """Return the conversation of a sample of verl, or its response as the only turn.

        Raises:
            DataError: a part needs the messages, which did not arrive, or they cannot be read.
        """
        conversation = read_conversation(sample.extra_info)
        if conversation is None:
            is_one_turn = sample.extra_info.get("num_turns") == TURNS_OF_ONE
            if not is_one_turn and any(part.reads_conversation for part in self.parts):
                raise DataError(NO_MESSAGES)
            conversation = Conversation((text_or_type(sample.solution_str),))
        return conversation._replace(ground_truth=sample.ground_truth)

    async def _evaluate(self, sample: "VerlSample", call: "Call") -> dict[str, float | str]:
        started, kwargs = perf_counter(), dict(sample.kwargs)
        folder = kwargs.pop(RECORD, None)
        info = dict(sample.extra_info) if isinstance(sample.extra_info, Mapping) else {}
        info["data_source"] = text_or_type(sample.data_source)  # `auto` reads it there
        own = {name: value for name, value in kwargs.items() if name in VERL_KWARGS}
        sample = sample._replace(extra_info=info, kwargs=own)
        conversation = call_catching(self._conversation, sample)
        if isinstance(conversation, Exception):
            score = failed_verl_score(sample.data_source, conversation)
        else:
            score = self.rule.judge(await call(verl_score, self.scorer, *sample[:4], kwargs))
        metrics: Mapping[str, float] = {}
        if self.second:
            score, metrics = await self.second.revise(score, sample, call)
        fields, contributions = to_verl(score), {}
        for part in self.parts:
            value: float | Exception = 0.0
            if not isinstance(conversation, Exception):
                value = call_catching(part.finite_value, score, conversation)
            if isinstance(value, Exception):
                fields["error"] = failure_result(sample.data_source, value)["error"]
                value = 0.0
            contributions[part.name] = part.weight * value
        fields["score"] = fsum(contributions.values())
        result = {**fields, **metrics, **contributions}
        record_result(folder, result, sample[:4], perf_counter() - started)
        return result


#: Calls a function that computes: at once, or in a thread while an event loop goes on.
Call: TypeAlias = Callable[..., Awaitable[Any]]


async def _at_once(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    return function(*args, **kwargs)


def _finish(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that calls everything at once, and so never waits."""
    try:
        work.send(None)
    except StopIteration as end:
        return cast(T, end.value)
    raise RuntimeError("the coroutine waits")


class Opinion(NamedTuple):
    """The score of a scorer, and the numbers that its file adds for verl."""

    score: Score
    metrics: Mapping[str, float]


class VerlSample(NamedTuple):
    """What verl passes to a reward."""

    data_source: Any
    solution_str: Any
    ground_truth: Any
    extra_info: Any
    kwargs: Mapping[str, Any]


@dataclass(frozen=True)
class SecondOpinion:
    """A second scorer, and when it is asked.

    Attributes:
        scorer: the second scorer, with its options bound.
        ask: `undecided`: about what the first could not read; `wrong`: also about what it calls
            wrong; `correct`: about what it calls correct, which its no makes wrong; `never`.
        confirm: asked after its yes, which counts only if this one says yes too; None for no one.
        blank: the numbers that its file adds for verl, for a sample that it is not asked about.
        rule: which of its results are right, unless it says so itself.
        wrong_score: the score of what its no makes wrong.
    """

    scorer: Scorer
    ask: Ask = "undecided"
    confirm: Scorer | None = None
    blank: Mapping[str, float] = field(default_factory=dict)
    rule: RightRule = LITERAL
    wrong_score: float = 0.0

    async def revise(self, first: Score, sample: VerlSample, call: Call) -> Opinion:
        """Return the score of a response and the numbers for verl. Never raises.

        A failure of the second scorer keeps the first's number and sets `error` or `timeout`.
        """
        opinions: list[Opinion] = []
        if first.status in _ASKED[self.ask] and text_or_type(sample.solution_str).strip():
            opinions.append(await self._ask(self.scorer, sample, call))
            if self.confirm and opinions[0].score.correct:
                opinions.append(await self._ask(self.confirm, sample, call))
        scores = [opinion.score for opinion in opinions]
        total: dict[str, float] = {}
        for name, value in (pair for opinion in opinions for pair in opinion.metrics.items()):
            # Time and cost of two questions are added, of other numbers the larger one counts.
            is_amount = name.endswith(("seconds", "tokens", "cost"))
            before = total.get(name, 0.0)
            total[name] = before + value if is_amount else max(before, value)
        score = self._verdict(first, scores, is_over_budget=bool(total.get(OVER_BUDGET)))
        is_no = len(scores) == 2 and scores[1].status is Status.WRONG
        metrics = {
            **{name: total.get(name, value) for name, value in self.blank.items()},
            "rule_decided": not scores and first.status in _DECIDED,
            "second_asked": bool(scores),
            "second_changed": bool(score.correct) != bool(first.correct),
            "second_contradicted": is_no and not total.get(OVER_BUDGET),
        }
        return Opinion(score, {name: float(value) for name, value in metrics.items()})

    def _verdict(self, first: Score, scores: list[Score], *, is_over_budget: bool) -> Score:
        """Return what becomes of the first score, by those of the second scorer."""
        is_gate = self.ask == "correct"
        if not scores or (is_gate and (scores[-1].correct or is_over_budget)):
            return first
        if scores[-1].correct:
            return Score.right(first.pred or scores[0].pred, scores[0].score)
        last = scores[-1].status
        failure = Status.FAILED if last in _FAILURES else Status.WRONG
        status = last if last is Status.TIMEOUT else failure
        if is_gate and status is Status.WRONG:
            return Score.wrong(first.pred, score=self.wrong_score)
        return first._replace(status=status)

    async def _ask(self, scorer: Scorer, sample: VerlSample, call: Call) -> Opinion:
        """Ask the scorer's function for verl, if it waits: it has numbers. Otherwise ask the scorer."""
        function, asks_server = _verl_function(scorer), spec_of(scorer).asks_server
        is_async = iscoroutinefunction(function)
        if function is None or (is_async and call is _at_once):
            return Opinion(self.rule.judge(await call(verl_score, scorer, *sample)), {})
        own = {**bound_options(scorer), **(sample.kwargs if asks_server else {})}
        ask = partial(function, *sample[:4], **own)
        result = await (call_catching_async(ask) if is_async else call(call_catching, ask))
        score = result
        if not isinstance(result, Exception):
            score = call_catching(lambda: require_score(RewardResult.of(result).as_score()))
        if isinstance(score, Exception):
            score = failed_verl_score(sample.data_source, score, spec_of(scorer).wrong_score)
        pairs = result.items() if isinstance(result, Mapping) else ()
        numbers = {name: float(value) for name, value in pairs if type(value) in (int, float)}
        return Opinion(self.rule.judge(score), numbers)


def _verl_function(scorer: Scorer) -> Callable[..., Any] | None:
    """Return the function for verl of a scorer that waits: of its file if it asks a server, or its own.

    Of other scorers, the function for verl says no more than their score.
    """
    function = inner_function(scorer)
    if iscoroutinefunction(function):
        return function if is_verl_function(scorer) else None
    spec = spec_of(scorer)
    return spec.verl_function if spec.asks_server else None


def build(spec: Any, *, where: str = "reward", load: Callable[..., Scorer] = load_scorer) -> Reward:
    """Return the reward in a mapping of the YAML's form; `where` is its place, for messages.

    Raises:
        UsageError: a key, scorer, option, part or setting is unknown, or a value is invalid.
    """
    keys = validate(RewardYaml, spec, where)
    if keys.second is None and (unused := next((k for k in _SECOND_KEYS if k in spec), None)):
        raise UsageError(f"{where}: {unused} is for a second scorer, as in `second: judge`.")
    scorer = load(keys.scorer, **keys.options)
    parts = []
    for name, value in keys.parts.items():
        if name not in PARTS:
            near = registry.did_you_mean(name, PARTS)
            raise UsageError(
                f"{where}: parts: unknown key {name!r}.{near} Known: {', '.join(PARTS)}."
            )
        part = validate(PARTS[name], value, f"{where}: parts.{name}")
        parts.append(Part(name, part.weight, part.value, part.reads_conversation))
    second = _second(keys, where, load, spec_of(scorer).wrong_score)
    return Reward(scorer, tuple(parts), second, _rule(keys.right_score, "right_score"))


def _rule(least: float | None, key: str) -> RightRule:
    return LITERAL if least is None else RightRule(least, False, key)


def _second(
    keys: RewardYaml, where: str, load: Callable[..., Scorer], wrong_score: float
) -> SecondOpinion | None:
    if keys.second is None:
        return None
    scorer, other = load(keys.second, **keys.second_options), None
    if keys.confirm == _REVERSE and not has_option(scorer, "reverse"):
        raise UsageError(
            f"{where}: confirm: {keys.second} has no option `reverse`, which asks the other way "
            "round; give the options of the second question, as in `confirm: {model: another}`."
        )
    if keys.confirm is not None:
        other = load(keys.second, **{**keys.second_options, **keys.confirm})
    blank_metrics = spec_of(scorer).blank_metrics
    blank = dict(blank_metrics(bound_options(scorer))) if blank_metrics else {}
    rule = _rule(keys.second_right_score, "second_right_score")
    return SecondOpinion(scorer, keys.ask, other, blank, rule, wrong_score)


def write_reward_file(
    yaml_path: str | Path,
    out_py: str | Path,
    *,
    overwrite: bool = False,
    load_seconds: float = 60.0,
    announce: Callable[[str], object] = lambda _: None,
) -> Path:
    """Write a reward as a Python file for verl, which needs rewardkit but not the YAML.

    A custom scorer is named in the file by its absolute path, so it must exist on every node.

    Returns:
        The absolute path of the file, for verl's `custom_reward_function.path`.

    Raises:
        UsageError: the YAML is invalid, or contains a secret.
        OutputError: `out_py` exists, or it cannot be written.
    """
    from rewardkit.scorers.isolated import is_built_in, learn_rule, open_scorer

    spec, out = _read_spec(Path(yaml_path)), Path(out_py)
    if process_redactor().tree(spec) != spec:
        raise UsageError(
            f"{yaml_path}: it contains a secret, which would be written into {out}. Let the scorer read "
            "it from a variable of the environment, as a judge does with api_key_env."
        )
    rules: dict[str, RightRule] = {}

    def try_scorer(name: str, /, **options: Any) -> Scorer:
        """Return a built-in scorer; try a custom one in a process of its own, for its rule."""
        if is_built_in(name):
            return load_scorer(name, **options)
        with open_scorer(name, options, load_seconds=load_seconds) as scorer:
            rules[name] = learn_rule(scorer, _GOLDS)[1]
        return lambda *_sample, **_options: Score.wrong()  # it is never called

    build(spec, where=str(yaml_path), load=try_scorer)
    for scorer, key in (("scorer", "right_score"), ("second", "second_right_score")):
        rule = rules.get(str(spec.get(scorer)), RightRule())
        if key not in spec and not rule.is_known and not rule.takes_verdict:
            raise UsageError(
                f"{yaml_path}: {spec[scorer]}: {rule.sentence.replace('--right-score', key)}"
            )
        if rule.least is not None and key not in spec:
            announce(f"{spec[scorer]}: {rule.sentence}")
            spec[key] = rule.least
    # The literal is the `repr` of strings, numbers and containers, so no text of the YAML is code.
    literal = indent(pformat(spec, sort_dicts=False), " " * 4)
    with atomic(out, overwrite=overwrite) as temporary:
        temporary.write_text(_TEMPLATE.replace("{spec}", literal), encoding="utf-8")
    return out.resolve()


_TEMPLATE = '''"""A reward of several parts, for verl. Written by rewardkit.scorers.compose."""

from rewardkit.scorers.compose import build

REWARD = build(
{spec}
)


def score(response, ground_truth, extra_info=None):
    """The reward as a rewardkit scorer."""
    return REWARD(response, ground_truth, extra_info)


def _compute_now(data_source, solution_str, ground_truth, extra_info=None, **kwargs):
    return REWARD.compute_score(data_source, solution_str, ground_truth, extra_info, **kwargs)


async def _compute_async(data_source, solution_str, ground_truth, extra_info=None, **kwargs):
    return await REWARD.compute_score_async(
        data_source, solution_str, ground_truth, extra_info, **kwargs
    )


#: What verl calls; it awaits rewards that ask a judge, many at once, from 0.7 on.
compute_score = _compute_async if REWARD.is_async else _compute_now

SPEC = REWARD.spec(score, __doc__, compute_score)
'''


def _read_spec(path: Path) -> Any:
    try:
        spec = read_yaml_file(path)
        # NaN and infinity cannot be written into a Python file.
        spec = json.loads(json.dumps(spec, allow_nan=False))
    except DataError as error:
        raise UsageError(str(error)) from error
    except ValueError as error:
        raise UsageError(f"{path}: not YAML of plain values: {error_line(error)}.") from error
    for key in ("scorer", "second") if isinstance(spec, dict) else ():
        name = spec.get(key)
        if isinstance(name, str) and registry.is_path(name):
            spec[key] = str(path.parent.resolve() / name)
    return spec


def part_weights(file: str | Path) -> dict[str, float]:
    """Return the weight of each part of a file that `compose` wrote, without running it.

    The keys are those in the reward's result. Empty for any other file.
    """
    weights = call_catching(_read_weights, Path(file).expanduser())
    return {} if isinstance(weights, Exception) else weights


def _read_weights(path: Path) -> dict[str, float]:
    if not path.is_file() or path.stat().st_size > _MAX_FILE_BYTES:
        return {}
    # The literal is one argument, and ends at the first line that begins with a bracket.
    text = path.read_text(encoding="utf-8").partition("\nREWARD = build(\n")[2]
    parts = ast.literal_eval(text.partition("\n)\n")[0].strip())["parts"]
    return {
        name: float(part["weight"] if isinstance(part, dict) else part)
        for name, part in parts.items()
    }
