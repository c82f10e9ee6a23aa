"""One sample of the scorer `judge`: what its judge is asked, and the score of the judgement."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import cache as memoize
from typing import TYPE_CHECKING, Any, NamedTuple

from rewardkit.answers.extract import final_answer, text_after_thought
from rewardkit.background_loop import is_background_thread, submit
from rewardkit.errors import UsageError
from rewardkit.judging.budget import BudgetLimits
from rewardkit.judging.rubric import METRICS, Rubric, read_rubric, reverse_rubric
from rewardkit.judging.settings import JudgeSettings, ServerSettings, read_api_key
from rewardkit.scorers.base import Score, Status, as_text, log_once
from rewardkit.scorers.gold import accept_gold, alternatives

if TYPE_CHECKING:
    from concurrent.futures import Future

    from rewardkit.judging.judge import Judgement

#: Characters at the end of a response without a marked answer that the judge sees as its answer.
TAIL_CHARACTERS = 500

#: Alternatives of a gold that the judge sees.
MAX_GOLDS = 20

#: Seconds that a thread waits longer than the judge's own timeout, if the background loop is busy.
GRACE_SECONDS = 10.0

#: Commands of LaTeX that are not an answer by themselves.
_WRAPPERS = re.compile(r"\\(?:boxed|fbox|text|mathrm|left|right)(?![A-Za-z])")
#: Numbers in messages, such as waiting times: they do not make another cause.
_NUMBER = re.compile(r"[0-9]+")
_COMMAND = re.compile(r"\\[A-Za-z]+")


class JudgeQuestion(NamedTuple):
    """A sample as its judge sees it.

    Attributes:
        settings: the judge.
        question: the question of the row; "" if it is unknown.
        gold: the reference answer.
        response: the part of the response that is judged.
        pred: the final answer of the response, by which verl counts votes.
    """

    settings: JudgeSettings
    question: str
    gold: str
    response: str
    pred: str


def prepare(
    response: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> JudgeQuestion | Score:
    """Return what the judge has to be asked, or the score of a sample that needs no judge.

    Args:
        response: the model's text.
        ground_truth: the gold.
        extra_info: the row's other fields.
        options: all options of the scorer `judge`.

    Raises:
        UsageError: an option has an invalid value.
    """
    settings = judge_settings(tuple(sorted(options.items())))
    rubric = settings.rubric
    gold = _gold(ground_truth) if rubric.gold else ""
    answer = final_answer(response, gold)
    pred = answer.text if answer else ""
    if rubric.gold and not gold:
        return Score.wrong(pred, Status.BAD_GROUND_TRUTH)
    text = pred if rubric.see == "answer" else text_after_thought(response)
    if rubric.see == "answer" and not pred and "boxed" not in response:
        text = text_after_thought(response).strip()[-TAIL_CHARACTERS:]
    if not has_content(text):
        return Score.wrong("", Status.NO_ANSWER)
    if rubric.see == "answer" and len(text) > rubric.max_characters:
        return Score.wrong(pred[: rubric.max_characters], Status.TOO_LONG)
    info = extra_info if isinstance(extra_info, Mapping) else {}
    question = as_text(info.get("question"))
    if fault := _fault(settings, question):
        return failed(fault, pred, rubric.failed_score)
    return JudgeQuestion(settings, question, gold, text, pred)


def _fault(settings: JudgeSettings, question: str) -> str:
    if not (question or settings.rubric.gold):
        return f"rubric {settings.rubric.name} needs extra_info.question, because it has no gold."
    if not settings.server.base_url:
        return (
            "set the option base_url=http://HOST:PORT/v1, or serve a reward model with verl "
            "(reward.reward_model.enable=True)."
        )
    return ""


def failed(message: str, pred: str, score: float, status: Status = Status.FAILED) -> Score:
    """Log once for each cause why a sample has no verdict, and return its score."""
    log_once(
        ("judge", status, _NUMBER.sub("#", message)[:80]),
        f"scorer 'judge': {message[:500]} Such samples have no verdict.",
    )
    return Score.wrong(pred, status, score)


def score_of(question: JudgeQuestion, judgement: Judgement) -> Score:
    """Return the score of a judgement; one without a verdict is logged once for each cause."""
    rubric = question.settings.rubric
    if judgement.verdict is None:
        status = _STATUS[judgement.outcome]
        return failed(judgement.message, question.pred, rubric.failed_score, status)
    value = judgement.verdict.score(rubric)
    if value >= rubric.threshold and value > 0:
        return Score.right(question.pred, value)
    return Score.wrong(question.pred, score=value)


_STATUS = {"failed": Status.FAILED, "timeout": Status.TIMEOUT, "over_budget": Status.WRONG}


def metrics_of(rubric: Rubric | None, judgement: Judgement | None, prices: Any) -> dict[str, float]:
    """Return the numbers of a judgement, with the same keys for every sample of a rubric."""
    names = [each.name for each in rubric.criteria] if rubric else []
    metrics = {f"judge_{name}": 0.0 for name in (*METRICS, *names)}
    if judgement:
        metrics["judge_failed"] = float(judgement.outcome in ("failed", "timeout"))
        metrics["judge_cached"] = float(judgement.is_cached)
        metrics["judge_over_budget"] = float(judgement.outcome == "over_budget")
        metrics["judge_seconds"] = judgement.seconds
        metrics["judge_tokens"] = float(judgement.tokens)
        metrics["judge_cost"] = judgement.cost(prices)
        if judgement.verdict and rubric:
            shares = judgement.verdict.shares(rubric)
            metrics.update({f"judge_{name}": share for name, share in shares.items()})
    return metrics


@memoize
def judge_settings(options: tuple[tuple[str, Any], ...]) -> JudgeSettings:
    """Return the judge with these options of the scorer `judge`.

    Raises:
        UsageError: the rubric or the API key cannot be read.
    """
    value = dict(options)
    rubric = read_rubric(value["rubric"])
    if value["reverse"]:
        rubric = reverse_rubric(rubric)
    if value["failed_score"] is not None:
        rubric = Rubric(**{**vars(rubric), "failed_score": float(value["failed_score"])})
    return JudgeSettings(
        ServerSettings(
            value["base_url"],
            value["model"],
            read_api_key(value["api_key_env"]),
            value["concurrency"],
            value["request_seconds"],
            value["retries"] + 1,
        ),
        rubric,
        value["timeout_seconds"],
        value["temperature"],
        value["max_tokens"],
        value["seed"],
        value["cache"],
        BudgetLimits(*(value[f"budget_{n}"] for n in ("calls", "tokens", "seconds", "window"))),
        (value["prompt_price"], value["reply_price"]),
    )


def check_options(options: Mapping[str, Any]) -> None:
    """Require that the rubric, the API key and the URL in some options of the judge can be used.

    Raises:
        UsageError: one of them cannot.
    """
    from urllib.parse import urlsplit

    rubric = read_rubric(options.get("rubric", "math"))
    if options.get("reverse"):
        reverse_rubric(rubric)
    read_api_key(options.get("api_key_env", ""))
    url = options.get("base_url", "")
    if url and not (url.startswith(("http://", "https://")) and urlsplit(url).hostname):
        raise UsageError(f"base_url {url}: write it as http://HOST:PORT/v1.")


def has_content(text: str) -> bool:
    r"""Return whether a text has a letter, a digit, a sign as `∅` or a LaTeX command such as `\infty`."""
    text = _WRAPPERS.sub("", text)
    return bool(_COMMAND.search(text)) or any(
        c.isalnum() or (not c.isascii() and unicodedata.category(c) == "Sm") for c in text
    )


def _gold(ground_truth: Any) -> str:
    """Return one gold as text, and several as lines."""
    if single := accept_gold(ground_truth, several=False):
        return single
    return "\n".join(f"- {text}" for text in alternatives(ground_truth)[:MAX_GOLDS])


def submit_question(question: JudgeQuestion) -> Future[Judgement]:
    """Ask the judge on the background loop and return the future of the judgement."""
    from rewardkit.judging.judge import judge

    return submit(judge(question.settings, question.question, question.gold, question.response))


def ask(question: JudgeQuestion) -> Judgement:
    """Ask the judge and wait in this thread.

    Raises:
        UsageError: this is the thread of the background loop, which would wait for itself.
    """
    from rewardkit.judging.judge import Judgement

    if is_background_thread():
        raise UsageError(
            "scorer 'judge' waits; call it in a thread: await asyncio.to_thread(score, ...)."
        )
    seconds = question.settings.timeout_seconds
    future = submit_question(question)
    try:
        judgement: Judgement = future.result(seconds + GRACE_SECONDS)
    except FutureTimeoutError:
        future.cancel()
        return Judgement("timeout", message=f"it has not answered within {seconds:g} s.")
    return judgement
