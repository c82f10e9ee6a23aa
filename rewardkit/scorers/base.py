"""What a scorer's file needs: `Score`, `Status`, and `ScorerSpec`, the boundary to verl.

verl calls rewards from executor threads of Ray actors, passes NumPy scalars and None, and adds keys
to `extra_info` and keyword arguments of its own. From 0.9 on it swallows the exceptions of a reward
and trains on the remaining samples. `ScorerSpec.compute_score` handles all of this. `call_scorer` calls
a scorer for a command. What a scorer returns is checked, and what it raises is caught, only here.
"""

import logging
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from time import perf_counter
from typing import Any

from rewardkit.errors import DataError, RewardkitError, UnknownNameError, call_catching
from rewardkit.scorers.conversation import has_messages, text_to_judge
from rewardkit.scorers.gold import MAX_LIST_CHARACTERS, MISSING, accept_gold, unwrap_gold
from rewardkit.scorers.options import (
    check_values,
    inner_function,
    is_verl_function,
    option_names,
)
from rewardkit.scorers.score import Score, Scorer, Status, as_text

__all__ = ["Score", "Scorer", "Status", "as_text"]

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


#: Why a score of a reward has no verdict, for those commands that count right answers.
NO_VERDICT = "which of its scores is right is not known; name it with --right-score"


class NoVerdictError(RuntimeError):
    """A scorer produced no score, for another reason than an exception that it raised."""

    #: What the scorer did, in two or three words, for tables.
    description = "produced no score"
    status = Status.FAILED


class InvalidScoreError(NoVerdictError):
    """A scorer returned something other than a `Score` with a finite number."""

    description = "returned an invalid score"


class NeverAnswersError(DataError):
    """An isolated scorer failed on every response that it was called with."""

    status = Status.TIMEOUT


@dataclass(frozen=True, eq=False)
class ScorerSpec:
    """What verl and our commands need of a scorer: `compute_score = ScorerSpec(score).compute_score`.

    Attributes:
        score: the scorer; it, and `verl_function`, get this as their attribute `rewardkit_spec`.
        text: the docstring of its file; the first line is its summary, and a table in it says what is
            read with which setting.
        respond: writes the shortest well-formed response with an answer.
        wrong_score: the score of a wrong answer.
        several_golds: whether any of several golds is right.
        asks_server: whether it waits for a model server: commands call it concurrently, and check no
            golds with it.
        explain_gold: returns why a gold cannot be scored; "" if there is nothing to add.
        check_options: raises `UsageError` for what the annotation of an option cannot say, and for a
            package that is not installed.
        blank_metrics: returns the numbers that verl gets of a sample that the scorer is not asked
            about, from its options.
        verl_function: the function for verl, if it is not `compute_score`.
        find_faults: yields the rule that a gold breaks, and how, from a gold that can be read, the prompt,
            the dataset's own solution and the options of the scorer. For golds that are not answers:
            `check` asks it, and scores no response with the gold.
    """

    score: Scorer
    text: str | None = ""
    respond: Callable[[str], str] | None = None
    wrong_score: float = 0.0
    several_golds: bool = False
    asks_server: bool = False
    explain_gold: Callable[[str], str] | None = None
    check_options: Callable[[Mapping[str, Any]], object] | None = None
    blank_metrics: Callable[[Mapping[str, Any]], Mapping[str, float]] | None = None
    verl_function: Callable[..., Any] | None = None
    find_faults: Callable[[str, str, str, Mapping[str, Any]], Iterable[tuple[str, str]]] | None = (
        None
    )

    def __post_init__(self) -> None:
        for function in (self.score, self.verl_function):
            with suppress(AttributeError, TypeError):  # None and a function in C cannot have it
                function.rewardkit_spec = self  # type: ignore[union-attr]

    @property
    def summary(self) -> str:
        """The first line of the docstring of its file."""
        return str(self.text or "").partition("\n")[0]

    def compute_score(
        self,
        data_source: Any,
        solution_str: Any,
        ground_truth: Any,
        extra_info: Any = None,
        **kwargs: Any,
    ) -> dict[str, float | str]:
        """`verl_result` with verl's signature."""
        return verl_result(self.score, data_source, solution_str, ground_truth, extra_info, kwargs)


def spec_of(scorer: Any) -> ScorerSpec:
    """Return the spec of a scorer, perhaps with bound options.

    For a reward without one it is made of `respond`, `WRONG_SCORE` and `ASKS_SERVER` in its file.
    """
    function = inner_function(scorer)
    spec = getattr(function, "rewardkit_spec", None)
    if isinstance(spec, ScorerSpec):
        return spec
    names = getattr(function, "__globals__", {})
    return ScorerSpec(
        function,
        names.get("__doc__"),
        names.get("respond"),
        float(names.get("WRONG_SCORE", 0.0)),
        asks_server=bool(names.get("ASKS_SERVER")),
    )


def verl_result(
    scorer: Scorer,
    data_source: Any,
    solution_str: Any,
    ground_truth: Any,
    extra_info: Any,
    kwargs: Mapping[str, Any],
) -> dict[str, float | str]:
    """Score one sample for verl. Never raises: a failure counts as wrong, sets `error`, and is logged.

    `kwargs` are options of the scorer (`reward_kwargs`) and verl's own; `record` names a folder in which
    the result is recorded. `extra_info` counts as absent if it is not a mapping.

    Returns:
        The same keys for every input: `score`, `acc` (1.0 or 0.0), `pred` (text, so that verl
        computes maj@k), and `no_answer`, `timeout`, `error` (1.0 or 0.0), which verl averages
        into charts. `error` means that the data or the configuration is at fault, not the policy.
    """
    if kwargs and RECORD in kwargs:
        sample = (data_source, solution_str, ground_truth, extra_info)
        others = {name: value for name, value in kwargs.items() if name != RECORD}
        started = perf_counter()
        result = verl_result(scorer, *sample, others)
        record_result(kwargs[RECORD], result, sample, perf_counter() - started)
        return result
    return to_verl(verl_score(scorer, data_source, solution_str, ground_truth, extra_info, kwargs))


def verl_result_with_metrics(
    scorer: Scorer,
    judge: Callable[..., tuple[Score, Mapping[str, float]]],
    sample: tuple[Any, Any, Any, Any],
    kwargs: Mapping[str, Any],
) -> dict[str, float | str]:
    """`verl_result` of a scorer that has numbers of its own, which stand beside those of every scorer.

    `judge` takes what the scorer takes, and returns the score and the numbers; `ScorerSpec.blank_metrics`
    has them where it fails. `sample` has verl's four arguments.
    """
    data_source, solution_str, ground_truth, extra_info = sample
    started, others = perf_counter(), dict(kwargs)
    folder = others.pop(RECORD, None)
    info = extra_info if isinstance(extra_info, Mapping) else None
    outcome = call_catching(
        lambda: judge(
            text_to_judge(as_text(solution_str), info),
            unwrap_gold(ground_truth),
            info,
            **options_for(scorer, others),
        )
    )
    if isinstance(outcome, Exception):
        blank = spec_of(scorer).blank_metrics
        outcome = failed_verl_score(data_source, outcome), blank({}) if blank else {}
    result, metrics = outcome
    if result.status is Status.BAD_GROUND_TRUTH:
        log_bad_gold(scorer, data_source, ground_truth)
    fields = {**to_verl(result), **metrics}
    record_result(folder, fields, sample, perf_counter() - started)
    return fields


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
        return failed_verl_score(data_source, result, spec_of(scorer).wrong_score)
    if result.status is Status.BAD_GROUND_TRUTH:
        log_bad_gold(scorer, data_source, ground_truth)
    return result


def _verl_call(
    scorer: Scorer, solution_str: Any, ground_truth: Any, extra_info: Any, kwargs: Mapping[str, Any]
) -> Score:
    info = extra_info if isinstance(extra_info, Mapping) else None
    options = options_for(scorer, kwargs) if kwargs else kwargs
    text = text_to_judge(as_text(solution_str), info)
    return require_score(scorer(text, unwrap_gold(ground_truth), info, **options))


def log_bad_gold(scorer: Scorer, data_source: Any, ground_truth: Any) -> None:
    """Log once for each data source that a gold cannot be scored, and why."""
    source = text_or_type(data_source)
    log_once(
        (source, Status.BAD_GROUND_TRUTH),
        f"{source}: ground truth {text_or_type(ground_truth)[:80]!r} cannot be scored"
        f"{explain_bad_gold(ground_truth, scorer)}. Such samples count as wrong; run "
        "`rewardkit check` on the parquet.",
    )


def explain_bad_gold(value: Any, scorer: Any) -> str:
    """Return why a scorer cannot score a gold, as the end of a sentence; "" if unknown."""
    text, spec = unwrap_gold(value), spec_of(scorer)
    if text.strip() in MISSING:
        return ": it is a missing value" if text.strip() else ": it is empty"
    if spec.find_faults and spec.explain_gold:
        reason = spec.explain_gold(text)
        return f": {reason}" if reason else ""
    if text.lstrip()[:1] in ("[", "{") and len(text) > MAX_LIST_CHARACTERS:
        return f": a list or an object of more than {MAX_LIST_CHARACTERS:,} characters is not read"
    if spec.several_golds:
        return ': it has no text; write one answer, a list, or {"target": [...]}'
    if text.lstrip()[:1] in ("[", "{") and not accept_gold(text):
        kind = "an object" if text.lstrip()[0] == "{" else "a list of several answers"
        return f": it is {kind}; write one answer as text"
    reason = spec.explain_gold(accept_gold(text)) if spec.explain_gold else ""
    return f": {reason}" if reason else ""


def record_result(
    folder: Any,
    result: Mapping[str, float | str],
    sample: tuple[Any, Any, Any, Any],
    seconds: float,
) -> None:
    """Record a call of a reward in a folder; see `recorder.writer`. Never raises."""
    data_source, solution_str, ground_truth, extra_info = sample
    if isinstance(folder, str) and folder:
        from rewardkit.recorder.writer import recorder_of  # only where something is recorded

        recorder_of(folder).add(
            result,
            response=text_or_type(solution_str),
            data_source=data_source,
            ground_truth=ground_truth,
            extra_info=extra_info,
            seconds=seconds,
        )
    elif folder is not None and folder != "":
        log_once(RECORD, f"reward_kwargs.record={folder!r} is not the path of a folder.")


def failure_result(
    data_source: Any, error: Exception, score: float = 0.0
) -> dict[str, float | str]:
    """Log a failure and return its result for verl: a wrong answer with `error` set."""
    return to_verl(failed_verl_score(data_source, error, score))


def failed_verl_score(data_source: Any, error: Exception, score: float = 0.0) -> Score:
    """Log a failure and return its score: a wrong answer with the status `failed`."""
    source, message = text_or_type(data_source), error_text(error)
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


#: Characters of an answer in a result: verl logs and stores each, and a program may have 200,000.
MAX_PRED_CHARACTERS = 4096


def to_verl(score: Score) -> dict[str, float | str]:
    """Return a `Score` as the dictionary that verl expects; see `verl_result` for its keys."""
    return {
        "score": float(score.score),
        # verl's managers report the score itself where nothing states the verdict.
        "acc": float(score.score if score.correct is None else score.correct),
        "pred": score.pred[:MAX_PRED_CHARACTERS],
        **_FLAGS[score.status],
    }


def options_for(scorer: Scorer, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments that are options of the scorer; log and drop unknown ones.

    A scorer that asks a server gets the address of verl's reward model as its `base_url`, and one that
    runs programs that of verl's sandbox as its `sandbox_url`, unless they are set.

    Raises:
        UsageError: an option has an invalid value.
    """
    names = option_names(scorer)
    options = {name: value for name, value in kwargs.items() if name not in VERL_KWARGS}
    if names is not None:
        for name in options.keys() - names:
            log_once(name, f"reward_kwargs.{name} is not an option of this scorer; it is ignored.")
        options = {name: value for name, value in options.items() if name in names}
    if (router := kwargs.get("reward_router_address")) and spec_of(scorer).asks_server:
        options["base_url"] = options.get("base_url") or f"http://{router}/v1"
    if (sandbox := kwargs.get("sandbox_fusion_url")) and names and "sandbox_url" in names:
        options["sandbox_url"] = options.get("sandbox_url") or sandbox
    check_values(scorer, options)
    return options


def text_or_type(value: Any) -> str:
    """Return a value of verl as text; the name of its type if it has none."""
    text = call_catching(as_text, value)
    return text if isinstance(text, str) else type(value).__name__


def log_once(cause: Hashable, message: str) -> None:
    """Log a cause only the first time, because a reward is called millions of times.

    Secrets are hidden, and control characters escaped: a message may quote a model or a server, and
    a log is read in a terminal.
    """
    if cause not in _logged and len(_logged) < MAX_LOGGED_CAUSES:
        from rewardkit.redact import process_redactor  # only where something is logged

        _logged.add(cause)
        text = process_redactor().text(message)
        _log.error("%s", "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text))


def call_scorer(
    scorer: Scorer,
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    **options: Any,
) -> Score | Exception:
    """Return the score of a response, or the exception that explains why there is none.

    A function with verl's signature gets the whole response, any other scorer the text to judge.
    Never raises. `failed_score` makes a `Score` of the exception, `failure_reason` a sentence.
    """
    is_own = has_messages(extra_info) and hasattr(inner_function(scorer), "rewardkit_spec")

    def call() -> Score:
        is_text = is_own and not is_verl_function(scorer)
        text = text_to_judge(response, extra_info) if is_text else response
        return require_score(scorer(text, ground_truth, extra_info, **options))

    return call_catching(call)


def call_scorer_or_stop(
    scorer: Scorer, response: str, ground_truth: str, extra_info: Mapping[str, Any] | None = None
) -> Score | Exception:
    """Call a scorer as `call_scorer` does, for a command that scores many responses.

    Raises:
        NeverAnswersError: the scorer failed on all of its first responses, each after its timeout.
    """
    result = require_verdict(call_scorer(scorer, response, ground_truth, extra_info))
    if isinstance(result, NeverAnswersError):
        raise result
    return result


def require_verdict(result: Score | Exception) -> Score | Exception:
    """Return an exception in place of a score with the status `failed`."""
    if isinstance(result, Score) and result.status is Status.FAILED:
        return NoVerdictError("the scorer has no verdict; its first message says why")
    return result


def require_score(result: object) -> Score:
    """Return the result of a scorer with plain types in its fields.

    Raises:
        InvalidScoreError: the result is not a `Score`, its score is not finite, or its status is
            not one of `Status`.
    """
    if not isinstance(result, Score):
        raise InvalidScoreError(f"the scorer returned {type(result).__name__}, not a Score")
    score, correct, pred, status = result
    if not isfinite(score):
        raise InvalidScoreError(f"its score is {score}")
    has_plain_values = type(score) is float and type(correct) is bool and type(pred) is str
    if has_plain_values and type(status) is Status:
        return result
    correct = None if correct is None else bool(correct)
    known = call_catching(Status, status)
    if isinstance(known, Exception):
        raise InvalidScoreError(f"its status is {str(status)[:80]!r}")
    return Score(float(score), correct, as_text(pred), known)


def failed_score(error: Exception, score: float = 0.0) -> Score:
    """Return the score of a response on which the scorer failed."""
    if isinstance(error, NoVerdictError | NeverAnswersError):
        return Score.wrong("", error.status, score)
    return Score.wrong("", Status.FAILED, score)


def failure_reason(error: Exception) -> str:
    """Return one line that says why a response has no score."""
    if isinstance(error, NoVerdictError | UnknownNameError):  # not raised by a scorer
        return error_line(error)
    return f"the scorer raised {type(error).__name__}: {error_line(error)}"


def error_line(error: Exception) -> str:
    """Return the message of an exception without line ends."""
    return " ".join(error_text(error).split())


def error_text(error: Exception) -> str:
    """Return the message of an exception without secrets; "" if that of a user's scorer has none."""
    from rewardkit.redact import process_redactor

    text = call_catching(str, error)
    return process_redactor().text(text) if isinstance(text, str) else ""
