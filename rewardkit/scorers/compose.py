"""A reward of several parts, from YAML or a few lines of Python, as a file that verl loads.

docs/reference/score.md has the keys of the YAML. A second scorer is never asked about a correct answer,
about a response without an answer, or where `error` is set. Only its yes changes a verdict: the sample
gets its score. Otherwise the rule's score stays, and if the second scorer fails, `error` or `timeout` is
1.0 too. A function with verl's signature has no undecided answers, so ask about `wrong` ones. verl logs
for every sample `rule_decided`, `second_asked`, `second_changed`, `second_contradicted` (its yes was not
confirmed), and the judge's own numbers.

A scorer gets text, not tokens, so lengths are in characters; to penalise length in tokens, use the
overlong buffer of verl's `dapo` manager. The same in Python, as a file for verl:

    from rewardkit.scorers import gsm8k
    from rewardkit.scorers.compose import Part, Reward

    REWARD = Reward(gsm8k.score, (
        Part("correct", 1.0, lambda score, response: float(score.correct)),
        Part("brief", 0.1, lambda score, response: float(len(response) < 2000)),
    ))

    def compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs):
        return REWARD.compute_score(data_source, solution_str, ground_truth, extra_info, **kwargs)
"""

from __future__ import annotations

import ast
import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import fsum, isfinite
from pathlib import Path
from pprint import pformat
from textwrap import indent
from time import perf_counter
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, Field

from rewardkit import registry
from rewardkit.errors import DataError, UnknownNameError, UsageError, call_catching
from rewardkit.output import atomic
from rewardkit.redact import process_redactor
from rewardkit.scorers.base import (
    RECORD,
    VERL_KWARGS,
    Score,
    Scorer,
    ScorerSpec,
    Status,
    as_text,
    failure_result,
    record_result,
    recorded_result,
    spec_of,
    to_verl,
    verl_score,
)
from rewardkit.scorers.call import error_line
from rewardkit.scorers.load import load_scorer
from rewardkit.scorers.options import option_names
from rewardkit.scorers.reward_result import LITERAL, RightRule
from rewardkit.scorers.right_score import GoldRow
from rewardkit.scorers.second_opinion import (
    METRICS,
    Ask,
    Opinion,
    SecondOpinion,
    VerlSample,
    blank_metrics,
)
from rewardkit.scorers.shaping import PARTS
from rewardkit.strict_yaml import STRICT, read_yaml_file, validate

#: Computes the value of a part from the scorer's score and the response.
Value: TypeAlias = Callable[[Score, str], float]
#: Loads a scorer by its name and options.
LoadScorer: TypeAlias = Callable[[str, Mapping[str, Any]], Scorer]

#: The score of a response without an answer, on which parts are tried.
_NO_SCORE = Score.wrong("", Status.NO_ANSWER)
#: Keys of the result that a part may not have: ours, and those that verl sets.
RESERVED = frozenset({*to_verl(_NO_SCORE), *METRICS, "reward", "overlong", "overlong_reward"})

#: Keys that stand for a second scorer's settings.
_SECOND_KEYS = ("second_options", "second_right_score", "ask", "confirm")

#: The golds by which a custom scorer is tried: a number, a choice and a formula.
_GOLDS: tuple[GoldRow, ...] = (("42", {}), ("B", {}), (r"\frac{3}{4}", {}))

#: A larger file is not one that `compose` wrote.
_MAX_FILE_BYTES = 1 << 20

#: What asks for confirmation with the question asked the other way round.
_REVERSE = {"reverse": True}

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
    """One part of a reward.

    Attributes:
        name: the key of its contribution in verl's log.
        weight: the factor of its value.
        value: `value(score, response) -> float`.
    """

    name: str
    weight: float
    value: Value

    def __post_init__(self) -> None:
        if not isfinite(self.weight):
            raise UsageError(f"part {self.name!r}: weight={self.weight!r}; give a number.")

    def finite_value(self, score: Score, response: str) -> float:
        """Return the value for a response.

        Raises:
            ValueError: it is not finite, so that it would reach every weight of the policy.
        """
        value = float(self.value(score, response))
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
    second: SecondOpinion | None = None
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
        return self.second is not None and self.second.is_async

    @property
    def asks_server(self) -> bool:
        """Whether a score may wait for a model server."""
        return spec_of(self.scorer).asks_server or (
            self.second is not None and self.second.asks_server
        )

    def spec(self, score: Scorer, text: str, verl_function: Callable[..., Any]) -> ScorerSpec:
        """Return the spec for the file of this reward."""
        return ScorerSpec(
            score,
            text,
            spec_of(self.scorer).respond,
            asks_server=self.asks_server,
            verl_function=verl_function,
        )

    def __call__(
        self,
        response: str,
        ground_truth: str,
        extra_info: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Score:
        """Return the scorer's score with the sum of the parts as its number."""
        score = self.rule.judge(self.scorer(response, ground_truth, extra_info, **options))
        if self.second is not None:
            sample = VerlSample("", response, ground_truth, extra_info, {})
            score = self.second.revise(score, sample).score
        values = (part.weight * part.finite_value(score, response) for part in self.parts)
        return score._replace(score=fsum(values))

    def compute_score(
        self,
        data_source: Any,
        solution_str: Any,
        ground_truth: Any,
        extra_info: Any = None,
        **kwargs: Any,
    ) -> dict[str, float | str]:
        """Score a sample for verl. Never raises.

        Args:
            data_source: the `data_source` of the row.
            solution_str: the response.
            ground_truth: the gold answer.
            extra_info: the row's other fields.
            kwargs: options of the scorer; `record` names a folder in which all parts are recorded.

        Returns:
            The same keys for every input: those of `base.verl_result`, with the weighted sum as
            `score`, and the contribution of each part. A part that fails contributes 0.0 and sets
            `error`.
        """
        if RECORD in kwargs:
            call = (data_source, solution_str, ground_truth, extra_info)
            return recorded_result(lambda rest: self.compute_score(*call, **rest), call, kwargs)
        sample = _sample(data_source, solution_str, ground_truth, extra_info, kwargs)
        opinion = Opinion(self.rule.judge(verl_score(self.scorer, *sample)), {})
        if self.second is not None:
            opinion = self.second.revise(opinion.score, _without_options(sample))
        return self._result(opinion, sample)

    async def compute_score_async(
        self,
        data_source: Any,
        solution_str: Any,
        ground_truth: Any,
        extra_info: Any = None,
        **kwargs: Any,
    ) -> dict[str, float | str]:
        """`compute_score`, which waits for the second scorer in verl's event loop."""
        started, folder = perf_counter(), kwargs.pop(RECORD, None)
        call = (data_source, solution_str, ground_truth, extra_info)
        sample = _sample(data_source, solution_str, ground_truth, extra_info, kwargs)
        # In a thread, as verl runs a reward that is not async: a rule may take its time.
        score = await asyncio.to_thread(verl_score, self.scorer, *sample)
        opinion = Opinion(self.rule.judge(score), {})
        if self.second is not None:
            opinion = await self.second.revise_async(opinion.score, _without_options(sample))
        result = self._result(opinion, sample)
        record_result(folder, result, call, perf_counter() - started)
        return result

    def _result(self, opinion: Opinion, sample: VerlSample) -> dict[str, float | str]:
        fields, response = to_verl(opinion.score), as_text(sample.solution_str)
        contributions = {}
        for part in self.parts:
            value = call_catching(part.finite_value, opinion.score, response)
            if isinstance(value, Exception):
                fields["error"] = failure_result(sample.data_source, value)["error"]
                value = 0.0
            contributions[part.name] = part.weight * value
        fields["score"] = fsum(contributions.values())
        return {**fields, **opinion.metrics, **contributions}


def _sample(
    data_source: Any, solution_str: Any, ground_truth: Any, extra_info: Any, kwargs: dict[str, Any]
) -> VerlSample:
    info = dict(extra_info) if isinstance(extra_info, Mapping) else {}
    info["data_source"] = as_text(data_source)  # `auto` reads it there
    return VerlSample(data_source, solution_str, ground_truth, info, kwargs)


def _without_options(sample: VerlSample) -> VerlSample:
    """Return a sample for the second scorer, whose options are not those of the call."""
    kwargs = {name: value for name, value in sample.kwargs.items() if name in VERL_KWARGS}
    return sample._replace(kwargs=kwargs)


def load_reward(path: str | Path) -> Reward:
    """Return the reward in a YAML file; see the module's docstring.

    Raises:
        SourceError: the file cannot be opened.
        UsageError: the file has an invalid key or value.
    """
    return build(_read_spec(Path(path)), where=str(path))


def build(spec: Any, *, where: str = "reward") -> Reward:
    """Return the reward in a mapping of the YAML's form; `where` is its place, for messages.

    Raises:
        UsageError: a key, scorer, option, part or setting is unknown, or a value is invalid.
    """
    return _build(spec, where, _load)


def _build(spec: Any, where: str, load: LoadScorer) -> Reward:
    keys = validate(RewardYaml, spec, where)
    if keys.second is None and (unused := next((k for k in _SECOND_KEYS if k in spec), None)):
        raise UsageError(f"{where}: {unused} is for a second scorer, as in `second: judge`.")
    scorer = load(keys.scorer, keys.options)
    parts = []
    for name, value in keys.parts.items():
        if name not in PARTS:
            near = registry.did_you_mean(name, PARTS)
            raise UsageError(
                f"{where}: parts: unknown key {name!r}.{near} Known: {', '.join(PARTS)}."
            )
        part = validate(PARTS[name], value, f"{where}: parts.{name}")
        parts.append(Part(name, part.weight, part.value))
    second = _second(keys, where, load)
    return Reward(scorer, tuple(parts), second, _rule(keys.right_score, "right_score"))


def _rule(least: float | None, key: str) -> RightRule:
    return LITERAL if least is None else RightRule(least, False, key)


def _second(keys: RewardYaml, where: str, load: LoadScorer) -> SecondOpinion | None:
    if keys.second is None:
        return None
    scorer, other = load(keys.second, keys.second_options), None
    if keys.confirm is not None:
        names = None if scorer is _never_called else option_names(scorer)
        if keys.confirm == _REVERSE and names is not None and "reverse" not in names:
            raise UsageError(
                f"{where}: confirm: {keys.second} has no option `reverse`, which asks the other way "
                "round; give the options of the second question, as in `confirm: {model: another}`."
            )
        other = load(keys.second, {**keys.second_options, **keys.confirm})
    rule = _rule(keys.second_right_score, "second_right_score")
    return SecondOpinion(scorer, keys.ask, other, blank_metrics(scorer), rule)


def _load(name: str, options: Mapping[str, Any]) -> Scorer:
    """Return the scorer; ours are called once, because `math_verify` needs a package."""
    scorer = load_scorer(name, **options)
    trial = None if registry.is_path(name) else call_catching(scorer, "", "0", None)
    # `auto` has no scorer for the empty row of this call, which is not a fault of the reward.
    if isinstance(trial, UsageError) and not isinstance(trial, UnknownNameError):
        raise trial
    return scorer


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

    def try_scorer(name: str, options: Mapping[str, Any]) -> Scorer:
        """Return a built-in scorer; try a custom one in a process of its own, for its rule."""
        if is_built_in(name):
            return _load(name, options)
        with open_scorer(name, options, load_seconds=load_seconds) as scorer:
            rules[name] = learn_rule(scorer, _GOLDS)[1]
        return _never_called

    _build(spec, str(yaml_path), try_scorer)
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


def _never_called(response: str, ground_truth: str, extra_info: Any = None) -> Score:
    raise NotImplementedError


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
    try:
        path = Path(file).expanduser()
        if not path.is_file() or path.stat().st_size > _MAX_FILE_BYTES:
            return {}
        text = path.read_text(encoding="utf-8")
        # The literal is one argument, and ends at the first line that begins with a bracket.
        literal = text.partition("\nREWARD = build(\n")[2].partition("\n)\n")[0].strip()
        parts = ast.literal_eval(literal)["parts"] if literal else {}
        values: list[Any] = [p.get("weight") if isinstance(p, dict) else p for p in parts.values()]
        weights = [float(value) if type(value) in (int, float) else 0.0 for value in values]
        return dict(zip(parts, weights, strict=True))
    except (
        OSError,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        SyntaxError,
        RecursionError,
        MemoryError,
    ):
        return {}
