"""One sample of the scorer `judge`: what its judge is asked, and the score of the judgement."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TYPE_CHECKING, Any, NamedTuple

from rewardkit.answers.extract import final_answer, text_after_thought
from rewardkit.background_loop import is_background_thread, submit
from rewardkit.errors import UsageError
from rewardkit.judging.rubric import METRICS, Rubric
from rewardkit.judging.settings import JudgeSettings, judge_settings
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
    rubric, gold = settings.rubric, ""
    if rubric.gold:  # one gold as text, several as lines
        several = alternatives(ground_truth)[:MAX_GOLDS]
        gold = accept_gold(ground_truth) or "\n".join(f"- {text}" for text in several)
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
    if not question and not rubric.gold:
        fault = f"rubric {rubric.name} needs extra_info.question, because it has no gold."
        return failed(fault, pred, rubric.failed_score)
    if not settings.base_url:
        fault = (
            "set the option base_url=http://HOST:PORT/v1, or serve a reward model with verl "
            "(reward.reward_model.enable=True)."
        )
        return failed(fault, pred, rubric.failed_score)
    return JudgeQuestion(settings, question, gold, text, pred)


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


def blank_metrics_of(rubric: Rubric | None) -> dict[str, float]:
    """Return the numbers of a sample that a judge with this rubric was not asked about."""
    names = rubric.criteria if rubric else ()
    return {f"judge_{name}": 0.0 for name in (*METRICS, *names)}


def metrics_of(settings: JudgeSettings, judgement: Judgement) -> dict[str, float]:
    """Return the numbers of a judgement, with the same keys for every sample of a rubric."""
    rubric, verdict = settings.rubric, judgement.verdict
    prices = (settings.prompt_price, settings.reply_price)
    shares = verdict.shares(rubric) if verdict else {}
    return {
        **blank_metrics_of(rubric),
        "judge_failed": float(judgement.outcome in ("failed", "timeout")),
        "judge_cached": float(judgement.is_cached),
        "judge_over_budget": float(judgement.outcome == "over_budget"),
        "judge_seconds": judgement.seconds,
        "judge_tokens": float(judgement.tokens),
        "judge_cost": judgement.cost(*prices),
        **{f"judge_{name}": share for name, share in shares.items()},
    }


def has_content(text: str) -> bool:
    r"""Return whether a text has a letter, a digit, a sign as `∅` or a LaTeX command such as `\infty`."""
    text = _WRAPPERS.sub("", text)
    return bool(_COMMAND.search(text)) or any(
        c.isalnum() or (not c.isascii() and unicodedata.category(c) == "Sm") for c in text
    )


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
