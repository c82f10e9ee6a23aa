"""Rows and files that several tests of data write."""

import json

import yaml

from rewardkit.row import build_row, read_rows


def verl_row(i=0, **changes):
    fields = {
        "data_source": "openai/gsm8k",
        "prompt": [{"role": "user", "content": f"question {i}"}],
        "ability": "math",
        "ground_truth": str(i),
        "index": i,
        "split": "train",
        "question": f"question {i}",
        "answer": f"so\n#### {i}",
        "scorer": "gsm8k",
    }
    return build_row(**(fields | changes))


def jsonl(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def dropped(out):
    """The entries of OUT.dropped.jsonl."""
    lines = out.with_name(f"{out.name}.dropped.jsonl").read_text().splitlines()
    return list(map(json.loads, lines))


def infos(parquet, name):
    """A field of `extra_info` in all rows."""
    return [row["extra_info"][name] for row in read_rows(parquet)]


def golds(parquet):
    return [row["reward_model"]["ground_truth"] for row in read_rows(parquet)]


def write_card(folder, columns, **more):
    """Write the card of a dataset, and return its path."""
    fields = {
        "name": "sums",
        "title": "Sums",
        "data_source": "acme/sums",
        "ability": "math",
        "template": "boxed",
        "scorer": "math",
        "licence": "ours",
        "columns": columns,
        "splits": {"train": {"rows": 3, "files": "sums.jsonl"}},
        **more,
    }
    card = folder / f"{fields['name']}.md"
    card.write_text(f"---\n{yaml.safe_dump(fields, allow_unicode=True)}---\n# A card\n")
    return str(card)
