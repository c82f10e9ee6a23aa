"""Shaping: terms that are added to a verdict. Pure functions, linear in the response.

| function | range | source |
|---|---|---|
| `overlong` | a score plus at most 0 | DAPO, arXiv:2503.14476, eq. 13; verl's `dapo` reward manager |
| `format_tags` | 0.0 or 1.0 | DeepSeek-R1, arXiv:2501.12948, 2.2.2 |
| `repetition` | `-max_penalty` to 0.0 | Yeo et al., arXiv:2502.03373, appendix C.2; open-r1 |
| `length` | between its four values | Yeo et al., arXiv:2502.03373 (cosine reward); open-r1 |
| `weighted` | any | |

They raise `UsageError` for invalid settings, never for a response. Shaping pays a policy for the
format even when the answer is wrong, so keep its weights well below that of the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rewardkit.errors import UsageError
from rewardkit.scorers.base import Score

#: Characters at the end of a response that `repetition` reads: loops stand at the end.
REPETITION_CHARS = 131_072


def overlong(
    score: Score,
    response_tokens: int,
    *,
    max_response_tokens: int,
    buffer_tokens: int,
    penalty_factor: float = 1.0,
) -> Score:
    """Add DAPO's soft penalty for long responses, exactly as verl's `dapo` manager does.

    With `expected = max_response_tokens - buffer_tokens`, the score changes by
    `min(-(response_tokens - expected) / buffer_tokens * penalty_factor, 0)`: 0 up to `expected`,
    then linear to `-penalty_factor` at `max_response_tokens`.

    Beyond `max_response_tokens` it keeps falling, as in verl; the paper stops at -1. Both agree if
    verl's `max_resp_len` is the length of the longest response. verl adds the penalty itself if
    `overlong_buffer_cfg.enable` is set: use only one of the two. The penalty cannot distinguish a
    response that rambles from one that needs its length.

    Args:
        score: the verdict, of which only `score` changes.
        response_tokens: length of the response in tokens, including the end token, as verl counts.
        max_response_tokens: verl's `max_resp_len`.
        buffer_tokens: verl's `overlong_buffer_cfg.len`.
        penalty_factor: verl's `overlong_buffer_cfg.penalty_factor`.

    Raises:
        UsageError: the buffer is empty or longer than `max_response_tokens` (verl refuses these
            too), or the factor is negative, which would penalise short responses.
    """
    if not 0 < buffer_tokens <= max_response_tokens:
        raise UsageError(
            f"overlong: buffer_tokens={buffer_tokens}; give a value between 1 and "
            f"max_response_tokens={max_response_tokens}."
        )
    _require("overlong", "penalty_factor", penalty_factor, least=0)
    exceeding = response_tokens - (max_response_tokens - buffer_tokens)
    change = min(-exceeding / buffer_tokens * penalty_factor, 0)
    return score._replace(score=score.score + change)


def format_tags(
    response: str, tags: Sequence[str] = ("think", "answer"), *, outside: bool = True
) -> float:
    """Return 1.0 if every tag is opened and closed once, in order, around some text, else 0.0.

    For `("think", "answer")`: `<think>` text `</think>` `<answer>` text `</answer>`.

    The content of the tags does not matter, and a response that mentions a tag in its thoughts
    fails. If the chat template writes `<think>` into the prompt, the response lacks it and always
    fails: use `("answer",)` then.

    Args:
        response: the model's text.
        tags: the names of the tags, in order.
        outside: whether text may stand before, between and after them; False allows only white
            space there.

    Raises:
        UsageError: `tags` is empty, or one string.
    """
    if not tags or isinstance(tags, str):
        raise UsageError(f"format: tags={tags!r}; give a list of names, as in [think, answer].")
    rest = response
    for tag in tags:
        before, inside, rest = _cut(rest, f"<{tag}>", f"</{tag}>")
        if not inside.strip() or (not outside and before.strip()):
            return 0.0
        if response.count(f"<{tag}>") != 1 or response.count(f"</{tag}>") != 1:
            return 0.0
    return float(outside or not rest.strip())


def repetition(response: str, *, n: int = 20, max_penalty: float = 1.0) -> float:
    """Return a penalty for repetition: `-max_penalty` times the share of repeated n-grams.

    The share counts those of the `len - n + 1` overlapping runs of `n` characters that occurred
    before: `1 - distinct / all`. Characters, unlike the words of the sources, need no spaces, so
    Chinese counts like English. Of a longer response only the last 131,072 characters count.

    A response shorter than `n` is never penalised, and a loop that changes something at least
    every `n` characters is not detected. Terms, tables and code that must be repeated are
    penalised too: with the defaults, half of 15,000 real answers to mathematics questions have a
    share above 0.03, one in twenty above 0.2, one in a hundred above 0.6.

    Args:
        response: the model's text.
        n: length of a repeated run, in characters; at most 1,000.
        max_penalty: the penalty for a response of nothing but repetition; not negative.

    Raises:
        UsageError: `n` is out of range, or `max_penalty` negative.
    """
    _require("repetition", "n", n, least=1, most=1000)  # memory grows with it
    _require("repetition", "max_penalty", max_penalty, least=0)
    text = response[-REPETITION_CHARS:]
    total = len(text) - n + 1
    if total <= 0:
        return 0.0
    distinct = len({text[i : i + n] for i in range(total)})
    return max_penalty * (distinct / total - 1)


def length(
    score: Score,
    response_length: int,
    *,
    max_length: int,
    short_correct: float = 1.0,
    long_correct: float = 0.5,
    short_wrong: float = -1.0,
    long_wrong: float | None = None,
) -> float:
    """Return the cosine reward: a short correct response is better than a long one.

    `long + (short - long) * (1 + cos(pi * t)) / 2` with `t = min(response_length / max_length, 1)`
    and `short`, `long` those of a correct or a wrong response. From `max_length` on it stays at
    `long`; in open-r1 the cosine rises again there, and the paper has a third value.

    It rewards brevity whatever the difficulty of the question. The paper also pays a long wrong
    answer more than a short one (`long_wrong=-0.5`), so that a policy tries longer on what it cannot
    solve; a policy that is wrong most of the time then learns to pad. Here wrong answers get
    `short_wrong` at any length, unless `long_wrong` is set; a reward in YAML may not set the rise.

    Args:
        score: the verdict, of which only `correct` counts.
        response_length: length of the response, in any unit.
        max_length: length from which the value stays the same, in the same unit.
        short_correct: value of a correct response of length 0.
        long_correct: value of a correct response of `max_length`.
        short_wrong: value of a wrong response of length 0.
        long_wrong: value of a wrong response of `max_length`; None for that of `short_wrong`.

    Raises:
        UsageError: `max_length` is not positive, or a value not finite.
    """
    _require("length", "max_length", max_length, least=1)
    long_wrong = short_wrong if long_wrong is None else long_wrong
    for value in (short_correct, long_correct, short_wrong, long_wrong):
        _require("length", "value", value)
    short, long = (short_correct, long_correct) if score.correct else (short_wrong, long_wrong)
    position = min(response_length / max_length, 1.0)
    return long + (short - long) * (1 + math.cos(math.pi * position)) / 2


def weighted(parts: Mapping[str, tuple[float, float]]) -> tuple[float, dict[str, float]]:
    """Return the weighted sum of named (weight, value) pairs and each contribution to it.

    Returns:
        `sum(weight * value)`, and `{name: weight * value}`, which adds up to it.
    """
    contributions = {name: weight * value for name, (weight, value) in parts.items()}
    return math.fsum(contributions.values()), contributions


def _cut(text: str, opening: str, closing: str) -> tuple[str, str, str]:
    """Return the text before, inside and after the first tag; "" inside an absent or open tag."""
    before, _, rest = text.partition(opening)
    inside, closed, after = rest.partition(closing)
    return (before, inside, after) if closed else (before, "", "")


def _require(
    function: str, name: str, value: float, *, least: float = -math.inf, most: float = math.inf
) -> None:
    if not math.isfinite(value) or not least <= value <= most:
        raise UsageError(f"{function}: {name}={value!r}; give a number from {least} to {most}.")
