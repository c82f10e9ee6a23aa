"""Run the scripts behind the tables of README.md and print each table under its heading.

    make bench SHARED=../shared          # builds the environments, then runs all at full size
    python benchmarks/run.py speed overlap --shared ../shared --out /tmp/results
    python benchmarks/run.py --small     # all in small, on packaged samples, as in CI

The real data are not in the repository; `--shared` or REWARDKIT_SHARED names their folder. The exit
code is 1 if a benchmark failed or, at full size, could not run.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple, TextIO

from about import machine, versions
from small import write_shared

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SMALL_SECONDS = 180


class Benchmark(NamedTuple):
    """A benchmark: its heading in README.md, its duration, packages whose versions matter, and command.

    `small` has the arguments that `--small` adds, or `skip: ` and the reason.
    """

    heading: str
    minutes: int
    packages: str
    command: str
    small: str


CASES = "--cases {shared}/cases --peers-python {peers} --verl-python {verl}"
DAPO = "{shared}/data/dapo-math-17k/data/dapo-math-17k-dedup.parquet"
# fmt: off
BENCHMARKS = {
    "prep-gsm8k": Benchmark("Preparing GSM8K", 1, "verl datasets pyarrow",
        "{own} prep_gsm8k.py --source {shared}/data/gsm8k --verl-python {verl}",
        "--times 1"),
    "prep-dapo": Benchmark("Preparing DAPO-Math-17k", 6, "pyarrow pandas datasets verl",
        "{own} prep_dapo.py --source " + DAPO + " --peers all --verl-python {verl}",
        "--times 1 --peers pandas filter_seen"),
    "prep-rows": Benchmark("Preparing one's own rows", 20, "pyarrow",
        "{own} prep_rows.py --rows 100000 1000000 3000000",
        "--rows 2000 --jobs 1 2"),
    "overlap": Benchmark("Contamination", 4, "",
        "{own} overlap.py --shared {shared}",
        "--scales 1 2"),
    "score-bulk": Benchmark("Scoring a dump", 10, "verl ray math-verify",
        "{own} score_bulk.py --cases {shared}/cases --verl-python {verl}",
        "--rows 1000 --times 1 --ways loop verify-64"),
    "accuracy": Benchmark("Accuracy", 12, "math-verify inspect-ai mathruler lm-eval verl",
        "{own} accuracy.py " + CASES,
        "--peers 'math-verify,verl gsm8k'"),
    "ablation": Benchmark("What each rule moves", 4, "",
        "{own} ablation.py --cases {shared}/cases",
        ""),
    "code-agreement": Benchmark("Programs", 15, "",
        "{own} code_agreement.py --cases {shared}/cases",
        "--only code_probe"),
    "code-speed": Benchmark("Speed of programs", 2, "verl",
        "{own} code_speed.py --verl-python {verl}",
        "--programs 2 --passes 1 --verl-python none"),
    "instruction-agreement": Benchmark("Instructions", 1, "",
        "{own} instruction_agreement.py --cases {shared}/cases",
        "skip: it needs the published verdicts"),
    "call-agreement": Benchmark("Function calls", 1, "verl",
        "{own} call_agreement.py --gorilla {shared}/gorilla/.git --rlla {shared}/rlla_4k/test.parquet "
        "--verl-python {verl}",
        "skip: it needs a clone of BFCL"),
    "qa": Benchmark("Open questions", 1, "",
        "{own} qa.py --cases {shared}/cases",
        "skip: it needs the labelled answers"),
    "judge": Benchmark("Rules, a judge, and both", 3, "httpx",
        "{own} judge.py --cases {shared}/cases",
        "--rows 5 --judges 1/0 0.9/0.1"),
    "metamorphic": Benchmark("Metamorphic tests", 4, "math-verify",
        "{own} metamorphic.py --golds {shared}/cases/golds.jsonl --peers-python {peers} --report",
        ""),
    "speed": Benchmark("Speed", 2, "math-verify verl",
        "{own} speed.py " + CASES,
        "--verl-python none"),
    "fuzz": Benchmark("Hostile text", 10, "mpmath",
        "{own} fuzz.py --inputs 300000 --seed 78",
        "--inputs 300"),
    "fuzz-atheris": Benchmark("Hostile text", 10, "atheris mpmath",
        "{peers} fuzz.py --inputs 150000 --seed 78",
        "skip: atheris is not in the test extra"),
    "worker": Benchmark("The killable worker", 1, "",
        "{own} worker.py",
        "--trips 200 --kills 1 --calls 200"),
    "guard": Benchmark("The guard", 2, "ray",
        "{own} guard.py --verl-python {verl}",
        "--calls 500 --times 1 --verl-python none"),
    "recorder": Benchmark("The recorder", 1, "",
        "{own} recorder.py",
        "--calls 2000"),
    "audit": Benchmark("Audit of verl's scorers", 10, "verl math-verify mathruler",
        "{verl} audit_verl.py",
        "--rows 2 --only gsm8k"),
    "audit-programs": Benchmark("Audit of verl's scorers", 4, "verl",
        "{verl} audit_verl.py --programs",
        "--programs"),
    "sources": Benchmark("verl's data sources", 15, "verl mathruler",
        "{own} verl_sources.py --shared {shared} --verl-python {verl}",
        "skip: it needs verl and the labelled answers"),
    "import-scripts": Benchmark("Importing launch scripts", 1, "",
        "{own} import_scripts.py --scripts {shared}/scripts",
        ""),
    "logs": Benchmark("Reading logs", 4, "",
        "{own} logs.py",
        "--megabytes 2 --times 1"),
    "onset": Benchmark("The onset of reward hacking", 5, "",
        "{own} onset.py",
        "--seeds 1 --jobs 1 --only timeout short"),
    "eval-client": Benchmark("The client of `rewardkit eval`", 10, "httpx",
        "{own} eval_client.py",
        "skip: its shortest run takes two minutes"),
    "reward-server": Benchmark("The reward server", 2, "starlette uvicorn uvloop",
        "{own} reward_server.py",
        "--seconds 0.5"),
}
# fmt: on


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="\n".join(f"{name:14}{each.minutes:3} min" for name, each in BENCHMARKS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "names", nargs="*", help="benchmarks to run, from the list below; default: all"
    )
    parser.add_argument("--small", action="store_true", help="run on packaged samples, in a minute")
    parser.add_argument("--shared", type=Path, help="folder of the real data and cases")
    parser.add_argument(
        "--verl-python", default=ROOT / ".venv-verl-0.9.1/bin/python", help="interpreter with verl"
    )
    parser.add_argument(
        "--peers-python",
        default=ROOT / ".venv-peers/bin/python",
        help="interpreter with the other peers",
    )
    parser.add_argument(
        "--out", type=Path, help="folder to write a page to, named after the start time"
    )
    options = parser.parse_args()
    if unknown := set(options.names) - set(BENCHMARKS):
        parser.error(
            f"unknown benchmark {', '.join(unknown)}; the benchmarks are {', '.join(BENCHMARKS)}"
        )
    if options.small and options.shared:
        parser.error("--small makes its own data: leave out --shared")
    shared = options.shared or os.environ.get("REWARDKIT_SHARED", "no --shared")
    places = {"own": sys.executable, "verl": options.verl_python, "peers": options.peers_python}
    with tempfile.TemporaryDirectory() as folder:
        if options.small:
            write_shared(Path(folder))
            shared, places["peers"] = folder, sys.executable
        places["shared"] = shared
        # Scripts run in the repository's folder. Resolving the links would leave the venv.
        absolute = {name: str(Path(place).absolute()) for name, place in places.items()}
        sys.exit(run_all(options, absolute))


def run_all(options: argparse.Namespace, places: dict[str, str]) -> int:
    """Print every benchmark, also into a page with `--out`, and return the exit code.

    Two run at once in small.
    """
    started, failures = datetime.now(timezone.utc), []
    pages = [sys.stdout]
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        pages.append((options.out / f"{started:%Y-%m-%dT%H%M%S}.md").open("x", encoding="utf-8"))
    say(pages, machine(started) + "\nSmall: the figures mean nothing.\n" * options.small)
    with ThreadPoolExecutor(2 if options.small else 1) as pool:
        names = options.names or [*BENCHMARKS]
        for name, (outcome, text) in zip(
            names,
            pool.map(lambda name: run_benchmark(name, places, options.small), names),
            strict=True,
        ):
            say(pages, f"\n## {BENCHMARKS[name].heading}\n\n{text}")
            if outcome == "FAILED" or (outcome and not options.small):
                failures.append(f"{name} {outcome}")
    say(pages, f"\n{len(names)} benchmarks: {', '.join(failures) or 'none failed'}")
    return bool(failures)


def say(pages: list[TextIO], text: str) -> None:
    for page in pages:
        print(text, file=page, flush=True)


def run_benchmark(name: str, places: dict[str, str], small: bool) -> tuple[str, str]:
    """Return `FAILED`, `not run` or "", and the text: command, versions, table, problem."""
    _, minutes, packages, words, more = BENCHMARKS[name]
    if small and more.startswith("skip: "):
        return "not run", f"Not run: {more.removeprefix('skip: ')}."
    if not small and (path := missing_path(words, places)):
        return "not run", f"Not run: {path} is missing."
    line = shlex.split(f"{words} {more}" if small else words)
    python, script, *arguments = (word.format(**places) for word in line)
    if not Path(python).exists():  # in small only: verl's
        python = sys.executable
    print(f"{name}{'' if small else f', about {minutes} minutes'} ...", file=sys.stderr)
    limit = SMALL_SECONDS if small else 10 * 60 * minutes
    problem, output, seconds = run([python, str(HERE / script), *arguments], limit)
    pythons = {places[place] for place in ("own", "verl", "peers") if f"{{{place}}}" in words}
    summary = (
        f"`{shlex.join([script, *arguments])}`, {seconds:.0f} s. {versions(packages, pythons)}"
    )
    return ("FAILED" if problem else ""), f"{summary.rstrip()}\n\n{output}{problem}"


def missing_path(words: str, places: dict[str, str]) -> str:
    """Return the first file, folder or interpreter of a command that does not exist."""
    paths = (word.format(**places) for word in words.split() if word.startswith("{"))
    return next((path for path in paths if not Path(path).exists()), "")


def run(command: list[str], limit: float) -> tuple[str, str, float]:
    """Run a command and return its problem or "", its output, and its seconds."""
    started = time.perf_counter()
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    # Files, because a process that a benchmark leaves behind would keep a pipe open.
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as error:
        process = subprocess.Popen(command, stdout=out, stderr=error, cwd=ROOT, env=environment)
        try:
            problem = f"exit code {process.returncode}" if process.wait(limit) else ""
        except subprocess.TimeoutExpired:
            problem = f"not finished after {limit} s"
            process.send_signal(signal.SIGINT)  # so that it ends its child processes
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
        finally:
            process.kill()
        seconds = time.perf_counter() - started
        out.seek(0), error.seek(0)
        if problem:
            problem = f"\n\nFAILED: {problem}\n\n{error.read()[-2000:].strip()}"
        return problem, out.read().strip(), seconds


if __name__ == "__main__":
    main()
