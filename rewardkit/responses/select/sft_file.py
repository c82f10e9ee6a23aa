"""The parquet of conversations that verl's `MultiTurnSFTDataset` reads.

A parquet file gives every object of a column the fields of all of them, with null where an object has
none, and verl passes these nulls to the chat template. So messages have optional keys only if one of
them is set in the file, and the arguments of tool calls are objects only if all have the same fields;
otherwise they are JSON text, as in OpenAI's API.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from rewardkit.errors import DataError
from rewardkit.jsonl import json_line
from rewardkit.preprocess.dropped_rows import atomic_with_dropped
from rewardkit.preprocess.turns import TOOL_AGENT
from rewardkit.responses.matching import TrainIndex
from rewardkit.responses.select.conversations import OPTIONAL_TEXTS, Message
from rewardkit.responses.select.selection import PassRate, SftReport, dropped_row
from rewardkit.row import (
    AGENT_NAME,
    IMAGES,
    IMAGES_METADATA,
    METADATA_KEY,
    open_parquet,
    python_rows,
    row_group_batches,
)
from rewardkit.strict_yaml import read_yaml_file
from rewardkit.versions import VERSION

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
