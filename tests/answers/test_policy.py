"""docs/answers.md is the policy: every row of its tables holds, in `equal` and in the scorer."""

import re
from pathlib import Path

from rewardkit.answers.compare import MAX_ITEMS
from rewardkit.answers.equal import equal
from rewardkit.answers.evaluate import MAX_BITS, MAX_EXPONENT
from rewardkit.answers.reading.reader import MAX_DEPTH
from rewardkit.answers.reading.tokens import MAX_CHARS, MAX_DIGITS, MAX_TOKENS
from rewardkit.scorers.math import respond, score
from tests.tables import every

PAGE = Path(__file__).parents[2] / "docs/answers.md"
HEADER = "| answer | gold | verdict | why |"
#: Fewer rows than this and somebody has lost a part of the policy.
MIN_ROWS = 120
#: Sections whose rows only the scorer decides: a bare comparison knows nothing of choices.
SCORER_ONLY = {"Choice letters"}


def read(page):
    """(section, answer, gold, verdict) of every row of the policy's tables."""
    section, in_table = "", False
    for line in page.split("\n"):
        if line.startswith("## "):
            section = line[3:]
        if line == HEADER:
            in_table = True
        elif not line.startswith("|"):
            in_table = False
        elif in_table and not line.startswith("|---"):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            answer, gold = (re.fullmatch("`(.+)`", cell)[1] for cell in cells[:2])
            yield section, answer.replace(r"\|", "|"), gold.replace(r"\|", "|"), cells[2]


ROWS = list(read(PAGE.read_text(encoding="utf-8")))


@every(("section", "answer", "gold", "verdict"), ROWS)
def test_every_row_of_the_policy_holds(section, answer, gold, verdict):
    if section not in SCORER_ONLY:
        assert equal(answer, gold) == (verdict == "equal")
    assert score(respond(answer), gold).correct == (verdict == "equal")


def test_the_policy_has_not_shrunk():
    assert len(ROWS) >= MIN_ROWS
    assert len(set(ROWS)) == len(ROWS)


def test_every_section_has_answers_that_are_equal_and_answers_that_are_not():
    for section in {row[0] for row in ROWS}:
        assert {row[3] for row in ROWS if row[0] == section} == {"equal", "different"}, section


def test_no_pair_stands_in_two_sections_with_two_verdicts():
    verdicts = {}
    for _, answer, gold, verdict in ROWS:
        assert verdicts.setdefault((answer, gold), verdict) == verdict


def test_the_limits_of_the_page_are_those_of_the_code():
    page = PAGE.read_text(encoding="utf-8")
    for limit in (MAX_CHARS, MAX_TOKENS, MAX_DIGITS, MAX_DEPTH, MAX_EXPONENT, MAX_BITS, MAX_ITEMS):
        assert re.search(rf"^\| .* \| {limit:,}\b", page, re.MULTILINE), limit
