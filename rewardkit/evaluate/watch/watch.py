"""`rewardkit eval watch`: evaluate each checkpoint of a run once, as soon as it is complete."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from time import sleep

from rewardkit.checkpoints import Checkpoint, find_checkpoint, merge_command
from rewardkit.errors import DataError, SourceError
from rewardkit.evaluate.evaluation import EvaluationReport, ScorerConfig
from rewardkit.evaluate.generate import GenerationConfig
from rewardkit.evaluate.progress import ProgressCallbacks
from rewardkit.evaluate.results import read_result_lines
from rewardkit.evaluate.suite import SuiteMember, evaluate_suite, require_folder
from rewardkit.evaluate.watch.curve import Curves, curve_points, read_curves, write_curves
from rewardkit.evaluate.watch.serving import last_log_line, serve_model, server_command
from rewardkit.output import raise_output_errors
from rewardkit.output_lock import lock_output

_STEP_FOLDER = re.compile(r"global_step_([0-9]{1,9})")

#: verl writes the number of a checkpoint to this file after it has saved all of it.
LATEST_STEP_FILE = "latest_checkpointed_iteration.txt"

#: A checkpoint's files may be newer than that number by this much, because the clocks of nodes
#: differ. If they are newer still, the run resumed from an earlier step and is writing them again.
MAX_CLOCK_SKEW_SECONDS = 60.0

#: Tries to start a step's server, while other steps are evaluated in between.
SERVER_TRIES = 3

#: Base URL before a server has started, and of a step with results, which sends no requests.
UNREACHABLE_URL = "http://127.0.0.1:9/v1"


@dataclass(frozen=True, kw_only=True)
class WatchConfig:
    """The run to watch, and how its checkpoints are served and judged.

    Attributes:
        folder: `trainer.default_local_dir` of a run, with its `global_step_N`.
        serve: command that starts a server, with `{model}` and `{port}` in it.
        out: folder that gets `global_step_N/NAME.jsonl`, `curve.json` and `curve.html`.
        suite: prepared sets of questions.
        generation: how responses are requested. Its server's URL is replaced; an empty model stands
            for the folder that is served.
        scoring: how responses are judged.
        start_timeout_seconds: how long a server may take until it answers.
        poll_seconds: seconds between two looks at the folder.
        once: end when all complete checkpoints are evaluated.
        last_step: end when this step is evaluated; None to go on until interrupted.
        callbacks: progress callbacks.
    """

    folder: Path
    serve: str
    out: Path
    suite: Sequence[SuiteMember]
    generation: GenerationConfig
    scoring: ScorerConfig = field(default_factory=ScorerConfig)
    start_timeout_seconds: float = 1800.0
    poll_seconds: float = 30.0
    once: bool = False
    last_step: int | None = None
    callbacks: ProgressCallbacks = field(default_factory=ProgressCallbacks)

    def __post_init__(self) -> None:
        """Raise `UsageError` for a command that cannot start a server, before hours of waiting."""
        server_command(self.serve, self.folder, 0)

    def step_folder(self, step: int) -> Path:
        """Return the folder of a step's results."""
        return self.out.resolve() / f"global_step_{step}"

    def checkpoint_folder(self, step: int) -> Path:
        """Return the folder of a step's checkpoint."""
        return self.folder.resolve() / f"global_step_{step}"


def complete_steps(folder: Path) -> list[int]:
    """Return the steps with complete checkpoints, ascending: up to the number verl wrote last.

    Raises:
        SourceError: the folder does not exist.
    """
    if not folder.is_dir():
        raise SourceError(f"{folder}: no such folder.")
    try:
        text = (folder / LATEST_STEP_FILE).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return []
    if not re.fullmatch("[0-9]{1,9}", text):  # verl is writing it
        return []
    matches = (_STEP_FOLDER.fullmatch(path.name) for path in folder.iterdir() if path.is_dir())
    return sorted(step for match in matches if match and (step := int(match[1])) <= int(text))


def watch_checkpoints(config: WatchConfig) -> Iterator[tuple[int, dict[str, EvaluationReport]]]:
    """Evaluate the checkpoints of a run as they appear; yield each step with its reports.

    A step that has results is yielded without a server. A step that verl has deleted is skipped.
    An incomplete step is tried again later, and so is one whose server fails, unless no server has
    worked yet. `curve.json` and `curve.html` are written after each step.

    Raises:
        UsageError: `out` is named like a file.
        OutputError: `out` cannot be created, or another watch is writing there.
        SourceError: a server did not start or answer: the first one, or any with `once`.
        DataError: existing results are of another model, sampling, n, scorer or other rows, or
            `curve.json` cannot be read.
    """
    finished: set[int] = set()
    failures: Counter[int] = Counter()
    say = _say_once(config.callbacks.message)
    with _locked_output(config.out):
        curves = read_curves(config.out)
        while True:
            for step in complete_steps(config.folder):
                if step in finished:
                    _warn_if_changed(config, step, say)
                    continue
                try:
                    reports = _evaluate_step(config, step)
                except _SkippedStepError as error:
                    say(f"global_step_{step}: skipped: {error}")
                    continue
                except SourceError as error:
                    failures[step] += 1
                    if config.once or not finished or failures[step] >= SERVER_TRIES:
                        raise
                    say(f"global_step_{step}: {error} It will be tried again.")
                    continue
                finished.add(step)
                _extend_curves(curves, config, step, reports)
                yield step, reports
                if config.last_step is not None and step >= config.last_step:
                    return
            if config.once:
                return
            say(f"waiting for checkpoints in {config.folder}; Ctrl-C ends.")
            sleep(config.poll_seconds)


def _say_once(message: Callable[[str], object]) -> Callable[[str], None]:
    """Return a function that passes each sentence on only once."""
    previous: set[str] = set()

    def say(sentence: str) -> None:
        if sentence not in previous:
            previous.add(sentence)
            message(sentence)

    return say


@contextmanager
def _locked_output(out: Path) -> Iterator[None]:
    """Create the folder, and lock it during the block."""
    require_folder(out)
    with ExitStack() as stack:
        with raise_output_errors(out):
            out.mkdir(parents=True, exist_ok=True)
            stack.enter_context(lock_output(out, out / ".watch.lock"))
        yield


def _extend_curves(
    curves: Curves, config: WatchConfig, step: int, reports: dict[str, EvaluationReport]
) -> None:
    for source, point in curve_points(step, reports):
        curves.setdefault(source, {})[step] = point
    write_curves(curves, f"{config.folder}: accuracy by training step", config.out)


class _SkippedStepError(Exception):
    """A step cannot be evaluated now."""


def _evaluate_step(config: WatchConfig, step: int) -> dict[str, EvaluationReport]:
    folder, source = config.step_folder(step), config.checkpoint_folder(step)
    results = [folder / f"{member.name}.jsonl" for member in config.suite]
    if all(path.is_file() for path in results):
        line, _ = next(read_result_lines(results[0]))
        return _evaluate_on(config, folder, UNREACHABLE_URL, str(line.get("model")))
    checkpoint = _find_complete(source)
    weights = _weights_digest(checkpoint)
    folder.mkdir(parents=True, exist_ok=True)
    log, seconds = folder / "server.log", config.start_timeout_seconds
    try:
        with _model_folder(config, checkpoint, folder) as model:
            config.callbacks.message(f"global_step_{step}: starting its server.")
            with serve_model(config.serve, model, log, seconds) as server:
                reports = _evaluate_on(config, folder, server.url, str(model), server.check)
    except SourceError as error:
        if _weights_digest(_find_complete(source)) == weights:
            raise
        raise _SkippedStepError(f"its weights changed meanwhile ({error})") from error
    (folder / "weights").write_text(weights, encoding="ascii")
    return reports


def _evaluate_on(
    config: WatchConfig,
    folder: Path,
    url: str,
    model: str,
    check: Callable[[], None] = lambda: None,
) -> dict[str, EvaluationReport]:
    server = replace(config.generation.server, base_url=url, check=check)
    generation = replace(config.generation, server=server, model=config.generation.model or model)
    return evaluate_suite(
        config.suite, generation, folder, config.scoring, callbacks=config.callbacks
    )


def _find_complete(source: Path) -> Checkpoint:
    """Return the checkpoint of a step.

    Raises:
        _SkippedStepError: it is deleted, lacks shards, or is being written.
    """
    try:
        checkpoint = find_checkpoint(source)
        newest = max(path.stat().st_mtime for path in source.rglob("*"))
        latest = (source.parent / LATEST_STEP_FILE).stat().st_mtime
    except (DataError, OSError) as error:
        raise _SkippedStepError(str(error)) from error
    if newest > latest + MAX_CLOCK_SKEW_SECONDS:
        raise _SkippedStepError(f"it is being written: it is newer than {LATEST_STEP_FILE}")
    return checkpoint


def _weights_digest(checkpoint: Checkpoint) -> str:
    """Return a digest of names, sizes and times of the files, which differs for other weights.

    Raises:
        _SkippedStepError: verl is deleting them.
    """
    try:
        files = sorted(path for path in checkpoint.folder.rglob("*") if path.is_file())
        entries = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    except OSError as error:
        raise _SkippedStepError(str(error)) from error
    return sha256(repr(entries).encode()).hexdigest()


def _warn_if_changed(config: WatchConfig, step: int, say: Callable[[str], None]) -> None:
    """Warn if the weights of an evaluated step were replaced."""
    folder = config.out / f"global_step_{step}"
    try:
        evaluated = (folder / "weights").read_text(encoding="ascii")
        is_changed = _weights_digest(_find_complete(config.checkpoint_folder(step))) != evaluated
    except (OSError, _SkippedStepError):  # results of another origin, or a deleted checkpoint
        return
    if is_changed:
        say(
            f"global_step_{step}: its weights were replaced after the evaluation. The results are "
            f"those of the earlier weights; to evaluate it again, move {folder} away."
        )


@contextmanager
def _model_folder(config: WatchConfig, checkpoint: Checkpoint, folder: Path) -> Iterator[Path]:
    """Yield a folder with Hugging Face weights; shards are merged by verl, and removed at the end."""
    if checkpoint.backend == "hf":
        yield checkpoint.model
        return
    merged, log = folder / "merged", folder / "merge.log"
    rmtree(merged, ignore_errors=True)  # left by a run that was killed
    config.callbacks.message(f"{folder.name}: merging its shards.")
    try:
        with log.open("wb") as output:
            command = merge_command(checkpoint, merged, sys.executable)
            code = subprocess.run(command, stdout=output, stderr=output, check=False).returncode  # noqa: S603 - verl's own module
        if code:
            raise SourceError(f"verl's merger ended with exit code {code}; {last_log_line(log)}")
        yield merged
    finally:
        rmtree(merged, ignore_errors=True)
