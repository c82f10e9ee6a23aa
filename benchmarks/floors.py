"""Check what no change may make worse, against the figures of `floors.json`. Prints a line for each floor.

    make floors SHARED=../shared                              # a few minutes
    python benchmarks/floors.py --shared ../shared --write    # freeze the figures of this revision

accuracy      false positives and false negatives of each labelled file, in both halves
metamorphic   the properties of `metamorphic.py`, on the real golds and on our own
scripts       launch scripts whose plan equals bash's arguments, and those with a wrong value
tests         golden plans; hostile tests of `guard` and `isolate`
speed         time of a call divided by Math-Verify's, in the same run

The exit code is 1 if a figure is worse than its floor. A speed ratio may be half as large again as its floor.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import qa
from accuracy import our_verdicts
from caches import answer_caches
from cases import HALVES, SETS, load

from rewardkit.scorers import math

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
FLOORS = HERE / "floors.json"
GOLDEN_AND_HOSTILE = ["tests/launch/test_plan.py", "tests/guard", "tests/isolate"]
#: Verdicts of import_scripts.py that may not become more frequent; `equal` may not become less frequent.
WRONG_IMPORTS = ("shell left in", "wrong value", "foreign key", "lost key")
#: Factor by which a speed ratio may exceed its floor: the machine does other work.
SLACK = 1.5


def accuracy(shared: Path) -> Iterator[tuple[str, float]]:
    """Yield the errors of each labelled file by half and kind."""
    sets = {name: load(shared / "cases" / f"{name}.jsonl") for name in SETS}
    verdicts = our_verdicts("rewardkit", sets)
    errors: Counter[str] = Counter()
    for name, cases in sets.items():
        for case, right in zip(cases, verdicts[name], strict=True):
            if right != case.label:
                errors[f"{name} {case.half} {'paid' if right else 'refused'}"] += 1
    for name in qa.SETS:
        for row in qa.load(shared / f"cases/{name}.jsonl"):
            if (right := qa.verdict("robust", row)) != row["label"]:
                half = HALVES[qa.half_of(row) != "build"]
                errors[f"{name} {half} {'paid' if right else 'refused'}"] += 1
    for name in (*SETS, *qa.SETS):
        for half in HALVES:
            for error in ("paid", "refused"):
                yield f"{name} {half} {error}", errors[f"{name} {half} {error}"]


def metamorphic(shared: Path) -> Iterator[tuple[str, float]]:
    """Yield 1 if a property of the golds is below the floors of metamorphic.py, otherwise 0."""
    for golds in (shared / "cases/golds.jsonl", HERE / "golds.jsonl"):
        done = _run(sys.executable, HERE / "metamorphic.py", "--golds", golds)
        yield f"golds of {golds.parent.name}", float(done.returncode != 0)


def scripts(shared: Path) -> Iterator[tuple[str, float]]:
    """Yield how many launch scripts have each verdict of import_scripts.py."""
    done = _run(
        sys.executable, HERE / "import_scripts.py", "--scripts", shared / "scripts", "--json"
    )
    counts = Counter(each["verdict"] for each in json.loads(done.stdout))
    for verdict in WRONG_IMPORTS:
        yield verdict, counts.get(verdict, 0)
    yield "not equal", sum(counts.values()) - counts.get("equal", 0)


def tests(_: Path) -> Iterator[tuple[str, float]]:
    """Yield the number of test files and folders with a failure."""
    pytest = (sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider")
    for each in GOLDEN_AND_HOSTILE:
        yield each, float(_run(*pytest, each, cwd=ROOT).returncode != 0)


def speed(shared: Path) -> Iterator[tuple[str, float]]:
    """Yield the median time of a call of `math`, with empty caches, divided by Math-Verify's."""
    from math_verify import parse, verify

    logging.getLogger("math_verify").setLevel(logging.CRITICAL)

    def peer(response: str, gold: str) -> None:
        verify(
            parse(f"${gold}$", parsing_timeout=None),
            parse(response, parsing_timeout=None),
            timeout_seconds=None,
        )

    def empty() -> None:
        for cache in caches:
            cache.cache_clear()

    caches = answer_caches()
    for name in ("real_math500_pairs", "real_tora_rho"):
        cases = load(shared / "cases" / f"{name}.jsonl")[:300]
        calls = [(case.response, case.golds[0]) for case in cases]
        yield name, round(_median(math.score, calls, empty) / _median(peer, calls), 4)


def _median(
    function: Callable[[str, str], object],
    calls: list[tuple[str, str]],
    before: Callable[[], object] = lambda: None,
) -> float:
    """Return the median over calls of the shortest CPU time in three passes."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(3):
        for call, seconds in zip(calls, times, strict=True):
            before()
            started = time.process_time()
            function(*call)
            seconds.append(time.process_time() - started)
    return statistics.median(map(min, times))


def _run(*command: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(  # noqa: PLW1510 - a failure is a figure
        [str(word) for word in command], capture_output=True, text=True, env=environment, **options
    )


PARTS: dict[str, Callable[[Path], Iterator[tuple[str, float]]]] = {
    each.__name__: each for each in (accuracy, metamorphic, scripts, tests, speed)
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; default: all"
    )
    parser.add_argument("--shared", type=Path, required=True, help="folder of the real data")
    parser.add_argument("--write", action="store_true", help="freeze the figures of this revision")
    options = parser.parse_args()
    floors = json.loads(FLOORS.read_text(encoding="utf-8")) if FLOORS.exists() else {}
    worse = 0
    for part in options.parts or PARTS:
        figures = dict(PARTS[part](options.shared))
        if options.write:
            floors[part] = figures
            continue
        slack = SLACK if part == "speed" else 1
        bad = {
            name: figure for name, figure in figures.items() if figure > floors[part][name] * slack
        }
        better = sum(figure < floors[part][name] for name, figure in figures.items())
        print(f"{part}: {len(figures)} figures, {len(bad)} worse, {better} better", flush=True)
        for name, figure in bad.items():
            print(f"  {name}: {figure:g}, the floor is {floors[part][name]:g}", flush=True)
        worse += len(bad)
    if options.write:
        FLOORS.write_text(json.dumps(floors, indent=1) + "\n", encoding="utf-8")
    return int(worse > 0)


if __name__ == "__main__":
    sys.exit(main())
