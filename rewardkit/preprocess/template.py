r"""Prompt templates: the instruction around a question, and the scorer that reads the answer.

| name | asks for | scorer |
|---|---|---|
| `hash` | the answer after `####` (the text of verl's GSM8K script) | `gsm8k` |
| `boxed` | the answer in `\boxed{}` (the text of verl's MATH script) | `math` |
| `think_boxed` | reasoning in `<think>`, then `\boxed{}` (the text of verl's Geometry3k script) | `math` |
| `answer_line` | a last line `Answer: ...` (the text of DAPO-Math-17k) | `math` |
| `boxed_letter` | the letter of an option in `\boxed{}` | `mcq` |
| `answer_tags` | a short answer between `<answer>` and `</answer>` | `qa` |
| `none` | nothing: the question alone | the dataset's own |
| a file | what its text says; `{question}` is replaced by the question | by the form in the text |
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rewardkit.errors import UnknownNameError, UsageError
from rewardkit.registry import did_you_mean
from rewardkit.scorers.base import spec_of
from rewardkit.scorers.load import load_scorer

#: The text that a template has in place of the question.
SLOT = "{question}"


@dataclass(frozen=True)
class Template:
    """A prompt template.

    Attributes:
        name: a built-in name, or the path of the file.
        text: the user message, with `{question}` in it once.
        scorer: name of the scorer that reads the requested form; None if no form is requested.
        system: the system message; None for no such message.
    """

    name: str
    text: str
    scorer: str | None
    system: str | None = None

    def messages(self, question: str) -> list[dict[str, str]]:
        """Return the chat that asks `question`. Braces in the question are kept."""
        user = {"role": "user", "content": self.text.replace(SLOT, question)}
        return [user] if self.system is None else [{"role": "system", "content": self.system}, user]

    def asks_for(self, scorer: str) -> bool:
        """Return whether it asks for the form that a scorer reads, such as a box for `math`."""
        response = spec_of(load_scorer(scorer)).respond
        form = _form(self.text) or _form(self.system or "")
        return response is not None and form is not None and form in response("1")


BUILT_IN: Mapping[str, Template] = {
    template.name: template
    for template in (
        Template(
            "hash",
            '{question} Let\'s think step by step and output the final answer after "####".',
            "gsm8k",
        ),
        Template(
            "boxed",
            "{question} Let's think step by step and output the final answer within \\boxed{}.",
            "math",
        ),
        Template(
            "think_boxed",
            "{question} You FIRST think about the reasoning process as an internal monologue and "
            "then provide the final answer. The reasoning process MUST BE enclosed within <think> "
            "</think> tags. The final answer MUST BE put in \\boxed{}.",
            "math",
        ),
        Template(
            "answer_line",
            "Solve the following math problem step by step. The last line of your response should "
            "be of the form Answer: $Answer (without quotes) where $Answer is the answer to the "
            "problem.\n\n{question}\n\nRemember to put your answer on its own line after "
            '"Answer:".',
            "math",
        ),
        Template(
            "boxed_letter",
            "{question}\n\nThink step by step, then write the letter of the correct option within "
            "\\boxed{}.",
            "mcq",
        ),
        Template(
            "answer_tags",
            "{question}\n\nThink step by step, then write a short answer, a few words without a "
            "sentence around them, between <answer> and </answer>.",
            "qa",
        ),
        Template("none", "{question}", None),
    )
}

#: The forms of an answer, and the scorer that reads each form in any dataset.
_FORMS: Mapping[str, str] = {"####": "gsm8k", "\\boxed": "math", "Answer:": "math"}


def load_template(name: str, system: str | None = None) -> Template:
    r"""Return the built-in template of that name, or the template in a file.

    If the template asks for no form of answer, the system message is searched for `####`, `\boxed`
    and `Answer:`, too.
    """
    template = BUILT_IN.get(name) or _read(name)
    form = _form(template.text) or _form(system or "")
    scorer = template.scorer or (_FORMS[form] if form else None)
    return Template(template.name, template.text, scorer, system)


def _read(name: str) -> Template:
    path = Path(name)
    if not path.is_file():
        raise UnknownNameError(
            f"unknown template {name!r}.{did_you_mean(name, BUILT_IN)} "
            f"Use {', '.join(BUILT_IN)}, or the path of a text file that contains {SLOT}."
        )
    try:
        text = path.read_text(encoding="utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise UsageError(f"{name}: not UTF-8 text ({error.reason}).") from error
    if text.count(SLOT) != 1:
        raise UsageError(f"{name}: contains {SLOT} {text.count(SLOT)} times instead of once.")
    return Template(name, text, None)


def _form(text: str) -> str | None:
    return next((form for form in _FORMS if form in text), None)
