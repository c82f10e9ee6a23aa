r"""Any answer, judged by a model behind an OpenAI-compatible server, or by verl's reward model.

`rewardkit path judge --verl` prints the override; `base_url` and `rubric` are options:

| rubric | asks |
|---|---|
| `math` (default) | is the final answer mathematically equal to the gold? |
| `qa` | does the answer state the same fact as the gold, or as one of several golds? |
| `open` | correctness and helpfulness of the response, without a gold |
| `FILE.yaml` | your own question or criteria; `rewardkit.judging.rubric` has the keys |

Without `base_url`, the judge is the reward model that verl 0.9 serves (`reward.reward_model.enable`),
whose address verl passes to the reward. Without `model`, the server's only model is the judge.

What the judge sees is data: the final answer (`pred`) of the response for a question of equivalence,
cut, without invisible characters, between marks that it cannot contain. A response without an answer
is `no_answer` and never sent. The reply has to be exactly the JSON object that was asked for; another
one is asked for once more, and then the sample failed. A failed sample has `failed_score`, `error` or
`timeout` 1.0 and `judge_failed` 1.0; one for which the budget was spent has `failed_score` and
`judge_over_budget` 1.0. Each cause is logged once.

verl gets these numbers for every sample, beside those of every scorer: `judge_failed`,
`judge_cached`, `judge_over_budget`, `judge_seconds`, `judge_tokens`, `judge_cost`, and for each
criterion `judge_NAME`, its grade as a fraction of its scale.
"""

import asyncio
import re
import unicodedata
from collections.abc import Mapping
from math import isfinite
from time import perf_counter
from typing import Annotated, Any

from rewardkit.answers.extract import final_answer, text_after_thought
from rewardkit.background_loop import is_background_thread, submit
from rewardkit.errors import UsageError, call_catching, call_catching_async
from rewardkit.judging.question import Judgement, JudgeQuestion, JudgeSettings, judge_settings
from rewardkit.judging.rubric import METRICS, Rubric, read_rubric
from rewardkit.scorers.base import (
    RECORD,
    Score,
    ScorerSpec,
    Status,
    as_text,
    failed_verl_score,
    log_bad_gold,
    log_once,
    options_for,
    record_result,
    to_verl,
)
from rewardkit.scorers.conversation import text_to_judge
from rewardkit.scorers.gold import accept_gold, alternatives
from rewardkit.scorers.math import respond
from rewardkit.scorers.options import Range
from rewardkit.versions import verl_awaits_rewards

#: Characters at the end of a response without a marked answer that the judge sees as its answer.
TAIL_CHARACTERS = 500

#: Alternatives of a gold that the judge sees.
MAX_GOLDS = 20

#: Commands of LaTeX that are not an answer by themselves.
_WRAPPERS = re.compile(r"\\(?:boxed|fbox|text|mathrm|left|right)(?![A-Za-z])")
#: Numbers in messages, such as waiting times: they do not make another cause.
_NUMBER = re.compile(r"[0-9]+")
_COMMAND = re.compile(r"\\[A-Za-z]+")


def score(
    response: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    *,
    base_url: str = "",
    model: str = "",
    api_key_env: str = "",
    rubric: str = "math",
    reverse: bool = False,
    concurrency: Annotated[int, Range(1, 4096)] = 64,
    timeout_seconds: Annotated[float, Range(0.1, 86_400)] = 120.0,
    request_seconds: Annotated[float, Range(0.1, 86_400)] = 60.0,
    retries: Annotated[int, Range(0, 100)] = 4,
    cache: str = "",
    budget_calls: Annotated[int, Range(0)] = 0,
    budget_tokens: Annotated[int, Range(0)] = 0,
    budget_window: Annotated[int, Range(0)] = 0,
    failed_score: Annotated[float, Range()] | None = None,
    seed: Annotated[int, Range(0, 2**31 - 2)] = 0,
    max_tokens: Annotated[int, Range(1, 1_000_000)] = 512,
    temperature: Annotated[float, Range(0, 10)] = 0.0,
    prompt_price: Annotated[float, Range(0)] = 0.0,
    reply_price: Annotated[float, Range(0)] = 0.0,
) -> Score:
    """Judge a response with a model. Waits for the server, at most `timeout_seconds`.

    Args:
        response: the model's text.
        ground_truth: one gold, or alternatives as `qa` takes them; a rubric may not need one.
        extra_info: `question` has the question, if present.
        base_url: URL of the server's API, such as http://127.0.0.1:8000/v1.
        model: model name sent to the server; by default its only model.
        api_key_env: environment variable that holds the API key.
        rubric: `math`, `qa`, `open`, or the absolute path of a YAML file.
        reverse: ask the other way round, whether the response has to be rejected; a question of
            equivalence only. `confirm` of `rewardkit compose` asks both.
        concurrency: maximum number of concurrent requests of this process.
        timeout_seconds: timeout per sample, with waiting and retries.
        request_seconds: timeout per request.
        retries: further tries of a request that failed.
        cache: folder of verdicts, shared by processes and nodes, by its absolute path; none by
            default.
        budget_calls: requests of this process in a window, each with its retries; 0 for no limit.
        budget_tokens: tokens of this process in a window; 0 for no limit.
        budget_window: samples with an answer after which the budget starts anew; 0 for never. The
            budget is that of one process: verl has `reward.num_workers` of them.
        failed_score: score of a sample without a verdict; by default that of the rubric.
        seed: random seed of the requests.
        max_tokens: maximum tokens per reply.
        temperature: sampling temperature.
        prompt_price: price of a million tokens of prompts.
        reply_price: price of a million tokens of replies.

    Returns:
        1.0 or 0.0 for a question of equivalence, the weighted mean of the criteria from 0.0 to 1.0
        otherwise, and `failed_score` without a verdict. `pred` has the final answer.
    """
    options = {name: value for name, value in locals().items() if name in _DEFAULTS}
    if is_background_thread():  # which would wait for itself
        error = UsageError("it waits; call it in a thread: await asyncio.to_thread(score, ...).")
        return failed_verl_score("scorer 'judge'", error)
    return submit(_judge_sample(response, ground_truth, extra_info, options)).result()[0]


def explain_judgement(
    response: str, ground_truth: Any, extra_info: Mapping[str, Any] | None = None, **options: Any
) -> tuple[Score, tuple[tuple[str, str], ...]]:
    """Return the score of a response, and the prompt, the raw reply and the numbers of its judge."""
    work = _judge_sample(response, ground_truth, extra_info, options)
    result, metrics, judgement = submit(work).result()
    if judgement is None:
        return result, ()
    prompt = "\n\n".join(f"{each['role']}: {each['content']}" for each in judgement.prompt)
    facts = {"prompt": prompt, "reply": judgement.reply, "failure": judgement.message}
    numbers = {name: f"{value:g}" for name, value in metrics.items() if value}
    return result, tuple({**facts, **numbers}.items())


#: The options and their defaults.
_DEFAULTS: Mapping[str, Any] = dict(score.__kwdefaults__ or {})


def settings_of(options: Mapping[str, Any]) -> JudgeSettings:
    """Return the judge with some options.

    Raises:
        UsageError: the rubric, the API key or the URL cannot be used.
    """
    return judge_settings(tuple(sorted({**_DEFAULTS, **options}.items())))


def blank_metrics(options: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers that verl gets of the judge for a sample that it is not asked about."""
    return _blank_metrics_of(read_rubric(as_text(options.get("rubric", "math"))))


async def _compute_async(
    data_source: Any, solution_str: Any, ground_truth: Any, extra_info: Any = None, **kwargs: Any
) -> dict[str, float | str]:
    """Score a sample for verl and return the dictionary that verl logs; waits in verl's loop."""
    start, folder = perf_counter(), kwargs.pop(RECORD, None)
    future = submit(_judge_sample(solution_str, ground_truth, extra_info, kwargs))
    result, metrics, _ = await asyncio.wrap_future(future)
    if result.status is Status.BAD_GROUND_TRUTH:
        log_bad_gold(score, data_source, ground_truth)
    fields = {**to_verl(result), **metrics}
    call = (data_source, solution_str, ground_truth, extra_info)
    record_result(folder, fields, call, perf_counter() - start)
    return fields


def _compute_now(
    data_source: Any, solution_str: Any, ground_truth: Any, extra_info: Any = None, **kwargs: Any
) -> dict[str, float | str]:
    """`_compute_async`, which waits in this thread."""
    call = _compute_async(data_source, solution_str, ground_truth, extra_info, **kwargs)
    return submit(call).result()


async def _judge_sample(
    response: Any, ground_truth: Any, extra_info: Any, options: Mapping[str, Any]
) -> tuple[Score, dict[str, float], Judgement | None]:
    """Return the score of a sample, its numbers for verl, and the judgement of a judge that was asked.

    Runs on the background loop, and never raises.
    """
    question = call_catching(prepare, response, ground_truth, extra_info, options)
    result: Any = question
    if isinstance(question, JudgeQuestion):
        from rewardkit.judging.judge import judge  # only here an HTTP client is needed

        result = await call_catching_async(judge, question)
        if isinstance(result, Judgement):
            return _score_of(question, result), _metrics_of(question, result), result
    read = call_catching(read_rubric, as_text(options.get("rubric", "math")))
    rubric = read if isinstance(read, Rubric) else None
    if isinstance(result, Exception):
        value = options.get("failed_score")
        if not isinstance(value, int | float) or not isfinite(value):
            value = rubric.failed_score if rubric else 0.0
        result = failed_verl_score("scorer 'judge'", result, value)
    is_failed = float(result.status is Status.FAILED)
    return result, {**_blank_metrics_of(rubric), "judge_failed": is_failed}, None


def prepare(
    response: Any, ground_truth: Any, extra_info: Any, options: Mapping[str, Any]
) -> JudgeQuestion | Score:
    """Return what the judge has to be asked, or the score of a sample that needs no judge.

    Raises:
        UsageError: an option has an invalid value, or the question or the server is missing.
    """
    settings = settings_of(options_for(score, options))
    response, rubric, gold = text_to_judge(as_text(response), extra_info), settings.rubric, ""
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
        raise UsageError(f"rubric {rubric.name} needs extra_info.question, because it has no gold.")
    if not settings.base_url:
        raise UsageError(
            "set the option base_url=http://HOST:PORT/v1, or serve a reward model with verl "
            "(reward.reward_model.enable=True)."
        )
    return JudgeQuestion(settings, question, gold, text, pred)


_STATUS = {"failed": Status.FAILED, "timeout": Status.TIMEOUT, "over_budget": Status.WRONG}


def _blank_metrics_of(rubric: Rubric | None) -> dict[str, float]:
    """Return the numbers of a sample that a judge with this rubric was not asked about."""
    return {f"judge_{name}": 0.0 for name in (*METRICS, *(rubric.criteria if rubric else ()))}


def _score_of(question: JudgeQuestion, judgement: Judgement) -> Score:
    rubric = question.settings.rubric
    if judgement.verdict is None:
        log_once(
            ("judge", judgement.outcome, _NUMBER.sub("#", judgement.message)[:80]),
            f"scorer 'judge': {judgement.message[:500]} Such samples have no verdict.",
        )
        return Score.wrong(question.pred, _STATUS[judgement.outcome], rubric.failed_score)
    value = judgement.verdict.score(rubric)
    if value >= rubric.threshold and value > 0:
        return Score.right(question.pred, value)
    return Score.wrong(question.pred, score=value)


def _metrics_of(question: JudgeQuestion, judgement: Judgement) -> dict[str, float]:
    """Return the numbers of a judgement, with the same keys for every sample of a rubric."""
    settings, verdict = question.settings, judgement.verdict
    fractions = verdict.fractions(settings.rubric) if verdict else {}
    return {
        **_blank_metrics_of(settings.rubric),
        "judge_failed": float(judgement.outcome in ("failed", "timeout")),
        "judge_cached": float(judgement.is_cached),
        "judge_over_budget": float(judgement.outcome == "over_budget"),
        "judge_seconds": judgement.seconds,
        "judge_tokens": float(judgement.tokens),
        "judge_cost": judgement.cost(settings.prompt_price, settings.reply_price),
        **{f"judge_{name}": fraction for name, fraction in fractions.items()},
    }


def has_content(text: str) -> bool:
    r"""Return whether a text has a letter, a digit, a sign as `∅` or a LaTeX command such as `\infty`."""
    text = _WRAPPERS.sub("", text)
    return bool(_COMMAND.search(text)) or any(
        c.isalnum() or (not c.isascii() and unicodedata.category(c) == "Sm") for c in text
    )


#: verl asks once whether it is a coroutine function: 0.7 and later await it, older ones call it.
compute_score: Any = _compute_async if verl_awaits_rewards() else _compute_now

SPEC = ScorerSpec(
    score,
    __doc__,
    respond,
    several_golds=True,
    asks_server=True,
    check_options=settings_of,
    blank_metrics=blank_metrics,
    verl_function=compute_score,
)
