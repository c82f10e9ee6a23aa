"""Code that the adapters share: from a trainer's sample to the dictionary that verl gets."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from rewardkit import registry
from rewardkit.adapters.response_text import response_text
from rewardkit.errors import UnknownNameError, call_catching
from rewardkit.scorers.auto import compute_score
from rewardkit.scorers.base import RECORD, Scorer, as_text, failure_result, verl_result
from rewardkit.scorers.load import check_options
from rewardkit.scorers.options import as_scorer

#: The columns that an adapter reads, if its trainer passes columns. The gold is the first one that
#: is present of `ground_truth`, verl's `reward_model`, `answer` and `solution`.
COLUMNS = ("data_source", "extra_info", "ground_truth", "reward_model", "answer", "solution")

#: The values of a result that adapters report as metrics, beside the score.
FLAGS = ("acc", "no_answer", "timeout", "error")

_NO_SOURCE = (
    "the sample has no data_source and no extra_info.scorer. Name the scorer with "
    "REWARDKIT_SCORER=gsm8k or reward('gsm8k'), or add a data_source to the data "
    "(docs/trainers.md)."
)

_loading = Lock()
_loaded: dict[str, Scorer] = {}


def scorer_name() -> str:
    """Return the scorer of the ready-made functions: `REWARDKIT_SCORER`, by default `auto`."""
    return os.environ.get("REWARDKIT_SCORER") or "auto"


class RewardFunction:
    """The reward function of a trainer. It can be pickled; TRL names its metric by `__name__`.

    TRL would name a `functools.partial` by the function inside.
    """

    def __init__(self, call: Callable[..., Any], scorer: "SampleScorer") -> None:
        self._call, self._scorer, self.__name__ = call, scorer, scorer.name

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Return what the trainer expects; its arguments are those of the adapter's page."""
        return self._call(self._scorer, *arguments, **options)


def reward_maker(call: Callable[..., Any]) -> Callable[..., RewardFunction]:
    """Return the `reward(scorer="auto", **options)` of an adapter."""

    def reward(scorer: str = "auto", **options: Any) -> RewardFunction:
        """Return a reward function; the scorer `auto` goes by the data source of each row."""
        return RewardFunction(call, SampleScorer(scorer, options))

    return reward


@dataclass(frozen=True)
class SampleScorer:
    """Scores the samples of a trainer with one scorer and its options. Picklable.

    Attributes:
        scorer: the name of a registered scorer or `my_reward.py:function`; `auto` chooses the
            scorer by the row.
        options: options of the scorer; `record` names a folder in which results are recorded, by
            its absolute path.

    Raises:
        UsageError: the scorer does not exist, refuses an option, or needs a package that is not
            installed; or the file cannot be imported or lacks the function.
    """

    scorer: str = "auto"
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        options = {name: value for name, value in self.options.items() if name != RECORD}
        if registry.is_path(self.scorer):  # another process may have another working directory
            object.__setattr__(self, "scorer", str(Path(self.scorer).absolute()))
        check_options(self.scorer, _load_once(self.scorer), options)

    @property
    def name(self) -> str:
        """The scorer's name for metrics: without the path of a file, `rewardkit` for `auto`."""
        return "rewardkit" if self.scorer == "auto" else self.scorer.rpartition(":")[2]

    def __call__(self, response: Any, row: Mapping[str, Any]) -> dict[str, float | str]:
        """Return the result that verl would get, see `scorers.base.verl_result`. Never raises."""
        result = call_catching(self._result, response, row)
        return failure_result(self.name, result) if isinstance(result, Exception) else result

    def _result(self, response: Any, row: Mapping[str, Any]) -> dict[str, float | str]:
        gold = _gold(row)
        if isinstance(gold, Mapping):
            row, gold = {**row, **gold}, _gold(gold)
        source, info = row.get("data_source"), row.get("extra_info")
        if isinstance(info, str) and info.lstrip()[:1] == "{":
            info = call_catching(json.loads, info)
            if isinstance(info, Exception):
                raise ValueError("extra_info is text but not a JSON object.") from info
        info = info if isinstance(info, Mapping) else {}
        text = response_text(response)
        if self.scorer == "auto":
            if not as_text(source) and not info.get("scorer"):
                raise UnknownNameError(_NO_SOURCE)
            return compute_score(source, text, gold, info, **self.options)
        scorer = _load_once(self.scorer)  # it may be unpickled on a machine without its file
        info = {**info, "data_source": source}
        return verl_result(scorer, source or self.name, text, gold, info, self.options)


def _load_once(name: str) -> Scorer:
    """Load a scorer once for all threads: its module may load a model."""
    with _loading:
        if name not in _loaded:
            _loaded[name] = as_scorer(registry.load("scorers", name))
        return _loaded[name]


def _gold(row: Mapping[str, Any]) -> Any:
    model = row.get("reward_model")
    model_gold = model.get("ground_truth") if isinstance(model, Mapping) else None
    golds = (row.get("ground_truth"), model_gold, row.get("answer"), row.get("solution"))
    return next((gold for gold in golds if gold is not None), None)
