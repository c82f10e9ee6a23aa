"""Fuzz every scorer with hostile text: a Score must come back within 20 ms of CPU. Prints a table.

Half of the calls bring a question that is as hostile as the response: text of its own, or else the
response's text as a formula, for the code that compares an answer with its question.

    PYTHONPATH=. python benchmarks/fuzz.py --inputs 100000 --seed 1 --keep bad.txt

Inputs are guided by coverage if atheris is installed (peers/requirements.txt), else mutated at random.
"""

import argparse
import random
import resource
import sys
import time
from functools import partial
from importlib.util import find_spec
from typing import Any

from caches import answer_caches

LIMIT_SECONDS, MAX_CHARS = 0.020, 1_000_000
TURNS = "math:" * 7 + "mcq:" * 4 + "mcq final:dapo:dapo robust:gsm8k:gsm8k flexible:gsm8k robust"
FRAMES = r"\boxed{@}|@|$\boxed{@}$.|<answer>@</answer>|#### @|Answer: @|答案：@|The answer is $@$."
FRAGMENTS = r"""\boxed{ \boxed \fbox{ { } ( ) [ ] \{ \} | \left \right \( \) \[ \] $ $$ \ \\ & , ; : . ! % \% ^ _ ' ^\circ \degree + - * / = < > \le \ne \in \cup \cap \setminus \mid \pm \mp \cdot \times \div \approx \to \frac \frac{ \dfrac12 }{ \sqrt \sqrt[3]{ \sin \log_ \ln \binom \lfloor \rfloor \overline{ \dot \sum_{ \int \det \max \gcd \infty \pi \emptyset \mathbb{R} \text{ \text{and} \text{or} \mathrm{ \begin{cases} \begin{pmatrix} \end{pmatrix} \hline \quad \, \! ~ ** __ ` <sup> </sup> <answer> </answer> <think> </think> #### # 0 1 2
 7 10 99 1000 0.5 3.14 .5 1e9 1,000 {,} 1/2 -1 10^{300} 9999999999 _2 x y n e i f(x) f( ab A B C D (A) A. J cm hours st th pm answer Answer: option or and not the maybe percent thousand is 答案 故选 是 不选 或 和 元 十二 万 分之 点 三 ： ， 、 。 ５ Ａ ⁴ ² ① ٣ ½ √ ∪ ∞ − ° € é ı ſ ß ﷽ İ 🙂"""
PIECES = [*FRAGMENTS.split(), *" \n\t\0\x1c\ud800\u2028\u200b", "a\u0301"]


def build_text(data: bytes) -> str:
    """Build a text from bytes: fragments, characters, and repetitions of the last parts."""
    parts, codes = [""], iter(data)
    for code in codes:
        if code < 250:
            parts.append(PIECES[code % len(PIECES)])
        elif code < 252:
            parts.append(chr((next(codes, 0) * 256 + next(codes, 0)) * 17 % 0x110000))
        else:
            tail, power = "".join(parts[-1 - next(codes, 0) % 8 :]), next(codes, 0)
            times = min(1 << power % (20 if power > 239 else 7), MAX_CHARS // (len(tail) or 1))
            parts.append(tail * times)
    return "".join(parts)[: MAX_CHARS - 30]


def scorers() -> dict[str, Any]:
    """Import the scorers anew and return them, with `clear`, which empties their caches."""
    for module in [name for name in sys.modules if name.startswith("rewardkit")]:
        del sys.modules[module]
    from rewardkit.scorers import gsm8k, math, math_dapo, mcq

    math.score(r"\boxed{\sqrt{2}}", "1.41421356")  # imports mpmath
    caches = answer_caches()
    calls: dict[str, Any] = {
        "math": math.score,
        "mcq": mcq.score,
        "dapo": math_dapo.score,
        "gsm8k": gsm8k.score,
    }
    calls |= {f"gsm8k {name}": partial(gsm8k.score, method=name) for name in ("flexible", "robust")}
    calls |= {"mcq final": partial(mcq.score, final_letter=True)}
    calls |= {"dapo robust": partial(math_dapo.score, mode="robust")}
    return calls | {"clear": lambda: [cache.cache_clear() for cache in caches]}


def judge(data: bytes, runs: list[dict[str, Any]], rows: dict[str, list[Any]]) -> str:
    """Score an input, update its row, and return a line if it raised or was slow in every run."""
    turn, frame, *_ = data.ljust(2, b"\0")
    answer, gold, question, *_ = map(build_text, [*data[2:].split(b"\xff", 2), b"", b""])
    response = FRAMES.split("|")[frame % 8].replace("@", answer)
    name, gold = TURNS.split(":")[turn % 17], gold or PIECES[frame % len(PIECES)]
    extra_info = {"question": f"Find ${question or answer}$."} if frame // 8 % 2 else None
    row, seconds, error = rows.setdefault(name, [0, 0, 0, 0.0, ""]), 9.0, ""
    for run in runs:
        run["clear"]()
        started = time.process_time()
        try:
            error = "" if run[name](response, gold, extra_info).status else "no Score"
        except Exception as raised:  # noqa: BLE001 - the fuzzer looks for any exception
            error = f"{type(raised).__name__}: {raised}"
        seconds = min(seconds, time.process_time() - started)
        if error or seconds <= min(LIMIT_SECONDS, row[3]):
            break
    row[:3] = row[0] + 1, row[1] + bool(error), row[2] + (seconds > LIMIT_SECONDS)
    row[3:] = max(row[3:], [seconds, ascii((response[:40], gold[:20]))])
    bad = error or (seconds > LIMIT_SECONDS and f"{1000 * seconds:.1f} ms")
    return (
        ascii((bad, data.hex(), name, response[:200], gold[:200], question[:200])) + "\n"
        if bad
        else ""
    )


def print_tables(run: str, rows: dict[str, list[Any]]) -> None:
    inputs, raised, slow = (sum(row[i] for row in rows.values()) for i in range(3))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print("| run | inputs | raised | over 20 ms | peak memory |\n|---|---|---|---|---|")
    print(f"| {run} | {inputs:,} | {raised:,} | {slow:,} | {peak} MB |\n")
    for name, (count, wrong, late, seconds, what) in sorted(rows.items()):
        counts = f"{count:,} inputs, {wrong:,} raised, {late:,} slow; {1000 * seconds:.1f} ms"
        print(f"- {name}: {counts}: {what}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000, help="number of inputs")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument(
        "--keep",
        type=argparse.FileType("w", bufsize=1),
        default="/dev/null",
        help="file to write inputs to that raised or were slow",
    )
    args = parser.parse_args()
    rng, runs, rows = random.Random(args.seed), [scorers()] * 3, dict[str, list[Any]]()

    def one(data: bytes) -> None:
        args.keep.write(judge(data, runs, rows))
        if sum(row[0] for row in rows.values()) == args.inputs:
            print_tables("atheris" if find_spec("atheris") else "own generator", rows)

    if find_spec("atheris"):
        import atheris  # type: ignore[import-untyped,import-not-found,unused-ignore]

        with atheris.instrument_imports(include=["rewardkit"]):
            runs.insert(0, scorers())
        atheris.Setup(["fuzz", f"-runs={args.inputs}", f"-seed={args.seed}", "-max_len=200"], one)
        atheris.Fuzz()  # which never returns
    pool = [rng.randbytes(rng.randrange(3, 40)) for _ in range(2000)]
    for k in range(args.inputs):
        a, b = rng.sample(pool, 2)
        pool[k % 2000] = a[: rng.randrange(20)] + rng.randbytes(2) + b[rng.randrange(20) :][:40]
        one(pool[k % 2000])


if __name__ == "__main__":
    main()
