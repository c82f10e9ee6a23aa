"""Function calls: the forms of responses and of golds, what is equal, and what hostile texts get."""

import json
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rewardkit.checks.row_checks import check_row
from rewardkit.scorers.base import Status, explain_bad_gold
from rewardkit.scorers.function_call import compute_score, respond, score
from rewardkit.scorers.load import load_scorer
from rewardkit.structures.calls import Call, calls_of
from tests.tables import every

GOLD = '[{"name": "ship.send", "arguments": {"to": "Oslo", "tons": 2}}]'
CALL = '{"name": "ship.send", "arguments": {"to": "Oslo", "tons": 2}}'
LLAMA = CALL.replace("arguments", "parameters")
OPENAI = json.dumps(
    [{"id": "c1", "type": "function", "function": {"name": "ship.send", "arguments": '{"to": "Oslo", "tons": 2}'}}]
)  # fmt: skip
PYTHON = 'ship.send(to="Oslo", tons=2)'
XML = "<function=ship.send>\n<parameter=to>\nOslo\n</parameter>\n<parameter=tons>\n2\n</parameter>\n</function>"
TOOLS = [
    {
        "name": "ship.send",
        "parameters": {"properties": {"to": {"type": "string"}, "tons": {"type": "integer"}}},
    }
]

READ = [
    f"<tool_call>\n{CALL}\n</tool_call>",
    f"<think>{PYTHON.replace('2', '3')}</think>I send it. <tool_call>{CALL}</tool_call>",
    f"<tool_call>{CALL}",  # ended by the limit of tokens, as servers read it too
    f"<|python_tag|>{LLAMA}<|eom_id|>",
    f"<|python_tag|>[{PYTHON}]",
    f"[TOOL_CALLS] [{CALL}]",
    LLAMA,
    f"I send it.\n{LLAMA}",
    OPENAI,
    json.dumps({"role": "assistant", "content": None, "tool_calls": json.loads(OPENAI)}),
    f"Here:\n```json\n{CALL}\n```",
    f"```python\n[{PYTHON}]\n```",
    PYTHON,
    f"[{PYTHON}]",
    f"So I call\n[{PYTHON}]",
    "ship.send(tons=+2.0, to='\\x4fslo',)",
    f"<tool_call>\n{XML}\n</tool_call>",
    f"I send it. {XML}\n</tool_call>",  # as Qwen3-Coder often writes it
    XML.replace("\n", ""),
    f"<tool_call>{CALL}</tool_call><tool_response>done</tool_response>",
]
UNREAD = [
    (f"<tool_response>\n<tool_call>{CALL}</tool_call>\n</tool_response>Done.", Status.NO_ANSWER),
    (f"<tool_response>\n{CALL}", Status.NO_ANSWER),
    (XML.removesuffix("</function>"), Status.UNPARSED_ANSWER),
    (XML.replace("</parameter>", "", 1), Status.UNPARSED_ANSWER),
    (XML.replace("=tons", "=to"), Status.UNPARSED_ANSWER),
    (f"{XML} or not", Status.UNPARSED_ANSWER),
    (f"<tool_call>{XML}{CALL}</tool_call>", Status.UNPARSED_ANSWER),
    ("I send two tons to Oslo.", Status.NO_ANSWER),
    (f"<think>{PYTHON}", Status.NO_ANSWER),
    (f"<think>{PYTHON}</think>Done.", Status.NO_ANSWER),
    (f"{CALL}\nor not", Status.NO_ANSWER),
    (f"not {CALL}", Status.NO_ANSWER),
    (f"ship.sink() or {PYTHON}", Status.NO_ANSWER),
    ("<tool_call>soon</tool_call>", Status.UNPARSED_ANSWER),
    (f"<tool_call>{CALL}</tool_call><tool_call>{{</tool_call>", Status.UNPARSED_ANSWER),
    (CALL.replace('"tons": 2', '"tons": 3, "tons": 2'), Status.UNPARSED_ANSWER),
    (CALL.replace("2", "NaN"), Status.UNPARSED_ANSWER),
    (CALL.replace("2", "1e999"), Status.UNPARSED_ANSWER),
    (CALL.replace('"name"', '"parameters": {}, "name"'), Status.UNPARSED_ANSWER),
    ('ship.send("Oslo", 2)', Status.NO_ANSWER),
    ("ship.send(to=Oslo, tons=2)", Status.NO_ANSWER),
    ('ship.send(to="Oslo", tons=1+1)', Status.NO_ANSWER),
    ('ship.send(to="Oslo", tons=two())', Status.NO_ANSWER),
    ('ship.send(to="Oslo", tons=2)(tons=2)', Status.NO_ANSWER),
    ('ship.send(to="Oslo", tons=2]', Status.NO_ANSWER),
]


@every("response", READ)
def test_every_form_of_a_call_is_read(response):
    assert score(response, GOLD).correct


@every(("response", "status"), UNREAD)
def test_what_is_not_a_call_is_not_paid(response, status):
    for reward in ("all", "fraction"):
        assert score(response, GOLD, reward=reward)[:2] == (0.0, False)
    assert score(response, GOLD).status is status


@every(
    ("text", "kind", "gold", "right"),
    [
        ("2", "integer", 2, True), ("2", "string", 2, False), ("2", "string", "2", True), ("2", "integer", "2", False),
        ("True", "boolean", True, True), ("yes", "boolean", True, False), ("[1, 2]", "array", [1, 2], True),
        ("{'a': 1}", "dict", {"a": 1}, True), ("a\n\nb\n", "str, optional", "a\n\nb", True), ("1e999", "number", 1, False),
        ("2", None, 2, True), ("2", None, "2", True), ("true", None, True, True), ("[", None, "[", True),
        ("1", None, True, False), ("1, 2", None, "1, 2", True), ("null", None, None, True), ("f()", None, {}, False),
    ],
)  # fmt: skip
def test_a_value_of_an_xml_call_has_the_type_of_the_schema_or_else_of_the_gold(
    text, kind, gold, right
):
    response = f"<function=f><parameter=x>\n{text}</parameter></function>"
    function = {"name": "f", "parameters": {"x": {"type": kind}}}
    for tools in ([function], json.dumps([{"type": "function", "function": function}])):
        info = {"tools": tools} if kind else {"tools": [None, 7, {"parameters": [function]}]}
        truth = json.dumps([{"name": "f", "arguments": {"x": gold}}])
        assert score(response, truth, info).correct is right
        assert score(response, json.dumps([{"f": {"x": ["no", gold]}}]), info).correct is right


def test_a_schema_types_the_values_of_a_call_as_the_gold_does():
    assert score(XML, GOLD, {"tools": TOOLS}).correct
    assert not score(XML.replace("2", "two"), GOLD, {"tools": TOOLS}).correct
    assert json.loads(score(XML, GOLD, {"tools": TOOLS}).pred) == json.loads(GOLD)


GOLDS = [
    GOLD,
    CALL,
    LLAMA,
    OPENAI,
    f"<think>so</think>\n<tool_call>\n{LLAMA}\n</tool_call>\n<response>ok</response>",
    '[{"ship.send": {"to": ["Oslo", "OSL"], "tons": [2], "fast": ["", true]}}]',
    json.dumps([CALL]),
    f"[{PYTHON}]",
]


@every("gold", GOLDS)
def test_every_form_of_a_gold_is_read_and_its_own_response_is_right(gold):
    assert score(f"<tool_call>{CALL}</tool_call>", gold).correct
    assert score(respond(gold), gold).correct


@every("gold", ["[]", "18", "", "ship", '{"name": "f"}', json.dumps([json.loads(CALL)] * 33)])
def test_a_gold_without_calls_is_a_fault_of_the_data(gold):
    result = score("", gold)
    assert result == score(f"<tool_call>{CALL}</tool_call>", gold)
    assert result.status is Status.BAD_GROUND_TRUTH


@every(
    ("mine", "gold", "equal"),
    [
        (1, 1.0, True), (1.0, 1, True), (True, 1, False), (1, True, False), ("1", 1, False),
        ("a", "A", False), (None, "", False), ([1, 2], [2, 1], False), ({"a": 1, "b": 2}, {"b": 2, "a": 1.0}, True),
        ({"a": 1}, {"a": 1, "b": None}, False), (10**30, 1e30, False), ([], {}, False),
    ],
)  # fmt: skip
def test_arguments_are_equal_by_type_and_value(mine, gold, equal):
    gold, response = (json.dumps({"name": "f", "arguments": {"x": x}}) for x in (gold, mine))
    assert score(response, gold).correct is equal


BFCL = json.dumps(
    [{"trip": {"city": ["New York", "NYC"], "day": ["April 1, 2024"], "fee": ["", "1.5"],
               "who": [[{"name": ["Ann"], "age": [5, ""]}]], "at": [{"x": [1], "y": [2, ""]}, ""]}}]
)  # fmt: skip


@every(
    ("change", "right"),
    [
        ({}, True), ({"city": "new-york"}, True), ({"day": "april 1 2024"}, True), ({"fee": "1.5"}, True),
        ({"fee": "15"}, False), ({"fee": "-1.5"}, False), ({"city": "Boston"}, False), ({"more": 1}, False),
        ({"day": None}, False), ({"who": [{"name": "ann"}]}, True), ({"who": [{"age": 5}]}, False),
        ({"who": []}, False), ({"at": {"x": 1.0}}, True), ({"at": {"x": 1, "z": 1}}, False), ({"at": 7}, False),
    ],
)  # fmt: skip
def test_a_gold_that_lists_values_is_compared_as_bfcl_does_except_in_numbers(change, right):
    arguments = {"city": "NYC", "day": "April 1,2024", "who": [{"name": "Ann", "age": 5}], **change}
    assert score(json.dumps({"name": "trip", "arguments": arguments}), BFCL).correct is right


def test_a_call_or_argument_that_is_missing_or_too_many_is_wrong_and_a_part_of_the_fraction():
    two = f"[{PYTHON}, stop()]"
    cases = {
        two: 1.0,
        f"[stop(), {PYTHON}]": 1.0,
        PYTHON: 3 / 4,
        f"[{PYTHON}, stop(), stop()]": 4 / 5,
        f"[{PYTHON}, {PYTHON}]": 3 / 7,
        '[ship.send(to="Oslo"), stop()]': 3 / 4,
        '[ship.send(to="Oslo", tons=3), stop()]': 3 / 4,
        '[ship.send(to="Oslo", tons=2, by="sea"), stop()]': 4 / 5,
        "[a(), b()]": 0.0,
    }
    for response, share in cases.items():
        result = score(response, two, reward="fraction")
        assert (result.score, result.correct) == (pytest.approx(share), share == 1)
        assert score(response, two).score == float(share == 1)
    assert not score(f"[stop(), {PYTHON}]", two, order=True).correct
    assert score(f"[stop(), {PYTHON}]", two, order=True, reward="fraction").score == 0
    assert score(two, two, order=True).correct


def test_a_call_that_fits_two_golds_is_left_for_the_one_that_needs_it():
    gold = '[{"f": {"a": [1, 2]}}, {"f": {"a": [1]}}]'
    assert score("[f(a=1), f(a=2)]", gold).correct
    assert score("[f(a=2), f(a=1)]", gold).correct
    assert not score("[f(a=2), f(a=2)]", gold).correct


def test_verl_s_result_check_and_explanation_know_the_scorer():
    result = compute_score("x", f"<tool_call>{CALL}</tool_call>", GOLD, {})
    assert (result["score"], result["acc"], result["no_answer"]) == (1.0, 1.0, 0.0)
    assert json.loads(result["pred"]) == json.loads(GOLD)
    row = {"prompt": [{"role": "user", "content": "Go"}], "data_source": "x", "extra_info": {}}
    judge = load_scorer("function_call")
    for gold in GOLDS:
        assert not check_row({**row, "reward_model": {"ground_truth": gold}}, 0, judge)
    assert "1 to 32 calls" in explain_bad_gold("[[]]", judge) + explain_bad_gold("[ ]", judge)


NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,5}(\.[a-z]{1,3})?", fullmatch=True)
LITERALS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab'\"\\ é"), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
CALLS = st.lists(
    st.builds(Call, NAMES, st.dictionaries(st.from_regex("[a-z]{1,3}", fullmatch=True), LITERALS, max_size=3)),
    min_size=1, max_size=3,
)  # fmt: skip


@given(CALLS)
def test_calls_are_read_back_from_python_s_own_spelling_and_from_json(calls):
    python = [f"{c.name}({', '.join(f'{k}={v!r}' for k, v in c.arguments.items())})" for c in calls]
    ascii_only = [
        f"{c.name}({', '.join(f'{k}={v!a}' for k, v in c.arguments.items())})" for c in calls
    ]
    for parts in (python, ascii_only):
        assert calls_of(f"[{', '.join(parts)}]") == calls
    assert calls_of(json.dumps([c._asdict() for c in calls])) == calls
    gold = json.dumps([c._asdict() for c in calls])
    assert score(respond(gold), gold).correct


@given(CALLS, st.booleans())
def test_calls_are_read_back_from_xml_with_the_types_of_their_golds(calls, is_tagged):
    def text(value):
        return value if isinstance(value, str) else json.dumps(value)

    values = [text(value) for call in calls for value in call.arguments.values()]
    assume(not any("<" in value or value[:1] == "\n" or value[-1:] == "\n" for value in values))
    blocks = [
        f"<function={c.name}>{''.join(f'<parameter={k}>{text(v)}</parameter>' for k, v in c.arguments.items())}</function>"
        for c in calls
    ]
    if is_tagged:
        blocks = [f"<tool_call>{block}</tool_call>" for block in blocks]
    gold = json.dumps([c._asdict() for c in calls])
    assert score("\n".join(blocks), gold).correct


@given(
    st.lists(
        st.sampled_from(
            "<function=f> <parameter=a> </parameter> </function> <tool_call> x 1 { ,".split()
        )
    )
)
def test_pieces_of_xml_calls_never_raise(pieces):
    result = score(" ".join(pieces), GOLD, {"tools": TOOLS}, reward="fraction")
    assert 0.0 <= result.score < 1.0


@given(st.text("fa=(){}[]<>:,'\"\\1-. \ntool_call|n", max_size=60))
def test_no_text_raises(text):
    for gold in (GOLD, text):
        result = score(text, gold, reward="fraction")
        assert 0.0 <= result.score <= 1.0
    assert not score(text, GOLD).correct


@every(
    "text",
    [
        "[" * 99_999, '{"a":' * 20_000, "<tool_call>" * 9_999, "f(a='" + "\\" * 99_999, "a." * 50_000 + "(",
        "f(" + "a=1," * 25_000 + ")", "f(a=" + "1-" * 50_000 + ")", "f(a=" + "9" * 99_999 + ")", "(" * 99_999,
        f"[{', '.join(['f(a=1)'] * 14_000)}]", "{ " * 50_000, '{"a":1,"a":2}' * 7_000, "```" * 33_333, "<|a" * 33_333,
        "<function=f>" * 8_000, "<function=f>" + "<parameter=a>" * 7_000, "<function=f>" + " " * 99_999,
        "<function=ship.send>" + "".join(f"<parameter=a{i}>{{[</parameter>" for i in range(1_500)) + "</function>",
        "<function=ship.send><parameter=to>" + "[" * 49_000 + "</parameter></function>", "<tool_response>" * 6_000,
    ],
)  # fmt: skip
def test_a_long_hostile_text_takes_a_bounded_time(text):
    start = time.process_time()
    assert not score(text, GOLD, reward="fraction").correct
    assert time.process_time() - start < 0.5
