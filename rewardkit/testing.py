r"""The checks of rewardkit's own datasets and scorers, for those of other packages.

    from rewardkit.testing import check_dataset, check_scorer

    def test_the_dataset():
        check_dataset("my-set")

    def test_the_scorer():
        check_scorer("my-scorer", right=[(r"\boxed{4}", "4")], wrong=[(r"\boxed{5}", "4")])

A failed check raises AssertionError with a message. pytest is not needed.
"""

import pickle
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from importlib.util import module_from_spec, spec_from_file_location
from itertools import product
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import pyarrow.parquet as pq

from rewardkit import registry
from rewardkit.checks.row_checks import RULES
from rewardkit.errors import call_catching
from rewardkit.isolate.function import LOAD_TIMEOUT_SECONDS
from rewardkit.preprocess.base import Dataset, Dropped, Problem, ToProblem
from rewardkit.preprocess.load import card_of, is_plugin, load_dataset, require_dataset_loads
from rewardkit.preprocess.prep import SplitReport, prep
from rewardkit.preprocess.source import RawRows
from rewardkit.preprocess.template import load_template
from rewardkit.row import IMAGES, SCHEMA, Row, read_rows
from rewardkit.scorers.base import Score, Scorer, Status, spec_of, to_verl
from rewardkit.scorers.isolated import require_scorer_loads
from rewardkit.scorers.load import load_scorer, location, scorer_for

#: Values that a column of text may have in a broken row.
ODD_VALUES = (None, 5, 2.5, True)

#: Texts that a policy may write, besides prose.
ODD_TEXTS = (
    *("", " \n\t", "\x00", "\ud800", "答案：", "\\boxed{", "\\boxed{}", "####"),
    *("<answer></answer>", "</think>", "{" * 5_000, "9" * 5_000, "\\boxed{\\frac{1}{" * 1_000),
)

_KEYS = frozenset(to_verl(Score.wrong()))

#: Pairs of a response and a gold.
Pairs: TypeAlias = Sequence[tuple[str, str]]


def check_dataset(
    dataset: str | Dataset,
    source: Path | str | None = None,
    *,
    load_seconds: float = LOAD_TIMEOUT_SECONDS,
) -> None:
    """Check a dataset: its card, its rows and their golds, which `prep` scores, and broken rows.

    A scorer that asks a model, such as `judge`, is not called, as in `rewardkit check`.

    Args:
        dataset: a registered name, the path of a plug-in, or a `Dataset`.
        source: the raw rows: a folder with a file for each split, or a file of the default split;
            None for the packaged sample, with all its splits.
        load_seconds: timeout for importing the dataset.

    Raises:
        AssertionError: a check fails.
        RewardkitError: the dataset, its card or its rows cannot be read.
    """
    if isinstance(dataset, str) and is_plugin(dataset):
        require_dataset_loads(dataset, load_seconds)
    loaded = load_dataset(dataset)
    _check_card(loaded, dataset if isinstance(dataset, str) else loaded.name)
    card, path = card_of(loaded), Path(source) if source else None
    splits = [card.default_split()] if path and path.is_file() else list(card.splits)
    origin: dict[str, Any] = {"source": path, "sample": path is None}
    with TemporaryDirectory() as folder:
        for split in splits:
            files = [Path(folder) / f"{split}{run}.parquet" for run in range(2)]
            report, _ = (prep(loaded, file, split=split, **origin).splits[0] for file in files)
            first, second = (file.read_bytes() for file in files)
            _require(first == second, f"{split}: two runs of prep give different files.")
            check_counts(report)
            check_schema(report.out)
            check_prompts(read_rows(report.out))
            for _, raw in RawRows(report.files, card.columns, loaded.repeats):
                _check_types(loaded.to_problem, raw)


def _check_card(loaded: Dataset, name: str) -> None:
    """Check that card and code agree: name, template, and a registered scorer for every data_source."""
    card = card_of(loaded)
    _require(card.name == loaded.name, f"the card of {loaded.name} has the name {card.name}.")
    is_equal = registry.is_path(name) or loaded.name == name
    _require(is_equal, f"{name} is registered, but its name is {loaded.name}.")
    load_template(card.template)
    sources, expected = registry.known("data_sources"), registry.target("scorers", card.scorer)
    for key in dict.fromkeys((card.data_source, *map(card.reward_key, card.splits))):
        _require(
            sources.get(key) == expected,
            f"data_source {key!r} has {sources.get(key, 'no scorer')}, but the card's scorer is "
            f"{expected}: add the entry point to the group rewardkit.data_sources and install the "
            "package again.",
        )


def check_counts(report: SplitReport) -> None:
    """Check that every raw row is a copy, dropped by a rule of the dataset, or written."""
    where, dropped = report.split, sum(report.dropped.values())
    _require(report.read >= report.distinct, f"{where}: more distinct rows than rows.")
    _require(report.distinct == report.written + dropped, f"{where}: prep lost rows.")
    rows = pq.read_metadata(report.out).num_rows
    message = f"{where}: {report.written} rows written, {rows} in the file."
    _require(rows == report.written > 0, message)
    for reason, _, detail in report.examples:
        _require(reason not in RULES, f"{where}: {reason}: {detail}; {RULES.get(reason)}.")


def check_schema(parquet: Path) -> None:
    """Check that a parquet has the common schema, so that verl can concatenate it with any other."""
    schema = pq.read_schema(parquet).remove_metadata()
    expected = SCHEMA.append(IMAGES) if IMAGES.name in schema.names else SCHEMA
    is_equal = schema.equals(expected, check_metadata=False)
    _require(is_equal, f"{parquet}: the schema is {schema}, expected {expected}.")


def check_prompts(rows: Iterable[Row]) -> None:
    """Check that a response that repeats the prompt is wrong, unless the scorer asks a model.

    A prompt may follow its own constraints; `ScorerSpec.find_faults` checks such rows. The prompt of a
    choice question may show the answer's format by an example that is the gold.
    """
    for row in rows:
        info, gold = row["extra_info"], row["reward_model"]["ground_truth"]
        scorer = scorer_for(row["data_source"], info)
        prompt, spec = row["prompt"][-1]["content"], spec_of(scorer)
        is_example = info["options"] and (spec.respond or str)(gold) in prompt
        if not is_example and not spec.asks_server and spec.find_faults is None:
            is_correct = scorer(prompt, gold, info).correct
            _require(not is_correct, f"the gold is {gold!r}, but {prompt[-200:]!r} is correct.")


def _check_types(to_problem: ToProblem, raw: Mapping[str, Any]) -> None:
    """Check that `to_problem` raises only TypeError on values of another type."""
    for column, value in product(raw, ODD_VALUES):
        result = call_catching(to_problem, {**raw, column: value})
        _require(
            isinstance(result, (Problem, Dropped, TypeError)),
            f"{column}={value!r}: {type(result).__name__}: {result}; return a Problem, or a "
            "Dropped with the reason, or raise a TypeError.",
        )


def check_scorer(
    scorer: str,
    *,
    right: Pairs,
    wrong: Pairs,
    data_source: str = "",
    extra_info: Mapping[str, Any] | None = None,
    load_seconds: float = LOAD_TIMEOUT_SECONDS,
) -> None:
    """Check a scorer: its verdicts, its behaviour on unusual texts, and its file as verl loads it.

    Args:
        scorer: a registered name, or `my_reward.py:score` in a file that also has `compute_score`.
        right: pairs of a response and a gold that are correct.
        wrong: pairs that are wrong.
        data_source: the `data_source` of the rows.
        extra_info: the `extra_info` of the rows.
        load_seconds: timeout for importing the scorer.

    Raises:
        AssertionError: a check fails.
        UsageError: the scorer cannot be loaded.
    """
    require_scorer_loads(scorer, {}, load_seconds)
    function, info, pairs = load_scorer(scorer), dict(extra_info or {}), [*right, *wrong]
    _require(bool(right) and bool(wrong), "give pairs that are correct and pairs that are wrong.")
    respond = spec_of(function).respond
    own = [(respond(gold), gold) for _, gold in right] if respond else []
    scores: dict[bool, list[float]] = {True: [], False: []}
    for is_right, group in ((True, [*right, *own]), (False, wrong)):
        for pair in group:
            verdict = check_verdict(function(*pair, dict(info)))
            expected = "correct" if is_right else "wrong"
            message = f"{_shorten(pair)} must be {expected}, not {verdict}."
            _require(verdict.correct == is_right, message)
            scores[is_right].append(verdict.score)
    lowest, highest = min(scores[True]), max(scores[False])
    _require(lowest > highest, f"a wrong answer scores {highest}, a correct one {lowest}.")
    _check_behaviour(function, pairs, info)
    path = Path(scorer.partition(":")[0] if registry.is_path(scorer) else location(scorer))
    _check_file(path, function, pairs, data_source, info)


def check_verdict(verdict: object) -> Score:
    """Check that a verdict is a `Score` with a finite number and that `correct` fits its status."""
    if not isinstance(verdict, Score):
        raise AssertionError(f"{type(verdict).__name__} {verdict!r} is not a Score.")  # noqa: TRY004
    _require(isfinite(verdict.score), f"the score is {verdict.score}.")
    _require(type(verdict.pred) is str, f"pred is {type(verdict.pred).__name__}, not text.")
    _require(
        verdict.correct == (verdict.status is Status.CORRECT),
        f"correct is {verdict.correct}, but the status is {verdict.status}.",
    )
    return verdict


def _check_behaviour(scorer: Scorer, pairs: Pairs, info: dict[str, Any]) -> None:
    """Check that no text raises, `extra_info` stays unchanged, and calls are independent."""
    responses, golds = (list(dict.fromkeys([*own, *ODD_TEXTS])) for own in zip(*pairs, strict=True))
    calls = [*product(responses, golds[:2]), *product(responses[:2], golds)]
    extra_info = deepcopy(info)

    def call(pair: tuple[str, str]) -> Score:
        result = call_catching(scorer, *pair, extra_info)
        message = f"{_shorten(pair)}: {type(result).__name__}: {result}."
        _require(not isinstance(result, Exception), message)
        verdict = check_verdict(result)
        _require(pair[1].strip() or not verdict.correct, f"{_shorten(pair)}: an empty gold pays.")
        return verdict

    first = list(map(call, calls))
    _require(extra_info == info, f"extra_info is {extra_info} after the calls; it was {info}.")
    with ThreadPoolExecutor(4) as pool:
        again = list(pool.map(call, reversed(calls)))[::-1]
    for pair, before, after in zip(calls, first, again, strict=True):
        _require(before == after, f"{_shorten(pair)}: {before}, and later {after}.")
    pickled = call_catching(pickle.dumps, scorer)
    _require(isinstance(pickled, bytes), f"it cannot be sent to Ray's workers: {pickled!r}.")


def _check_file(
    path: Path, scorer: Scorer, pairs: Pairs, source: str, info: dict[str, Any]
) -> None:
    """Check that a file works as verl loads it, and returns the same keys for any arguments.

    It has no entry in `sys.modules`, as in verl's `utils/import_utils.py`.
    """
    spec = spec_from_file_location("verl_loads_this", path)
    if spec is None or spec.loader is None:
        raise AssertionError(f"{path} is not a Python file.")
    module: Any = module_from_spec(spec)
    spec.loader.exec_module(module)

    def call(response: Any, gold: Any, extra: Any, **kwargs: Any) -> Mapping[str, Any]:
        result = call_catching(module.compute_score, source, response, gold, extra, **kwargs)
        where = f"{path}: compute_score({source!r}, {response!r}, {gold!r}, {extra!r}): {result!r}"
        if not isinstance(result, Mapping):
            raise AssertionError(f"{where}; verl needs a dictionary.")  # noqa: TRY004
        _require(result.keys() == _KEYS, f"{where} does not have the keys {sorted(_KEYS)}.")
        are_floats = all(type(value) is float for key, value in result.items() if key != "pred")
        _require(are_floats, f"{where}; every value except pred must be a float.")
        return result

    for pair in pairs:
        result, expected = call(*pair, dict(info)), to_verl(scorer(*pair, dict(info)))
        message = f"{path}: {_shorten(pair)}: {result}, but the scorer returns {expected}."
        _require(result == expected, message)
    for response, gold in product((pairs[0][0], "", None, 18), (pairs[0][1], "", None, 18)):
        call(response, gold, dict(info))
    for extra in ({**info, "num_turns": 2}, None, "text"):
        call(*pairs[0], extra, reward_router_address=None, no_such_option=1)


def _shorten(pair: tuple[str, str]) -> str:
    response, gold = pair
    return f"{response[-200:]!r} against the gold {gold[:200]!r}"


def _require(condition: object, message: str) -> None:
    if not condition:
        raise AssertionError(message)
