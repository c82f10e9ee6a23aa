"""Score a dump one row at a time or in pools of other packages, as peers to measure.

    python benchmarks/peers/bulk.py NAME DUMP OUT      # loop, user-loop: every row, verdicts to OUT
    python benchmarks/peers/bulk.py NAME DUMP EVERY    # the others: one row in EVERY

The last line that the others print has the number of rows and the seconds of their scoring, after
workers have started and imported their modules.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

CORES = 2

#: What users write so that main_eval calls a scorer of verl; verl loads the file for every row.
REWARD_FILE = """
from verl.utils.reward_score import default_compute_score

def compute_score(data_source, response, ground_truth):
    return default_compute_score(data_source, response, ground_truth)["score"]
"""

Row = dict[str, Any]


def loop(dump: Path, out: Path, score: Callable[[str, str], Any]) -> None:
    from rewardkit.scorers.base import to_verl

    with dump.open() as lines, out.open("w") as verdicts:
        for row in map(json.loads, lines):
            result = score(row["output"], row["gts"])
            verdicts.write(json.dumps({**to_verl(result), "status": result.status.value}) + "\n")


def main_eval(rows: list[Row]) -> dict[str, float]:
    """Run verl's own task and configuration, and its loop over the results."""
    from omegaconf import OmegaConf
    from verl.trainer import main_eval as verl_main_eval

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "reward.py"
        file.write_text(REWARD_FILE)
        custom = {
            "reward": {"custom_reward_function": {"path": str(file), "name": "compute_score"}}
        }
        defaults = OmegaConf.load(Path(verl_main_eval.__file__).parent / "config/evaluation.yaml")
        config = OmegaConf.merge(defaults, custom)
        return on_ray(
            lambda r: verl_main_eval.process_item.remote(
                config, "math_dapo", [r["output"]], {"ground_truth": r["gts"]}
            ),
            rows,
        )


def bare(rows: list[Row]) -> dict[str, float]:
    """Run the same without configuration, and without loading a file for every row."""
    import ray

    @ray.remote  # type: ignore[untyped-decorator,unused-ignore]
    def process_item(response: str, gold: str) -> float:
        from verl.utils.reward_score import default_compute_score

        return float(default_compute_score("math_dapo", response, gold)["score"])

    return on_ray(lambda r: process_item.remote(r["output"], r["gts"]), rows)


def on_ray(submit: Callable[[Row], Any], rows: list[Row]) -> dict[str, float]:
    import ray

    def score(batch: list[Row]) -> None:
        pending = [submit(row) for row in batch]
        while pending:
            done, pending = ray.wait(pending)
            for each in done:
                ray.get(each)

    with tempfile.TemporaryDirectory(prefix="rk", dir="/tmp") as folder:
        ray.init("local", num_cpus=CORES, _temp_dir=folder, include_dashboard=False)
        score(rows[:200])
        times = timed(lambda: score(rows))
        ray.shutdown()
    return times


def verify_pool(rows: list[Row], chunk: int) -> dict[str, float]:
    with multiprocessing.get_context("spawn").Pool(CORES) as pool:
        pool.map(verify, rows[:40], 1)
        return timed(lambda: list(pool.imap(verify, rows, chunk)))


def verify(row: Row) -> bool:
    """Run math-verify with verl's targets and its own time limits."""
    from math_verify.grader import verify as is_equal
    from math_verify.parser import ExprExtractionConfig, LatexExtractionConfig, parse

    gold = parse(rf"\boxed{{{row['gts']}}}", (LatexExtractionConfig(),))
    pred = parse(row["output"], (ExprExtractionConfig(), LatexExtractionConfig()))
    return bool(is_equal(gold, pred))


def timed(work: Callable[[], object]) -> dict[str, float]:
    before, started = cpu(), time.perf_counter()
    work()
    wall = time.perf_counter() - started
    return {"wall": wall, "cpu": cpu() - before}


def cpu() -> float:
    """Return the CPU seconds of this process and its living descendants."""
    stats = [
        Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        for pid in tree(os.getpid())
    ]
    return sum(int(s[11]) + int(s[12]) for s in stats) / os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> Iterator[int]:
    """Yield a process and its descendants."""
    yield pid
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = file.read_text().split()
        except OSError:
            continue
        for child in children:
            yield from tree(int(child))


def main() -> None:
    name, dump, last = sys.argv[1:]
    if name == "loop":
        from rewardkit.scorers.math import score

        loop(Path(dump), Path(last), score)
        return
    if name == "user-loop":
        import trivial_scorer

        loop(Path(dump), Path(last), trivial_scorer.score)
        return
    with Path(dump).open() as lines:
        rows = [json.loads(line) for line in islice(lines, 0, None, int(last))]
    if name.startswith("verify"):
        times = verify_pool(rows, int(name.partition("-")[2]))
    else:
        times = {"main_eval": main_eval, "bare": bare}[name](rows)
    print("\nTIMES " + json.dumps({**times, "rows": len(rows)}))


if __name__ == "__main__":
    main()
