"""`rewardkit list` shows what there is, in groups and in 80 columns."""

import subprocess
import sys

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


@pytest.mark.parametrize("name", NAMES)
def test_a_dataset_is_listed_with_its_rows_gold_licence_and_whether_it_is_gated(lines, name):
    card, row = read_card(name), row_of(lines, name)
    text = " ".join(" ".join(row).split())
    assert all(f"{split.rows:,}" in text for split in card.splits.values())
    assert all(word in text for word in [*card.gold_kind.split(), *card.licence.split()])
    assert ("gated" in text) == card.gated
    assert any(line.startswith(f"{name}: accept the terms") for line in lines) == card.gated


def test_the_list_and_the_completion_of_names_need_none_of_the_slow_packages():
    """They are what makes `list` slow: pyarrow and huggingface_hub take longer than the rest."""
    code = (
        "import sys\n"
        "from rewardkit.cli import list\n"
        "from rewardkit.cli.shared.options import *\n"
        "complete_recipes(''), complete_scorers('')\n"
        "assert not {'pydantic', 'yaml', 'rich'} & set(sys.modules)\n"
        "list.command(); complete_against('a')\n"
        "sys.exit(str({'pyarrow', 'huggingface_hub', 'torch', 'numpy'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.strip() == "set()"
