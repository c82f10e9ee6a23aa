"""What a scorer's file needs: `Score`, `Status`, and `verl_result`, the boundary to verl.

verl calls rewards from executor threads of Ray actors, passes NumPy scalars and None, and adds keys
to `extra_info` and keyword arguments of its own. From 0.9 on it swallows the exceptions of a reward
and trains on the remaining samples. `verl_result` handles all of this.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Mapping
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING, Any

from rewardkit.errors import RewardkitError, call_catching
from rewardkit.redact import process_redactor
from rewardkit.scorers.call import NoVerdictError, error_text, require_score
from rewardkit.scorers.gold import explain_bad_gold, unwrap_gold
from rewardkit.scorers.options import asks_server, check_values, module_of, option_names
from rewardkit.scorers.score import Score, Scorer, Status, as_text

if TYPE_CHECKING:
    from rewardkit.recorder.writer import Recorder

__all__ = [
    "Score",
    "Scorer",
    "Status",
    "as_text",
    "failure_result",
    "log_bad_gold",
    "log_once",
    "options_for",
    "record_result",
    "recorded_result",
    "to_verl",
    "verl_result",
    "verl_reward",
    "wrong_score",
]

_log = logging.getLogger("rewardkit")
_logged: set[Hashable] = set()

#: Maximum number of different failures that one process logs; each is logged once.
MAX_LOGGED_CAUSES = 100

#: Keyword arguments that verl adds itself, which are not options of a scorer.
VERL_KWARGS = frozenset(
    {
        "concurrent_semaphore",
        "memory_limit_mb",
        "reward_model_tokenizer",
        "reward_router_address",
        "sandbox_fusion_url",
    }
)


#: The keyword argument that names the folder of the recorder.
RECORD = "record"

#: The statuses for which the data or the configuration is at fault, not the policy.
_ERRORS = (Status.BAD_GROUND_TRUTH, Status.FAILED, Status.UNKNOWN_DATA_SOURCE)

#: The flags of each status. A table, because enum members are slow to reach by name.
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
    """Score one sample for verl. Never raises: a failure counts as wrong, sets `error`, and is logged.

    Args:
        scorer: the scorer.
        data_source: the `data_source` of the row, for the log.
        solution_str: the response.
        ground_truth: the gold answer: text, a number, or a list or an array with one of them.
        extra_info: the row's other fields; anything but a mapping counts as absent.
        kwargs: the other keyword arguments of verl: options of the scorer (`reward_kwargs`) and
            verl's own; `record` names a folder in which the result is recorded.

    Returns:
        The same keys for every input: `score`, `acc` (1.0 or 0.0), `pred` (text, so that verl
        computes maj@k), and `no_answer`, `timeout`, `error` (1.0 or 0.0), which verl averages
        into charts. `error` means that the data or the configuration is at fault, not the policy.
    """
    if kwargs and RECORD in kwargs:
        sample = (data_source, solution_str, ground_truth, extra_info)
        return recorded_result(lambda rest: verl_result(scorer, *sample, rest), sample, kwargs)
    return to_verl(verl_score(scorer, data_source, solution_str, ground_truth, extra_info, kwargs))


def verl_reward(
    scorer: Scorer,
    /,
    data_source: Any,
    solution_str: Any,
    ground_truth: Any,
    extra_info: Any = None,
    **kwargs: Any,
) -> dict[str, float | str]:
    """`verl_result` with verl's signature: `compute_score = partial(verl_reward, score)`.

    A partial and no closure, because verl's reward managers send it to other processes.
    """
    return verl_result(scorer, data_source, solution_str, ground_truth, extra_info, kwargs)


def verl_score(
    scorer: Scorer,
    data_source: Any,
    solution_str: Any,
    ground_truth: Any,
    extra_info: Any,
    kwargs: Mapping[str, Any],
) -> Score:
    """Return the score of a sample of verl, which `verl_result` turns into a dictionary."""
    result = call_catching(_verl_call, scorer, solution_str, ground_truth, extra_info, kwargs)
    if isinstance(result, Exception):
        return failed_verl_score(data_source, result, wrong_score(scorer))
    if result.status is Status.BAD_GROUND_TRUTH:
        log_bad_gold(scorer, data_source, ground_truth)
    return result


def _verl_call(
    scorer: Scorer, solution_str: Any, ground_truth: Any, extra_info: Any, kwargs: Mapping[str, Any]
) -> Score:
    info = extra_info if isinstance(extra_info, Mapping) else None
    options = options_for(scorer, kwargs) if kwargs else kwargs
    result = scorer(as_text(solution_str), unwrap_gold(ground_truth), info, **options)
    return require_score(result)


def log_bad_gold(scorer: Scorer, data_source: Any, ground_truth: Any) -> None:
    """Log once for each data source that a gold cannot be scored, and why."""
    source = _as_name(data_source)
    log_once(
        (source, Status.BAD_GROUND_TRUTH),
        f"{source}: ground truth {as_text(ground_truth)[:80]!r} cannot be scored"
        f"{explain_bad_gold(ground_truth, scorer)}. Such samples count as wrong; run "
        "`rewardkit check` on the parquet.",
    )


def recorded_result(
    compute: Callable[[Mapping[str, Any]], dict[str, float | str]],
    sample: tuple[Any, Any, Any, Any],
    kwargs: Mapping[str, Any],
) -> dict[str, float | str]:
    """Return what `compute` returns for the keyword arguments without `record`, and record it."""
    others = {name: value for name, value in kwargs.items() if name != RECORD}
    started = perf_counter()
    result = compute(others)
    record_result(kwargs.get(RECORD), result, sample, perf_counter() - started)
    return result


def record_result(
    folder: Any,
    result: Mapping[str, float | str],
    sample: tuple[Any, Any, Any, Any],
    seconds: float,
) -> None:
    """Record a call of a reward in a folder; see `recorder.writer`. Never raises.

    Args:
        folder: the folder, by its absolute path; nothing is recorded if it is None or "".
        result: the dictionary that verl gets.
        sample: the `data_source` of the row, the response, the gold, and the row's other fields.
        seconds: how long the call took.
    """
    data_source, solution_str, ground_truth, extra_info = sample
    if isinstance(folder, str) and folder:
        _recorder(folder).add(
            result,
            response=_as_name(solution_str),
            data_source=data_source,
            ground_truth=ground_truth,
            extra_info=extra_info,
            seconds=seconds,
        )
    elif folder is not None and folder != "":
        log_once(RECORD, f"reward_kwargs.record={folder!r} is not the path of a folder.")


@cache
def _recorder(folder: str) -> Recorder:
    """Return the recorder of a folder; its module is imported only where something is recorded."""
    from rewardkit.recorder.writer import recorder_of

    return recorder_of(folder)


def wrong_score(scorer: Scorer) -> float:
    """Return the score of a wrong answer: `WRONG_SCORE` of the scorer's module, by default 0.0."""
    return float(module_of(scorer).get("WRONG_SCORE", 0.0))


def failure_result(
    data_source: Any, error: Exception, score: float = 0.0
) -> dict[str, float | str]:
    """Log a failure and return its result for verl: a wrong answer with `error` set."""
    return to_verl(failed_verl_score(data_source, error, score))


def failed_verl_score(data_source: Any, error: Exception, score: float = 0.0) -> Score:
    """Log a failure and return its score: a wrong answer with the status `failed`."""
    source, message = _as_name(data_source), error_text(error)
    if not isinstance(error, RewardkitError | NoVerdictError):
        message = f"{type(error).__name__}: {message}"
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    log_once(
        (source, type(error), trace.tb_lineno if trace else 0),
        f"{source}: {message[:500]} Such samples count as wrong.",
    )
    return Score.wrong("", Status.FAILED, score)


def to_verl(score: Score) -> dict[str, float | str]:
    """Return a `Score` as the dictionary that verl expects; see `verl_result` for its keys."""
    return {
        "score": float(score.score),
        # verl's managers report the score itself where nothing states the verdict.
        "acc": float(score.score if score.correct is None else score.correct),
        "pred": score.pred,
        **_FLAGS[score.status],
    }


def options_for(scorer: Scorer, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments that are options of the scorer; log and drop unknown ones.

    A scorer that asks a server gets the address of verl's reward model as its `base_url`, unless
    that is set.

    Raises:
        UsageError: an option has an invalid value.
    """
    names = option_names(scorer)
    options = {name: value for name, value in kwargs.items() if name not in VERL_KWARGS}
    if names is not None:
        for name in options.keys() - names:
            log_once(name, f"reward_kwargs.{name} is not an option of this scorer; it is ignored.")
        options = {name: value for name, value in options.items() if name in names}
    if (router := kwargs.get("reward_router_address")) and asks_server(scorer):
        options["base_url"] = options.get("base_url") or f"http://{router}/v1"
    check_values(scorer, options)
    return options


def _as_name(value: Any) -> str:
    """Return a value of verl as text; the name of its type if it has none."""
    text = call_catching(as_text, value)
    return text if isinstance(text, str) else type(value).__name__


def log_once(cause: Hashable, message: str) -> None:
    """Log a cause only the first time, because a reward is called millions of times.

    Secrets are hidden, and control characters escaped: a message may quote a model or a server, and
    a log is read in a terminal.
    """
    if cause not in _logged and len(_logged) < MAX_LOGGED_CAUSES:
        _logged.add(cause)
        text = process_redactor().text(message)
        _log.error("%s", "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text))
