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
from collections import Counter
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
from rewardkit.responses.figures import Cell
from rewardkit.responses.matching import PLACE_ALONE, TrainIndex, index_parquet, squeeze
from rewardkit.responses.samples import USUAL_NAMES, FieldNames, Sample, read_scores
from rewardkit.responses.select import (
    NO_VERDICT,
    JoinReport,
    PassRateFilter,
    count_list,
    dropped_row,
    scored_files,
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
from rewardkit.scorers.score import Status
from rewardkit.strict_yaml import read_yaml_file
from rewardkit.versions import VERSION

Message: TypeAlias = dict[str, Any]
Conversation: TypeAlias = list[Message]

#: Texts of a message besides its role and content that chat templates know.
OPTIONAL_TEXTS = ("name", "tool_call_id", "reasoning_content")

#: Training rows that are read together: they may have images.
IMAGE_BATCH_ROWS = 256

TOOLS = "tools"

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

    Attributes:
        per_prompt: the most responses that are kept for a prompt.
        wrong: matched responses that are not right.
        rejected: right responses that were left out, by reason.
        prompts: distinct prompts of the training file.
        covered: those of `prompts` that have a response in `out`; `dropped` has the others.
        unknown_end: written conversations whose record does not say why the response ended.
        tool_arguments: how the arguments of tool calls are written: `objects` or `JSON text`; "" if
            there are none.
        null_tool_fields: whether verl reads null fields in the schemas of the tools.
    """

    per_prompt: int = 1
    wrong: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    prompts: int = 0
    covered: int = 0
    unknown_end: int = 0
    tool_arguments: str = ""
    null_tool_fields: bool = False


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
        place = schema.get_field_index(TOOLS)
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
            return row.get(TOOLS) or []
        return list(self.schemas) if row.get(AGENT_NAME.name) in (None, "", TOOL_AGENT) else []


def read_tools(path: Path) -> tuple[Mapping[str, Any], ...]:
    """Read the schemas of tools from verl's tool configuration, or from a list of schemas.

    Raises:
        SourceError: the file cannot be opened.
        DataError: it is not YAML, or a tool has no schema.
    """
    value = read_yaml_file(path)
    entries = value.get(TOOLS) if isinstance(value, dict) else value
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

    def reject_reason(self, sample: Sample, way: str) -> str:
        """Return why a right response that matches a row in a way is left out; "" if it is kept."""
        finish, characters = sample.fields.get("finish_reason"), len(sample.response)
        if way == PLACE_ALONE:
            return f"matched by {way}, which nothing confirms"
        if finish == TRUNCATED or (isinstance(finish, str) and finish in UNUSABLE):
            return f"cut off (finish_reason {finish})"
        if characters < self.min_characters:
            return f"shorter than {self.min_characters:,} characters"
        if self.max_characters is not None and characters > self.max_characters:
            return f"longer than {self.max_characters:,} characters"
        return ""


class _Candidate(NamedTuple):
    """A right response; candidates sort by length, then text, whatever order they are read in."""

    characters: int
    folded: str
    has_no_end: bool
    messages: Conversation


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

    The kept responses and the prompts are in memory, the images are not.

    Args:
        scored: files, folders and patterns of responses with `acc`, or `score`; see `select`.
        train: the verl parquet that they answer.
        out: the parquet to write: `messages`, and `tools` and `images` if the rows have them. The
            prompts without a response go to `<out>.dropped.jsonl`.
        config: which responses are kept.
        names: the fields with response and ground truth.
        right_score: the lowest right score; see `select`.
        overwrite: replace what exists.
        progress: called with 1 for every scored row.

    Raises:
        UsageError: `out` does not end in .parquet.
        DataError: a file cannot be read, a response contradicts its row or matches several rows,
            rows call tools whose schemas are missing, or no response would be kept.
        OutputError: `out` cannot be written.
    """
    files, name = scored_files(scored, train, out, "--sft", overwrite=overwrite)
    report = SftReport(name, train, out, per_prompt=config.per_prompt)
    tools = Tools.of_file(train, config.tools)
    index = index_parquet(train)
    prompts = _prompts(train, index)
    report.prompts = len(prompts)
    rates = [Cell() for _ in prompts]
    candidates: dict[int, list[_Candidate]] = {}
    scores = read_scores(files, names, right_score)
    for sample, score, match in report.join(scores, index, progress):
        if score.status in NO_VERDICT:
            continue
        rates[match.prompt].add(score)
        if not score.correct or sample.fields.get("status") not in (None, Status.CORRECT.value):
            report.wrong += 1
            continue
        own, prompt = candidates.setdefault(match.prompt, []), prompts[match.prompt]
        reason = prompt if isinstance(prompt, str) else config.reject_reason(sample, match.way)
        if not reason and not isinstance(prompt, str):
            reason = _add_candidate(own, sample, prompt, config.per_prompt)
        report.rejected.update([reason] if reason else ())
    reasons = []
    for i, (prompt, rate) in enumerate(zip(prompts, rates, strict=True)):
        reason = prompt if isinstance(prompt, str) else config.prompts.drop_reason(rate)
        none = "no right response that is kept" if rate.correct else "no right response"
        reasons.append(reason or ("" if candidates.get(i) else none))
    report.dropped.update(filter(None, reasons))
    report.covered = report.prompts - report.dropped.total()
    if not report.covered:
        raise DataError(
            f"{report.scored}: no response would be kept (prompts: {count_list(report.dropped)}; "
            f"right responses: {count_list(report.rejected) or 'none'})."
        )
    picks = {i: own for i, own in candidates.items() if not reasons[i]}
    report.unknown_end = sum(each.has_no_end for own in picks.values() for each in own)
    conversations = {i: [each.messages for each in own] for i, own in picks.items()}
    _write(index, conversations, rates, reasons, tools, report, overwrite=overwrite)
    return report


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


def _add_candidate(
    own: list[_Candidate], sample: Sample, prompt: list[Message], per_prompt: int
) -> str:
    """Add a right response to the shortest of its prompt; return why it is left out, or ""."""
    try:
        messages = response_messages(sample.response, sample.fields, prompt)
    except ConversationError as error:
        return str(error)
    has_no_end = not isinstance(sample.fields.get("finish_reason"), str)
    folded = " ".join(sample.response.split())
    candidate = _Candidate(len(sample.response), folded, has_no_end, prompt + messages)
    same = next((i for i, other in enumerate(own) if other.folded == folded), None)
    if same is not None:
        candidate = min(candidate, own.pop(same), key=_order)
    insort(own, candidate, key=_order)
    del own[per_prompt:]
    return "" if same is None else "a duplicate of another response to its prompt"


def _order(candidate: _Candidate) -> tuple[int, str, bool]:
    return candidate[:3]


def _write(
    index: TrainIndex,
    conversations: Mapping[int, Sequence[Conversation]],
    rates: Sequence[Cell],
    reasons: Sequence[str],
    tools: Tools,
    report: SftReport,
    *,
    overwrite: bool,
) -> None:
    """Write the conversations in the order of the training rows, and the other prompts as jsonl."""
    messages = [message for own in conversations.values() for each in own for message in each]
    functions = [call["function"] for message in messages for call in message.get("tool_calls", ())]
    kind = _arguments_type(functions)
    if functions:
        report.tool_arguments = "JSON text" if pa.types.is_string(kind) else "objects"
    for function in functions if pa.types.is_string(kind) else ():
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
            rows: list[dict[str, Any]] = []
            for number, i, row in batch:
                if reasons[i]:
                    lines.write(json_line(dropped_row(number, rates[i], reasons[i], row)))
                common = {
                    TOOLS: tools.of_row(row),
                    IMAGES.name: row.get(IMAGES.name) or [],
                    "data_source": row.get("data_source"),
                    "train_row": number,
                }
                rows += ({"messages": own, **common} for own in conversations.get(i, ()))
            writer.write_batch(pa.RecordBatch.from_pylist(rows, schema=writer.schema))
            report.written += len(rows)


def _first_rows(
    file: pq.ParquetFile, index: TrainIndex
) -> Iterator[list[tuple[int, int, dict[str, Any]]]]:
    """Yield batches of number, prompt and values of the rows that are the first of their prompt."""
    start = 0
    for batch in row_group_batches(file, IMAGE_BATCH_ROWS):
        stop = start + batch.num_rows
        numbers = [n for n in range(start, stop) if index.prompts[index.rows[n]].row == n]
        rows = python_rows(batch.take([number - start for number in numbers]))
        yield [(n, index.rows[n], dict(row)) for n, row in zip(numbers, rows, strict=True)]
        start = stop


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
    origin = {"command": "select --sft", "scored": report.scored, "train": str(report.train)}
    metadata = {METADATA_KEY.decode(): json.dumps({"rewardkit": VERSION, **origin})}
    if tools.kind is not None:
        columns.append(pa.field(TOOLS, tools.kind))
    if IMAGES.name in train.names:
        columns.append(pa.field(IMAGES.name, train.field(IMAGES.name).type))
        metadata |= IMAGES_METADATA
    columns += [pa.field("data_source", pa.string()), pa.field("train_row", pa.int64())]
    return pa.schema(columns, metadata)
