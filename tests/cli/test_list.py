"""`rewardkit list` shows what there is, in groups and in 80 columns."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rewardkit import registry
from rewardkit.preprocess.card import read_card

NAMES = list(registry.DATASETS)


@pytest.fixture(scope="module")
def lines():
    done = subprocess.run(
        [sys.executable, "-m", "rewardkit", "list"], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def row_of(lines, name):
    """The line of a dataset and the lines below it until the next name."""
    start = next(i for i, line in enumerate(lines) if line.split()[:1] == [name])
    more = (i for i, line in enumerate(lines) if i > start and not line.startswith("     "))
    return lines[start : next(more)]


def test_the_tables_of_datasets_fit_into_80_columns(lines):
    end = next(i for i, line in enumerate(lines) if line.startswith("A set has one name"))
    assert max(len(line.rstrip()) for line in lines[:end]) <= 80


@pytest.mark.parametrize("name", NAMES)
def test_a_dataset_is_listed_with_its_rows_gold_licence_and_whether_it_is_gated(lines, name):
    card, row = read_card(name), row_of(lines, name)
    text = " ".join(" ".join(row).split())
    assert all(f"{split.rows:,}" in text for split in card.splits.values())
    assert all(word in text for word in [*card.gold_kind.split(), *card.licence.split()])
    assert ("gated" in text) == card.gated
    assert any(line.startswith(f"{name}: accept the terms") for line in lines) == card.gated


def test_the_json_has_the_cards(run):
    report = json.loads(run("list", "--json").stdout)
    assert list(report["datasets"]) == NAMES
    assert report["datasets"]["aime"]["splits"]["2024"]["rows"] == 30
    assert report["datasets"]["gsm8k"]["huggingface"] == "openai/gsm8k"


def test_one_kind_is_listed_by_its_name(run):
    lines = run("list", "scorers").stdout.splitlines()
    assert {"gsm8k", "mcq"} < {line.split(" ")[0] for line in lines}
    assert "dapo-math-17k" not in "".join(lines)
    assert "boxed" in json.loads(run("list", "templates", "--json").stdout)


def test_the_list_and_the_completion_of_names_need_none_of_the_slow_packages():
    """They are what makes `list` slow: pyarrow and huggingface_hub take longer than the rest."""
    code = (
        "import sys\n"
        "from rewardkit.cli import list\n"
        "from rewardkit.cli.shared.completion import complete_against\n"
        "list.command(); complete_against('a')\n"
        "sys.exit(str({'pyarrow', 'huggingface_hub', 'torch', 'numpy'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[2]
    )
    assert done.stderr.strip() == "set()"
