"""Mutation testing: what share of small faults in answers and scorers do their tests notice?

    python tools/mutate.py drawn.jsonl 500 9   # 500 mutants, seed 9: about an hour on one core
    python tools/mutate.py drawn.jsonl 100 9 answers/   # of the files whose path has this in it
    python tools/mutate.py drawn.jsonl         # again: those that survived, with today's tests

Works on a copy, and writes a line per mutant to the file. A mutant is one change; see `mutants`.
Every file gives its share of the sample, 8 at least (fewer where the files are many for the sample);
a seed always draws the same. A mutant runs the
tests of answers and scorers that call its function (for a table: its module), the quick ones first,
`SECONDS` long; a failure or a hang kills it. The figure is the share killed, files weighted by their
number of mutants: an estimate from below, for some mutants change nothing that shows.
"""

from __future__ import annotations

import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias

from mutants import mutants

Record: TypeAlias = dict[str, Any]

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 15  # of tests per mutant, as long as they took when their calls were noted
CALLERS = {"isolated_child.py": "isolated.py", "_math_verify_target.py": "math_verify.py"}


def main(results: Path, size: int = 500, seed: int = 9, part: str = "") -> None:
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        copy = Path(folder).resolve()
        for name in ("rewardkit", "tests", "docs", "data_cards", "benchmarks", "pyproject.toml"):
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy2)(ROOT / name, copy / name)
        lines = results.read_text().splitlines() if results.exists() else []
        records = list(map(json.loads, lines)) or list(drawn(copy, size, seed, part))
        if fails(copy, {}, limit=1800):
            sys.exit("The tests fail without a mutant:\n" + (copy / "log").read_text()[-3000:])
        notes = json.loads((copy / "notes.json").read_text())
        for n, record in enumerate(records):
            if not record.get("killed"):
                records[n] = judged(record, copy, notes)
                results.write_text("".join(json.dumps(each) + "\n" for each in records))
    report(records)


def drawn(copy: Path, size: int, seed: int, part: str) -> Iterator[Record]:
    """A record of every mutant of a sample of the files whose path has this part."""
    files = sorted((*copy.glob("rewardkit/answers/**/*.py"), *copy.glob("rewardkit/scorers/*.py")))
    files = [file for file in files if part in str(file.relative_to(copy))]
    counts = {file: len(list(mutants(ast.parse(file.read_text())))) for file in files}
    least = min(8, size // max(1, len(files)))
    for file, count in counts.items():
        name = str(file.relative_to(copy))
        share = min(count, max(least, round(size * count / sum(counts.values()))))
        for number in sorted(random.Random(f"{seed} {name}").sample(range(count), share)):
            yield {"file": name, "number": number, "of": count}


def judged(record: Record, copy: Path, notes: Record) -> Record:
    """A record with its verdict; prints it if the mutant lives."""
    path = copy / record["file"]
    text, times = path.read_text(), path.stat()
    faults = list(mutants(tree := ast.parse(text)))
    assert len(faults) == record["of"], f"{record['file']} has changed: draw anew"
    function, line, (what, *change) = faults[record["number"]]
    setattr(*change)
    path.write_text(ast.unparse(ast.fix_missing_locations(tree)))
    seconds = near(path, function, notes)
    killed = fails(copy, seconds, limit=20 + 2 * sum(seconds.values()))
    path.write_text(text)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # so that its bytecode counts
    said = f"{record['file']}:{line}: {what}: {text.splitlines()[line - 1].strip()}\n"
    print(end="" if killed else said, flush=True)
    return record | {"killed": killed, "said": said}


def near(path: Path, function: ast.FunctionDef | None, notes: Record) -> dict[str, float]:
    """Seconds by test: of those that call the function, or else its module, or else of all."""
    name = str(path.with_name(CALLERS.get(path.name, path.name)))  # some run in another process
    lines = range(function.lineno - 3, (function.end_lineno or 0) + 1) if function else range(0)
    calls = {test: {at for file, at in noted if file == name} for test, (_, noted) in notes.items()}
    chosen = [test for test, called in calls.items() if called.intersection(lines)]
    chosen = chosen or [test for test in calls if calls[test] or not notes[test][1]]
    seconds: dict[str, float] = {}
    for test in sorted(chosen or notes, key=lambda test: notes[test][0]):
        if not seconds or sum(seconds.values()) + notes[test][0] <= SECONDS:
            seconds[test] = notes[test][0]
    return seconds


def fails(copy: Path, seconds: dict[str, float], *, limit: float) -> bool:
    """Whether one of these tests (of all, if none are named) fails in the copy, or hangs."""
    environ = {**os.environ, "REWARDKIT_SHARED": "", "CI": "1", "PYTHONPATH": f"{copy}:{ROOT / 'tools'}"}  # fmt: skip
    environ |= {"PYTHONDONTWRITEBYTECODE": "1"} if seconds else {}
    command = [sys.executable, "-c", "import mutants; mutants.in_pytest()"]
    with (copy / "log").open("w") as log, suppress(subprocess.TimeoutExpired):
        done = subprocess.run(command, cwd=copy, env=environ, input=json.dumps(seconds), text=True, stdout=log, stderr=log, timeout=limit, check=False)  # fmt: skip
        return done.returncode != 0
    return True


def report(records: list[Record]) -> None:
    files, rate, variance = {each["file"]: each["of"] for each in records}, 0.0, 0.0
    for file, count in files.items():
        killed = [each["killed"] for each in records if each["file"] == file]
        print(f"{file:42} {sum(killed):3} of {len(killed):3} killed, {fmean(killed):4.0%}")
        weight, p = count / sum(files.values()), (sum(killed) + 1) / (len(killed) + 2)
        rate, variance = rate + weight * fmean(killed), variance + weight**2 * p * (1 - p) / len(killed)  # fmt: skip
    print(f"{rate:.1%} +- {1.96 * variance**0.5:.1%} (95 %) killed of {sum(files.values())}, by {len(records)} drawn")  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:4]), *sys.argv[4:])
