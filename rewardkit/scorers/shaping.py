"""The parts of a composed reward: terms that are added to a verdict, linear in the response.

| part | range | source |
|---|---|---|
| `correct` | 0.0 or 1.0 | the verdict, with a minimal length if wanted |
| `base` | any | the scorer's own score |
| `format` | 0.0 or 1.0 | DeepSeek-R1, arXiv:2501.12948, 2.2.2 |
| `repetition` | `-max_penalty` to 0.0 | Yeo et al., arXiv:2502.03373, appendix C.2; open-r1 |
| `length` | between its four values | Yeo et al., arXiv:2502.03373 (cosine reward); open-r1 |
| `called`, `calls_at_most`, `turns` | 0.0 or 1.0 | the messages of a rollout with tools |
| `result_contains` | 0.0 or 1.0 | the retrieval reward of Search-R1, arXiv:2505.15117 |
| `answer_after_tools` | 0.0 or 1.0 | the verdict and the messages |

Shaping pays a policy for the format even when the answer is wrong, so keep its weights well below that
of the verdict. docs/reference/score.md has the settings.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from rewardkit.answers.open_answers.squad import normalize
from rewardkit.errors import UsageError
from rewardkit.scorers.conversation import Conversation
from rewardkit.scorers.gold import alternatives
from rewardkit.scorers.score import Score
from rewardkit.strict_yaml import STRICT

#: Characters at the end of a response that `repetition` reads: loops stand at the end.
REPETITION_CHARS = 131_072

_Number = Annotated[float, Field(allow_inf_nan=False)]
#: Names of tools; one of them may stand without a list.
_Tools = Annotated[
    list[str],
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    Field(min_length=1),
]


class Weighted(BaseModel):
    """The settings of every part: a weight, or more of them."""

    model_config = STRICT
    #: Whether `value` takes a `Conversation` in place of the response.
    reads_conversation: ClassVar[bool] = False
    weight: _Number

    @model_validator(mode="before")
    @classmethod
    def _of_weight(cls, value: Any) -> Any:
        return value if isinstance(value, dict) else {"weight": value}

    def value(self, score: Score, _response: Any) -> float:
        """Return the value for a response and its verdict."""
        return score.score


class Correct(Weighted):
    """Whether the answer is correct, and the response after its thought long enough, without blanks."""

    min_chars: int = Field(0, ge=0)

    def value(self, score: Score, response: str) -> float:
        """Return the value for a response and its verdict."""
        if score.correct is None:
            raise UsageError("which score of the scorer is right is not known: add right_score.")
        is_long = not self.min_chars or (
            len("".join(response.rpartition("</think>")[2].split())) >= self.min_chars
        )
        return float(score.correct and is_long)


class Base(Weighted):
    """The scorer's own score."""


class Format(Weighted):
    """1.0 if every tag is opened and closed once, in order, around some text, else 0.0.

    For `[think, answer]`: `<think>` text `</think>` `<answer>` text `</answer>`.

    The content of the tags does not matter, and a response that mentions a tag in its thoughts
    fails. If the chat template writes `<think>` into the prompt, the response lacks it and always
    fails: use `[answer]` then.
    """

    tags: list[str] = Field(["think", "answer"], min_length=1)
    outside: bool = True

    def value(self, _score: Score, response: str) -> float:
        """Return the value for a response."""
        rest = response
        for tag in self.tags:
            opening, closing = f"<{tag}>", f"</{tag}>"
            before, _, rest = rest.partition(opening)
            inside, closed, rest = rest.partition(closing)
            is_once = closed and response.count(opening) == response.count(closing) == 1
            if not is_once or not inside.strip() or (not self.outside and before.strip()):
                return 0.0
        return float(self.outside or not rest.strip())


class Repetition(Weighted):
    """A penalty for repetition: `-max_penalty` times the fraction of repeated n-grams.

    The fraction counts those of the `len - n + 1` overlapping runs of `n` characters that occurred
    before: `1 - distinct / all`. Characters, unlike the words of the sources, need no spaces, so
    Chinese counts like English. Of a longer response only the last 131,072 characters count.

    A response shorter than `n` is never penalised, and a loop that changes something at least
    every `n` characters is not detected. Terms, tables and code that must be repeated are
    penalised too: with the defaults, half of 15,000 real answers to mathematics questions have a
    fraction above 0.03, one in twenty above 0.2, one in a hundred above 0.6.
    """

    n: int = Field(20, ge=1, le=1000)  # memory grows with it
    max_penalty: _Number = Field(1.0, ge=0)

    def value(self, _score: Score, response: str) -> float:
        """Return the value for a response."""
        text = response[-REPETITION_CHARS:]
        total = len(text) - self.n + 1
        if total <= 0:
            return 0.0
        distinct = len({text[i : i + self.n] for i in range(total)})
        return self.max_penalty * (distinct / total - 1)


class Length(Weighted):
    """The cosine reward: a short correct response is better than a long one.

    `long + (short - long) * (1 + cos(pi * t)) / 2` with `t = min(characters / max_chars, 1)` and
    `short`, `long` those of a correct or a wrong response. From `max_chars` on it stays at `long`; in
    open-r1 the cosine rises again there, and the paper has a third value.

    It rewards brevity whatever the difficulty of the question. The paper also pays a long wrong
    answer more than a short one (`long_wrong=-0.5`), so that a policy tries longer on what it cannot
    solve; a policy that is wrong most of the time then learns to pad, so that this is refused.
    """

    max_chars: int = Field(ge=1)
    short_correct: _Number = 1.0
    long_correct: _Number = 0.5
    short_wrong: _Number = -1.0
    long_wrong: _Number | None = None

    @model_validator(mode="after")
    def _pays_no_length(self) -> "Length":
        long = self.short_wrong if self.long_wrong is None else self.long_wrong
        if self.weight * (long - self.short_wrong) > 0:
            raise ValueError(
                f"it would pay a long wrong answer more than a short one (weight {self.weight}, "
                f"short_wrong {self.short_wrong}, long_wrong {long}); leave out long_wrong."
            )
        return self

    def value(self, score: Score, response: str) -> float:
        """Return the value for a response and its verdict."""
        if score.correct:
            short, long = self.short_correct, self.long_correct
        else:
            short = self.short_wrong
            long = short if self.long_wrong is None else self.long_wrong
        position = min(len(response) / self.max_chars, 1.0)
        return long + (short - long) * (1 + math.cos(math.pi * position)) / 2


class Called(Weighted):
    """1.0 if each of the tools ran at least once, whatever it returned."""

    reads_conversation = True
    tool: _Tools

    def value(self, _score: Score, conversation: Conversation) -> float:
        """Return the value for a conversation."""
        return float({c.tool for c in conversation.calls if c.result is not None} >= {*self.tool})


class CallsAtMost(Weighted):
    """1.0 if the model wrote at most `n` calls, also such as failed; of some tools, or of all."""

    reads_conversation = True
    n: int = Field(ge=0)
    tool: _Tools | None = None

    def value(self, _score: Score, conversation: Conversation) -> float:
        """Return the value for a conversation."""
        tools = [call.tool for call in conversation.calls]
        return float(sum(self.tool is None or tool in self.tool for tool in tools) <= self.n)


class ResultContains(Weighted):
    """1.0 if a result that the model read contains a text, or else an answer of the ground truth.

    Case, punctuation and articles do not count. A result does not count if the text is in the arguments of
    its call, because many tools repeat those. By default it counts for correct answers only: otherwise a
    policy is paid for what a tool says.
    """

    reads_conversation = True
    text: str | None = Field(None, min_length=1)
    tool: _Tools | None = None
    only_correct: bool = True

    def value(self, score: Score, conversation: Conversation) -> float:
        """Return the value for a conversation and its verdict."""
        if self.only_correct and not score.correct:
            return 0.0
        texts = alternatives(conversation.ground_truth) if self.text is None else [self.text]
        return float(
            any(
                contains(call.result, text) and not contains(call.arguments, text)
                for call in conversation.calls
                if call.result and call.is_read and (self.tool is None or call.tool in self.tool)
                for text in texts
            )
        )


class AnswerAfterTools(Weighted):
    """1.0 if the last message is correct and the model read the result of a tool before it."""

    reads_conversation = True

    def value(self, score: Score, conversation: Conversation) -> float:
        """Return the value for a conversation and its verdict."""
        has_result = any(c.result is not None and c.is_read for c in conversation.calls)
        return float(has_result and bool(score.correct))


class Turns(Weighted):
    """1.0 if the model took at most `at_most` turns."""

    reads_conversation = True
    at_most: int = Field(ge=1)

    def value(self, _score: Score, conversation: Conversation) -> float:
        """Return the value for a conversation."""
        return float(len(conversation.turns) <= self.at_most)


def contains(text: str, part: str) -> bool:
    """Whether a text contains another one as words, without case, punctuation and articles."""
    part = normalize(part)
    edge = "" if part and not part.isascii() else " "  # Chinese has no blanks between words
    return bool(part) and f"{edge}{part}{edge}" in f" {normalize(text)} "


#: The parts, by their names in the YAML.
PARTS: Mapping[str, type[Weighted]] = {
    "correct": Correct,
    "base": Base,
    "format": Format,
    "repetition": Repetition,
    "length": Length,
    "called": Called,
    "calls_at_most": CallsAtMost,
    "result_contains": ResultContains,
    "answer_after_tools": AnswerAfterTools,
    "turns": Turns,
}
