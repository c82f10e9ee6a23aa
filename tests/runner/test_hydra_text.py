"""Values to Hydra's override grammar and back; against Hydra itself in tests/integration."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.runner.hydra_text import Raw, parsed, written
from tests.tables import every

SCALARS = st.one_of(
    st.booleans(),
    st.none(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=("Cs", "Cc"))),
)


@every(
    ("value", "text"),
    [
        (1e-6, "1e-06"),
        (True, "True"),
        (None, "null"),
        ("grpo", "grpo"),
        ("1e-6", "'1e-6'"),
        ("true", "'true'"),
        ("a b", "'a b'"),
        ("it's", r"'it\'s'"),
        ("/模型/x", "'/模型/x'"),
        ("${data.max_response_length}", "${data.max_response_length}"),
        (["console", "wandb"], "[console,wandb]"),
        ({"do_sample": True}, "{do_sample:True}"),
    ],
)
def test_a_value_is_written_as_hydra_reads_it(value, text):
    assert written(value) == text


@given(st.one_of(SCALARS, st.lists(SCALARS, max_size=4)))
def test_what_is_written_reads_back_equal(value):
    assert parsed(written(value)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("['console','wandb']", ["console", "wandb"]),
        ('["a, b",c]', ["a, b", "c"]),
        ("[]", []),
        ("1e-6", 1e-6),
        ("no", "no"),
        ("010", 10),
        ("-1", -1),
        ("'left'", "left"),
        ("a b", "a b"),
        ("2026-11-21", "2026-11-21"),
        ("1:30", "1:30"),
    ],
)
def test_a_command_line_s_text_reads_as_what_it_means(text, value):
    assert parsed(text) == value
    assert type(parsed(text)) is type(value)


def test_hydra_s_own_grammar_is_kept_as_written():
    for text in ("{a:1,b:[2]}", "choice(1,2)", "range(1,4)"):
        assert isinstance(parsed(text), Raw)
        assert written(parsed(text)) == text
