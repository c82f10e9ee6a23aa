"""Find the onset of reward hacking in simulated runs, as they grow. Prints a table.

`python benchmarks/onset.py [--seeds 6]` records simulated runs (`tests/trainlog/simulated_runs.py`)
with the recorder and judges each as it was every six steps, and from the first response with the
exploit on every two, as `rewardkit logs --follow` does. So a delay is known to two steps. Thresholds
were chosen on the seeds of the half `build`; those of `held` were not looked at before. The onset is
the first step at which a tenth of the responses has the exploit. An alarm is on time within 20 steps
of it. An alarm before the first response with the exploit is false, and so is every alarm of a
healthy run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.trainlog.simulated_runs import (
    ONSET_SHARE,
    START_SHARE,
    first_alarm,
    hacked_run,
    hacked_scenarios,
    healthy_scenarios,
    simulate,
)

#: First seed of each half.
HALVES = {"build": 0, "held": 70_000}

#: Steps after the onset within which an alarm is on time, and until which a run is judged.
ON_TIME_STEPS, LAST_STEPS = 20, 40

#: Steps between two judgements where nothing is exploited.
QUIET_STEPS = 6


class Outcome(NamedTuple):
    """What became of a run: steps from the onset to the alarm, and to the step that it names; its rules."""

    name: str
    half: str
    delay: int | None = None
    error: int | None = None
    is_false: bool = False
    rules: tuple[str, ...] = ()


def judge(task: tuple[str, str, int]) -> Outcome:
    """Record a run, judge it as it grows, and return its outcome."""
    name, half, seed = task
    is_hacked = name in hacked_scenarios()
    scenario = hacked_run(name, seed) if is_hacked else healthy_scenarios()[name]
    exploit = scenario.exploit
    onset = exploit.step_at(ONSET_SHARE) if exploit else scenario.steps
    start = exploit.step_at(START_SHARE) if exploit else scenario.steps + 1
    last = min(onset + LAST_STEPS, scenario.steps)
    with tempfile.TemporaryDirectory() as folder:
        run = simulate(replace(scenario, steps=last), seed, Path(folder) / "records")
    alarm = first_alarm(run, (*range(14, start, QUIET_STEPS), *range(start, last + 1, 2)))
    if alarm is None:
        return Outcome(name, half)
    rules = tuple(alarm.findings)
    is_false = exploit is None or alarm.step < exploit.step_at(START_SHARE)
    if is_false:
        return Outcome(name, half, is_false=True, rules=rules)
    onsets = [it.onset.step for it in alarm.findings.values() if it.onset]
    return Outcome(name, half, alarm.step - onset, min(onsets) - onset, False, rules)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=6, help="runs of an exploit and half")
    parser.add_argument("--half", choices=HALVES, help="only this half")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--only", nargs="*", default=[], help="kinds of runs; default: all")
    options = parser.parse_args()
    names = options.only or [*hacked_scenarios(), *healthy_scenarios()]
    tasks = [
        (name, half, start + i)
        for name in names
        for half, start in HALVES.items()
        if options.half in (None, half)
        for i in range(-(-options.seeds // (1 if name in hacked_scenarios() else 3)))
    ]
    outcomes = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(judge, tasks):
            print(outcome, file=sys.stderr, flush=True)
            outcomes.append(outcome)
    print_table(outcomes)


def print_table(outcomes: Sequence[Outcome]) -> None:
    """Print a row for the healthy runs, for each exploit and for all of them, by half."""
    print("| runs | half | n | false alarms | on time | median delay | onset off by | rules |")
    print("|---|---|---|---|---|---|---|---|")
    kinds = len({it.name for it in outcomes} & healthy_scenarios().keys())
    groups = {f"healthy, {kinds} kinds": set(healthy_scenarios())}
    groups |= {name: {name} for name in hacked_scenarios()}
    groups["all exploits"] = set(hacked_scenarios())
    for title, names in groups.items():
        for half in HALVES:
            if own := [it for it in outcomes if it.half == half and it.name in names]:
                print(row(title, half, own))
    for it in outcomes:
        if it.is_false:
            print(f"\nFalse alarm: {it.name}, {it.half}: {', '.join(it.rules)}")


def row(name: str, half: str, outcomes: Sequence[Outcome]) -> str:
    """Return a row of the table."""
    n = len(outcomes)
    false = sum(it.is_false for it in outcomes)
    delays = [it.delay for it in outcomes if it.delay is not None]
    errors = [it.error for it in outcomes if it.error is not None]
    counts = Counter(rule.removeprefix("hack_") for it in outcomes for rule in it.rules)
    cells = [name, half, f"{n}", f"{false}"]
    if name.startswith("healthy"):
        cells += ["", "", "", ""]
    else:
        on_time = sum(delay <= ON_TIME_STEPS for delay in delays)
        cells += [
            f"{on_time / n:.0%}",
            f"{median(delays):g}" if delays else "",
            f"{median(errors):+g}" if errors else "",
            ", ".join(f"{rule} {count}" for rule, count in counts.most_common(3)),
        ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
