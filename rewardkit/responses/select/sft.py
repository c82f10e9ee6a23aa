"""`rewardkit select --sft`: the best right responses of a run, as verl's multi-turn SFT data.

Fine-tuning on a policy's own right responses is called rejection sampling. Only responses that were
scored as right and that ended are kept, and of these the shortest of each prompt.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from rewardkit.errors import DataError
from rewardkit.model_client.completions import TRUNCATED, UNUSABLE
from rewardkit.responses.matching import PLACE_ALONE, Match, TrainIndex, match_row
from rewardkit.responses.samples import Sample, SkippedRow, read_samples
from rewardkit.responses.select.conversations import (
    ConversationError,
    Message,
    prompt_messages,
    response_messages,
)
from rewardkit.responses.select.selection import (
    PassRate,
    PassRateFilter,
    SftReport,
    count_list,
    index_train,
    is_right,
    no_match_message,
    require_files,
    required_rule,
)
from rewardkit.responses.select.sft_file import Conversation, Tools, write_conversations
from rewardkit.row import BATCH_ROWS, open_parquet
from rewardkit.scorers.reward_result import RightRule
from rewardkit.scorers.score import Status

#: Responses that are held per prompt for each one that is kept, in case some resemble each other.
POOL_FACTOR = 4

#: Words of the pieces by which two responses are compared.
PIECE_WORDS = 5

#: Share of common pieces from which on two responses are near-duplicates.
NEAR_DUPLICATE_SHARE = 0.8


@dataclass(frozen=True)
class SftConfig:
    """Which responses are kept.

    Attributes:
        per_prompt: the most responses per prompt; the shortest come first.
        min_characters: the fewest characters of a response.
        max_characters: the most characters of a response; None for any number.
        prompts: the condition on a prompt's pass rate.
        tools: schemas of the run's tools, as OpenAI's API has them.
    """

    per_prompt: int = 1
    min_characters: int = 1
    max_characters: int | None = None
    prompts: PassRateFilter = field(default_factory=lambda: PassRateFilter(0.0, 1.0))
    tools: tuple[Mapping[str, Any], ...] = ()


class _Candidate(NamedTuple):
    """A right response; candidates sort by length, then text, whatever order they are read in."""

    characters: int
    folded: str
    messages: list[Message]
    has_end: bool


def select_sft(
    scored: Sequence[str] | Path,
    train: Path,
    out: Path,
    config: SftConfig,
    *,
    response_key: str | None = None,
    gold_key: str | None = None,
    right_score: float | None = None,
    overwrite: bool = False,
    progress: Callable[[int], object] = lambda _: None,
) -> SftReport:
    """Write the best right responses of a run as conversations for supervised fine-tuning.

    The kept responses and the prompts are in memory, the pictures are not.

    Args:
        scored: files, folders and patterns of responses with `acc`, or `score`; see `select`.
        train: the verl parquet that they answer.
        out: the parquet to write: `messages`, and `tools` and `images` if the rows have them. The
            prompts without a response go to `<out>.dropped.jsonl`.
        config: which responses are kept.
        response_key: the field with the response; see `read_samples`.
        gold_key: the field with the ground truth.
        right_score: the lowest right score; see `select`.
        overwrite: replace what exists.
        progress: called with 1 for every scored row.

    Raises:
        UsageError: `out` does not end in .parquet.
        DataError: a file cannot be read, a response contradicts its row or matches several rows,
            rows call tools whose schemas are missing, or no response would be kept.
        OutputError: `out` cannot be written.
    """
    files, name = require_files(scored, train, out, "--sft", overwrite=overwrite)
    report = SftReport(name, train, out, config.per_prompt)
    rule = required_rule(files, response_key, gold_key, right_score)
    tools = Tools.of_file(train, config.tools)
    index = index_train(train)
    report.prompts = len(index.prompts)
    selection = _Selection(config, index, _prompts(train, index), report, rule)
    for sample in read_samples(files, response_key, gold_key):
        selection.add(sample)
        progress(1)
    if not report.responses:
        raise DataError(no_match_message(report))
    reasons = selection.drop_reasons()
    report.dropped.update(filter(None, reasons))
    report.covered = report.prompts - report.dropped.total()
    if not report.covered:
        raise DataError(
            f"{report.scored}: no response would be kept (prompts: {count_list(report.dropped)}; "
            f"right responses: {count_list(report.rejected) or 'none'})."
        )
    pools, rates = selection.pools, selection.rates
    conversations = {
        place: _pick(pools[place], config, report) for place in pools if not reasons[place]
    }
    write_conversations(index, conversations, rates, reasons, tools, report, overwrite=overwrite)
    return report


def _prompts(train: Path, index: TrainIndex) -> list[list[Message] | str]:
    """Return the messages of each distinct prompt, or why it cannot be written."""
    prompts: list[list[Message] | str] = []
    with open_parquet(train) as file:
        batches = file.iter_batches(BATCH_ROWS, columns=["prompt"])
        values = (value for batch in batches for value in batch.column(0).to_pylist())
        for place, value in zip(index.rows, values, strict=True):
            if place == len(prompts):  # the first row of its prompt
                try:
                    prompts.append(prompt_messages(value))
                except ConversationError as error:
                    prompts.append(f"its prompt: {error}")
    return prompts


class _Selection:
    """The responses so far: those of each prompt, by its place in the index."""

    def __init__(
        self,
        config: SftConfig,
        index: TrainIndex,
        prompts: Sequence[list[Message] | str],
        report: SftReport,
        rule: RightRule,
    ) -> None:
        self.rule = rule
        self.config, self.index, self.prompts, self.report = config, index, prompts, report
        self.rates = [PassRate() for _ in prompts]
        self.pools: dict[int, list[_Candidate]] = {}

    def add(self, sample: Sample | SkippedRow) -> None:
        """Count a scored response, and hold it if it is among the best of its prompt."""
        report = self.report
        correct = sample if isinstance(sample, SkippedRow) else is_right(sample, self.rule)
        if isinstance(correct, SkippedRow):
            report.unread += 1
            report.add_example(correct)
        elif isinstance(sample, Sample):
            match = match_row(self.index, sample)
            if match is None:
                report.unjoined += 1
                report.add_example(SkippedRow(sample.where, f"answers no row of {report.train}"))
                return
            report.responses[match.way] += 1
            self.rates[match.place].add(correct)
            if not correct or sample.fields.get("status") not in (None, Status.CORRECT.value):
                report.wrong += 1
            elif reason := self._add_right(sample, match):
                report.rejected[reason] += 1

    def _add_right(self, sample: Sample, match: Match) -> str:
        """Hold a right response; return why it is left out, or ""."""
        prompt = self.prompts[match.place]
        if isinstance(prompt, str):
            return prompt
        if reason := _reject_reason(sample, match.way, self.config):
            return reason
        try:
            messages = response_messages(sample.response, sample.fields, prompt)
        except ConversationError as error:
            return str(error)
        has_end = isinstance(sample.fields.get("finish_reason"), str)
        folded = " ".join(sample.response.split())
        candidate = _Candidate(len(sample.response), folded, prompt + messages, has_end)
        pool = self.pools.setdefault(match.place, [])
        is_new = _add_to_pool(pool, candidate, self.config.per_prompt)
        return "" if is_new else "a duplicate of another response to its prompt"

    def drop_reasons(self) -> list[str]:
        """Return why each prompt has no response in the output; "" if it has one."""
        reasons = []
        for place, (prompt, rate) in enumerate(zip(self.prompts, self.rates, strict=True)):
            reason = prompt if isinstance(prompt, str) else self.config.prompts.drop_reason(rate)
            if not reason and place not in self.pools:
                is_solved = rate.best == 1
                reason = "no right response that is kept" if is_solved else "no right response"
            reasons.append(reason)
        return reasons


def _reject_reason(sample: Sample, way: str, config: SftConfig) -> str:
    finish, characters = sample.fields.get("finish_reason"), len(sample.response)
    if way == PLACE_ALONE:
        return f"matched by {way}, which nothing confirms"
    if finish == TRUNCATED or finish in UNUSABLE:
        return f"cut off (finish_reason {finish})"
    if characters < config.min_characters:
        return f"shorter than {config.min_characters:,} characters"
    if config.max_characters is not None and characters > config.max_characters:
        return f"longer than {config.max_characters:,} characters"
    return ""


def _add_to_pool(pool: list[_Candidate], candidate: _Candidate, per_prompt: int) -> bool:
    """Add a response to the shortest of its prompt; False if one with the same words is there."""
    same = next((i for i, other in enumerate(pool) if other.folded == candidate.folded), None)
    if same is not None:
        candidate = min(candidate, pool.pop(same), key=_order)
    insort(pool, candidate, key=_order)
    del pool[per_prompt * (POOL_FACTOR if per_prompt > 1 else 1) :]
    return same is None


def _order(candidate: _Candidate) -> tuple[int, str, bool]:
    return candidate.characters, candidate.folded, not candidate.has_end


def _pick(pool: Sequence[_Candidate], config: SftConfig, report: SftReport) -> list[Conversation]:
    """Return the conversations of a prompt, without near-duplicates."""
    picks: list[tuple[_Candidate, frozenset[tuple[str, ...]]]] = []
    for candidate in pool:
        pieces = _pieces(candidate.folded) if config.per_prompt > 1 else frozenset()
        if any(_are_similar(pieces, other) for _, other in picks):
            report.rejected["a near-duplicate of another response to its prompt"] += 1
        elif len(picks) < config.per_prompt:
            picks.append((candidate, pieces))
    report.unknown_end += sum(not candidate.has_end for candidate, _ in picks)
    return [candidate.messages for candidate, _ in picks]


def _pieces(folded: str) -> frozenset[tuple[str, ...]]:
    words = folded.split()
    starts = range(max(1, len(words) - PIECE_WORDS + 1))
    return frozenset(tuple(words[start : start + PIECE_WORDS]) for start in starts)


def _are_similar(one: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]) -> bool:
    return len(one & other) >= NEAR_DUPLICATE_SHARE * len(one | other)
