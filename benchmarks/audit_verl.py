"""Audit verl's scorers and ours on the same rows, for the table of benchmarks/README.md.

    .venv-verl-0.9.1/bin/python benchmarks/audit_verl.py --write   # after make verl
    .venv-verl-0.9.1/bin/python benchmarks/audit_verl.py --programs --write

Every scorer is audited on packaged rows of its own dataset; with `--programs`, verl's `prime_code` and
`code` on the packaged problems. `--write` puts the table into the page. Without verl, its scorers are
left out.
"""

from __future__ import annotations

import argparse
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rewardkit.audit import AuditReport, audit
from rewardkit.audit.model import AttackResult
from rewardkit.audit.program_attacks import packaged_problems
from rewardkit.preprocess.card import read_card
from rewardkit.preprocess.prep import preview

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "benchmarks/README.md",)
THEIRS = "benchmarks/verl_scorers.py"
ROWS = 16
HEAD = "| scorer | grade | holes | misses | conduct |\n|---|---|---|---|---|"
MATH = ("math", "math-500")

#: Name of the scorer in the table, its spec, its options, and the datasets of its rows.
SCORERS: tuple[tuple[str, str, dict[str, Any], tuple[str, ...]], ...] = (
    ("verl gsm8k", f"{THEIRS}:gsm8k", {}, ("gsm8k",)),
    ("`gsm8k`", "gsm8k", {}, ("gsm8k",)),
    ("`gsm8k`, method=robust", "gsm8k", {"method": "robust"}, ("gsm8k",)),
    ("verl gsm8k, flexible", f"{THEIRS}:gsm8k_flexible", {}, ("gsm8k",)),
    ("`gsm8k`, method=flexible", "gsm8k", {"method": "flexible"}, ("gsm8k",)),
    ("verl math_dapo", f"{THEIRS}:math_dapo", {}, ("dapo-math-17k",)),
    ("`math_dapo`", "math_dapo", {}, ("dapo-math-17k",)),
    ("`math_dapo`, mode=robust", "math_dapo", {"mode": "robust"}, ("dapo-math-17k",)),
    ("verl math_reward", f"{THEIRS}:math_reward", {}, MATH),
    ("verl prime_math", f"{THEIRS}:prime_math", {}, MATH),
    ("`math`", "math", {}, MATH),
    ("`math_verify`", "math_verify", {}, MATH),
    ("verl geo3k", f"{THEIRS}:geo3k", {}, ("geometry3k",)),
    ("`geometry3k`", "geometry3k", {}, ("geometry3k",)),
    ("`mcq`", "mcq", {}, ("dianjin-mcq",)),
    ("`mcq`, mode=letters", "mcq", {"mode": "letters"}, ("dianjin-mcq",)),
    ("`mcq`, mode=dianjin", "mcq", {"mode": "dianjin"}, ("dianjin-mcq",)),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=ROWS, help="number of rows of each dataset")
    parser.add_argument("--only", nargs="+", help="specs of the scorers to audit, as in SCORERS")
    parser.add_argument("--write", action="store_true", help="put the rows into docs/audit*.md")
    parser.add_argument("--programs", action="store_true", help="audit rewards for programs")
    options = parser.parse_args()
    verl = find_spec("verl") is not None
    if options.write and (options.only or not verl):
        sys.exit("--write: the page has all scorers; run it with verl and without --only")
    if not verl:
        print("- verl is not installed here: its scorers are left out\n")
    if options.programs:
        table = program_table(*(("verl", "code") if verl else ("code",)))
        print(table)
        if options.write:
            write_rows(table.split("|\n", 2)[2], "audit_programs")
        return
    scorers = [
        scorer
        for scorer in SCORERS
        if scorer[1] in (options.only or [scorer[1]]) and (verl or not scorer[1].startswith(THEIRS))
    ]
    lines = []
    print(HEAD)
    for scorer in scorers:
        lines.append(_line(scorer, options.rows))
        print(lines[-1], flush=True)
    if options.write:
        write_rows("\n".join(lines), "audit_verl")


def program_table(*scorers: str) -> str:
    """Return how many programs of each attack go through, by scorer."""
    rows = [
        {
            "prompt": row.prompt,
            "data_source": row.data_source,
            "reward_model": {"ground_truth": row.gold},
            "extra_info": dict(row.extra_info),
        }
        for row in packaged_problems("taco")
    ]
    reports = [audit(each, data=rows, rows=len(rows)) for each in scorers]
    titles = ["`prime_code`" if each == "verl" else f"`{each}`" for each in scorers]
    lines = [
        f"| attack | what goes through | {' | '.join(titles)} |",
        f"|{'---|' * (2 + len(titles))}",
    ]
    kinds = {"hole": "wrong, paid", "miss": "right, not paid", "conduct": "behaviour"}
    for results in zip(*(report.findings for report in reports), strict=True):
        if any(each.failed for each in results) or results[0].kind != "conduct":
            cells = [_cell(*pair) for pair in zip(results, reports, strict=True)]
            lines.append(
                f"| {results[0].attack} | {kinds[results[0].kind]} | {' | '.join(cells)} |"
            )
    return "\n".join(lines)


def _cell(result: AttackResult, report: AuditReport) -> str:
    """Return the failures of an attack; a star says that not all of its programs were run."""
    star = "\\*" if result.attack in report.not_run else ""
    return (
        ("yes" if result.failed else "no")
        if result.kind == "conduct"
        else f"{result.failed} of {result.tried}{star}"
    )


def write_rows(text: str, name: str) -> None:
    """Put the rows into the page, below the heading of their table."""
    marks = re.compile(rf"(<!-- {name} -->\n.*?\n\|---.*?\n).*?(\n<!-- end -->)", re.DOTALL)
    for page in PAGES:
        old = page.read_text(encoding="utf-8")
        new = marks.sub(lambda m: f"{m[1]}{text}\n{m[2]}", old)
        page.write_text(new, encoding="utf-8", newline="\n")


def _line(scorer: tuple[str, str, dict[str, Any], tuple[str, ...]], count: int) -> str:
    title, spec, options, datasets = scorer
    rows = [row for name in datasets for row in _sample(name)]
    report = audit(spec, data=rows, rows=count, options=options)
    kinds = (_names(report, kind) for kind in ("hole", "miss", "conduct"))
    return f"| {title} | {report.grade} | {' | '.join(kinds)} |"


def _sample(name: str) -> list[dict[str, Any]]:
    return preview(name, 1000, sample=True, split=next(iter(read_card(name).splits)))


def _names(report: AuditReport, kind: str) -> str:
    """List the attacks of a kind that succeeded; those of high severity are bold."""
    results = (f for f in report.failed if f.kind == kind and f.severity != "low")
    return ", ".join(f"**{f.attack}**" if f.severity == "high" else f.attack for f in results)


if __name__ == "__main__":
    main()
