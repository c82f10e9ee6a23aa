"""Checks the parquet files of a run: they exist, fit the reward, and have short enough prompts."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rewardkit.checks.check import check
from rewardkit.checks.row_stats import TokenCounter, token_counter
from rewardkit.checks.schema import concatenation_fault, schema_findings
from rewardkit.errors import RewardkitError
from rewardkit.finding import Severity
from rewardkit.launch.findings import FileFacts, PreflightReport
from rewardkit.launch.plan import Plan
from rewardkit.launch.rehearsal.sample import prompt_tokens
from rewardkit.launch.rules.values import PlanValues
from rewardkit.registry import is_path
from rewardkit.row import BATCH_ROWS, open_parquet
from rewardkit.scorers.load import load_scorer

MAX_PROMPT = "data.max_prompt_length"

#: Findings that do not matter in a validation set, because the model does not learn from it.
_TRAIN_ONLY = frozenset({"duplicate", "conflicting_gold"})

#: Findings about rewardkit's scorer of a data_source, if the run uses another scorer.
_OWN_SCORER = frozenset(
    "unknown_data_source bad_gold gold_is_wrong unknown_right solution_is_wrong wrong_is_right scorer_raises".split()
)


def check_files(
    plan: Plan, report: PreflightReport, progress: Callable[[int], object] | None
) -> bool:
    """Check every parquet of a plan that is on this machine; return whether all prompts are known to fit.

    A file of two roles is checked once. `progress` is called with numbers of rows; without it only the
    columns and the longest prompts are checked, which takes seconds.
    """
    roles = ["train"]
    if plan.recipe.data.val or PlanValues(plan).validates:  # otherwise verl reads and ignores it
        roles.append("val")
    fits, seen = set[bool | None](), set[str]()
    for role in roles:
        names = PlanValues(plan).strings(f"data.{role}_files")
        checks = _FileChecks(plan, report, role)
        for name in names:
            if name not in seen:
                fits.add(checks.check(name, progress))
            seen.add(name)
        checks.check_together(names)
    if None in fits:
        report.unchecked.append(f"prompt lengths in tokens: {checks.tokenizer[1]}")
    return fits == {True}


@dataclass(frozen=True)
class _FileChecks:
    """Checks the files of a role."""

    plan: Plan
    report: PreflightReport
    role: str

    @cached_property
    def tokenizer(self) -> tuple[TokenCounter | None, str]:
        """The tokenizer of the plan's model, if the model is a folder here; else why there is none."""
        folder = Path(self.plan.recipe.model).expanduser()
        if not folder.is_dir():
            how = "rewardkit check FILE --tokenizer FOLDER --max-prompt-length N"
            name = self.plan.recipe.model
            return None, f"{name} is not a folder on this machine. With its tokenizer: {how}."
        try:
            return token_counter(str(folder)), ""
        except RewardkitError as error:
            return None, str(error)

    @cached_property
    def prompt(self) -> str:
        return str(self.plan.get("data.prompt_key") or "prompt")

    def add(self, severity: Severity, text: str, fix: str = "", rule: str = "files") -> None:
        self.report.add(severity, rule, f"data.{self.role}_files", text, fix)

    def check(self, name: str, progress: Callable[[int], object] | None) -> bool | None:
        """Check one file; return whether its prompts fit, None where only the tokenizer can tell."""
        self._check_path(name)
        path = Path(name)
        if not path.is_file():
            return False
        try:
            with open_parquet(path) as file:
                has_columns = self._has_columns(name, file)
                fits = has_columns and self._check_lengths(name, file)
            if progress and has_columns:
                self._check_rows(name, progress)
        except RewardkitError as error:
            self.add("error", str(error))
            return False
        return fits

    def _check_path(self, name: str) -> None:
        """Check for a path that verl or the nodes will not find."""
        target = self.plan.recipe.cluster.target
        is_remote = self.plan.recipe.nodes > 1 or target not in {"local", "script"}
        if is_remote and not Path(name).is_absolute() and "://" not in name:
            text = f"{name} is relative, and each node starts in its own folder."
            self.add("warning", text, "Write an absolute path that all nodes share.", "L-56")
        if Path(name).is_file():
            return
        commands = [c for c in self.plan.recipe.data.prepare if f" {name}" in c]
        how = (*commands, "use rewardkit prep, or fix data: in the recipe.")[0]
        if target == "local":
            self.add("machine", f"{name}: no such file.", f"Create it: {how}", "L-56")
        else:
            text = f"{name}: not on this machine; every node must have it. Create it: {how}"
            self.report.unchecked.append(text)

    def check_together(self, names: list[str]) -> None:
        """Add a finding if verl cannot load the files of a role together."""
        paths = [path for name in names if (path := Path(name)).is_file()]
        try:
            fault = concatenation_fault(paths)
        except RewardkitError:  # the check of the file reports it
            return
        if fault is None:
            return
        fix = f"Write one file: rewardkit mix {' '.join(map(str, paths))} --out FILE"
        if fault.first is not None:
            fix = f"Name {fault.first} first. Or: {fix}"
        pyarrow = " with older pyarrow (such as 20)" if fault.only_in_old else ""
        text = f"verl cannot load the files together{pyarrow}: {fault.message}."
        self.add("warning" if fault.only_in_old else "error", text, fix)

    def _check_rows(self, name: str, progress: Callable[[int], object]) -> None:
        """Add one finding for each rule that rows of a file break."""
        reward = self.plan.recipe.reward
        is_own = reward.scorer == "verl" or is_path(reward.scorer)
        is_built_in = reward.scorer != "auto" and not is_own
        result = check(
            Path(name),
            scorer=load_scorer(reward.scorer, **reward.options) if is_built_in else None,
            options=reward.options if reward.scorer == "auto" else {},
            progress=progress,
        )
        # A finding of its own says `runs_answers` for the reward of the run.
        ignored = {"runs_answers", *(_OWN_SCORER if is_own else ())}
        ignored |= _TRAIN_ONLY if self.role == "val" else set()
        examples = {finding.rule: finding for finding in reversed(result.examples)}
        for rule, count in result.counts.most_common():
            if rule in ignored:
                continue
            example, where, rows = examples[rule], "", ""
            if example.row is not None:
                where, rows = f":{example.row}", f" ({count:,} of {result.rows:,} rows)"
            text = f"{name}{where}: {rule}{rows}: {example.message}."
            fix = f"List all: rewardkit check {name}"
            self.add("warning" if rule in _TRAIN_ONLY else "error", text, fix)

    def _has_columns(self, name: str, file: pq.ParquetFile) -> bool:
        """Add the facts of a file, and a finding for each column that verl misses."""
        schema, has_sources = file.schema_arrow, "data_source" in file.schema_arrow.names
        sources = file.read(["data_source"]).column(0).unique() if has_sources else ()
        facts = FileFacts(name, self.role, file.metadata.num_rows, tuple(sorted(map(str, sources))))
        self.report.files.append(facts)
        fields = [field for field in schema if field.name not in {self.prompt, "prompt"}]
        fields += [field.with_name("prompt") for field in schema if field.name == self.prompt]
        missing = [each for each in schema_findings(pa.schema(fields)) if each.rule == "missing"]
        for finding in missing:
            message = re.sub(r"\bprompt(?=\[| is )", self.prompt, finding.message)
            self.add("error", f"{name}: missing: {message}.", f"List all: rewardkit check {name}")
        return not missing

    def _check_lengths(self, name: str, file: pq.ParquetFile) -> bool | None:
        """Add a finding if prompts are over the limit, which says what verl does with them.

        Only a prompt with more bytes than the limit has tokens is counted. A token never joins two
        words, so that without a tokenizer the words are a lower bound.

        0.7 neither cuts a prompt nor raises, and ends where it joins prompts of different lengths
        (`agent_loop.py`). From 0.8 on its agent loop cuts prompts of text from the left, and raises for
        those with images.
        """
        limit, plan, values = self.plan.get(MAX_PROMPT), self.plan, PlanValues(self.plan)
        if not isinstance(limit, int):
            return False
        lengths = list[int]()
        for batch in file.iter_batches(BATCH_ROWS, columns=[self.prompt]):
            prompts = filter(None, batch.column(0).to_pylist())
            long = [prompt for prompt in prompts if prompt_tokens(prompt) > limit]
            lengths += map(self.tokenizer[0] or _count_words, long) if long else ()
        is_exact = not lengths or self.tokenizer[0] is not None
        over = [length for length in lengths if length > limit]
        if not over:
            return is_exact or None
        if plan.get("data.filter_overlong_prompts") is True:
            outcome, is_fatal = "verl filters them out", len(over) == file.metadata.num_rows
        elif values.reads_images or not values.is_since(0, 8, 0):
            outcome, is_fatal = f"verl {plan.verl} stops at the first of them", True
        else:
            is_fatal = plan.get("data.truncation") == "error"
            outcome = f"verl {plan.verl} cuts them"
            outcome += " from the left, despite data.truncation=error" if is_fatal else ""
        longest, fix = f"{max(over)}", f"Set {MAX_PROMPT}={max(over)}, or "
        if not is_exact:
            longest, fix = f"at least {longest}", f"Raise {MAX_PROMPT}, or set "
        text = (
            f"{name}: {len(over):,} of {file.metadata.num_rows:,} prompts are over {limit} tokens "
        )
        text += f"(longest {longest}): {outcome}."
        fix += "data.filter_overlong_prompts=True."
        severity: Severity = "error" if is_fatal else "warning"
        self.report.add(severity, "L-24", MAX_PROMPT, text, fix, "verl best practices")
        return False if is_exact or len(over) == len(lengths) else None


def _count_words(messages: Any) -> int:
    contents = [message["content"] for message in messages if message]
    return sum(len(text.split()) for text in contents if isinstance(text, str))
