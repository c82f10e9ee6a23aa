"""What the adapters share: a trainer's sample in, a scorer's verdict as verl's dictionary out."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from rewardkit import registry
from rewardkit.errors import UnknownNameError, UsageError, call_catching
from rewardkit.scorers.auto import compute_score
from rewardkit.scorers.base import Scorer, as_text, failure_result, verl_result
from rewardkit.scorers.call import as_scorer
from rewardkit.scorers.load import check_options, load_scorer

#: The columns that an adapter looks at, where its trainer hands over columns. The gold is the first
#: of them that is there: `ground_truth`, that of verl's `reward_model`, `answer`, `solution`.
COLUMNS = ("data_source", "extra_info", "ground_truth", "reward_model", "answer", "solution")

#: A mark that ends a turn, as a tokenizer prints its special tokens: <|im_end|>, </s>, ...
_MARK = re.compile(
    r"(?:<[|｜](?=[^<>|｜\s]*[A-Za-z])[^<>|｜\s]{1,40}[|｜]>|</s>|<pad>|<(?:seed:)?eos>|<end_of_turn>"
    r"|<turn\|>|\[EOS\]|\[\|[A-Za-z_]{1,40}\|\])\s*\Z"
)
_MARK_CHARS = 64

_LOADING = Lock()
_SCORERS: dict[str, Scorer] = {}

_NO_SOURCE = (
    "the sample has no data_source and no extra_info.scorer: name the scorer, with "
    "REWARDKIT_SCORER=gsm8k or reward('gsm8k'), or give the data a data_source (docs/trainers.md)."
)


def scorer_name() -> str:
    """The scorer of the ready-made functions: `REWARDKIT_SCORER`, else `auto`, the row's own."""
    return os.environ.get("REWARDKIT_SCORER") or "auto"


@dataclass(frozen=True)
class Judge:
    """A scorer with its options. Picklable; what is wrong with the names is raised here.

    Attributes:
        scorer: a registered scorer's name or `my_reward.py:function`; `auto` is the row's own.
        options: of the scorer.

    Raises:
        UnknownNameError: no such scorer, or it has no such option.
        UsageError: an option does not take its value, a package that the scorer needs is not
            installed, the file does not import, or it lacks the function.
    """

    scorer: str = "auto"
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if registry.is_path(self.scorer):  # another process may be in another folder
            object.__setattr__(self, "scorer", str(Path(self.scorer).absolute()))
            check_options(self.scorer, _loaded(self.scorer), self.options)
            return
        scorer = load_scorer(self.scorer, **self.options)
        wrong = None if self.scorer == "auto" else call_catching(scorer, "", "1", {})
        if isinstance(wrong, UsageError):  # `math_verify` needs a package
            raise wrong

    @property
    def name(self) -> str:
        """The scorer's name without a file's path, for metrics; `rewardkit` for `auto`."""
        return "rewardkit" if self.scorer == "auto" else self.scorer.rpartition(":")[2]

    def __call__(self, response: Any, row: Mapping[str, Any]) -> dict[str, float | str]:
        """The verdict; never raises, see `scorers.base.verl_result`.

        Args:
            response: text, or chat messages, of which the last of the assistant is judged. Marks
                of the end of a turn are cut off: verl's responses have none.
            row: the sample's `COLUMNS`. A gold that is itself a mapping is the row.
        """
        gold = _gold(row)
        if isinstance(gold, Mapping):
            row, gold = {**row, **gold}, _gold(gold)
        source, extra = row.get("data_source"), _mapping(row.get("extra_info"))
        if isinstance(extra, ValueError):
            return failure_result(self.name, extra)
        info = {**extra}
        text = text_of(response)
        if self.scorer != "auto":
            info["data_source"] = source
            named = source or self.name  # in the log
            scorer = call_catching(_loaded, self.scorer)
            if isinstance(scorer, Exception):  # unpickled where its file is not
                return failure_result(named, scorer)
            return verl_result(scorer, named, text, gold, info, self.options)
        if not as_text(source) and not info.get("scorer"):
            return failure_result(self.name, UnknownNameError(_NO_SOURCE))
        return compute_score(source, text, gold, info, **self.options)


def _loaded(scorer: str) -> Scorer:
    """The scorer, loaded once however many threads ask: its module may load a model."""
    with _LOADING:
        if scorer not in _SCORERS:
            _SCORERS[scorer] = as_scorer(registry.load("scorers", scorer))
        return _SCORERS[scorer]


def _mapping(extra: Any) -> Mapping[str, Any] | ValueError:
    """A row's `extra_info`; where it is stored as JSON, what that says."""
    if isinstance(extra, str) and extra.lstrip()[:1] == "{":
        try:
            extra = json.loads(extra)
        except ValueError:
            return ValueError("extra_info is a text that is no JSON object.")
    return extra if isinstance(extra, Mapping) else {}


def _gold(row: Mapping[str, Any]) -> Any:
    model = row.get("reward_model")
    inside = model.get("ground_truth") if isinstance(model, Mapping) else None
    golds = (row.get("ground_truth"), inside, row.get("answer"), row.get("solution"))
    return next((gold for gold in golds if gold is not None), None)


def text_of(response: Any) -> str:
    """The text of a response, or of the assistant's last message, without marks at its end."""
    if isinstance(response, Mapping):
        response = [response]
    if isinstance(response, Sequence) and not isinstance(response, str):
        own = [message for message in response if _get(message, "role") == "assistant"]
        response = _content(own[-1]) if own else ""
    text = as_text(response)
    end = len(text)
    while mark := _MARK.search(text, max(0, end - _MARK_CHARS), end):
        end = mark.start()
    return text[:end]


def _content(message: Any) -> Any:
    """A message's content; its text parts if it has parts."""
    content = _get(message, "content")
    if isinstance(content, Sequence) and not isinstance(content, str):
        return "".join(map(_part, content))
    return content


def _part(part: Any) -> str:
    """A part's text; what was only thought is no part of the answer."""
    if isinstance(part, str):
        return part
    kind = _get(part, "type")
    return as_text(_get(part, "text")) if kind in (None, "text", "output_text") else ""


def _get(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
