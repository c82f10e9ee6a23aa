"""Lengths of prompts: in tokens of the model's own tokenizer, as verl counts them."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from rewardkit.errors import DataError, MissingPackageError, SourceError, call_catching
from rewardkit.statistics import percentile_of_counts

Messages: TypeAlias = Sequence[dict[str, Any]]
TokenCounter: TypeAlias = Callable[[Messages], int]


@dataclass
class PromptLengths:
    """The lengths of a file's prompts."""

    unit: str = "characters"
    limit: int | None = None
    counts: Counter[int] = field(default_factory=Counter)

    def percentiles(self) -> dict[str, int]:
        """Return median, p90, p99 and maximum."""
        percents = {"p50": 50, "p90": 90, "p99": 99, "max": 100}
        return {name: percentile_of_counts(self.counts, n) for name, n in percents.items()}

    def summary(self) -> dict[str, float]:
        """Return the percentiles; with a limit also the share of longer prompts."""
        if self.limit is None:
            return {**self.percentiles()}
        too_long = sum(count for length, count in self.counts.items() if length > self.limit)
        return {**self.percentiles(), "over": too_long / max(self.counts.total(), 1)}

    def to_dict(self) -> dict[str, object]:
        """Return unit, limit and summary, without the counts."""
        return {"unit": self.unit, "limit": self.limit, **self.summary()}


def token_counter(name: str) -> TokenCounter:
    """Return a function that counts a prompt's tokens with chat template and generation prompt."""
    folder = Path(name).expanduser()
    if not folder.exists() and name.startswith(("/", ".", "~")):
        raise SourceError(f"--tokenizer {name}: no such folder.")
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise MissingPackageError(
            "--tokenizer needs transformers: pip install 'rewardkit[tokenizer]'."
        ) from error
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder) if folder.exists() else name)
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0][:160]
        raise SourceError(
            f"--tokenizer {name}: cannot be loaded ({reason}). Without internet, name a folder: "
            "--tokenizer /models/Qwen3-8B."
        ) from error
    has_chat = bool(getattr(tokenizer, "chat_template", None))

    def count_tokens(messages: Messages) -> int:
        if has_chat:
            text = call_catching(
                tokenizer.apply_chat_template,
                list(messages),
                add_generation_prompt=True,
                tokenize=False,
            )
            if isinstance(text, Exception):  # a template may raise an error of its own
                raise DataError(f"--tokenizer {name}: its chat template fails: {text}.") from text
            return len(tokenizer.encode(text, add_special_tokens=False))
        return sum(len(tokenizer.encode(str(m.get("content") or ""))) for m in messages)

    return count_tokens
