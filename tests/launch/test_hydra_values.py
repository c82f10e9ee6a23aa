"""Values in Hydra's override grammar are written and read; tests/integration uses Hydra itself."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rewardkit.errors import UsageError
from rewardkit.launch.verl.hydra_values import Raw, format_value, parse_value
from tests.tables import every

TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")))
SCALARS = st.booleans() | st.none() | st.integers() | st.floats(allow_nan=False) | TEXT


@every(("value", "text"), [
    (1e-6, "1e-06"),
    (None, "null"),
    ("1e-6", "'1e-6'"),
    ("a b", "'a b'"),
    ("it's", r"'it\'s'"),
    ("${data.max_response_length}", "${data.max_response_length}"),
    ({"do_sample": True}, "{do_sample:True}"),
    ("1_0", "'1_0'"),  # Hydra would take these for numbers
    ("\\\n", "'\\\n'"),
])  # fmt: skip
def test_a_value_is_written_as_hydra_reads_it(value, text):
    assert format_value(value) == text


@example(value=["'", None])
@example(value=["\\", "'", "a"])
@example(value=["1_0", "-inf", "007"])
@given(st.one_of(SCALARS, st.lists(SCALARS, max_size=4)))
def test_a_written_value_reads_back_equal(value):
    assert parse_value(format_value(value)) == value


def test_hydra_s_own_grammar_is_kept_unchanged():
    for text in ("{a:1,b:[2]}", "choice(1,2)", "range(1,4)"):
        assert isinstance(parse_value(text), Raw)
        assert format_value(parse_value(text)) == text


#: Texts and the values that Hydra 1.3.2 reads from them; tests/integration compares with Hydra.
READ_BY_HYDRA = [
    (r"['\'',null]", ["'", None]),
    (r"['\\','a']", ["\\", "a"]),
    (r"['a\\\'b',c]", [r"a\'b", "c"]),
    (r"a\,b", "a,b"),
    (r"[a\,b,c]", ["a,b", "c"]),
    (r"[a\ ,b]", ["a ", "b"]),
    (r"'a\b'", r"a\b"),
    ("'1_000'", "1_000"),
    ("1_0.5e1_0", 10.5e10),
    ("007", "007"),
    (".inf", ".inf"),
    ("'-inf'", "-inf"),
    ("+inf", float("inf")),
    ("[{a:[1,2]},x]", None),
    ("['console','wandb']", ["console", "wandb"]),
    ('["a, b",c]', ["a, b", "c"]),
    ("'left'", "left"),
    *((text, text) for text in ("no", "010", "a b", "2026-11-21", "1:30")),
]


@every(("text", "value"), READ_BY_HYDRA)
def test_a_text_reads_as_hydra_reads_it(text, value):
    if value is not None:  # mappings stay as they are written
        assert parse_value(text) == value
        assert type(parse_value(text)) is type(value)
    assert parse_value(format_value(parse_value(text))) == parse_value(text)


def test_a_mapping_s_key_is_escaped_or_refused():
    """Hydra has no quotes for keys: `true` or `1` as text cannot be written."""
    assert format_value({"a,b c": 1, 2: 3}) == r"{a\,b\ c:1,2:3}"
    for key in ("true", "1", "", "中", "it's"):
        with pytest.raises(UsageError, match="as the key of a mapping; choose another key"):
            format_value({key: 1})
