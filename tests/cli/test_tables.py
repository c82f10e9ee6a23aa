"""Tables fit the terminal, and no name in them is broken in two."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.cli.shared.console import terminal_width
from rewardkit.table import Table
from rewardkit.text import text_width, wrap_text

EXAMPLES = Path(__file__).parents[2] / "examples"
WORDS = st.text(st.sampled_from("ab-/_0"), min_size=1, max_size=14)
PROSE = st.lists(st.one_of(WORDS, st.sampled_from(["回复被截断，", "标准答案"])), max_size=30).map(
    " ".join
)
ROWS = st.lists(st.tuples(WORDS, WORDS, PROSE, PROSE), min_size=1, max_size=5)

#: Commands that print tables, and names in them that a reader copies.
COMMANDS = [
    (["list"], ["dapo-math-17k", "openai/gsm8k", "multimodal-open-r1", "olympiadbench"]),
    (["recipes", "list"], ["qwen2.5-vl-32b-grpo-geometry3k"]),
    (["recipes", "rules"], ["global-micro-batch", "reward.reward_manager.name"]),
    (["logs", "{examples}/train.log"], ["openai/gsm8k", "data.max_response_length"]),
    (["logs", "{examples}/train.log", "--lang", "zh"], ["openai/gsm8k"]),
    (["score", "{examples}/gsm8k_responses.jsonl", "--scorer", "gsm8k"], ["openai/gsm8k"]),
    (["glossary", "actor/entropy"], ["actor/entropy_loss"]),
    pytest.param(["audit", "gsm8k", "--rows", "4"], ["trailing_zeros"], marks=pytest.mark.full),
]


@given(ROWS, st.integers(30, 140))
def test_no_line_is_wider_than_the_terminal_and_no_word_is_broken(rows, width):
    columns = ("name", "key", "text", "note")
    lines = Table(columns, rows, wrap={"text"}, below={"note"}).lines(width)
    assert all(text_width(line) <= width for line in lines)
    words = {word for line in lines for word in line.split()}
    assert all(row[0] in words for row in rows)
    text = "".join("".join(lines).split())
    assert all("".join(row[1].split()) in text for row in rows)
    assert all(line == line.rstrip() for line in lines)


@given(PROSE, st.integers(20, 80))
def test_wrapping_changes_nothing_but_spaces(text, width):
    lines = wrap_text(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(text_width(line) <= width for line in lines)


def test_a_column_that_can_be_spared_is_left_out_before_anything_is_stacked():
    table = Table(("a", "b"), [("x" * 20, "y" * 20)], spare=("b",))
    assert table.lines(41) == ["a", "─" * 20, "x" * 20]
    assert len(table.lines(42)[2].split()) == 2


def test_a_pipe_has_the_columns_of_the_environment_else_80(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert terminal_width() == 60
    monkeypatch.setenv("COLUMNS", "wide")
    assert terminal_width() == 80


def test_control_characters_in_a_cell_do_not_drive_the_terminal():
    assert "\x1b" not in "".join(Table(["\x1b[1m"], [["\x1b[31m"]], "\x1b[2m").lines(80))


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize(("line", "names"), COMMANDS, ids=lambda v: v[0])
def test_a_command_fits_the_terminal_and_its_names_are_in_one_piece(run, line, names, width):
    arguments = [part.format(examples=EXAMPLES) for part in line]
    lines = run(*arguments, COLUMNS=str(width)).stdout.splitlines()
    too_long = [line for line in lines if text_width(line) > width and " " in line.strip()]
    assert too_long == []
    assert all(any(name in line for line in lines) for name in names)
