"""`rewardkit new` writes packages that install, pass their own tests and work by their names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit import registry
from rewardkit.errors import DataError, OutputError, RewardkitError, UsageError
from rewardkit.preprocess import card
from rewardkit.preprocess.card import card_path, card_text, read_card
from rewardkit.scaffold import check_name, new_package
from rewardkit.testing import check_dataset

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent


@pytest.mark.full
@pytest.mark.skipif(not (BIN / "mypy").exists(), reason="ruff and mypy are not installed here")
@pytest.mark.parametrize("kind", ["dataset", "scorer"])
def test_new_packages_pass_their_tests_our_linter_and_strict_type_checks(tmp_path, kind):
    folder, site = new_package(kind, "tiny-new", tmp_path / "p"), tmp_path / "site"
    config = f"--no-cache --config {ROOT}/pyproject.toml"
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(site), str(ROOT)]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # none is needed, and loading takes seconds
    }
    for command in (
        f"{ROOT}/tests/pip_offline.py {site} install -e {folder}",
        "-m pytest -q -p no:cacheprovider -W error",
        f"-m ruff check {config} .",
        f"-m ruff format --check {config} .",
        "-m mypy --strict --config-file= tiny_new",
    ):
        words = [sys.executable, *command.split()]
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


#: Scorers whose golds are not answers: tests, calls, schemas or constraints. `new` writes rows with answers.
OTHER_GOLDS = {"auto", "code", "function_call", "instructions", "json_schema", "sql"}


@pytest.mark.parametrize("scorer", sorted(registry.SCORERS.keys() - OTHER_GOLDS))
def test_a_dataset_keeps_the_contract_with_any_scorer(tmp_path, monkeypatch, plugins, scorer):
    name = f"tiny-{scorer}".replace("_", "-")
    folder = new_package("dataset", name, tmp_path / "p", scorer=scorer)
    module = name.replace("-", "_")
    monkeypatch.syspath_prepend(folder)
    plugins(
        (name, f"{module}.dataset:DATASET", "rewardkit.datasets"),
        (name, registry.SCORERS[scorer], "rewardkit.data_sources"),
    )
    check_dataset(name)
    assert card_path(name).is_relative_to(folder)


INVALID = {
    "is not a valid name": ["", "a--b", "a-", "a\n", "../x", "/etc/x", "医学", "{{7*7}}", "';"],
    "small letters": ["Medical"],
    "a letter first": ["9lives"],
    "up to 50": ["x" * 51],
    "keyword": ["class", "match"],
    "is taken: rewardkit list has ": ["gsm8k", "math_500", "aime-2024", "cflue"],
    "hide the installed module": ["json", "rewardkit", "tests"],
}


@pytest.mark.parametrize(
    ("message", "name"), [(m, n) for m, names in INVALID.items() for n in names]
)
def test_an_invalid_name_is_refused_and_nothing_is_written(tmp_path, monkeypatch, name, message):
    monkeypatch.chdir(tmp_path)
    for kind in ("dataset", "scorer"):
        with pytest.raises(UsageError, match=message) as caught:
            new_package(kind, name)
        assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@given(st.text(max_size=60))
def test_a_valid_name_is_the_name_of_a_module(name):
    try:
        check_name(name)
    except UsageError:
        return
    assert name.replace("-", "_").isidentifier()
    assert name.isascii()


@pytest.mark.parametrize("kind", ["file", "folder", "dangling link"])
def test_nothing_is_overwritten(tmp_path, kind):
    out = tmp_path / "p"
    make = {"file": out.touch, "folder": out.mkdir, "dangling link": lambda: out.symlink_to("no")}
    make[kind]()
    before = [(path, path.lstat()) for path in tmp_path.rglob("*")]
    with pytest.raises(OutputError, match="exists; name another folder"):
        new_package("scorer", "tiny-new", out)
    assert [(path, path.lstat()) for path in tmp_path.rglob("*")] == before


def test_a_failure_half_way_leaves_nothing(tmp_path, monkeypatch):
    def full(path, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(OutputError, match="No space left"):
        new_package("dataset", "tiny-new", tmp_path / "p")
    assert list(tmp_path.iterdir()) == []


GOOD = card_text("gsm8k")
COLUMNS = GOOD[GOOD.index("columns:") : GOOD.index("use:")]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("---\nname", "name", "the front matter is missing"),
        ("name: gsm8k", "name: [", r"md:\d+: expected"),
        (GOOD, "---\n- name\n---\n", "not a mapping of names to values"),
        ("licence: MIT\n", "", "licence: it is missing"),
        ("licence: MIT", "licens: MIT", "unknown key 'licens'. Did you mean 'licence'"),
        ("licence: MIT", "licence: 1.0", "licence: give text, not 1.0"),
        ("  question: question\n", "", "columns: question is missing. Name its column"),
        ("  question: question", "  qestion: question", "unknown part 'qestion'.*'question'"),
        ("solution: answer", "solution: [answer, answer]", "solution: name one column"),
        ("without commas", "without comma", "no transform 'without comma'.*'without commas'"),
        (COLUMNS, "columns:\n", "columns: write"),
        (COLUMNS, "columns: [question, answer]\nwhere: x = 1\n", "where and shuffle_options need"),
        ("use: training", "where: difficulty\nuse: training", "is not a condition"),
        ("use: training", "dedup: maybe\nuse: training", "dedup: give true or false, not 'maybe'"),
        ("rows: 7473", "row: 7473", "splits.train: unknown key 'row'.*'rows'"),
        ("rows: 7473", "rows: many", "splits.train.rows: give a whole number, not 'many'"),
        (
            "{rows: 7473, files: main/train-*.parquet}",
            "7473",
            "splits.train: give `key: value` pairs, not 7473",
        ),
    ],
)
def test_each_fault_of_a_card_has_its_own_message(tmp_path, monkeypatch, old, new, message):
    assert old in GOOD
    file = tmp_path / "gsm8k.md"
    file.write_text(GOOD.replace(old, new, 1), encoding="utf-8")
    monkeypatch.setattr(card, "card_path", lambda _: file)
    with pytest.raises(DataError, match=message) as caught:
        read_card("gsm8k")
    assert str(caught.value).startswith(str(file))
    assert "\n" not in str(caught.value)


@given(st.text(max_size=200))
def test_no_text_of_a_card_is_a_crash(text):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(card, "card_path", lambda _: Path("/a-plug-in/gsm8k.md"))
        patch.setattr(card, "_read_text", lambda _: f"---\n{text}\n---\n")
        with pytest.raises(RewardkitError):
            read_card("gsm8k")
