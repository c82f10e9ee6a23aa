"""`rewardkit select --sft`: the best right responses of a run, as verl's multi-turn SFT data.

Fine-tuning on a policy's own right responses is called rejection sampling. Only responses that were
scored as right and that ended are kept, and of these the shortest of each prompt.

verl's rollout dumps have a response of several turns as one text, without special tokens. Its turns
are told apart only where the text has the form that ChatML with Hermes' tool calls leaves (Qwen's):
the results of tools are in a message of the user, between `<tool_response>` and `</tool_response>`.
Everything else that looks like several turns is refused, because verl would train on what the
policy did not write.
"""

import json
from bisect import insort
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from rewardkit.errors import DataError
from rewardkit.model_client.completions import TRUNCATED, UNUSABLE
from rewardkit.responses.figures import Cell
from rewardkit.responses.matching import INDEX_ALONE, TrainIndex, index_parquet
from rewardkit.responses.samples import USUAL_NAMES, FieldNames, Sample, read_scores
from rewardkit.responses.select import (
    NO_VERDICT,
    JoinReport,
    PassRateFilter,
    count_list,
    scored_files,
    write_selection,
)
from rewardkit.row import (
    AGENT_NAME,
    BATCH_ROWS,
    IMAGES,
    IMAGES_METADATA,
    METADATA_KEY,
    TOOL_AGENT,
    open_parquet,
    python_rows,
)
from rewardkit.scorers.score import Status
from rewardkit.strict_yaml import read_yaml_file
from rewardkit.versions import VERSION

Message: TypeAlias = dict[str, str]
Schemas: TypeAlias = tuple[Mapping[str, Any], ...]

#: Marks of the end of a response in dumps that keep special tokens; the chat template adds its own.
_END_MARKS = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>", "</s>")

#: Special tokens that begin a turn in a chat template.
_TURN_MARKS = ("<|im_start|>", "<|start_header_id|>", "[INST]")

#: Lines that begin a turn which is not the policy's, after special tokens are left out.
_OTHER_ROLES = ("user\n", "tool\n", "ipython\n")

_TOOL_OPEN, _TOOL_CLOSE = "<tool_response>\n", "\n</tool_response>"


@dataclass
class SftReport(JoinReport):
    """The result of `select_sft`; all numbers are counts.

    `rejected` are right responses that were left out, by reason; `prompts` are distinct, and `covered`
    those of them that have a response in `out`. `unknown_end` counts conversations whose record does not
    say why the response ended. `null_tool_fields` says whether verl reads null fields in `--tools`.
    """

    wrong: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    prompts: int = 0
    covered: int = 0
    unknown_end: int = 0
    null_tool_fields: bool = False

    def warnings(self) -> list[str]:
        """Return a sentence about null fields of tools."""
        sentence = (
            f"{self.out}: the schemas of the tools have different fields. Parquet gives each tool "
            "the fields of all, and verl shows the policy a null for each that a tool does not have."
        )
        return [sentence] if self.null_tool_fields else []

    def lines(self) -> list[str]:
        """Return the report in sentences."""
        right, prompts = self.responses.total() - self.wrong, f"{self.prompts:,} prompts"
        lines = [
            f"{self.out}: {self.written:,} responses to {self.covered:,} of {prompts}",
            *(f"prompts without one, {why}: {n:,}" for why, n in self.dropped.most_common()),
            f"right responses: {right:,}, wrong: {self.wrong:,}",
            *(f"right but left out, {why}: {n:,}" for why, n in self.rejected.most_common()),
            *super().lines(),
        ]
        if self.unknown_end:
            lines.append(
                f"{self.unknown_end:,} of them do not say why they ended (finish_reason); "
                "--max-characters leaves out those at the run's length limit"
            )
        return lines


class ConversationError(ValueError):
    """A prompt or a response that cannot be written as messages; the text says why."""


def prompt_messages(prompt: Any) -> list[Message]:
    """Return the messages of a row's prompt; raise `ConversationError` if they are more than texts."""
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    if not isinstance(messages, list) or not messages:
        raise ConversationError("the row has no prompt")
    for message in messages:
        own = {name: value for name, value in message.items() if value is not None}
        if own.keys() != {"role", "content"} or not isinstance(own["content"], str):
            raise ConversationError("a message has more than a role and a text, or not these")
    return [{name: m[name] for name in ("role", "content")} for m in messages]


def response_messages(response: str, fields: Mapping[str, Any]) -> list[Message]:
    """Return the messages that follow the prompt; the last one is the assistant's.

    `reasoning` in the fields of its record is what a server's reasoning parser removed from the text.
    """
    if fields.get("messages"):
        raise ConversationError("its turns are in a field messages, and not in its text")
    for _ in range(2):  # the end of a turn, and the end of the text
        if mark := next((mark for mark in _END_MARKS if response.rstrip().endswith(mark)), ""):
            response = response.rstrip().removesuffix(mark)
    reasoning = fields.get("reasoning")
    if isinstance(reasoning, str) and reasoning.strip():
        response = f"<think>\n{reasoning.strip()}\n</think>\n\n{response}"
    _require_end(response)
    answer, *parts = response.split(f"user\n{_TOOL_OPEN}")
    messages = [{"role": "assistant", "content": answer.removesuffix("\n") if parts else answer}]
    for part in parts:
        results, mark, answer = part.partition(f"{_TOOL_CLOSE}\nassistant\n")
        n_results = results.count(f"{_TOOL_CLOSE}\n{_TOOL_OPEN}") + 1
        if not mark or messages[-1]["content"].count("<tool_call>") < n_results:
            raise ConversationError("the turns of its tools cannot be told apart")
        messages.append({"role": "user", "content": f"{_TOOL_OPEN}{results}{_TOOL_CLOSE}"})
        answer = answer if part is parts[-1] else answer.removesuffix("\n")
        messages.append({"role": "assistant", "content": answer})
    for message in messages[::2]:
        _require_one_turn(message["content"])
    _require_end(messages[-1]["content"])
    return messages


def _require_one_turn(text: str) -> None:
    if any(mark in text for mark in _TURN_MARKS):
        raise ConversationError("it has special tokens of a chat template")
    begins = [at for role in _OTHER_ROLES if (at := text.find(role)) >= 0]
    if "<tool_response>" in text or (begins and text.find("assistant\n", min(begins)) >= 0):
        raise ConversationError("it has turns of others, which cannot be told apart")


def _require_end(text: str) -> None:
    if not text.strip():
        raise ConversationError("it is empty")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ConversationError("it has characters that are not Unicode text") from None
    for name, what in (("think", "thinking"), ("tool_call", "tool call")):
        if text.rfind(f"<{name}>") > text.rfind(f"</{name}>"):
            raise ConversationError(f"cut off: its {what} has no end")


def read_tools(path: Path) -> Schemas:
    """Read the schemas of tools from verl's tool configuration, or from a list of schemas."""
    value = read_yaml_file(path)
    entries = value.get("tools") if isinstance(value, dict) else value
    schemas = [
        entry.get("tool_schema", entry) if isinstance(entry, dict) else None
        for entry in (entries if isinstance(entries, list) else [])
    ]
    if not schemas or not all(isinstance(s, dict) and "function" in s for s in schemas):
        raise DataError(
            f"{path}: is not a tool configuration of verl: write a list 'tools', each with a "
            "tool_schema that has a function."
        )
    return tuple(dict(schema) for schema in schemas if isinstance(schema, dict))


@dataclass(frozen=True)
class SftConfig:
    """Which responses to write: up to `per_prompt` for each prompt, the shortest first.

    `prompts` is the condition on a prompt's pass rate, `tools` the schemas of the run's tools, as OpenAI's
    API has them.
    """

    per_prompt: int = 1
    max_characters: int | None = None
    prompts: PassRateFilter = field(default_factory=lambda: PassRateFilter(0.0, 1.0))
    tools: Schemas = ()

    def reject_reason(self, sample: Sample, way: str) -> str:
        """Return why a right response that matches a row in a way is left out; "" if it is kept."""
        finish, most = sample.fields.get("finish_reason"), self.max_characters
        if way == INDEX_ALONE:
            return f"matched by {way}, which nothing confirms"
        if finish == TRUNCATED or (isinstance(finish, str) and finish in UNUSABLE):
            return f"cut off (finish_reason {finish})"
        if most is not None and len(sample.response) > most:
            return f"longer than {most:,} characters"
        return ""


class _Candidate(NamedTuple):
    """A right response; candidates sort by length, then text, whatever order they are read in."""

    characters: int
    folded: str
    has_no_end: bool
    messages: list[Message]


def select_sft(
    scored: Sequence[str | Path],
    train: Path,
    out: Path,
    config: SftConfig,
    *,
    names: FieldNames = USUAL_NAMES,
    right_score: float | None = None,
    overwrite: bool = False,
    progress: Callable[[int], object] = lambda _: None,
) -> SftReport:
    """Write the best right responses of a run as conversations for supervised fine-tuning.

    The kept responses and the prompts are in memory, the images are not. The arguments are those of
    `select`. `out` has `messages`, and `tools` and `images` if the rows have them; the prompts
    without a response go to `<out>.dropped.jsonl`.

    Raises:
        DataError: as `select` does; or rows call tools whose schemas are missing, or no response
            would be kept.
    """
    files, name = scored_files(scored, train, out, "--sft", overwrite=overwrite)
    report = SftReport(name, train, out)
    index = index_parquet(train)
    prompts = _prompts(train, index)
    report.prompts = len(prompts)
    rates = [Cell() for _ in prompts]
    candidates: list[list[_Candidate]] = [[] for _ in prompts]
    scores = read_scores(files, names, right_score)
    schema = _schema(config.tools, report)
    for sample, score, match in report.join(scores, index, progress):
        if score.status in NO_VERDICT:
            continue
        rates[match.prompt].add(score)
        if not score.correct or sample.fields.get("status") not in (None, Status.CORRECT.value):
            report.wrong += 1
            continue
        prompt = prompts[match.prompt]
        reason = prompt if isinstance(prompt, str) else config.reject_reason(sample, match.way)
        reason = reason or _add_candidate(candidates[match.prompt], sample, config.per_prompt)
        if reason:
            report.rejected[reason] += 1
    pairs = zip(prompts, rates, candidates, strict=True)
    reasons = [_drop_reason(prompt, rate, own, config) for prompt, rate, own in pairs]
    report.dropped.update(filter(None, reasons))
    report.covered = report.prompts - report.dropped.total()
    if not report.covered:
        raise DataError(
            f"{report.scored}: no response would be kept (prompts: {count_list(report.dropped)}; "
            f"right responses: {count_list(report.rejected) or 'none'})."
        )
    selected = [i for i, reason in enumerate(reasons) if not reason]
    report.unknown_end = sum(each.has_no_end for i in selected for each in candidates[i])
    by_row = [reasons[i] if index.prompts[i].row == n else None for n, i in enumerate(index.rows)]

    def convert(batch: pa.RecordBatch, numbers: list[int]) -> pa.RecordBatch:
        rows = [
            _sft_row(row, number, [*prompts[index.rows[number]], *each.messages], config.tools)
            for number, row in zip(numbers, python_rows(batch), strict=True)
            for each in candidates[index.rows[number]]
        ]
        return pa.RecordBatch.from_pylist(rows, schema=schema)

    write_selection(report, index, rates, by_row, schema, convert, overwrite)
    return report


def _drop_reason(
    prompt: list[Message] | str, rate: Cell, own: list[_Candidate], config: SftConfig
) -> str:
    none = "no right response that is kept" if rate.correct else "no right response"
    reason = prompt if isinstance(prompt, str) else config.prompts.drop_reason(rate)
    return reason or ("" if own else none)


def _prompts(train: Path, index: TrainIndex) -> list[list[Message] | str]:
    """Return the messages of each distinct prompt, or why it cannot be written."""
    prompts: list[list[Message] | str] = []
    with open_parquet(train) as file:
        batches = file.iter_batches(BATCH_ROWS, columns=["prompt"])
        values = (value for batch in batches for value in batch.column(0).to_pylist())
        for i, value in zip(index.rows, values, strict=True):
            if i == len(prompts):  # the first row of its prompt
                try:
                    prompts.append(prompt_messages(value))
                except ConversationError as error:
                    prompts.append(f"its prompt: {error}")
    return prompts


def _add_candidate(own: list[_Candidate], sample: Sample, per_prompt: int) -> str:
    """Add a right response to the shortest of its prompt; return why it is left out, or ""."""
    try:
        messages = response_messages(sample.response, sample.fields)
    except ConversationError as error:
        return str(error)
    has_no_end = not isinstance(sample.fields.get("finish_reason"), str)
    folded = " ".join(sample.response.split())
    candidate = _Candidate(len(sample.response), folded, has_no_end, messages)
    same = next((i for i, other in enumerate(own) if other.folded == folded), None)
    if same is not None:
        candidate = min(candidate, own.pop(same), key=itemgetter(0, 1, 2))
    insort(own, candidate, key=itemgetter(0, 1, 2))
    del own[per_prompt:]
    return "" if same is None else "a duplicate of another response to its prompt"


def _sft_row(
    row: Mapping[str, Any], number: int, messages: list[Message], schemas: Schemas
) -> dict[str, Any]:
    calls_tools = row.get(AGENT_NAME.name) in (None, "", TOOL_AGENT)
    tools = schemas if schemas and calls_tools else () if schemas else row.get("tools") or ()
    return {
        "messages": messages,
        "tools": list(tools),
        IMAGES.name: row.get(IMAGES.name) or [],
        "data_source": row.get("data_source"),
        "train_row": number,
    }


def _schema(schemas: Schemas, report: SftReport) -> pa.Schema:
    """Return the schema of the conversations; `tools` has the type of schemas, or of the training file."""
    with open_parquet(report.train) as file:
        train = {column.name: column.type for column in file.schema_arrow}
    tools, info = train.get("tools", pa.null()), train.get("extra_info", pa.null())
    has_tools = pa.types.is_list(tools) and pa.types.is_struct(tools.value_type)
    if schemas:
        try:
            column = pa.array([list(schemas)])
        except (ValueError, TypeError, OverflowError) as error:  # those of Arrow, too
            raise DataError(
                f"the tools of --tools cannot be one column of a parquet ({error}). Give a field "
                "values of the same type in every tool."
            ) from error
        has_tools, tools = True, column.type
        report.null_tool_fields = column.to_pylist() != [list(schemas)]
    elif not has_tools and pa.types.is_struct(info) and info.get_field_index("tools_kwargs") >= 0:
        raise DataError(
            f"{report.train}: its rows call tools, whose schemas the conversations need. Name the file "
            "of the run's actor_rollout_ref.rollout.multi_turn.tool_config_path with --tools."
        )
    message = pa.struct([("role", pa.string()), ("content", pa.string())])
    columns = [pa.field("messages", pa.list_(message))]
    origin = {"command": "select --sft", "scored": report.scored, "train": str(report.train)}
    metadata = {METADATA_KEY.decode(): json.dumps({"rewardkit": VERSION, **origin})}
    if has_tools:
        columns.append(pa.field("tools", tools))
    if IMAGES.name in train:
        columns.append(pa.field(IMAGES.name, train[IMAGES.name]))
        metadata |= IMAGES_METADATA
    columns += [pa.field("data_source", pa.string()), pa.field("train_row", pa.int64())]
    return pa.schema(columns, metadata)
