"""Mutation testing: measure the share of small faults in answers and scorers that tests notice.

    python tools/mutate.py mutants.jsonl 500 9   # 500 mutants, seed 9: about an hour on one core
    python tools/mutate.py mutants.jsonl 100 9 answers/   # only files whose path contains this
    python tools/mutate.py mutants.jsonl         # rerun the survivors with today's tests

The script works on a copy and writes a line per mutant to the file. A mutant is one change; see
`mutants`. Every file contributes to the sample in proportion to its mutants, at least 8 (fewer if the
sample is small for the number of files); a seed always gives the same sample. For each mutant the tests
of answers and scorers run that call its function (for a table: its module), quick ones first, for up to
`SECONDS`; a failure or a hang kills the mutant. The result is the share of killed mutants, with files
weighted by their number of mutants. It is a lower bound, because some mutants change no behaviour.
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
SECONDS = 15  # of tests per mutant, by their times in the traced run
CALLERS = {"isolated_child.py": "isolated.py", "_math_verify_target.py": "math_verify.py"}


def main(results: Path, size: int = 500, seed: int = 9, part: str = "") -> None:
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        copy = Path(folder).resolve()
        for name in ("rewardkit", "tests", "docs", "data_cards", "benchmarks", "pyproject.toml"):
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy2)(ROOT / name, copy / name)
        lines = results.read_text().splitlines() if results.exists() else []
        records = list(map(json.loads, lines)) or list(sample_mutants(copy, size, seed, part))
        if fails(copy, {}, limit=1800):
            sys.exit("The tests fail without a mutant:\n" + (copy / "log").read_text()[-3000:])
        notes = json.loads((copy / "notes.json").read_text())
        for n, record in enumerate(records):
            if not record.get("killed"):
                records[n] = run_mutant(record, copy, notes)
                results.write_text("".join(json.dumps(each) + "\n" for each in records))
    report(records)


def sample_mutants(copy: Path, size: int, seed: int, part: str) -> Iterator[Record]:
    """Yield a record of every sampled mutant in files whose path contains `part`."""
    files = sorted((*copy.glob("rewardkit/answers/**/*.py"), *copy.glob("rewardkit/scorers/*.py")))
    files = [file for file in files if part in str(file.relative_to(copy))]
    counts = {file: len(list(mutants(ast.parse(file.read_text())))) for file in files}
    least = min(8, size // max(1, len(files)))
    for file, count in counts.items():
        name = str(file.relative_to(copy))
        share = min(count, max(least, round(size * count / sum(counts.values()))))
        for number in sorted(random.Random(f"{seed} {name}").sample(range(count), share)):
            yield {"file": name, "number": number, "of": count}


def run_mutant(record: Record, copy: Path, notes: Record) -> Record:
    """Run the tests on a mutant, print it if it survives, and return its record with the result."""
    path = copy / record["file"]
    text, times = path.read_text(), path.stat()
    faults = list(mutants(tree := ast.parse(text)))
    assert len(faults) == record["of"], f"{record['file']} has changed: take a new sample"
    function, line, (what, *change) = faults[record["number"]]
    setattr(*change)
    path.write_text(ast.unparse(ast.fix_missing_locations(tree)))
    seconds = select_tests(path, function, notes)
    killed = fails(copy, seconds, limit=20 + 2 * sum(seconds.values()))
    path.write_text(text)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # so that its bytecode stays valid
    description = f"{record['file']}:{line}: {what}: {text.splitlines()[line - 1].strip()}\n"
    print(end="" if killed else description, flush=True)
    return record | {"killed": killed, "said": description}


def select_tests(path: Path, function: ast.FunctionDef | None, notes: Record) -> dict[str, float]:
    """Return seconds by test, of tests that call the function, else its module, else of all tests."""
    name = str(path.with_name(CALLERS.get(path.name, path.name)))  # some run in another process
    lines = range(function.lineno - 3, (function.end_lineno or 0) + 1) if function else range(0)
    calls = {
        test: {at for file, at in calls_of_test if file == name}
        for test, (_, calls_of_test) in notes.items()
    }
    chosen = [test for test, called in calls.items() if called.intersection(lines)]
    chosen = chosen or [test for test in calls if calls[test] or not notes[test][1]]
    seconds: dict[str, float] = {}
    for test in sorted(chosen or notes, key=lambda test: notes[test][0]):
        if not seconds or sum(seconds.values()) + notes[test][0] <= SECONDS:
            seconds[test] = notes[test][0]
    return seconds


def fails(copy: Path, seconds: dict[str, float], *, limit: float) -> bool:
    """Return whether one of these tests (default: all) fails or hangs in the copy."""
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
    print(f"{rate:.1%} +- {1.96 * variance**0.5:.1%} (95 %) killed of {sum(files.values())}, estimated from {len(records)}")  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:4]), *sys.argv[4:])
