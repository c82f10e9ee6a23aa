"""`rewardkit eval --watch`: each checkpoint of a run evaluated once, as soon as it is whole."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from time import sleep

from rewardkit.errors import DataError, SourceError
from rewardkit.evaluate.generate import Generation
from rewardkit.evaluate.results import result_lines
from rewardkit.evaluate.run import Judging, Report
from rewardkit.evaluate.serving import last_line, served
from rewardkit.evaluate.suite import Member, evaluate_all
from rewardkit.runner.checkpoints import Checkpoint, find_checkpoint, merge_command

_STEP = re.compile(r"global_step_([0-9]{1,9})")

#: verl writes the number of a checkpoint here when all of it is saved.
LATEST = "latest_checkpointed_iteration.txt"

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
    meanwhile is left out; one whose shards are not all there is looked at again later.

    Raises:
        SourceError: a server did not start, or did not answer; what is done is kept.
        DataError: results that are there are of another model, sampling, n or rows.
    """
    done: set[int] = set()
    complaints: dict[int, str] = {}
    waiting = False
    while True:
        for step in [step for step in whole_steps(what.folder) if step not in done]:
            try:
                reports = _evaluated(what, step)
            except _LeftOutError as error:
                if complaints.get(step) != str(error):
                    what.told.say(f"global_step_{step}: left out: {error}")
                complaints[step] = str(error)
                continue
            done.add(step)
            yield step, reports
            if what.until is not None and step >= what.until:
                return
        if what.once:
            return
        if not waiting:
            what.told.say(f"waiting for checkpoints in {what.folder}; Ctrl-C ends.")
            waiting = True
        sleep(what.every)


class _LeftOutError(Exception):
    """A step cannot be evaluated now."""


def _evaluated(what: Watch, step: int) -> dict[str, Report]:
    place, source = what.out / f"global_step_{step}", what.folder / f"global_step_{step}"
    results = [place / f"{member.name}.jsonl" for member in what.suite]
    if all(path.is_file() for path in results):
        line, _ = next(result_lines(results[0]))
        return _asked(what, place, NOBODY, str(line.get("model")))
    try:
        found = find_checkpoint(source)
    except DataError as error:
        raise _LeftOutError(str(error)) from error
    place.mkdir(parents=True, exist_ok=True)
    try:
        with _weights(what, found, place) as model:
            what.told.say(f"global_step_{step}: starting its server.")
            log = place / "server.log"
            with served(what.serve, model, log, what.start_seconds) as url:
                return _asked(what, place, url, str(model))
    except SourceError as error:
        if source.is_dir():
            raise
        raise _LeftOutError(f"it was deleted meanwhile ({error})") from error


def _asked(what: Watch, place: Path, url: str, model: str) -> dict[str, Report]:
    generation, told = what.ask(url, model), what.told
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
