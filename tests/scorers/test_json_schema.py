"""JSON by schema: what is read of a response, which schemas are refused, and that all of it is bounded."""

import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.checks.row_checks import check_row
from rewardkit.errors import MissingPackageError
from rewardkit.scorers.base import Status
from rewardkit.scorers.json_schema import compute_score, explain_gold, respond, score
from rewardkit.scorers.load import load_scorer
from rewardkit.structures.json_text import are_equal, last_value
from tests.tables import every

pytest.importorskip("jsonschema", reason="pip install 'rewardkit[json-schema]'")

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[A-Z][a-z]+$"},
        "tons": {"type": "number", "minimum": 0},
        "ports": {"type": "array", "items": {"$ref": "#/$defs/port"}, "uniqueItems": True},
    },
    "$defs": {"port": {"enum": ["Oslo", "Rome"]}},
    "required": ["name"],
    "additionalProperties": False,
}
ROW = json.dumps({"schema": SCHEMA})
GOLD = json.dumps({"schema": json.dumps(SCHEMA), "gold": {"name": "Ann", "tons": 2}})

RESPONSES = [
    ('{"name": "Ann", "tons": 2.0}', Status.CORRECT),
    ('```json\n{"tons": 2, "name": "Ann"}\n```', Status.CORRECT),
    ('<think>{"name": "Bob"}</think> It is {"name": "Ann", "tons": 2, "ports": ["Rome"]}. See [1].', Status.CORRECT),
    ('First {"name": "Bob"}, no: {"name": "Ann", "tons": 2}', Status.CORRECT),
    ('Let A = {1, 2} and [a, b]: {"name": "Ann", "tons": 2}', Status.CORRECT),
    ('{"name": "Ann", "tons": 2} no: {"name": "Bob"}', Status.WRONG),
    ('{"name": "Ann", "tons": "2"}', Status.WRONG),
    ('{"name": "Ann", "tons": true}', Status.WRONG),
    ('{"name": "ann", "tons": 2}', Status.WRONG),
    ('{"name": "Ann", "tons": 2, "ports": ["Rome", "Rome"]}', Status.WRONG),
    ('{"name": "Ann", "tons": 2, "ports": ["Paris"]}', Status.WRONG),
    ('{"name": "Ann", "tons": 2, "more": 1}', Status.WRONG),
    ('{"name": "Ann"}', Status.WRONG),
    ('[{"name": "Ann", "tons": 2}]', Status.NO_ANSWER),
    ("name: Ann\ntons: 2", Status.NO_ANSWER),
    ("<name>Ann</name><tons>2</tons>", Status.NO_ANSWER),
    ('<think>{"name": "Ann", "tons": 2}', Status.NO_ANSWER),
    ('{"name": "Ann", "tons": 2', Status.UNPARSED_ANSWER),
    ('{"result": {"name": "Ann", "tons": 2}, }', Status.UNPARSED_ANSWER),
    ('{"name": "Bob", "name": "Ann", "tons": 2}', Status.UNPARSED_ANSWER),
    ('{"name": "Ann", "tons": NaN}', Status.UNPARSED_ANSWER),
    ('{"name": "Ann", "tons": 1e999}', Status.UNPARSED_ANSWER),
    ('{"name": "Ann", "tons": ' + "9" * 401 + "}", Status.UNPARSED_ANSWER),
    ('{"name": ' + "[" * 33 + "]" * 33 + "}", Status.UNPARSED_ANSWER),
]  # fmt: skip


@every(("response", "status"), RESPONSES)
def test_the_last_json_of_a_response_is_judged_by_schema_and_gold(response, status):
    result = score(response, GOLD)
    assert result.status is status
    assert result.correct is (status is Status.CORRECT)


def test_without_a_gold_valid_json_is_right_and_a_fraction_counts_the_gold_s_fields():
    assert score('{"name": "Bob"}', ROW).correct
    assert score('{"name": "Bob"}', json.dumps(SCHEMA)).correct
    assert score('{"name": "Bob", "tons": 2}', GOLD, reward="fraction")[:2] == (0.5, False)
    assert score('{"name": "bob", "tons": 2}', GOLD, reward="fraction").score == 0.0
    lists = json.dumps({"schema": {"type": "array", "minItems": 1}, "gold": [{"a": 1}]})
    assert score('So ["x"], or rather [{"b": 2, "a": 1.0}]', lists).correct
    assert not score("[]", lists).correct


REFUSED = [
    ("", "JSON"), ("18", "permits everything"), ("{}", "permits everything"), ('{"title": "x"}', "permits everything"),
    ('{"type": "string"}', "neither an object nor a list"), ('{"type": "objekt"}', "not valid"),
    ('{"schema_type": "yaml", "schema_str": "{}"}', "the rows are yaml; only JSON"),
    ('{"schema_type": "xml", "schema_str": "{}"}', "the rows are xml; only JSON"),
    ('{"required": ["a"], "required": []}', "repeats a key"),
    ('{"properties": {"a": {"$ref": "http://x/y"}}}', "another document"),
    ('{"schema": {"properties": {"a": {"$ref": "#/nothing"}}}, "gold": {"a": 1}}', "leads nowhere"),
    ('{"properties": {"a": {"$ref": "#/nothing"}}}', "leads nowhere"),
    ('{"$ref": 1, "type": "object"}', "not valid"),
    ('{"patternProperties": {"a": {}}}', "patternProperties"), ('{"unevaluatedItems": false}', "unevaluatedItems"),
    (json.dumps({"schema": SCHEMA, "gold": {"name": "ann"}}), "its gold is not valid"),
    (json.dumps({"enum": [1], "not": {"anyOf": [{}] * 6_000}}), "more than 5,000 values"),
]  # fmt: skip
PATTERNS = [
    ("(a+)+$", "several ways"), ("(a|ab)*c", "several ways"), ("(?:a?){3,}", "several ways"), (r"(a)\1", "groupref"),
    ("(?=a)", "assert"), ("(?i)a", "flags"), ("(", "cannot be read"), ("a" * 1_001, "too long"),
]  # fmt: skip


@every(("gold", "reason"), [
    *REFUSED, *((json.dumps({"properties": {"a": {"pattern": p}}}), why) for p, why in PATTERNS),
])  # fmt: skip
def test_a_schema_that_cannot_be_scored_is_named_with_the_reason(gold, reason):
    assert reason in explain_gold(gold)
    assert score('{"a": 1}', gold).status is Status.BAD_GROUND_TRUTH


TEXTS = ["", "a", "ab", "aab", "a1", "2024-01-31", "x@y.zz", "é_9", "a\n", "aaaa", "-1.5"]


@every(
    "pattern",
    [
        r"^\d{4}-\d{2}-\d{2}$", r"^[^@\s]+@[^@\s]+\.[a-z]{2,}$", "a", "^a*b?$", r"^-?\d+(\.\d+)?$", r"^\w+$",
        "^(?:a|ab|aab)$", "[^a-z]", r"\D$", "(a{1,2}){1,2}", "",
    ],
)  # fmt: skip
def test_a_pattern_that_is_read_matches_as_python_s(pattern):
    row = json.dumps({"properties": {"a": {"pattern": pattern}}, "required": ["a"]})
    for text in TEXTS:
        assert score(json.dumps({"a": text}), row).correct is bool(re.search(pattern, text))


def test_a_reference_to_itself_or_a_number_that_cannot_be_divided_ends_a_validation_quietly():
    """The package's own loops end in a panic of its Rust parts, which is not an `Exception`."""
    loops = ({"$ref": "#"}, {"$dynamicRef": "#"}, {"allOf": [{"$ref": "#"}], "type": "object"})
    for schema in (*loops, {"properties": {"a": {"multipleOf": 0.1}}}):
        assert score(json.dumps({"a": 10**399}), json.dumps(schema)).status is Status.TOO_LONG


DOUBLING = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
DEFINITIONS = {"$defs": {**DOUBLING, "d40": {"type": "object"}}, "$ref": "#/$defs/d0"}
HEAVY = [
    (DEFINITIONS, {}),
    ({"$ref": "#", "type": "object"}, {}),
    ({"properties": {"a": {"uniqueItems": True}}, "required": ["a"]}, {"a": [{"x": i} for i in range(3_000)]}),
    ({"items": {"minimum": 0}, "type": "array"}, [1] * 12_000),
    ({"properties": {"a": {"pattern": "[a-z]+[a-z]+[a-z]+!"}}}, {"a": "a" * 5_000}),
    ({"properties": {"a": {"pattern": "((a|b){1,30}){1,30}!"}}}, {"a": "a" * 300}),
    ({"properties": {"b": {"$ref": "#"}}}, json.loads('{"b":' * 30 + "1" + "}" * 30)),
]  # fmt: skip


@pytest.mark.full
@every(("schema", "value"), HEAVY)
def test_a_validation_ends_after_a_fixed_number_of_steps(schema, value):
    text, row = json.dumps(value), json.dumps(schema)
    score("{}", row)  # the schema is read once
    start = time.process_time()
    result = score(text, row)
    assert time.process_time() - start < 1
    assert result.status in (Status.TOO_LONG, Status.WRONG, Status.CORRECT)
    assert result.correct is (schema is HEAVY[-1][0])


@every("text", [
    "[" * 99_999, '{"' * 50_000, '{"a":' * 20_000, '{"' + '\\"' * 49_999, '{"\\" {"' * 14_000, "{ " * 50_000,
    "[1\n" * 33_333, '{"a":1,"a":2}' * 7_000, "<think>" * 14_000, '["a ' * 25_000,
])  # fmt: skip
def test_a_long_hostile_text_takes_a_bounded_time_and_is_not_paid(text):
    score("{}", ROW)
    start = time.process_time()
    assert not score(text, ROW).correct
    assert time.process_time() - start < 0.5


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=3)


@given(OBJECTS, st.text("ab {}[]1,.\n"), st.text("ab ,.\n"))
def test_an_object_is_found_in_any_prose_that_has_no_json(value, before, after):
    text = json.dumps(value, ensure_ascii=False)
    assert last_value(f"{before}so\n{text}\n{after}", "{") == (value, text)


@given(VALUES, VALUES)
def test_equality_is_that_of_the_values_and_symmetric(one, other):
    assert are_equal(one, one)
    assert are_equal(one, other) is are_equal(other, one)
    assert are_equal(json.loads(json.dumps(one)), one, more_fields=True)


@given(st.text('{}[]",:\\ 1aenul.-', max_size=40))
def test_no_text_raises_as_a_response_or_a_ground_truth(text):
    assert 0.0 <= score(text, GOLD, reward="fraction").score < 1.0
    assert score('{"a": 1}', text).score in (0.0, 1.0)


def test_check_verl_and_a_missing_package(monkeypatch):
    judge = load_scorer("json_schema")
    row = {"prompt": [{"role": "user", "content": "Go"}], "data_source": "x", "extra_info": {}}

    def findings(gold):
        return [
            (f.rule, f.message)
            for f in check_row({**row, "reward_model": {"ground_truth": gold}}, 0, judge)
        ]

    assert findings(ROW) == findings(GOLD) == []
    assert score(respond(GOLD), GOLD).correct
    assert findings('{"type": "object"}')[0][0] == "wrong_is_right"
    assert "only JSON is read" in findings('{"schema_type": "yaml", "schema_str": "{}"}')[0][1]
    assert compute_score("x", respond(GOLD), GOLD, {})["acc"] == 1.0
    monkeypatch.setattr("rewardkit.structures.schema.find_spec", lambda _: None)
    with pytest.raises(MissingPackageError, match=r"rewardkit\[json-schema\]"):
        load_scorer("json_schema")
