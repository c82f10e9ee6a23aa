"""Checks the parquet files of a run: they exist, fit the reward, and have short enough prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from rewardkit.errors import RewardkitError
from rewardkit.launch.findings import Severity
from rewardkit.launch.plan import Plan
from rewardkit.launch.preflight.report import FileFacts, PreflightReport
from rewardkit.launch.rules.values import PlanValues
from rewardkit.preprocess.check import CheckReport, OptionalChecks, check
from rewardkit.preprocess.concatenation import concatenation_fault
from rewardkit.preprocess.prompt_lengths import TokenCounter, token_counter
from rewardkit.registry import is_path
from rewardkit.scorers.load import load_scorer

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
            else:
                _add_missing_file(plan, role, name, report)
        _check_together(role, file_names(plan, role), report)


def files_on_this_machine(plan: Plan) -> Iterator[FileFacts]:
    """Yield the files of a plan that can be read here, without a check of their rows."""
    for role in ("train", "val"):
        for name in file_names(plan, role):
            facts = _read_facts(name, role)
            if facts is not None:
                yield facts


def file_names(plan: Plan, role: str) -> list[str]:
    """Return the files of a role, `train` or `val`, as the plan names them."""
    names = plan.get(f"data.{role}_files")
    listed = names if isinstance(names, (list, tuple)) else [names]
    return [str(name) for name in listed if name is not None]


def _read_facts(name: str, role: str) -> FileFacts | None:
    """Return the rows and data sources of a parquet file; None if it cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(name).expanduser()
    if not path.is_file():
        return None
    try:
        with pq.ParquetFile(path) as file:
            rows = file.metadata.num_rows
            has_sources = "data_source" in file.schema_arrow.names
            sources = file.read(["data_source"]).column(0).unique() if has_sources else []
    except (pa.ArrowException, OSError):
        return None
    names = tuple(sorted(str(source) for source in sources))
    return FileFacts(path=name, role=role, rows=rows, data_sources=names, longest_tokens=None)


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
    key = f"data.{role}_files"
    if name.startswith("~"):
        fix = "Write the absolute path."
        report.add("error", "files", key, f"{name}: verl does not expand ~.", fix)
    is_remote = plan.recipe.nodes > 1 or plan.recipe.cluster.target not in {"local", "script"}
    if is_remote and not Path(name).is_absolute() and "://" not in name:
        text = f"{name} is relative, and each node starts in its own folder."
        fix = "Write an absolute path that all nodes share."
        report.add("warning", "L-56", key, text, fix)


def _add_missing_file(plan: Plan, role: str, name: str, report: PreflightReport) -> None:
    """Add a finding if the run is on this machine; elsewhere the file may be on the nodes."""
    commands = [command for command in plan.recipe.data.prepare if f" {name}" in command]
    how = commands[0] if commands else "use rewardkit prep, or fix data: in the recipe."
    if plan.recipe.cluster.target == "local":
        text = f"{name}: no such file."
        report.add("machine", "L-56", f"data.{role}_files", text, f"Create it: {how}")
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
    limit, reward = plan.get("data.max_prompt_length"), plan.recipe.reward
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
    longest = (
        int(result.lengths.summary()["max"]) if count_tokens and result.lengths.counts else None
    )
    report.files.append(
        FileFacts(
            path=name,
            role=role,
            rows=result.rows,
            data_sources=tuple(sorted(result.stats.groups.get("data_source", ()))),
            longest_tokens=longest,
        )
    )
    _add_row_findings(plan, role, name, result, report)
    if count_tokens:
        add_long_prompts(plan, name, result.rows, result.lengths.counts, report)


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
    note = "verl cannot load the files together"
    if fault.only_in_old:
        note += " with older pyarrow (such as 20)"
    report.add(severity, "files", f"data.{role}_files", f"{note}: {fault.message}.", fix)


def _add_row_findings(
    plan: Plan, role: str, name: str, result: CheckReport, report: PreflightReport
) -> None:
    """Add one finding for each rule that rows of a file break."""
    scorer = plan.recipe.reward.scorer
    ignored = {"long_prompt"}  # add_long_prompts names the setting to change
    ignored |= {"runs_answers"}  # check_reward reports it for the reward that the run has
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


def add_long_prompts(
    plan: Plan,
    name: str,
    rows: int,
    counts: Mapping[int, int],
    report: PreflightReport,
    *,
    is_exact: bool = True,
) -> None:
    """Add a finding about prompts over the limit, which says what verl does with them.

    Args:
        plan: the run.
        name: the file.
        rows: the number of its rows.
        counts: the number of prompts by length in tokens.
        report: gets the finding.
        is_exact: whether the lengths are exact; they are lower bounds otherwise.
    """
    key = "data.max_prompt_length"
    limit = plan.get(key)
    over = sum(n for length, n in counts.items() if isinstance(limit, int) and length > limit)
    if not over:
        return
    longest = f"{max(counts)}" if is_exact else f"at least {max(counts)}"
    severity, outcome = _outcome_of_long_prompts(plan, are_all=over == rows)
    text = f"{name}: {over:,} of {rows:,} prompts are over {limit} tokens (longest {longest}): "
    fix = f"Set {key}={max(counts)}, or data.filter_overlong_prompts=True."
    if not is_exact:
        fix = f"Raise {key}, or set data.filter_overlong_prompts=True."
    report.add(severity, "L-24", key, f"{text}{outcome}.", fix, "verl best practices")


def _outcome_of_long_prompts(plan: Plan, *, are_all: bool) -> tuple[Severity, str]:
    """Return what a release of verl does with prompts over the limit, and how bad that is.

    Up to 0.6 the dataset cuts them or raises (`data.truncation`). 0.7 does neither, and ends where
    it joins prompts of different lengths (`agent_loop.py`). From 0.8 on its agent loop cuts
    prompts of text from the left, and raises for those with pictures.
    """
    values, truncation = PlanValues(plan), plan.get("data.truncation")
    if plan.get("data.filter_overlong_prompts") is True:
        return "error" if are_all else "warning", "verl filters them out"
    if values.is_since(0, 8, 0):
        ends = values.reads_images
    else:
        ends = values.is_since(0, 7, 0) or truncation == "error"
    if ends:
        return "error", f"verl {plan.verl} stops at the first of them"
    if truncation == "error":
        return "error", f"verl {plan.verl} cuts them from the left, despite data.truncation=error"
    return "warning", f"verl {plan.verl} cuts them"
