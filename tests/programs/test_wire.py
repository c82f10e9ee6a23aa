"""Values travel as data, whatever a program sends, and are compared as data."""

import json
import zlib
from base64 import b64encode
from contextlib import suppress
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.programs.compare import same_text, same_value
from rewardkit.programs.extract import program_of
from rewardkit.programs.inside.wire import WireError, dump, dump_tree, load, load_tree
from rewardkit.programs.problem import Problem, ProblemError, read_problem

TEXTS = st.text() | st.just("\ud800")
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
PLAIN = LEAVES | st.binary() | st.complex_numbers(allow_nan=False) | st.integers(1 << 60, 1 << 80)
KEYS = PLAIN | st.tuples(PLAIN, PLAIN) | st.frozensets(LEAVES)
VALUES = st.recursive(
    PLAIN | st.sets(KEYS),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner) | st.tuples(inner, inner),
    max_leaves=12,
)
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=12
)
MARKED = st.recursive(
    LEAVES | st.sampled_from("vxbchrldstz"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(st.integers(0, 2), min_size=1, max_size=1)
        | st.dictionaries(st.sampled_from("tsdbc"), inner, min_size=1)
    ),
)


@given(VALUES)
def test_a_value_is_the_same_and_of_the_same_types_after_a_journey(value):
    assert repr(load(dump(value))) == repr(value) or load(dump(value)) == value
    assert load_tree(dump_tree(value)) == value


@given(MARKED | st.lists(MARKED, min_size=2, max_size=2))
def test_a_forged_text_is_a_value_or_an_error_of_the_wire(value):
    for read in (load, load_tree):
        with suppress(WireError):
            read(json.dumps(value))


@pytest.mark.parametrize(
    "text",
    [
        "[" * 10**6,
        "1" * 10**6,
        '{"s":[' + ",".join(str(i * (2**61 - 1)) for i in range(20_000)) + "]}",
        '{"d":[' + ",".join(f'[{{"c":[{-1000003.0 * i},{i}.0]}},0]' for i in range(20_000)) + "]}",
        '{"c":[1,2]}',
        "NaN1",
    ],
)
def test_a_bomb_is_refused_in_linear_time(text):
    start = process_time()
    with pytest.raises(WireError):
        load_tree(text)
    assert process_time() - start < 1


def test_an_instance_of_a_subclass_is_the_value_of_its_built_in_base():
    class All(int):
        def __eq__(self, _):
            return True

        __hash__ = int.__hash__

    value = load(dump([All(1), True]))
    assert [type(each) for each in value] == [int, bool]
    assert value != [2, True]


@given(JSON)
def test_a_result_is_right_if_it_is_the_expected_value_or_has_tuples_for_its_lists(value):
    def with_tuples(item):
        if isinstance(item, dict):
            return {key: with_tuples(each) for key, each in item.items()}
        return tuple(map(with_tuples, item)) if isinstance(item, list) else item

    result = load_tree(dump_tree(with_tuples(value)))
    assert same_value(result, value)
    assert not same_value([result], value)
    assert not same_value(result, [value, value])


@given(
    st.lists(st.integers() | st.floats(-1e9, 1e9)), st.integers(0), st.sampled_from([1, -1, 0.5])
)
def test_a_result_is_wrong_if_one_number_is(numbers, place, change):
    other = [*numbers, 3]
    other[place % len(other)] += change + 2e-6 * change * abs(other[place % len(other)])
    assert not same_value(other, [*numbers, 3])


@given(st.lists(st.text("ab1.-", min_size=1), min_size=1), st.data())
def test_an_output_is_right_with_any_white_space_and_wrong_with_another_word(words, data):
    blanks = st.sampled_from([" ", "\n", "\t", "  ", " \r\n"])
    output = "".join(word + data.draw(blanks) for word in words)
    assert same_text(output.encode(), " ".join(words))
    assert not same_text((output + " x").encode(), " ".join(words))
    assert not same_text(output.replace(words[0], "c").encode(), " ".join(words))


@given(st.text(st.characters(exclude_characters="`~<>"), min_size=1), st.text("abc \n"))
def test_a_program_in_a_fence_is_returned_as_it_is(program, prose):
    if program.strip():
        response = f"{prose}\n```python\n{program}\n```\n{prose}"
        assert program_of(response).rstrip("\n") == program.rstrip("\n")


@given(JSON)
def test_a_ground_truth_is_a_problem_or_an_error_that_says_why(value):
    pairs = {"inputs": [value], "outputs": [value]}
    for row in (value, pairs, {**pairs, "fn_name": "f"}, {"assert_case": value}, {"zlib": value}):
        try:
            problem = read_problem(json.dumps(row))
        except ProblemError as error:
            assert str(error)
            continue
        text = b64encode(zlib.compress(json.dumps(row).encode())).decode()
        assert isinstance(problem, Problem)
        assert repr(read_problem(json.dumps({"zlib": text}))) == repr(problem)
