"""Checks the parquet files of a run: they exist, fit the reward, and have short enough prompts.

A rehearsal has a tokenizer of its own, one token for each byte, and a limit that fits its rows; before
it only the columns that verl reads and the longest prompts are checked (`probe_files`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from rewardkit.errors import RewardkitError
from rewardkit.launch.plan import Plan
from rewardkit.launch.preflight.report import FileFacts, PreflightReport
from rewardkit.launch.rehearsal.sample import prompt_tokens
from rewardkit.launch.rules.values import PlanValues
from rewardkit.preprocess.check import CheckReport, OptionalChecks, check
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
    plan: Plan, report: PreflightReport, progress: Callable[[int], object] = lambda _: None
) -> None:
    """Read and check every parquet of a plan that is on this machine.

    Args:
        plan: the run.
        report: gets the findings and the facts of the files.
        progress: called with numbers of rows.
    """
    count_tokens, values = load_tokenizer(plan, report), PlanValues(plan)
    for role in ("train", "val"):
        if role == "val" and not plan.recipe.data.val and not values.validates:
            continue  # the plan names the training file, because verl always reads a file
        for name in file_names(plan, role):
            _check_path(plan, role, name, report)
            if Path(name).expanduser().is_file():
                _check_file(plan, role, name, report, count_tokens, progress)
        _check_together(role, file_names(plan, role), report)


def file_names(plan: Plan, role: str) -> list[str]:
    """Return the files of a role, `train` or `val`, as the plan names them."""
    names = plan.get(f"data.{role}_files")
    listed = names if isinstance(names, (list, tuple)) else [names]
    return [str(name) for name in listed if name is not None]


def load_tokenizer(plan: Plan, report: PreflightReport) -> TokenCounter | None:
    """Load the tokenizer of the plan's model, if the model is a folder on this machine."""
    folder = Path(plan.recipe.model).expanduser()
    if not folder.is_dir():
        report.unchecked.append(
            f"prompt lengths in tokens: {plan.recipe.model} is not a folder on this machine. With its "
            "tokenizer: rewardkit check FILE --tokenizer FOLDER --max-prompt-length N."
        )
        return None
    try:
        return token_counter(str(folder))
    except RewardkitError as error:
        report.unchecked.append(f"prompt lengths in tokens: {error}")
        return None


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
        report.unchecked.append(
            f"{name}: not on this machine; every node must have it. Create it: {how}"
        )


def _check_file(
    plan: Plan,
    role: str,
    name: str,
    report: PreflightReport,
    count_tokens: TokenCounter | None,
    progress: Callable[[int], object],
) -> None:
    """Check the rows of one file."""
    limit, reward = plan.get(MAX_PROMPT), plan.recipe.reward
    is_built_in = reward.scorer not in {"auto", "verl"} and not is_path(reward.scorer)
    try:
        result = check(
            Path(name).expanduser(),
            scorer=load_scorer(reward.scorer, **reward.options) if is_built_in else None,
            options=reward.options if reward.scorer == "auto" else {},
            extras=OptionalChecks(
                count_tokens=count_tokens,
                max_tokens=limit if count_tokens and isinstance(limit, int) else None,
            ),
            progress=progress,
        )
    except RewardkitError as error:
        report.add("error", "files", f"data.{role}_files", str(error))
        return
    counts = result.lengths.counts if count_tokens else {}
    report.files.append(
        FileFacts(
            path=name,
            role=role,
            rows=result.rows,
            data_sources=tuple(sorted(result.stats.groups.get("data_source", ()))),
            longest_tokens=max(counts, default=None),
        )
    )
    _add_row_findings(plan, role, name, result, report)
    _add_long_prompts(plan, name, result.rows, counts, report)


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
    note = "verl cannot load the files together"
    if fault.only_in_old:
        note += " with older pyarrow (such as 20)"
    report.add(
        "warning" if fault.only_in_old else "error",
        "files",
        f"data.{role}_files",
        f"{note}: {fault.message}.",
        fix,
    )


def _add_row_findings(
    plan: Plan, role: str, name: str, result: CheckReport, report: PreflightReport
) -> None:
    """Add one finding for each rule that rows of a file break."""
    scorer = plan.recipe.reward.scorer
    # These have findings of their own, which name the setting, or say it for the reward of the run.
    ignored = {"long_prompt", "runs_answers"}
    ignored |= _OWN_SCORER if scorer == "verl" or is_path(scorer) else frozenset()
    ignored |= _TRAIN_ONLY if role == "val" else frozenset()
    examples = {finding.rule: finding for finding in reversed(result.examples)}
    for rule, count in result.counts.most_common():
        if rule in ignored:
            continue
        example = examples[rule]
        text = f"{name}: {rule}: {example.message}."
        if example.row is not None:
            text = f"{name}:{example.row}: {rule} ({count:,} of {result.rows:,} rows): "
            text += f"{example.message}."
        report.add(
            "warning" if rule in _TRAIN_ONLY else "error",
            "files",
            f"data.{role}_files",
            text,
            f"List all: rewardkit check {name}",
        )


def _add_long_prompts(
    plan: Plan,
    name: str,
    rows: int,
    counts: Mapping[int, int],
    report: PreflightReport,
    *,
    is_exact: bool = True,
) -> None:
    """Add a finding about prompts over the limit, which says what verl does with them.

    0.7 neither cuts a prompt nor raises, and ends where it joins prompts of different lengths
    (`agent_loop.py`). From 0.8 on its agent loop cuts prompts of text from the left, and raises for
    those with pictures.

    Args:
        plan: the run.
        name: the file.
        rows: the number of its rows.
        counts: the number of prompts by length in tokens.
        report: gets the finding.
        is_exact: whether the lengths are exact; they are lower bounds otherwise.
    """
    limit, values = plan.get(MAX_PROMPT), PlanValues(plan)
    over = sum(n for length, n in counts.items() if isinstance(limit, int) and length > limit)
    if not over:
        return
    is_filtered = plan.get("data.filter_overlong_prompts") is True
    ends = values.reads_images or not values.is_since(0, 8, 0)
    is_error = plan.get("data.truncation") == "error"
    outcome = f"verl {plan.verl} cuts them"
    if is_filtered:
        outcome = "verl filters them out"
    elif ends:
        outcome = f"verl {plan.verl} stops at the first of them"
    elif is_error:
        outcome += " from the left, despite data.truncation=error"
    longest, fix = f"{max(counts)}", f"Set {MAX_PROMPT}={max(counts)}, or "
    if not is_exact:
        longest, fix = f"at least {longest}", f"Raise {MAX_PROMPT}, or set "
    is_fatal = over == rows if is_filtered else ends or is_error
    report.add(
        "error" if is_fatal else "warning",
        "L-24",
        MAX_PROMPT,
        f"{name}: {over:,} of {rows:,} prompts are over {limit} tokens (longest {longest}): {outcome}.",
        f"{fix}data.filter_overlong_prompts=True.",
        "verl best practices",
    )


def probe_files(plan: Plan, report: PreflightReport) -> None:
    """Add findings about the columns and the longest prompts of the files on this machine."""
    about_tokenizer = PreflightReport()
    count_tokens = load_tokenizer(plan, about_tokenizer)
    is_sure = True
    train = file_names(plan, "train")
    others = [name for name in file_names(plan, "val") if name not in train]
    for name in dict.fromkeys([*train, *others]):
        role, path = "train" if name in train else "val", Path(name).expanduser()
        if not path.is_file() or path.suffix != ".parquet":
            continue  # the rehearsal names it
        try:
            with open_parquet(path) as file:
                if _has_columns(plan, role, name, file, report):
                    is_sure &= _check_lengths(plan, name, file, report, count_tokens)
        except RewardkitError as error:
            report.add("error", "files", f"data.{role}_files", str(error))
    if not is_sure:
        report.unchecked.extend(about_tokenizer.unchecked)


def _has_columns(
    plan: Plan, role: str, name: str, file: pq.ParquetFile, report: PreflightReport
) -> bool:
    """Add the facts of a file, and a finding for each column that verl misses."""
    import pyarrow as pa

    schema, prompt = file.schema_arrow, _prompt_column(plan)
    has_sources = "data_source" in schema.names
    sources = file.read(["data_source"]).column(0).unique() if has_sources else ()
    names = tuple(sorted(map(str, sources)))
    report.files.append(
        FileFacts(path=name, role=role, rows=file.metadata.num_rows, data_sources=names)
    )
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
) -> bool:
    """Add a finding if prompts are over the limit; return whether all others surely are not.

    Only a prompt with more bytes than the limit has tokens is counted. A token never joins two words,
    so that without a tokenizer the words are a lower bound.
    """
    limit = plan.get(MAX_PROMPT)
    if not isinstance(limit, int):
        return True
    count, lengths = count_tokens or _count_words, Counter[int]()
    for batch in file.iter_batches(BATCH_ROWS, columns=[_prompt_column(plan)]):
        prompts = filter(None, batch.column(0).to_pylist())
        lengths.update(count(prompt) for prompt in prompts if prompt_tokens(prompt) > limit)
    over = Counter({length: n for length, n in lengths.items() if length > limit})
    is_exact = count_tokens is not None
    _add_long_prompts(plan, name, file.metadata.num_rows, over, report, is_exact=is_exact)
    return is_exact or lengths == over


def _count_words(messages: Any) -> int:
    contents = [message["content"] for message in messages if message]
    return sum(len(text.split()) for text in contents if isinstance(text, str))
