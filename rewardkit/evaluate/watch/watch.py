"""`rewardkit eval watch`: each checkpoint of a run evaluated once, as soon as it is whole."""

from __future__ import annotations

import fcntl
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from time import sleep

from rewardkit.errors import DataError, OutputError, SourceError, UsageError
from rewardkit.evaluate.generate import Generation
from rewardkit.evaluate.results import result_lines
from rewardkit.evaluate.run import Judging, Report
from rewardkit.evaluate.suite import Member, evaluate_all
from rewardkit.evaluate.watch.serving import Served, last_line, served
from rewardkit.launch.checkpoints import Checkpoint, find_checkpoint, merge_command
from rewardkit.output import open_no_follow

_STEP = re.compile(r"global_step_([0-9]{1,9})")

#: verl writes the number of a checkpoint here when all of it is saved.
LATEST = "latest_checkpointed_iteration.txt"

#: Seconds by which a checkpoint's files may be newer than that number: clocks of nodes differ. Files
#: that are newer still are of a run that went on from an earlier step, and writes this one again.
SKEW = 60.0

#: Times that a step's server is started, while other steps are evaluated.
TRIES = 3

#: Of a step whose results are there already: nobody is asked.
NOBODY = "http://127.0.0.1:9/v1"


@dataclass(frozen=True)
class Told:
    """Whom to tell how it goes.

    Attributes:
        say: called with a sentence that a person wants to read.
        start: as by `evaluate_all`.
        progress: as by `evaluate_all`.
    """

    say: Callable[[str], object] = lambda _: None
    start: Callable[[str, int, int], object] = lambda _name, _have, _all: None
    progress: Callable[[int, int], object] = lambda _responses, _tokens: None


@dataclass(frozen=True)
class Watch:
    """What is watched, and how its checkpoints are served and judged.

    Attributes:
        folder: `trainer.default_local_dir` of a run, with its `global_step_N`.
        serve: the command of a server, with `{model}` and `{port}`.
        out: a folder that gets `global_step_N/NAME.jsonl`.
        suite: prepared sets of questions.
        ask: the generation for a server's base URL and a model's folder.
        judging: how responses are judged.
        start_seconds: that a server may take until it answers.
        every: seconds between two looks at the folder.
        once: end when what is there is done.
        until: end when this step is done; None to go on until it is interrupted.
        told: whom to tell how it goes.
    """

    folder: Path
    serve: str
    out: Path
    suite: Sequence[Member]
    ask: Callable[[str, str], Generation]
    judging: Judging = field(default_factory=Judging)
    start_seconds: float = 1800.0
    every: float = 30.0
    once: bool = False
    until: int | None = None
    told: Told = field(default_factory=Told)


def whole_steps(folder: Path) -> list[int]:
    """The steps whose checkpoints are saved, ascending: up to the number verl wrote last.

    Raises:
        DataError: no such folder.
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder.")
    try:
        text = (folder / LATEST).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return []
    if not re.fullmatch("[0-9]{1,9}", text):  # it is being written
        return []
    found = (_STEP.fullmatch(path.name) for path in folder.iterdir() if path.is_dir())
    return sorted(step for match in found if match and (step := int(match[1])) <= int(text))


def watch(what: Watch) -> Iterator[tuple[int, dict[str, Report]]]:
    """Evaluate the checkpoints of a run as they appear; yields each step with its reports.

    A step whose results are there is not served again, but yielded. One that verl has deleted
    meanwhile is left out; one that is not whole is looked at again later, and so is one whose
    server fails, unless none has served yet.

    Raises:
        UsageError: `out` is called as a file.
        OutputError: `out` cannot be made, or another watch writes there.
        SourceError: the first server, or with `once` any, did not start or did not answer.
        DataError: results that are there are of another model, sampling, n, scorer or rows.
    """
    done: set[int] = set()
    tries: Counter[int] = Counter()
    say = _saying_once(what.told.say)
    with _locked(what.out):
        while True:
            for step in whole_steps(what.folder):
                if step in done:
                    _look_again(what, step, say)
                    continue
                try:
                    reports = _evaluated(what, step)
                except _LeftOutError as error:
                    say(f"global_step_{step}: left out: {error}")
                    continue
                except SourceError as error:
                    tries[step] += 1
                    if what.once or not done or tries[step] >= TRIES:
                        raise
                    say(f"global_step_{step}: {error} It is tried again.")
                    continue
                done.add(step)
                yield step, reports
                if what.until is not None and step >= what.until:
                    return
            if what.once:
                return
            say(f"waiting for checkpoints in {what.folder}; Ctrl-C ends.")
            sleep(what.every)


def _saying_once(tell: Callable[[str], object]) -> Callable[[str], None]:
    told: set[str] = set()

    def say(sentence: str) -> None:
        if sentence not in told:
            told.add(sentence)
            tell(sentence)

    return say


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    """The folder, made, and ours alone."""
    if out.suffix == ".jsonl":
        raise UsageError(f"--out {out}: with --suite and --watch, name a folder.")
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = open_no_follow(out / ".watch.lock")
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"{out}: cannot be made or written: {error.strerror}.") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OutputError(f"{out}: another --watch writes there; name another.") from error
        yield


class _LeftOutError(Exception):
    """A step cannot be evaluated now."""


def _evaluated(what: Watch, step: int) -> dict[str, Report]:
    place = what.out.resolve() / f"global_step_{step}"
    source = what.folder.resolve() / f"global_step_{step}"
    results = [place / f"{member.name}.jsonl" for member in what.suite]
    if all(path.is_file() for path in results):
        line, _ = next(result_lines(results[0]))
        return _asked(what, place, what.ask(NOBODY, str(line.get("model"))))
    found = _whole(source)
    weights = _identity(found)
    place.mkdir(parents=True, exist_ok=True)
    try:
        with _weights(what, found, place) as model:
            what.told.say(f"global_step_{step}: starting its server.")
            with served(what.serve, model, place / "server.log", what.start_seconds) as server:
                reports = _asked(what, place, _of_server(what, server, model))
    except SourceError as error:
        if _identity(_whole(source)) == weights:
            raise
        raise _LeftOutError(f"its weights changed meanwhile ({error})") from error
    (place / "weights").write_text(weights, encoding="ascii")
    return reports


def _whole(source: Path) -> Checkpoint:
    """The checkpoint of a step.

    Raises:
        _LeftOutError: it is gone, lacks shards, or is being written.
    """
    try:
        found = find_checkpoint(source)
        newest = max(path.stat().st_mtime for path in source.rglob("*"))
        if newest > (source.parent / LATEST).stat().st_mtime + SKEW:
            raise _LeftOutError(f"it is being written: it is newer than {LATEST}")
    except (DataError, OSError) as error:
        raise _LeftOutError(str(error)) from error
    return found


def _identity(found: Checkpoint) -> str:
    """What tells these weights from others: the names, sizes and times of their files.

    Raises:
        _LeftOutError: verl deletes them at this moment.
    """
    try:
        files = sorted(path for path in found.folder.rglob("*") if path.is_file())
        told = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    except OSError as error:
        raise _LeftOutError(str(error)) from error
    return sha256(repr(told).encode()).hexdigest()


def _look_again(what: Watch, step: int, say: Callable[[str], None]) -> None:
    """Say so where a step that is done has other weights now."""
    place = what.out / f"global_step_{step}"
    try:
        then = (place / "weights").read_text(encoding="ascii")
        changed = _identity(_whole(what.folder.resolve() / f"global_step_{step}")) != then
    except (OSError, _LeftOutError):  # results of another's, or a checkpoint that is gone
        return
    if changed:
        say(
            f"global_step_{step}: its weights are others than those that were evaluated, whose "
            f"results stay; to evaluate it again move {place} away."
        )


def _of_server(what: Watch, server: Served, model: Path) -> Generation:
    generation = what.ask(server.url, str(model))
    return replace(generation, server=replace(generation.server, check=server.check))


def _asked(what: Watch, place: Path, generation: Generation) -> dict[str, Report]:
    told = what.told
    return evaluate_all(
        what.suite, generation, place, what.judging, start=told.start, progress=told.progress
    )


@contextmanager
def _weights(what: Watch, found: Checkpoint, place: Path) -> Iterator[Path]:
    """A folder with Hugging Face weights; shards are merged by verl, and removed afterwards."""
    if found.backend == "hf":
        yield found.model
        return
    merged, log = place / "merged", place / "merge.log"
    rmtree(merged, ignore_errors=True)  # of a run that was killed
    what.told.say(f"{place.name}: merging its shards.")
    try:
        with log.open("wb") as output:
            command = merge_command(found, merged, sys.executable)
            code = subprocess.run(command, stdout=output, stderr=output, check=False).returncode  # noqa: S603 - verl's own module
        if code:
            raise SourceError(f"verl's merger ended with exit code {code}; {last_line(log)}")
        yield merged
    finally:
        rmtree(merged, ignore_errors=True)
