r"""The checks that rewardkit's own datasets and scorers pass, for those of other packages.

    from rewardkit.testing import check_dataset, check_scorer

    def test_the_dataset():
        check_dataset("my-set")

    def test_the_scorer():
        check_scorer("my-scorer", right=[(r"\boxed{4}", "4")], wrong=[(r"\boxed{5}", "4")])

A check that fails raises AssertionError with a sentence. pytest is not needed.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from importlib.util import module_from_spec, spec_from_file_location
from itertools import product
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import pyarrow.parquet as pq

from rewardkit import registry
from rewardkit.errors import call_catching
from rewardkit.preprocess.base import Dataset, Dropped, Problem, ToProblem
from rewardkit.preprocess.load import card_of, load_dataset
from rewardkit.preprocess.prep import prep
from rewardkit.preprocess.prep_report import SplitReport
from rewardkit.preprocess.raw_rows import RawRows
from rewardkit.preprocess.row_checks import RULES, another_answer
from rewardkit.preprocess.template import load_template
from rewardkit.row import IMAGES, SCHEMA, Row, read_rows
from rewardkit.scorers.auto import scorer_for
from rewardkit.scorers.base import Score, Scorer, Status, to_verl
from rewardkit.scorers.load import load_scorer, location, respond_of

#: What a column of text may hold in a row that is broken.
ODD_VALUES = (None, 5, 2.5, True)

#: What a policy may write, beside prose.
ODD_TEXTS = (
    "",
    " \n\t",
    "\x00",
    "\ud800",
    "答案：",
    "\\boxed{",
    "\\boxed{}",
    "####",
    "<answer></answer>",
    "</think>",
    "{" * 5_000,
    "9" * 5_000,
    "\\boxed{\\frac{1}{" * 1_000,
)

_KEYS = frozenset(to_verl(Score.wrong()))


def check_dataset(dataset: str | Dataset, source: Path | str | None = None) -> None:
    """All checks of a dataset: its card, its rows, their golds, and rows that are broken.

    Args:
        dataset: a registered name, the path of a plug-in, or a `Dataset`.
        source: raw rows: a folder with a file for each split, or a file of the default split; None
            for the packaged sample, every split of it.

    Raises:
        AssertionError: a check fails.
        RewardkitError: the dataset, its card or its rows cannot be read.
    """
    check_card(dataset)
    chosen = load_dataset(dataset)
    card, path = card_of(chosen), Path(source) if source else None
    splits = [card.default_split()] if path and path.is_file() else list(card.splits)
    with TemporaryDirectory() as folder:
        for split in splits:
            reports = [
                prep(
                    chosen,
                    Path(folder) / f"{split}{time}.parquet",
                    split=split,
                    source=path,
                    sample=path is None,
                ).splits[0]
                for time in range(2)
            ]
            first, second = (report.out.read_bytes() for report in reports)
            _require(first == second, f"{split}: preparing it twice gives different files.")
            check_counts(reports[0])
            check_rows(reports[0].out, card.scorer)
            raws = RawRows(reports[0].files, card.columns, chosen.repeats)
            check_types(chosen.to_problem, (raw for _, raw in raws))


def check_card(dataset: str | Dataset) -> None:
    """Card and code agree: one name, a known template, a registered scorer for every reward key."""
    chosen = load_dataset(dataset)
    card = card_of(chosen)
    _require(card.name == chosen.name, f"the card of {chosen.name} has the name {card.name}.")
    if isinstance(dataset, str) and not registry.is_path(dataset):
        _require(
            chosen.name == dataset, f"{dataset} is registered, but calls itself {chosen.name}."
        )
    load_template(card.template)
    sources, wanted = registry.known("data_sources"), registry.target("scorers", card.scorer)
    for key in dict.fromkeys((card.data_source, *map(card.reward_key, card.splits))):
        _require(
            sources.get(key) == wanted,
            f"data_source {key!r} has {sources.get(key, 'no scorer')}, the card's scorer is {wanted}: "
            "add the entry point to the group rewardkit.data_sources and install the package again.",
        )


def check_counts(report: SplitReport) -> None:
    """Every raw row is a copy, dropped by the dataset's own rules, or written; some are written."""
    where, dropped = report.split, sum(report.dropped.values())
    _require(report.read >= report.distinct, f"{where}: more distinct rows than rows.")
    _require(report.distinct == report.written + dropped, f"{where}: rows were lost on the way.")
    rows = pq.read_metadata(report.out).num_rows
    _require(
        rows == report.written > 0, f"{where}: {report.written} rows written, {rows} in the file."
    )
    for reason, _, detail in report.examples:
        _require(reason not in RULES, f"{where}: {reason}: {detail}; {RULES.get(reason)}.")


def check_rows(parquet: Path, scorer: str) -> None:
    """Rows have the one schema; the gold and the dataset's own solution score, nothing else does.

    Args:
        parquet: as `prep` wrote it.
        scorer: the name of the one that reads the dataset's own solutions.
    """
    check_schema(parquet)
    rows = list(read_rows(parquet))
    check_answers(rows, scorer)
    check_others(rows)


def check_schema(parquet: Path) -> None:
    """A parquet has the one schema, so that verl can concatenate it with any other."""
    schema = pq.read_schema(parquet)
    expected = SCHEMA.append(IMAGES) if IMAGES.name in schema.names else SCHEMA
    plain = schema.remove_metadata()
    _require(
        plain.equals(expected, check_metadata=False),
        f"{parquet}: the schema is {plain}, expected {expected}.",
    )


def check_answers(rows: Iterable[Row], scorer: str) -> None:
    """The gold in the form asked for gets 1.0, and so does the dataset's own solution."""
    own = load_scorer(scorer)
    for row in rows:
        judge, gold, info = _judged(row)
        respond = respond_of(judge)
        if respond is not None:
            _require_score(judge, respond(gold), gold, info, 1.0)
        if info["answer"]:
            _require_score(own, info["answer"], gold, info, 1.0)


def check_others(rows: Iterable[Row]) -> None:
    """Another answer is not right, and neither is the prompt itself.

    A prompt may show an answer's form by an example. Of a choice question that may be the gold.
    """
    for row in rows:
        judge, gold, info = _judged(row)
        respond = respond_of(judge) or str
        prompt = row["prompt"][-1]["content"]
        said = [respond(another_answer(gold))]
        if not (info["options"] and respond(gold) in prompt):
            said.append(prompt)
        for response in said:
            correct = judge(response, gold, info).correct
            _require(not correct, f"gold {gold!r}, yet {response[-200:]!r} is right.")


def check_types(
    to_problem: ToProblem, raws: Iterable[Mapping[str, Any]], values: Sequence[object] = ODD_VALUES
) -> None:
    """A value of another type is no crash: `to_problem` may raise a TypeError, nothing else."""
    for raw in raws:
        for column, value in product(raw, values):
            found = call_catching(to_problem, {**raw, column: value})
            _require(
                isinstance(found, (Problem, Dropped, TypeError)),
                f"{column}={value!r}: {type(found).__name__}: {found}; return a Problem, or a Dropped "
                "with the reason, or raise a TypeError.",
            )


def check_scorer(
    scorer: str,
    *,
    right: Sequence[tuple[str, str]],
    wrong: Sequence[tuple[str, str]],
    data_source: str = "",
    extra_info: Mapping[str, Any] | None = None,
) -> None:
    """All checks of a scorer: its verdicts, its conduct, and its file in verl's hands.

    Args:
        scorer: a registered name, or `my_reward.py:score`; `compute_score` is beside it.
        right: pairs of response and gold that are right.
        wrong: pairs that are not.
        data_source: of the rows.
        extra_info: of the rows.

    Raises:
        AssertionError: a check fails.
        UsageError: the scorer does not load.
    """
    judge, info = load_scorer(scorer), dict(extra_info or {})
    _require(bool(right) and bool(wrong), "give pairs that are right, and pairs that are wrong.")
    paid = [_verdict(judge, pair, info, correct=True) for pair in right]
    unpaid = [_verdict(judge, pair, info, correct=False) for pair in wrong]
    _require(
        min(paid) > max(unpaid), f"a wrong answer gets {max(unpaid)}, a right one {min(paid)}."
    )
    if respond := respond_of(judge):
        for _, gold in right:
            _verdict(judge, (respond(gold), gold), info, correct=True)
    _check_conduct(judge, [*right, *wrong], info)
    path = Path(scorer.partition(":")[0] if registry.is_path(scorer) else location(scorer))
    _check_file(path, judge, [*right, *wrong], data_source, info)


def check_verdict(verdict: object) -> None:
    """A verdict is a `Score` with a finite number, and `correct` says what its status says."""
    if not isinstance(verdict, Score):
        _fail(f"{type(verdict).__name__} {verdict!r} is no Score.")
    _require(isfinite(verdict.score), f"the score is {verdict.score}.")
    _require(type(verdict.pred) is str, f"pred is {type(verdict.pred).__name__}, not text.")
    _require(
        verdict.correct == (verdict.status is Status.CORRECT),
        f"correct is {verdict.correct}, the status {verdict.status}.",
    )


def _check_file(
    path: Path, judge: Scorer, pairs: Sequence[tuple[str, str]], source: str, info: dict[str, Any]
) -> None:
    """A file works as verl loads it, and gives the same keys for whatever verl passes."""
    function = _as_verl_loads(path).compute_score

    def call(response: Any, gold: Any, extra: Any, **kwargs: Any) -> Mapping[str, Any]:
        said = call_catching(function, source, response, gold, extra, **kwargs)
        where = f"{path}: compute_score({source!r}, {response!r}, {gold!r}, {extra!r}): {said!r}"
        if not isinstance(said, Mapping):
            _fail(f"{where}; verl needs a dictionary.")
        _require(said.keys() == _KEYS, f"{where} has not the keys {sorted(_KEYS)}.")
        numbers = all(type(value) is float for key, value in said.items() if key != "pred")
        _require(numbers, f"{where}; every value but pred is a float.")
        return said

    for pair in pairs:
        said, expected = call(*pair, dict(info)), to_verl(judge(*pair, dict(info)))
        _require(
            said == expected, f"{path}: {_short(pair)}: {said}, but the scorer says {expected}."
        )
    for response, gold in product((pairs[0][0], "", None, 18), (pairs[0][1], "", None, 18)):
        call(response, gold, dict(info))
    for extra in ({**info, "num_turns": 2}, None, "text"):
        call(*pairs[0], extra, reward_router_address=None, no_such_option=1)


def _check_conduct(
    judge: Scorer, pairs: Sequence[tuple[str, str]], info: Mapping[str, Any]
) -> None:
    """No text makes it raise; it leaves `extra_info` alone, and calls do not change each other."""
    golds = list(dict.fromkeys([*(gold for _, gold in pairs), *ODD_TEXTS]))
    responses = list(dict.fromkeys([*(response for response, _ in pairs), *ODD_TEXTS]))
    calls = [*product(responses, golds[:2]), *product(responses[:2], golds)]
    given = deepcopy(dict(info))

    def call(pair: tuple[str, str]) -> object:
        verdict = call_catching(judge, *pair, given)
        if isinstance(verdict, Exception):
            _fail(f"{_short(pair)}: {type(verdict).__name__}: {verdict}.")
        check_verdict(verdict)
        _require(pair[1].strip() or not verdict.correct, f"{_short(pair)}: an empty gold pays.")
        return verdict

    first = list(map(call, calls))
    _require(given == info, f"extra_info is {given} after the calls, it was {dict(info)}.")
    with ThreadPoolExecutor(4) as pool:
        again = list(pool.map(call, reversed(calls)))[::-1]
    for pair, before, after in zip(calls, first, again, strict=True):
        _require(before == after, f"{_short(pair)}: {before}, and later {after}.")
    sent = call_catching(pickle.dumps, judge)
    _require(isinstance(sent, bytes), f"it cannot be sent to Ray's workers: {sent!r}.")


def _verdict(
    judge: Scorer, pair: tuple[str, str], info: Mapping[str, Any], *, correct: bool
) -> float:
    """The score of a pair that must be right, or wrong."""
    verdict = judge(*pair, dict(info))
    check_verdict(verdict)
    expected = "right" if correct else "wrong"
    _require(verdict.correct == correct, f"{_short(pair)} must be {expected}; it got {verdict}.")
    return verdict.score


def _require_score(
    judge: Scorer, response: str, gold: str, info: Mapping[str, Any], score: float
) -> None:
    verdict = judge(response, gold, info)
    _require(verdict.score == score, f"{_short((response, gold))} must get {score}: {verdict}.")


def _judged(row: Row) -> tuple[Scorer, str, Mapping[str, Any]]:
    """What judges a row, as in training; its gold; its extra_info."""
    info = row["extra_info"]
    return scorer_for(row["data_source"], info), row["reward_model"]["ground_truth"], info


def _as_verl_loads(path: Path) -> Any:
    """A file's module without a place in `sys.modules` (verl's `utils/import_utils.py`)."""
    spec = spec_from_file_location("verl_loads_this", path)
    if spec is None or spec.loader is None:
        _fail(f"{path} is not a Python file.")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _short(pair: tuple[str, str]) -> str:
    response, gold = pair
    return f"{response[-200:]!r} against the gold {gold[:200]!r}"


def _require(holds: object, said: str) -> None:
    if not holds:
        _fail(said)


def _fail(said: str) -> NoReturn:
    raise AssertionError(said)
