"""`rewardkit select --sft`: the best right responses of a run, as verl's multi-turn SFT data.

Fine-tuning on a policy's own right responses is called rejection sampling. Only responses that were
scored as right and that ended are kept, and of these the shortest of each prompt.

verl's rollout dumps have a response of several turns as one text, without special tokens. Its turns
are told apart only where the text has the form that ChatML with Hermes' tool calls leaves (Qwen's):
the results of tools are in a message of the user, between `<tool_response>` and `</tool_response>`.
Everything else that looks like several turns is refused, because verl would train on what the
policy did not write.

A parquet file gives every object of a column the fields of all of them, with null where an object has
none, and verl passes these nulls to the chat template. So messages have optional keys only if one of
them is set in the file, and the arguments of tool calls are objects only if all have the same fields;
otherwise they are JSON text, as in OpenAI's API.
"""

from __future__ import annotations

import json
from bisect import insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from rewardkit.errors import DataError
from rewardkit.jsonl import json_line
from rewardkit.model_client.completions import TRUNCATED, UNUSABLE
from rewardkit.preprocess.dropped_rows import atomic_with_dropped
from rewardkit.preprocess.turns import TOOL_AGENT
from rewardkit.responses.matching import PLACE_ALONE, Match, TrainIndex, match_row, squeeze
from rewardkit.responses.samples import Sample, SkippedRow, read_samples
from rewardkit.responses.select.selection import (
    PassRate,
    PassRateFilter,
    SftReport,
    count_list,
    dropped_row,
    index_train,
    is_right,
    no_match_message,
    require_files,
    required_rule,
)
from rewardkit.row import (
    AGENT_NAME,
    BATCH_ROWS,
    IMAGES,
    IMAGES_METADATA,
    METADATA_KEY,
    open_parquet,
    python_rows,
    row_group_batches,
)
from rewardkit.scorers.reward_result import RightRule
from rewardkit.scorers.score import Status
from rewardkit.strict_yaml import read_yaml_file
from rewardkit.versions import VERSION

Message: TypeAlias = dict[str, Any]

#: Texts of a message besides its role and content that chat templates know.
OPTIONAL_TEXTS = ("name", "tool_call_id", "reasoning_content")

#: Marks of the end of a response in dumps that keep special tokens; the chat template adds its own.
_END_MARKS = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>", "</s>")

#: Special tokens that begin a turn in a chat template.
_TURN_MARKS = ("<|im_start|>", "<|start_header_id|>", "[INST]")

#: Lines that begin a turn which is not the policy's, after special tokens are left out.
_OTHER_ROLES = ("user\n", "tool\n", "ipython\n")

_TOOL_OPEN, _TOOL_CLOSE = "<tool_response>\n", "\n</tool_response>"


class ConversationError(ValueError):
    """A prompt or a response that cannot be written as messages; the text says why."""


def prompt_messages(prompt: Any) -> list[Message]:
    """Return the messages of a row's prompt with the keys that chat templates know, without nulls.

    Raises:
        ConversationError: the prompt is empty, or a message has no role or a content that is not
            text.
    """
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    if not isinstance(messages, list) or not messages:
        raise ConversationError("the row has no prompt")
    return [_message(message) for message in messages]


def response_messages(
    response: str, fields: Mapping[str, Any], prompt: Sequence[Message]
) -> list[Message]:
    """Return the messages that follow the prompt; the last one is the assistant's.

    Args:
        response: the scored text.
        fields: the fields of its record: `messages`, if it has them, is the whole conversation;
            `reasoning` is what a server's reasoning parser removed from the text.
        prompt: the messages of its row.

    Raises:
        ConversationError: the response is empty or has no end, or its turns cannot be told apart.
    """
    own = fields.get("messages")
    if isinstance(own, list) and own:
        return _own_messages(own, response, prompt)
    text = _without_end_marks(response)
    reasoning = fields.get("reasoning")
    if isinstance(reasoning, str) and reasoning.strip():
        text = f"<think>\n{reasoning.strip()}\n</think>\n\n{text}"
    _require_end(text)
    return _split_turns(text)


def _own_messages(own: list[Any], response: str, prompt: Sequence[Message]) -> list[Message]:
    messages = [_message(message) for message in own]
    rest = messages[len(prompt) :]
    if list(map(_head, messages[: len(prompt)])) != list(map(_head, prompt)):
        raise ConversationError("its messages do not begin with the prompt of the row")
    if not rest or rest[0]["role"] != "assistant" or rest[-1]["role"] != "assistant":
        raise ConversationError("its messages do not end with an answer of the assistant")
    if squeeze(rest[-1]["content"]) not in squeeze(response):
        raise ConversationError("its messages do not end with the scored response")
    _require_end(rest[-1]["content"])
    return rest


def _head(message: Message) -> tuple[str, str]:
    return message["role"], squeeze(message["content"])


def _split_turns(text: str) -> list[Message]:
    """Return the turns of a text: the assistant's, and between them the results of its tools."""
    answer, *parts = text.split(f"user\n{_TOOL_OPEN}")
    messages = [{"role": "assistant", "content": answer.removesuffix("\n") if parts else answer}]
    for part in parts:
        results, mark, answer = part.partition(f"{_TOOL_CLOSE}\nassistant\n")
        n_results = results.count(f"{_TOOL_CLOSE}\n{_TOOL_OPEN}") + 1
        if not mark or messages[-1]["content"].count("<tool_call>") < n_results:
            raise ConversationError("the turns of its tools cannot be told apart")
        content = f"{_TOOL_OPEN}{results}{_TOOL_CLOSE}"
        messages.append({"role": "user", "content": content})
        is_last = part is parts[-1]
        answer = answer if is_last else answer.removesuffix("\n")
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
    if text.rfind("<think>") > text.rfind("</think>"):
        raise ConversationError("cut off: its thinking has no end")
    if text.rfind("<tool_call>") > text.rfind("</tool_call>"):
        raise ConversationError("cut off: its tool call has no end")


def _without_end_marks(text: str) -> str:
    for _ in range(2):  # the end of a turn, and the end of the text
        if mark := next((mark for mark in _END_MARKS if text.rstrip().endswith(mark)), ""):
            text = text.rstrip().removesuffix(mark)
    return text


def _message(message: Any) -> Message:
    fields = message if isinstance(message, Mapping) else {}
    role, content = fields.get("role"), fields.get("content")
    calls = fields.get("tool_calls") or []
    content = "" if content is None and calls else content
    if not isinstance(role, str) or not isinstance(content, str) or not isinstance(calls, list):
        raise ConversationError("a message has no role, or a content that is not text")
    texts = {name: fields[name] for name in OPTIONAL_TEXTS if isinstance(fields.get(name), str)}
    called = {"tool_calls": [_tool_call(call) for call in calls]} if calls else {}
    return {"role": role, "content": content, **texts, **called}


def _tool_call(call: Any) -> dict[str, Any]:
    """Return a tool call as OpenAI's API has it, with its arguments as an object."""
    fields = call if isinstance(call, Mapping) else {}
    function = fields.get("function") or fields
    name, arguments = function.get("name"), function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            arguments = None
    else:
        arguments = without_nulls(arguments)
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise ConversationError("a tool call has no name, or arguments that are not an object")
    call_id = {"id": fields["id"]} if isinstance(fields.get("id"), str) else {}
    return {**call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def without_nulls(value: Any) -> Any:
    """Return a value without the null fields that parquet gives to each object of a column."""
    if isinstance(value, Mapping):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


Conversation: TypeAlias = list[Message]

#: Training rows that are read together: they may have pictures.
_BATCH_ROWS = 256

_TOOLS = "tools"


@dataclass(frozen=True)
class Tools:
    """The column `tools` of the output.

    Attributes:
        schemas: the tools of every row that calls tools; () if each row has its own.
        kind: Arrow type of the column; None for a file without tools.
    """

    schemas: tuple[Mapping[str, Any], ...] = ()
    kind: pa.DataType | None = None

    @classmethod
    def of_file(cls, train: Path, schemas: tuple[Mapping[str, Any], ...]) -> Tools:
        """Return the tools of a training file: those given, or else its column `tools`.

        Raises:
            DataError: its rows call tools and their schemas are missing, or parquet has no type
                for the schemas.
        """
        if schemas:
            try:
                return cls(schemas, pa.array([list(schemas)]).type)
            except (ValueError, TypeError, OverflowError) as error:  # those of Arrow, too
                raise DataError(
                    f"the tools of --tools cannot be one column of a parquet ({error}). Give a field "
                    "values of the same type in every tool."
                ) from error
        with open_parquet(train) as file:
            schema = file.schema_arrow
        place = schema.get_field_index(_TOOLS)
        kind = schema.field(place).type if place >= 0 else pa.null()
        if pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):
            return cls((), kind)
        place = schema.get_field_index("extra_info")
        info = schema.field(place).type if place >= 0 else pa.null()
        if pa.types.is_struct(info) and info.get_field_index("tools_kwargs") >= 0:
            raise DataError(
                f"{train}: its rows call tools, whose schemas the conversations need. Name the file "
                "of the run's actor_rollout_ref.rollout.multi_turn.tool_config_path with --tools."
            )
        return cls()

    def has_null_fields(self) -> bool:
        """Whether a reader gets fields in a schema that the tool does not have."""
        written = pa.array([list(self.schemas)], self.kind).to_pylist()[0] if self.schemas else []
        return written != list(self.schemas)

    def of_row(self, row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the tools of a row; none if it names an agent loop that calls no tools."""
        if not self.schemas:
            return row.get(_TOOLS) or []
        return list(self.schemas) if row.get(AGENT_NAME.name) in (None, "", TOOL_AGENT) else []


def read_tools(path: Path) -> tuple[Mapping[str, Any], ...]:
    """Read the schemas of tools from verl's tool configuration, or from a list of schemas.

    Raises:
        SourceError: the file cannot be opened.
        DataError: it is not YAML, or a tool has no schema.
    """
    value = read_yaml_file(path)
    entries = value.get(_TOOLS) if isinstance(value, dict) else value
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


def write_conversations(
    index: TrainIndex,
    kept: Mapping[int, Sequence[Conversation]],
    rates: Sequence[PassRate],
    reasons: Sequence[str],
    tools: Tools,
    report: SftReport,
    *,
    overwrite: bool,
) -> None:
    """Write the conversations in the order of the training rows, and the other prompts as jsonl.

    Args:
        index: the training rows.
        kept: conversations by the place of their prompt in `index.prompts`.
        rates: pass rate of each prompt.
        reasons: why a prompt has no conversation, by its place; "" if it has one.
        tools: the column `tools`.
        report: gets the number of conversations and how they are written.
        overwrite: replace what exists.

    Raises:
        OutputError: the output cannot be written.
    """
    messages = [message for group in kept.values() for rows in group for message in rows]
    arguments = [call["function"] for message in messages for call in message.get("tool_calls", ())]
    kind = _arguments_type(arguments)
    if arguments:
        report.tool_arguments = "JSON text" if pa.types.is_string(kind) else "objects"
    for function in arguments if pa.types.is_string(kind) else ():
        if not isinstance(function["arguments"], str):
            function["arguments"] = json.dumps(function["arguments"], ensure_ascii=False)
    report.null_tool_fields = tools.has_null_fields()
    with (
        open_parquet(report.train) as file,
        atomic_with_dropped(report.out, overwrite=overwrite) as (out_path, lines_path),
        lines_path.open("w") as lines,
        pq.ParquetWriter(
            out_path, _schema(messages, kind, tools, file.schema_arrow, report), compression="zstd"
        ) as writer,
    ):
        for batch in _first_rows(file, index):
            for number, place, row in batch:
                if reasons[place]:
                    line = dropped_row(number, rates[place], reasons[place], row)
                    lines.write(json_line(line))
            rows = [
                _output_row(number, row, conversation, tools)
                for number, place, row in batch
                for conversation in kept.get(place, ())
            ]
            writer.write_batch(pa.RecordBatch.from_pylist(rows, schema=writer.schema))
            report.written += len(rows)


def _first_rows(
    file: pq.ParquetFile, index: TrainIndex
) -> Iterator[list[tuple[int, int, dict[str, Any]]]]:
    """Yield batches of number, place and values of the rows that are the first of their prompt."""
    start = 0
    for batch in row_group_batches(file, _BATCH_ROWS):
        numbers = [
            number
            for number in range(start, start + batch.num_rows)
            if index.prompts[index.rows[number]].row == number
        ]
        rows = python_rows(batch.take([number - start for number in numbers]))
        yield [(n, index.rows[n], dict(row)) for n, row in zip(numbers, rows, strict=True)]
        start += batch.num_rows


def _output_row(
    number: int, row: Mapping[str, Any], conversation: Conversation, tools: Tools
) -> dict[str, Any]:
    return {
        "messages": conversation,
        _TOOLS: tools.of_row(row),
        IMAGES.name: row.get(IMAGES.name) or [],
        "data_source": row.get("data_source"),
        "train_row": number,
    }


def _schema(
    messages: Sequence[Message],
    arguments: pa.DataType,
    tools: Tools,
    train: pa.Schema,
    report: SftReport,
) -> pa.Schema:
    keys = {key for message in messages for key in message}
    fields = [(name, pa.string()) for name in ("role", "content")]
    fields += [(name, pa.string()) for name in OPTIONAL_TEXTS if name in keys]
    if "tool_calls" in keys:
        function = pa.struct([("name", pa.string()), ("arguments", arguments)])
        calls = [call for message in messages for call in message.get("tool_calls", ())]
        call_id = [("id", pa.string())] if any("id" in call for call in calls) else []
        call = pa.struct([*call_id, ("type", pa.string()), ("function", function)])
        fields.append(("tool_calls", pa.list_(call)))
    columns = [pa.field("messages", pa.list_(pa.struct(fields)))]
    metadata = {METADATA_KEY.decode(): json.dumps({"rewardkit": VERSION, **_origin(report)})}
    if tools.kind is not None:
        columns.append(pa.field(_TOOLS, tools.kind))
    if IMAGES.name in train.names:
        columns.append(pa.field(IMAGES.name, train.field(IMAGES.name).type))
        metadata |= IMAGES_METADATA
    columns += [pa.field("data_source", pa.string()), pa.field("train_row", pa.int64())]
    return pa.schema(columns, metadata)


def _origin(report: SftReport) -> dict[str, Any]:
    return {"command": "select --sft", "scored": report.scored, "train": str(report.train)}


def _arguments_type(functions: Sequence[Mapping[str, Any]]) -> pa.DataType:
    """Return the one type of all arguments if objects of it are read as written, else text."""
    kinds: set[pa.DataType] = set()
    for function in functions:
        try:
            array = pa.array([function["arguments"]])
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            return pa.string()
        if not array.type.num_fields or array.to_pylist() != [function["arguments"]]:
            return pa.string()
        kinds.add(array.type)
    return kinds.pop() if len(kinds) == 1 else pa.string()


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
