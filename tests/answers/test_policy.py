"""Every row of the policy, policy.yaml, holds for `equal` and for the scorer.

docs/reference/answers.md shows its rows, docs/answers.md some of them.
"""

import ast
import re
from pathlib import Path

import yaml

from rewardkit.answers import equal as equality
from rewardkit.answers.equal import compare, equal
from rewardkit.answers.extract import final_answer
from rewardkit.answers.parsing import tokens
from rewardkit.answers.parsing.grammar import MAX_DEPTH
from rewardkit.answers.parsing.tokens import MAX_CHARS, MAX_DIGITS, MAX_TOKENS
from rewardkit.answers.scalar import MAX_BITS, MAX_EXPONENT, MAX_STEPS, Policy
from rewardkit.answers.type_rules import _RULES, MAX_ITEMS, value_type
from rewardkit.scorers.math import respond, score
from tests.tables import every

DOCS = Path(__file__).parents[2] / "docs"
POLICY = yaml.safe_load(Path(__file__).with_name("policy.yaml").read_text(encoding="utf-8"))
PAGE = (DOCS / "reference/answers.md").read_text(encoding="utf-8")
SHORT_PAGE = (DOCS / "answers.md").read_text(encoding="utf-8")
#: Sections whose rows only the scorer decides: a bare comparison knows nothing of choices.
SCORER_ONLY = {"Choices"}
#: The heading of a section whose rows hold with an option: ``Option `convert_units=True` ``.
OPTION = re.compile(r"Option `(\w+)=(\w+)`")
#: A type that stands only inside another one, so that no text is of it.
INNER = {"branch"}


def rows_of(*head):
    """Yield (section, cells) of every row of the policy's tables with these columns."""
    for section in POLICY:
        for part in section["parts"]:
            if not isinstance(part, str) and part["head"] == list(head):
                yield from ((section["title"], row) for row in part["rows"])


ROWS = [
    (section, answer, gold, verdict)
    for section, (answer, gold, verdict, _) in rows_of("answer", "gold", "verdict", "why")
]
QUESTIONS = [tuple(row) for _, row in rows_of("answer", "gold", "question", "verdict")]
RESPONSES = [tuple(row) for _, row in rows_of("response", "answer")]
TYPES = [(name, example) for _, (name, _, example) in rows_of("type", "what it is", "example")]
PAIRS = {gold: set(names) for _, (gold, names) in rows_of("gold", "answers that can be equal")}
LABELS = [
    (section, *row[:4]) for section, row in rows_of("answer", "gold", "label", "verdict", "why")
]


def options_of(section):
    """Return the options that a section is about."""
    option = OPTION.fullmatch(section)
    return {option[1]: ast.literal_eval(option[2])} if option else {}


@every(("section", "answer", "gold", "verdict"), ROWS)
def test_every_row_of_the_policy_holds(section, answer, gold, verdict):
    options = options_of(section)
    if section not in SCORER_ONLY:
        outcome = compare(answer, gold, policy=Policy(**options)).outcome
        assert (outcome == "equal") == (verdict == "equal")
    assert score(respond(answer), gold, **options).correct == (verdict == "equal")


@every(("answer", "gold", "question", "verdict"), QUESTIONS)
def test_every_row_with_a_question_holds(answer, gold, question, verdict):
    assert (compare(answer, gold, question).outcome == "equal") == (verdict == "equal")
    assert score(respond(answer), gold, {"question": question}).correct == (verdict == "equal")


@every(("section", "answer", "gold", "label", "verdict"), LABELS)
def test_every_label_of_the_page_differs_from_our_verdict(section, answer, gold, label, verdict):
    assert {label, verdict} == {"equal", "different"}
    assert score(respond(answer), gold).correct == (verdict == "equal")


@every(("response", "answer"), RESPONSES)
def test_every_answer_is_read_where_the_page_says(response, answer):
    statement = final_answer(response, "12")
    assert (statement and statement.text) == answer


@every(("section", "answer", "gold", "verdict"), [row for row in ROWS if options_of(row[0])])
def test_without_the_option_a_row_is_as_strict_as_the_rest(section, answer, gold, verdict):
    if verdict == "different":
        assert not equal(answer, gold)


@every("option", ["significant_digits", "convert_units"])
def test_an_option_accepts_answers_that_are_rejected_without_it(option):
    rows = [row for row in ROWS if option in options_of(row[0]) and row[3] == "equal"]
    assert sum(not equal(answer, gold) for _, answer, gold, _ in rows) >= 5


@every(("name", "example"), TYPES)
def test_every_example_of_a_type_is_read_as_that_type(name, example):
    assert value_type(equality.parse_answer(example).value) == name


def test_the_page_names_every_type():
    assert {name for name, _ in TYPES} == {kind for pair in _RULES for kind in pair} - INNER


def test_the_page_has_the_pairs_of_types_that_the_code_compares():
    of_the_code = {}
    for gold, answer in _RULES:
        of_the_code.setdefault(gold, set()).add(answer)
    assert {name: of_the_code[name] for name in of_the_code if name not in INNER} == PAIRS


def test_the_short_page_shows_rows_of_the_policy():
    rows = {
        f"| `{a}` | `{gold}` | {verdict} |"
        for name, a, gold, verdict in ROWS
        if not options_of(name)
    }
    shown = re.findall(r"^\| `.*` \| `.*` \| (?:equal|different) \|", SHORT_PAGE, re.MULTILINE)
    assert len(shown) >= 10
    assert {row.replace(r"\|", "|") for row in shown} <= rows


def test_the_limits_of_the_page_are_those_of_the_code():
    limits = (
        equality.MAX_CHARS, MAX_CHARS, MAX_TOKENS, MAX_DIGITS, MAX_DEPTH, MAX_EXPONENT,
        tokens.MAX_EXPONENT, MAX_BITS, MAX_ITEMS, MAX_STEPS,
    )  # fmt: skip
    for limit in limits:
        assert re.search(rf"^\| .* \| {limit:,}\b", PAGE, re.MULTILINE), limit
