"""Checks the parquet files of a run: they exist, fit the reward, and have short enough prompts."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rewardkit.errors import RewardkitError
from rewardkit.launch.findings import Severity
from rewardkit.launch.plan import Plan
from rewardkit.launch.preflight.report import FileFacts, PreflightReport
from rewardkit.launch.rehearsal.sample import prompt_tokens
from rewardkit.launch.rules.values import PlanValues
from rewardkit.preprocess.check import check
from rewardkit.preprocess.concatenation import concatenation_fault
from rewardkit.preprocess.prompt_lengths import TokenCounter, token_counter
from rewardkit.preprocess.row_checks import schema_findings
from rewardkit.registry import is_path
from rewardkit.row import BATCH_ROWS, open_parquet
from rewardkit.scorers.load import load_scorer

MAX_PROMPT = "data.max_prompt_length"

#: Findings that do not matter in a validation set, because the model does not learn from it.
_TRAIN_ONLY = frozenset({"duplicate", "conflicting_gold"})

#: Findings about rewardkit's scorer of a data_source, if the run uses another scorer.
_OWN_SCORER = frozenset(
    "unknown_data_source bad_gold gold_is_wrong unknown_right solution_is_wrong wrong_is_right "
    "scorer_raises".split()
)


def check_files(
    plan: Plan, report: PreflightReport, progress: Callable[[int], object] | None
) -> bool:
    """Read and check every parquet of a plan that is on this machine; one file of two roles once.

    Args:
        plan: the run.
        report: gets the findings and the facts of the files.
        progress: called with numbers of rows; None to check only the columns and the longest prompts,
            which takes seconds.

    Returns:
        Whether all prompts are known to be within the run's limit.
    """
    counter, doubt = _load_tokenizer(plan)
    roles = ["train"]
    if plan.recipe.data.val or PlanValues(plan).validates:  # otherwise verl reads and ignores it
        roles.append("val")
    fits: set[bool | None] = set()
    seen: set[str] = set()
    for role in roles:
        names = file_names(plan, role)
        for name in [name for name in names if name not in seen]:
            seen.add(name)
            _check_path(plan, role, name, report)
            path = Path(name).expanduser()
            if not path.is_file():
                fits.add(False)
                continue
            try:
                with open_parquet(path) as file:
                    has_columns = _has_columns(plan, role, name, file, report)
                    fits.add(has_columns and _check_lengths(plan, name, file, report, counter))
                if progress and has_columns:
                    _check_rows(plan, role, name, report, progress)
            except RewardkitError as error:
                report.add("error", "files", f"data.{role}_files", str(error))
        _check_together(role, names, report)
    if None in fits:
        report.unchecked.append(f"prompt lengths in tokens: {doubt}")
    return fits == {True}


def file_names(plan: Plan, role: str) -> list[str]:
    """Return the files of a role, `train` or `val`, as the plan names them."""
    names = plan.get(f"data.{role}_files")
    listed = names if isinstance(names, (list, tuple)) else [names]
    return [str(name) for name in listed if name is not None]


def _load_tokenizer(plan: Plan) -> tuple[TokenCounter | None, str]:
    """Load the tokenizer of the plan's model, if the model is a folder here; else say why not."""
    folder = Path(plan.recipe.model).expanduser()
    if folder.is_dir():
        try:
            return token_counter(str(folder)), ""
        except RewardkitError as error:
            return None, str(error)
    return None, (
        f"{plan.recipe.model} is not a folder on this machine. With its tokenizer: rewardkit check "
        "FILE --tokenizer FOLDER --max-prompt-length N."
    )


def _check_path(plan: Plan, role: str, name: str, report: PreflightReport) -> None:
    """Check for a path that verl or the nodes will not find."""
    key, target = f"data.{role}_files", plan.recipe.cluster.target
    if name.startswith("~"):
        fix = "Write the absolute path."
        report.add("error", "files", key, f"{name}: verl does not expand ~.", fix)
    is_remote = plan.recipe.nodes > 1 or target not in {"local", "script"}
    if is_remote and not Path(name).is_absolute() and "://" not in name:
        text = f"{name} is relative, and each node starts in its own folder."
        fix = "Write an absolute path that all nodes share."
        report.add("warning", "L-56", key, text, fix)
    if Path(name).expanduser().is_file():
        return
    commands = [command for command in plan.recipe.data.prepare if f" {name}" in command]
    how = (*commands, "use rewardkit prep, or fix data: in the recipe.")[0]
    if target == "local":
        report.add("machine", "L-56", key, f"{name}: no such file.", f"Create it: {how}")
    else:
        text = f"{name}: not on this machine; every node must have it. Create it: {how}"
        report.unchecked.append(text)


def _check_together(role: str, names: list[str], report: PreflightReport) -> None:
    """Add a finding if verl cannot load the files of a role together."""
    paths = [path for name in names if (path := Path(name).expanduser()).is_file()]
    try:
        fault = concatenation_fault(paths)
    except RewardkitError:  # the check of the file reports it
        return
    if fault is None:
        return
    fix = f"Write one file: rewardkit mix {' '.join(map(str, paths))} --out FILE"
    if fault.first is not None:
        fix = f"Name {fault.first} first. Or: {fix}"
    severity: Severity = "warning" if fault.only_in_old else "error"
    pyarrow = " with older pyarrow (such as 20)" if fault.only_in_old else ""
    text = f"verl cannot load the files together{pyarrow}: {fault.message}."
    report.add(severity, "files", f"data.{role}_files", text, fix)


def _check_rows(
    plan: Plan, role: str, name: str, report: PreflightReport, progress: Callable[[int], object]
) -> None:
    """Add one finding for each rule that rows of a file break."""
    reward = plan.recipe.reward
    is_own = reward.scorer == "verl" or is_path(reward.scorer)
    is_built_in = reward.scorer != "auto" and not is_own
    result = check(
        Path(name).expanduser(),
        scorer=load_scorer(reward.scorer, **reward.options) if is_built_in else None,
        options=reward.options if reward.scorer == "auto" else {},
        progress=progress,
    )
    # A finding of its own says it for the reward of the run.
    ignored = {"runs_answers"}
    ignored |= _OWN_SCORER if is_own else frozenset()
    ignored |= _TRAIN_ONLY if role == "val" else frozenset()
    examples = {finding.rule: finding for finding in reversed(result.examples)}
    for rule, count in result.counts.most_common():
        if rule in ignored:
            continue
        example = examples[rule]
        where = "" if example.row is None else f":{example.row}"
        rows = "" if example.row is None else f" ({count:,} of {result.rows:,} rows)"
        text = f"{name}{where}: {rule}{rows}: {example.message}."
        severity: Severity = "warning" if rule in _TRAIN_ONLY else "error"
        fix = f"List all: rewardkit check {name}"
        report.add(severity, "files", f"data.{role}_files", text, fix)


def _has_columns(
    plan: Plan, role: str, name: str, file: pq.ParquetFile, report: PreflightReport
) -> bool:
    """Add the facts of a file, and a finding for each column that verl misses."""
    schema, prompt = file.schema_arrow, _prompt_column(plan)
    has_sources = "data_source" in schema.names
    sources = file.read(["data_source"]).column(0).unique() if has_sources else ()
    names = tuple(sorted(map(str, sources)))
    rows = file.metadata.num_rows
    report.files.append(FileFacts(path=name, role=role, rows=rows, data_sources=names))
    fields = [field for field in schema if field.name not in {prompt, "prompt"}]
    fields += [field.with_name("prompt") for field in schema if field.name == prompt]
    missing = [each for each in schema_findings(pa.schema(fields)) if each.rule == "missing"]
    for finding in missing:
        message = re.sub(r"\bprompt(?=\[| is )", prompt, finding.message)
        fix = f"List all: rewardkit check {name}"
        report.add("error", "files", f"data.{role}_files", f"{name}: missing: {message}.", fix)
    return not missing


def _prompt_column(plan: Plan) -> str:
    return str(plan.get("data.prompt_key") or "prompt")


def _check_lengths(
    plan: Plan,
    name: str,
    file: pq.ParquetFile,
    report: PreflightReport,
    count_tokens: TokenCounter | None,
) -> bool | None:
    """Add a finding if prompts are over the limit, which says what verl does with them.

    Only a prompt with more bytes than the limit has tokens is counted. A token never joins two words,
    so that without a tokenizer the words are a lower bound.

    0.7 neither cuts a prompt nor raises, and ends where it joins prompts of different lengths
    (`agent_loop.py`). From 0.8 on its agent loop cuts prompts of text from the left, and raises for
    those with images.

    Returns:
        Whether all prompts fit; None where only the tokenizer can tell.
    """
    limit, values, rows = plan.get(MAX_PROMPT), PlanValues(plan), file.metadata.num_rows
    if not isinstance(limit, int):
        return False
    count, lengths = count_tokens or _count_words, list[int]()
    for batch in file.iter_batches(BATCH_ROWS, columns=[_prompt_column(plan)]):
        prompts = filter(None, batch.column(0).to_pylist())
        lengths += [count(prompt) for prompt in prompts if prompt_tokens(prompt) > limit]
    over = [length for length in lengths if length > limit]
    if not over:
        return True if count_tokens or not lengths else None
    if plan.get("data.filter_overlong_prompts") is True:
        outcome, is_fatal = "verl filters them out", len(over) == rows
    elif values.reads_images or not values.is_since(0, 8, 0):
        outcome, is_fatal = f"verl {plan.verl} stops at the first of them", True
    else:
        outcome, is_fatal = f"verl {plan.verl} cuts them", plan.get("data.truncation") == "error"
        outcome += " from the left, despite data.truncation=error" if is_fatal else ""
    longest, fix = f"{max(over)}", f"Set {MAX_PROMPT}={max(over)}, or "
    if count_tokens is None:
        longest, fix = f"at least {longest}", f"Raise {MAX_PROMPT}, or set "
    text = (
        f"{name}: {len(over):,} of {rows:,} prompts are over {limit} tokens (longest {longest}): "
    )
    report.add(
        "error" if is_fatal else "warning",
        "L-24",
        MAX_PROMPT,
        f"{text}{outcome}.",
        f"{fix}data.filter_overlong_prompts=True.",
        "verl best practices",
    )
    return False if count_tokens or len(over) == len(lengths) else None


def _count_words(messages: Any) -> int:
    contents = [message["content"] for message in messages if message]
    return sum(len(text.split()) for text in contents if isinstance(text, str))
