"""A reward of several parts, from YAML or a few lines of Python, as a file that verl loads.

    scorer: gsm8k                  # a registered scorer, or my_reward.py:function beside the YAML
    options: {method: robust}      # of that scorer
    parts:                         # a weight, or a weight with settings
      correct: 1.0
      format: {weight: 0.1, tags: [think, answer]}
      repetition: {weight: 0.2, n: 20}
      length: {weight: 0.1, max_chars: 8000}

| part | value | settings |
|---|---|---|
| `correct` | 1.0 if the answer is correct, else 0.0 | |
| `base` | the scorer's own score | |
| `format` | `shaping.format_tags` | `tags`, `outside` |
| `repetition` | `shaping.repetition` | `n`, `max_penalty` |
| `length` | `shaping.length`, in characters | `max_chars`, `short_correct`, `long_correct`, ... |

A scorer gets text, not tokens, so lengths are in characters; to penalise length in tokens, use the
overlong buffer of verl's `dapo` manager. The same in Python, as a file for verl:

    from rewardkit.scorers import gsm8k, shaping
    from rewardkit.scorers.compose import Part, Reward

    REWARD = Reward(gsm8k.score, (
        Part("correct", 1.0, lambda score, response: float(score.correct)),
        Part("brief", 0.1, lambda score, response: float(len(response) < 2000)),
    ))

    def compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs):
        return REWARD.compute_score(data_source, solution_str, ground_truth, extra_info, **kwargs)
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, TypeAlias

from rewardkit import registry
from rewardkit.errors import UnknownNameError, UsageError, call_catching
from rewardkit.output import atomic
from rewardkit.scorers import shaping
from rewardkit.scorers.base import (
    RECORD,
    Score,
    Scorer,
    Status,
    as_text,
    failure_result,
    recorded_result,
    to_verl,
    verl_result,
)
from rewardkit.scorers.call import error_line
from rewardkit.scorers.load import load_scorer
from rewardkit.scorers.options import check_values
from rewardkit.scorers.reward_parts import PART_VALUES

#: Computes the value of a part from the scorer's score and the response.
Value: TypeAlias = Callable[[Score, str], float]

_NO_SCORE = Score.wrong("", Status.NO_ANSWER)
#: Keys of the result that a part may not have: ours, and those that verl sets.
RESERVED = frozenset({*to_verl(_NO_SCORE), "reward", "overlong", "overlong_reward"})


@dataclass(frozen=True)
class Part:
    """One part of a reward.

    Attributes:
        name: the key of its contribution in verl's log.
        weight: the factor of its value.
        value: `value(score, response) -> float`. When verl calls, the `status` of the score is as
            coarse as the keys of `base.verl_result`.
    """

    name: str
    weight: float
    value: Value

    def __post_init__(self) -> None:
        is_number = isinstance(self.weight, int | float) and not isinstance(self.weight, bool)
        if not is_number or not math.isfinite(self.weight):
            raise UsageError(f"part {self.name!r}: weight={self.weight!r}; give a number.")


@dataclass(frozen=True)
class Reward:
    """The weighted sum of several parts, which is itself a scorer.

    Attributes:
        scorer: judges the answer; `acc` and `pred` come from it.
        parts: the parts, in the order of their keys in verl's log.
    """

    scorer: Scorer
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        names = [part.name for part in self.parts]
        if not names:
            raise UsageError("a reward needs at least one part, such as correct: 1.0.")
        for name in names:
            if name in RESERVED or names.count(name) > 1:
                raise UsageError(f"part {name!r}: the name is in use; choose another.")

    def __call__(
        self,
        response: str,
        ground_truth: str,
        extra_info: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Score:
        """Return the scorer's score with the sum of the parts as its number."""
        base = self.scorer(response, ground_truth, extra_info, **options)
        values = {
            part.name: (part.weight, _finite_value(part, base, response)) for part in self.parts
        }
        return base._replace(score=shaping.weighted(values)[0])

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
            return recorded_result(
                self.compute_score, data_source, solution_str, ground_truth, extra_info, kwargs
            )
        info = dict(extra_info) if isinstance(extra_info, Mapping) else {}
        info["data_source"] = as_text(data_source)  # `auto` reads it there
        fields = verl_result(self.scorer, data_source, solution_str, ground_truth, info, kwargs)
        base, response = _score_of_fields(fields), as_text(solution_str)
        values = {}
        for part in self.parts:
            value = call_catching(_finite_value, part, base, response)
            if isinstance(value, Exception):
                fields["error"] = failure_result(data_source, value)["error"]
                value = 0.0
            values[part.name] = (part.weight, value)
        fields["score"], contributions = shaping.weighted(values)
        return {**fields, **contributions}


def load_reward(path: str | Path) -> Reward:
    """Return the reward in a YAML file; see the module's docstring.

    Raises:
        UsageError: the file cannot be read or has an invalid key or value.
    """
    return build(_read_spec(Path(path)), where=str(path))


def build(spec: Mapping[str, Any], *, where: str = "reward") -> Reward:
    """Return the reward in a mapping of the YAML's form.

    Args:
        spec: `scorer`, `options` and `parts`.
        where: the place of the mapping, for messages.

    Raises:
        UsageError: a key, scorer, option, part or setting is unknown, or a value is invalid.
    """
    return _build(spec, where, _scorer)


def _build(
    spec: Mapping[str, Any], where: str, load: Callable[[str, Mapping[str, Any]], Scorer]
) -> Reward:
    """Return the reward in a mapping; `load` gets the scorer's name and options."""
    _require_known_keys(where, spec, ["scorer", "options", "parts"])
    if not isinstance(spec.get("scorer"), str):
        raise UsageError(f"{where}: name the scorer, as in `scorer: gsm8k`.")
    options = _require_mapping(f"{where}: options", spec.get("options") or {})
    parts = _require_mapping(f"{where}: parts", spec.get("parts") or {})
    _require_known_keys(f"{where}: parts", parts, list(PART_VALUES))
    scorer = load(spec["scorer"], options)
    return Reward(scorer, tuple(_part(where, name, value) for name, value in parts.items()))


def write_reward_file(
    yaml_path: str | Path,
    out_py: str | Path,
    *,
    overwrite: bool = False,
    load_seconds: float = 60.0,
) -> Path:
    """Write a reward as a Python file for verl, which needs rewardkit but not the YAML.

    A custom scorer is named in the file by its absolute path, so it must exist on every node.

    Args:
        yaml_path: the reward, as `load_reward` reads it; it is checked first.
        out_py: the file to write.
        overwrite: whether `out_py` may exist.
        load_seconds: timeout for importing a custom scorer, in a process of its own.

    Returns:
        The absolute path of the file, for verl's `custom_reward_function.path`.

    Raises:
        UsageError: the YAML is invalid.
        OutputError: `out_py` exists, or it cannot be written.
    """
    spec, out = _read_spec(Path(yaml_path)), Path(out_py)
    _build(spec, str(yaml_path), partial(_try_scorer, load_seconds))
    with atomic(out, overwrite=overwrite) as temporary:
        temporary.write_text(_source(spec), encoding="utf-8")
    return out.resolve()


_TEMPLATE = '''"""A reward of several parts, for verl. Written by rewardkit.scorers.compose."""

from rewardkit.scorers.compose import build
from rewardkit.scorers.load import respond_of

REWARD = build(
{spec}
)

respond = respond_of(REWARD.scorer)


def score(response, ground_truth, extra_info=None):
    """The reward as a rewardkit scorer."""
    return REWARD(response, ground_truth, extra_info)


def compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs):
    """Score a sample for verl."""
    return REWARD.compute_score(data_source, solution_str, ground_truth, extra_info, **kwargs)
'''


def _source(spec: Mapping[str, Any]) -> str:
    from pprint import pformat
    from textwrap import indent

    # The literal is the `repr` of strings, numbers and containers, so no text of the YAML is code.
    return _TEMPLATE.replace("{spec}", indent(pformat(spec, sort_dicts=False), " " * 4))


def _read_spec(path: Path) -> dict[str, Any]:
    import yaml

    try:
        spec = yaml.safe_load(path.read_text(encoding="utf-8"))
        # Only JSON's types: others, such as a date, cannot be written into a Python file.
        spec = json.loads(json.dumps(spec, allow_nan=False))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}.") from error
    except (yaml.YAMLError, TypeError, ValueError) as error:
        raise UsageError(f"{path}: not YAML of plain values: {error_line(error)}.") from error
    spec = _require_mapping(str(path), spec)
    scorer = spec.get("scorer")
    if isinstance(scorer, str) and registry.is_path(scorer):
        spec["scorer"] = str(path.parent.resolve() / scorer)
    return spec


def _part(where: str, name: str, value: Any) -> Part:
    """Return a part from its weight, or from a mapping of `weight` and settings."""
    where = f"{where}: parts.{name}"
    settings = dict(value) if isinstance(value, Mapping) else {"weight": value}
    function = PART_VALUES[name]
    _require_known_keys(where, settings, ["weight", *_settings_of(function)])
    weight: Any = settings.pop("weight", None)
    try:
        check_values(function, settings, f"part {name!r}")
        part = Part(name, weight, partial(function, **settings))
        # Called once, so that an invalid setting fails before training.
        part.value(_NO_SCORE, "a response " * 100)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{where}: {error}") from error
    return part


def _scorer(name: str, options: Mapping[str, Any]) -> Scorer:
    """Return the scorer; ours are called once, because `math_verify` needs a package."""
    scorer = load_scorer(name, **options)
    trial = None if registry.is_path(name) else call_catching(scorer, "", "0", None)
    # `auto` has no scorer for the empty row of this call, which is not a fault of the reward.
    if isinstance(trial, UsageError) and not isinstance(trial, UnknownNameError):
        raise trial
    return scorer


def _try_scorer(load_seconds: float, name: str, options: Mapping[str, Any]) -> Scorer:
    """Return a built-in scorer; a custom one is only tried, in a process of its own."""
    from rewardkit.scorers.isolated import is_built_in, require_scorer_loads

    if not is_built_in(name):
        require_scorer_loads(name, options, load_seconds)
        return _never_called
    return _scorer(name, options)


def _never_called(response: str, ground_truth: str, extra_info: Any = None) -> Score:
    raise NotImplementedError


def _settings_of(function: Callable[..., float]) -> list[str]:
    parameters = signature(function).parameters.values()
    return [p.name for p in parameters if p.kind is Parameter.KEYWORD_ONLY]


def _require_known_keys(where: str, mapping: Mapping[Any, Any], names: Sequence[str]) -> None:
    for key in mapping:
        if key not in names:
            near = registry.did_you_mean(str(key), list(names))
            raise UsageError(f"{where}: unknown key {key!r}.{near} Known: {', '.join(names)}.")


def _require_mapping(where: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{where}: give `key: value` pairs, not {type(value).__name__}.")
    return value


def _score_of_fields(fields: Mapping[str, Any]) -> Score:
    """Return the scorer's `Score` from its dictionary for verl."""
    flags = {
        "acc": Status.CORRECT,
        "error": Status.BAD_GROUND_TRUTH,
        "timeout": Status.TIMEOUT,
        "no_answer": Status.NO_ANSWER,
    }
    status = next((flags[key] for key in flags if fields[key]), Status.WRONG)
    return Score(fields["score"], bool(fields["acc"]), fields["pred"], status)


def _finite_value(part: Part, base: Score, response: str) -> float:
    value = float(part.value(base, response))
    if not math.isfinite(value):  # one NaN would reach every weight of the policy
        raise ValueError(f"part {part.name!r} is {value}")
    return value
