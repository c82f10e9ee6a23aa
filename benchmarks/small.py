"""Make a small folder of data, cases and scripts from the packaged samples, for `run.py --small`.

    python benchmarks/small.py FOLDER

It has the names and columns of the real folder, so that every script reads it in the same way. Each
sample row gets a right response and a wrong one. Figures measured on it mean nothing; it shows that
the scripts run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from small_scripts import write_scripts

from rewardkit.preprocess.source import SAMPLES

Row = dict[str, Any]

#: Sets of labelled cases by answer format: boxed answers, `####` lines, letters.
BOXED = (
    "hardverify",
    "exploits",
    "real_tora_rho",
    "real_math_qwen25",
    "real_math500_pairs",
    "mathl5_pairs",
    "real_zeroeval_mathl5",
    "real_financemath",
    "redteam",
    "redteam3",
    "redteam3_adaptive",
    "mathverify_issues",
    "mathv_free",
    "mathvista_free",
    "tabmwp",
)
HASHES = (
    "real_gsm8k_openai",
    "real_gsm8k_abel",
    "real_gsm8k_gsmplus",
    "real_zeroeval_gsm8k",
    "real_mrgsm8k",
)
LETTERS = (
    "real_mcq_gaokao",
    "real_mcq_mmlupro",
    "mathv_choice",
    "mathvista_choice",
    "mrben_letters",
)

#: Characters of a long response, as speed.py selects them.
LONG_RESPONSE_CHARS = 2_500


def write_shared(folder: Path) -> None:
    """Write `data`, `cases` and `scripts` below a folder."""
    _write_data(folder / "data")
    write_scripts(folder / "scripts")
    numbers = [(r["question"], r["answer"], r["answer"].split()[-1]) for r in _rows("gsm8k/train")]
    maths = [(r["problem"], r["solution"], r["answer"]) for r in _rows("math-500/test")]
    long = [(q, "Let us see. " * (LONG_RESPONSE_CHARS // 12) + s, gold) for q, s, gold in maths]
    cases = folder / "cases"
    for name in BOXED:
        problems = long if name == "real_zeroeval_mathl5" else maths
        _write_jsonl(cases / f"{name}.jsonl", _cases(problems, "\\boxed{@}"))
    for name in HASHES:
        _write_jsonl(cases / f"{name}.jsonl", _cases(numbers, "#### @"))
    letters = [("Which of them?", "", "ABCD"[i % 4]) for i in range(40)]
    for name in LETTERS:
        _write_jsonl(cases / f"{name}.jsonl", _cases(letters, "\\boxed{@}", options=[*"wxyz"]))
    bare = [{**row, "kind": "equiv"} for row in _cases(maths, "")]
    for row in bare:
        del row["solution_str"]
    for name in ("tests", "physics_pairs", "peer_suites"):
        _write_jsonl(cases / f"{name}.jsonl", bare)
    golds = [{"question": q, "gold": gold, "source": "made"} for q, _, gold in maths]
    _write_jsonl(cases / "golds.jsonl", golds)
    _write_jsonl(cases / "adversarial_inputs.jsonl", _hostile())
    echo = {"inputs": ["1\n", "2\n"], "outputs": ["1\n", "2\n"]}
    programs = {"print(input())": True, "print(1)": False}
    probe = [{"id": p, "code": p, "tests": echo, "label": label} for p, label in programs.items()]
    _write_jsonl(cases / "code_probe.jsonl", probe)
    facts = [(row["question"], "", row["golden_answers"][0]) for row in _rows("nq/test")]
    for name in ("qa_evouna", "qa_nq301"):
        _write_jsonl(cases / f"{name}.jsonl", _cases(facts, "@", scorer="qa"))


def _write_data(data: Path) -> None:
    for split in ("train", "test"):
        _write_parquet(data / f"gsm8k/main/{split}-00000-of-00001.parquet", f"gsm8k/{split}")
    _write_parquet(data / "dapo-math-17k/data/dapo-math-17k-dedup.parquet", "dapo-math-17k/train")
    _write_parquet(data / "math/data/test-00000-of-00001.parquet", "math/test")
    _write_parquet(data / "aime_2024/HuggingFaceH4/data/train.parquet", "aime/2024")
    _write_jsonl(data / "aime_2025/math-ai/test.jsonl", _rows("aime/2025"))
    _write_jsonl(data / "math-500/test.jsonl", _rows("math-500/test"))


def _cases(problems: Iterable[tuple[str, str, str]], end: str, **more: Any) -> list[Row]:
    """Make a right and a wrong response to each question, with the columns of the real sets."""
    return [
        {
            "id": f"{number}:{label}",
            "question": question,
            "solution_str": f"{solution}\n{end.replace('@', answer)}",
            "pred": answer,
            "answer_field": answer,
            "ground_truth": gold,
            "label": label,
            "kind": "made",
            **more,
        }
        for number, (question, solution, gold) in enumerate(problems)
        for answer, label in ((gold, True), ("E" if gold in "ABCD" else f"{gold}7", False))
    ]


def _hostile() -> list[Row]:
    shapes = ("1,", "\\boxed{", "(", "\\frac{1}{", "9" * 50 + "^")
    return [
        {"desc": f"{shape} repeated", "solution_str": shape * 2_000, "ground_truth": "1"}
        for shape in shapes
    ]


def _rows(name: str) -> list[Row]:
    return [json.loads(line) for line in (SAMPLES / f"{name}.jsonl").open(encoding="utf-8")]


def _write_jsonl(file: Path, rows: Iterable[Row]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def _write_parquet(file: Path, sample: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(_rows(sample)), file)


if __name__ == "__main__":
    write_shared(Path(sys.argv[1]))
