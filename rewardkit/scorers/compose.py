"""A reward of several parts, from YAML or a few lines of Python, as a file that verl loads.

    scorer: gsm8k                  # a registered scorer, or my_reward.py:function beside the YAML
    options: {method: robust}      # of that scorer
    right_score: 0.9               # lowest right score of my_reward.py; `compose` can learn it
    parts:                         # a weight, or a weight with settings
      correct: 1.0
      format: {weight: 0.1, tags: [think, answer]}
      repetition: {weight: 0.2, n: 20}
      length: {weight: 0.1, max_chars: 8000}

docs/how-to/own-reward.md has a table of all keys. A second scorer can be asked about what the first one did not call correct:

    scorer: math                   # rules decide first
    second: judge                  # any scorer, also my_judge.py:score
    second_options: {base_url: "http://127.0.0.1:8000/v1"}
    second_right_score: 1.0        # as right_score, of my_judge.py
    ask: wrong                     # undecided (default), wrong or never
    confirm: true                  # its yes has to agree with the question asked the other way round
    parts: {correct: 1.0}

It is never asked about a correct answer, about a response without an answer, or where `error` is
set. Only its yes changes a verdict: the sample gets its score. Otherwise the rule's score stays, and
if the second scorer fails, `error` or `timeout` is 1.0 too. `confirm` may also be options for the
second question, such as `{model: another}`. A function with verl's signature has no undecided
answers, so ask about `wrong` ones. verl logs for every sample `rule_decided`, `second_asked`,
`second_changed`, `second_contradicted` (its yes was not confirmed), and the judge's own numbers.

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
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, TypeAlias

from rewardkit import registry
from rewardkit.errors import DataError, UnknownNameError, UsageError, call_catching
from rewardkit.output import atomic
from rewardkit.redact import process_redactor
from rewardkit.scorers.base import Score, Scorer
from rewardkit.scorers.call import error_line
from rewardkit.scorers.composed_reward import NO_SCORE, Part, Reward
from rewardkit.scorers.load import load_scorer
from rewardkit.scorers.opinion import blank_metrics
from rewardkit.scorers.options import check_values, option_names
from rewardkit.scorers.reward_parts import PART_VALUES, require_no_padding
from rewardkit.scorers.reward_result import LITERAL, RightRule
from rewardkit.scorers.right_score import GoldRow
from rewardkit.scorers.second_opinion import ASKS, SecondOpinion

__all__ = ["Part", "Reward", "build", "load_reward", "write_reward_file"]

#: Loads a scorer by its name and options.
LoadScorer: TypeAlias = Callable[[str, Mapping[str, Any]], Scorer]

_SECOND_KEYS = ("second_options", "second_right_score", "ask", "confirm")
#: The keys of the YAML; those of `parts` are in `PART_VALUES`.
KEYS = ("scorer", "options", "right_score", "parts", "second", *_SECOND_KEYS)

#: The golds by which a custom scorer is tried: a number, a choice and a formula.
_GOLDS: tuple[GoldRow, ...] = (("42", {}), ("B", {}), (r"\frac{3}{4}", {}))


def load_reward(path: str | Path) -> Reward:
    """Return the reward in a YAML file; see the module's docstring.

    Raises:
        SourceError: the file cannot be opened.
        UsageError: the file has an invalid key or value.
    """
    return build(_read_spec(Path(path)), where=str(path))


def build(spec: Mapping[str, Any], *, where: str = "reward") -> Reward:
    """Return the reward in a mapping of the YAML's form.

    Args:
        spec: `scorer`, `options`, `parts`, and those of the second scorer.
        where: the place of the mapping, for messages.

    Raises:
        UsageError: a key, scorer, option, part or setting is unknown, or a value is invalid.
    """
    return _build(spec, where, _scorer)


def _build(spec: Mapping[str, Any], where: str, load: LoadScorer) -> Reward:
    """Return the reward in a mapping."""
    _require_known_keys(where, spec, KEYS)
    if not isinstance(spec.get("scorer"), str):
        raise UsageError(f"{where}: name the scorer, as in `scorer: gsm8k`.")
    options = _require_mapping(f"{where}: options", spec.get("options") or {})
    parts = _require_mapping(f"{where}: parts", spec.get("parts") or {})
    _require_known_keys(f"{where}: parts", parts, list(PART_VALUES))
    scorer = load(spec["scorer"], options)
    second = _second(spec, where, load)
    return Reward(
        scorer,
        tuple(_part(where, name, value) for name, value in parts.items()),
        second,
        _rule(spec, where, "right_score"),
    )


def _rule(spec: Mapping[str, Any], where: str, key: str) -> RightRule:
    """Return the rule that a `right_score` of a mapping sets."""
    value = spec.get(key)
    if value is None:
        return LITERAL
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UsageError(f"{where}: {key}: {value!r}; give the lowest score of a right answer.")
    return RightRule(float(value), False, key)


def _second(spec: Mapping[str, Any], where: str, load: LoadScorer) -> SecondOpinion | None:
    """Return the second scorer of a mapping, if it names one."""
    name = spec.get("second")
    if name is None:
        unused = next((key for key in _SECOND_KEYS if key in spec), None)
        if unused:
            raise UsageError(f"{where}: {unused} is for a second scorer, as in `second: judge`.")
        return None
    if not isinstance(name, str):
        raise UsageError(f"{where}: name the second scorer, as in `second: judge`.")
    ask = spec.get("ask", "undecided")
    if ask not in ASKS:
        near = registry.did_you_mean(str(ask), list(ASKS))
        raise UsageError(f"{where}: ask: {ask!r}; give {', '.join(ASKS)}.{near}")
    options = _require_mapping(f"{where}: second_options", spec.get("second_options") or {})
    scorer = load(name, options)
    confirm = None
    if (other := _other_options(spec, where, scorer)) is not None:
        confirm = load(name, {**options, **other})
    rule = _rule(spec, where, "second_right_score")
    return SecondOpinion(scorer, ask, confirm, blank_metrics(scorer), rule)


def _other_options(spec: Mapping[str, Any], where: str, scorer: Scorer) -> dict[str, Any] | None:
    """Return the options of the question that confirms a yes; None for no such question."""
    confirm = spec.get("confirm", False)
    if confirm is False:
        return None
    if confirm is not True:
        return _require_mapping(f"{where}: confirm", confirm)
    names = option_names(scorer)
    if scorer is not _never_called and names is not None and "reverse" not in names:
        raise UsageError(
            f"{where}: confirm: {spec['second']} has no option `reverse`, which asks the other way "
            "round; give the options of the second question, as in `confirm: {model: another}`."
        )
    return {"reverse": True}


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

    Args:
        yaml_path: the reward, as `load_reward` reads it; it is checked first.
        out_py: the file to write.
        overwrite: whether `out_py` may exist.
        load_seconds: timeout for importing a custom scorer, in a process of its own.
        announce: called with a sentence about which scores of a custom scorer are right.

    Returns:
        The absolute path of the file, for verl's `custom_reward_function.path`.

    Raises:
        UsageError: the YAML is invalid, or contains a secret.
        OutputError: `out_py` exists, or it cannot be written.
    """
    spec, out = _read_spec(Path(yaml_path)), Path(out_py)
    if process_redactor().tree(spec) != spec:
        raise UsageError(
            f"{yaml_path}: it contains a secret, which would be written into {out}. Let the scorer read "
            "it from a variable of the environment, as a judge does with api_key_env."
        )
    rules: dict[str, RightRule] = {}
    _build(spec, str(yaml_path), partial(_try_scorer, load_seconds, rules))
    for scorer, key in (("scorer", "right_score"), ("second", "second_right_score")):
        rule = rules.get(str(spec.get(scorer)), RightRule())
        if key not in spec and not rule.is_known and not rule.takes_verdict:
            raise UsageError(
                f"{yaml_path}: {spec[scorer]}: {rule.sentence.replace('--right-score', key)}"
            )
        if rule.least is not None and key not in spec:
            announce(f"{spec[scorer]}: {rule.sentence}")
            spec[key] = rule.least
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


ASKS_SERVER = REWARD.asks_server


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
'''


def _source(spec: Mapping[str, Any]) -> str:
    from pprint import pformat
    from textwrap import indent

    # The literal is the `repr` of strings, numbers and containers, so no text of the YAML is code.
    return _TEMPLATE.replace("{spec}", indent(pformat(spec, sort_dicts=False), " " * 4))


def _read_spec(path: Path) -> dict[str, Any]:
    from rewardkit.strict_yaml import read_yaml_file

    try:
        spec = read_yaml_file(path)
        # NaN and infinity cannot be written into a Python file.
        spec = json.loads(json.dumps(spec, allow_nan=False))
    except DataError as error:
        raise UsageError(str(error)) from error
    except ValueError as error:
        raise UsageError(f"{path}: not YAML of plain values: {error_line(error)}.") from error
    spec = _require_mapping(str(path), spec)
    for key in ("scorer", "second"):
        name = spec.get(key)
        if isinstance(name, str) and registry.is_path(name):
            spec[key] = str(path.parent.resolve() / name)
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
        part.value(NO_SCORE, "a response " * 100)
        if function is PART_VALUES["length"]:
            require_no_padding(part.weight, **settings)
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


def _try_scorer(
    load_seconds: float, rules: dict[str, RightRule], name: str, options: Mapping[str, Any]
) -> Scorer:
    """Return a built-in scorer; a custom one is only tried, in a process of its own, for its rule."""
    from rewardkit.scorers.isolated import is_built_in, learn_rule, open_scorer

    if not is_built_in(name):
        with open_scorer(name, options, load_seconds=load_seconds) as scorer:
            rules[name] = learn_rule(scorer, _GOLDS)[1]
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
