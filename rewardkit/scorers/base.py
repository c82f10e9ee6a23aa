"""What a scorer returns, and the adapter from a scorer to the dictionary verl logs.

verl calls rewards from executor threads of Ray actors, passes NumPy scalars and None, adds keys
to `extra_info` and keyword arguments of its own, and from 0.9 on swallows what a reward raises
and trains on the remaining samples. `verl_result` is the one boundary that copes with all of it.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping
from typing import Any

from rewardkit.errors import RewardkitError, call_catching
from rewardkit.scorers.call import require_score
from rewardkit.scorers.gold import explain_bad_gold, unwrap_gold
from rewardkit.scorers.options import check_values, option_names, unwrapped
from rewardkit.scorers.score import Score, Scorer, Status, as_text

#: What a scorer's file needs; `Score`, `Scorer`, `Status` and `as_text` are defined in `score`.
__all__ = [
    "Score",
    "Scorer",
    "Status",
    "as_text",
    "failure_result",
    "options_for",
    "to_verl",
    "verl_result",
    "wrong_score",
]

_log = logging.getLogger("rewardkit")
_logged: set[Hashable] = set()

#: Causes of failure that are logged in one process; each is logged once.
MAX_CAUSES = 100

#: Keyword arguments verl adds on its own account; they are no options of a scorer.
VERL_KWARGS = frozenset(
    {
        "concurrent_semaphore",
        "memory_limit_mb",
        "reward_model_tokenizer",
        "reward_router_address",
        "sandbox_fusion_url",
    }
)


#: The statuses that mean that the data or the configuration is at fault, not the policy.
_ERRORS = (Status.BAD_GROUND_TRUTH, Status.FAILED, Status.UNKNOWN_DATA_SOURCE)

#: The flags of each status. Looked up: a member of an enum is slow to reach by its name.
_FLAGS = {
    status: {
        "no_answer": float(status is Status.NO_ANSWER),
        "timeout": float(status is Status.TIMEOUT),
        "error": float(status in _ERRORS),
    }
    for status in Status
}


def verl_result(
    scorer: Scorer,
    data_source: Any,
    solution_str: Any,
    ground_truth: Any,
    extra_info: Any,
    kwargs: Mapping[str, Any],
) -> dict[str, float | str]:
    """Score one sample for verl. Never raises: a failure is wrong, with `error` set, and logged.

    Args:
        scorer: the function that judges.
        data_source: verl's key of the row; named in the log.
        solution_str: the response.
        ground_truth: the gold answer: text, a number, or a list or an array of one of them.
        extra_info: the row's other fields; anything but a mapping counts as absent.
        kwargs: what else verl passed: options of the scorer (`reward_kwargs`) and its own.

    Returns:
        For every input the same keys: `score`, `acc` (1.0 or 0.0), `pred` (text, so that verl
        computes maj@k), and `no_answer`, `timeout`, `error` (1.0 or 0.0), which verl averages
        into charts. `error` means that the data or the configuration is at fault, not the policy.
    """
    result = call_catching(_verl_call, scorer, solution_str, ground_truth, extra_info, kwargs)
    if isinstance(result, Exception):
        return failure_result(data_source, result, wrong_score(scorer))
    if result.status is Status.BAD_GROUND_TRUTH:
        source = _name(data_source)
        _log_once(
            (source, result.status),
            f"{source}: ground truth {as_text(ground_truth)[:80]!r} cannot be scored"
            f"{explain_bad_gold(ground_truth, scorer)}. Such samples count as wrong; run "
            "`rewardkit check` on the parquet.",
        )
    return to_verl(result)


def _verl_call(
    scorer: Scorer, solution_str: Any, ground_truth: Any, extra_info: Any, kwargs: Mapping[str, Any]
) -> Score:
    info = extra_info if isinstance(extra_info, Mapping) else None
    options = options_for(scorer, kwargs) if kwargs else kwargs
    result = scorer(as_text(solution_str), unwrap_gold(ground_truth), info, **options)
    return require_score(result)


def wrong_score(scorer: Scorer) -> float:
    """What a scorer gives a wrong answer: `WRONG_SCORE` of its module, else 0.0."""
    return float(getattr(unwrapped(scorer), "__globals__", {}).get("WRONG_SCORE", 0.0))


def failure_result(
    data_source: Any, error: Exception, score: float = 0.0
) -> dict[str, float | str]:
    """The result for verl where scoring failed: wrong, with `error` set; the cause is logged."""
    source = _name(data_source)
    said = str(error) if isinstance(error, RewardkitError) else f"{type(error).__name__}: {error}"
    _log_once(
        (source, type(error), _line(error)),
        f"{source}: {said[:500]} Such samples count as wrong.",
    )
    return to_verl(Score.wrong("", Status.FAILED, score))


def to_verl(score: Score) -> dict[str, float | str]:
    """The dictionary verl expects of a `Score`; see `verl_result` for its keys."""
    return {
        "score": float(score.score),
        "acc": float(score.correct),
        "pred": score.pred,
        **_FLAGS[score.status],
    }


def options_for(scorer: Scorer, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Those keyword arguments that are options of the scorer; unknown ones are logged.

    Raises:
        UsageError: an option does not take its value.
    """
    names = option_names(scorer)
    given = {name: value for name, value in kwargs.items() if name not in VERL_KWARGS}
    if names is not None:
        for name in given.keys() - names:
            _log_once(name, f"reward_kwargs.{name} is no option of this scorer and is ignored.")
        given = {name: value for name, value in given.items() if name in names}
    check_values(scorer, given)
    return given


def _name(data_source: Any) -> str:
    text = call_catching(as_text, data_source)
    return text if isinstance(text, str) else type(data_source).__name__


def _line(error: Exception) -> int:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_lineno if trace is not None else 0


def _log_once(cause: Hashable, message: str) -> None:
    """Log a cause the first time it is met: a reward is called millions of times."""
    if cause not in _logged and len(_logged) < MAX_CAUSES:
        _logged.add(cause)
        _log.error("%s", message)
