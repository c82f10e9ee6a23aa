"""Checks files before a rehearsal: the columns that verl reads, and prompts over the limit.

A rehearsal has a tokenizer of its own, one token for each byte, and a limit that fits its rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rewardkit.errors import RewardkitError
from rewardkit.launch.plan import Plan
from rewardkit.launch.preflight.files import add_long_prompts, file_names, load_tokenizer
from rewardkit.launch.preflight.report import PreflightReport
from rewardkit.launch.rehearsal.sample import prompt_tokens
from rewardkit.preprocess.prompt_lengths import TokenCounter
from rewardkit.preprocess.row_checks import schema_findings
from rewardkit.row import BATCH_ROWS, open_parquet


def probe_files(plan: Plan, report: PreflightReport) -> None:
    """Add findings about the columns and the longest prompts of the files on this machine."""
    about_tokenizer = PreflightReport()
    count_tokens = load_tokenizer(plan, about_tokenizer)
    is_unknown = False
    roles = dict.fromkeys(file_names(plan, "train"), "train")
    for name in file_names(plan, "val"):
        roles.setdefault(name, "val")
    for name, role in roles.items():
        path = Path(name).expanduser()
        if not path.is_file() or path.suffix != ".parquet":
            continue  # the rehearsal names it
        try:
            with open_parquet(path) as file:
                if _check_columns(plan, role, name, file.schema_arrow, report):
                    is_sure = _check_lengths(plan, name, file, report, count_tokens)
                    is_unknown = is_unknown or not is_sure
        except RewardkitError as error:
            report.add("error", "files", f"data.{role}_files", str(error))
    if is_unknown:
        report.unchecked.extend(about_tokenizer.unchecked)


def _prompt_column(plan: Plan) -> str:
    return str(plan.get("data.prompt_key") or "prompt")


def _check_columns(
    plan: Plan, role: str, name: str, schema: pa.Schema, report: PreflightReport
) -> bool:
    """Add findings about missing columns and text prompts, and return whether there are none."""
    prompt = _prompt_column(plan)
    fields = [field for field in schema if field.name not in {prompt, "prompt"}]
    fields += [field.with_name("prompt") for field in schema if field.name == prompt]
    findings = schema_findings(pa.schema(fields))
    missing = [finding for finding in findings if finding.rule == "missing"]
    for finding in missing:
        message = re.sub(r"\bprompt(?=\[| is )", prompt, finding.message)
        fix = f"List all: rewardkit check {name}"
        report.add("error", "files", f"data.{role}_files", f"{name}: missing: {message}.", fix)
    return not missing


def _check_lengths(
    plan: Plan,
    name: str,
    file: pq.ParquetFile,
    report: PreflightReport,
    count_tokens: TokenCounter | None,
) -> bool:
    """Add a finding if prompts are over the limit; return whether all others surely are not."""
    limit = plan.get("data.max_prompt_length")
    if not isinstance(limit, int):
        return True
    count = count_tokens or _count_words
    lengths = Counter(
        count(p) for p in _prompts(file, _prompt_column(plan)) if prompt_tokens(p) > limit
    )
    over = Counter({length: n for length, n in lengths.items() if length > limit})
    rows = file.metadata.num_rows
    add_long_prompts(plan, name, rows, over, report, is_exact=count_tokens is not None)
    return count_tokens is not None or lengths == over


def _prompts(file: pq.ParquetFile, column: str) -> Iterator[Any]:
    for batch in file.iter_batches(BATCH_ROWS, columns=[column]):
        yield from (prompt for prompt in batch.column(0).to_pylist() if prompt)


def _count_words(messages: Any) -> int:
    """Return the words of a prompt: a token never joins two words, so there are as many tokens."""
    contents = [message["content"] for message in messages if message]
    return sum(len(text.split()) for text in contents if isinstance(text, str))
