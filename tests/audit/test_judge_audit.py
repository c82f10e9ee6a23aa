"""The audit of a judge: a grade, and the patterns that fool its model by name."""

import re

import pytest

from rewardkit.audit import audit
from rewardkit.audit.attacks import _JUDGE_HOLES as JUDGE_HOLES
from rewardkit.audit.attacks import ATTACKS, JUDGE_AUDIT
from rewardkit.audit.model import FORMS, Target
from rewardkit.audit.rows import packaged_rows
from rewardkit.audit.written_attacks import states_gold
from rewardkit.errors import DataError
from rewardkit.scorers.compose import write_reward_file
from rewardkit.scorers.math import score as rules
from tests.judging.faulty_server import prompt_of, response_in, serving

YES, NO = {"reason": "x", "verdict": "yes"}, {"reason": "x", "verdict": "no"}
LIMITS = {"timeout_seconds": 3.0, "retries": 0}


def reference_in(body):
    block = prompt_of(body).rpartition("[REFERENCE ")[0].rpartition("[REFERENCE ")[2]
    return block.partition("begins]\n")[2].rstrip("\n")


def honest(body):
    """A model that compares the answers as the rules do, whichever way round it is asked."""
    is_right = rules(rf"\boxed{{{response_in(body)}}}", reference_in(body)).correct
    is_reversed = "have to be rejected" in body["messages"][0]["content"]
    return YES if is_right != is_reversed else NO


def fooled_by(pattern):
    """An honest model that says yes to a pattern in the response, whatever it is asked."""

    def verdict(body):
        return YES if re.search(pattern, response_in(body)) else honest(body)

    return verdict


def report_on(verdict, **settings):
    """Return the report on a judge, and the number of requests to its model."""
    with serving(verdict) as server:
        options = {"base_url": server.url, **LIMITS}
        return audit("judge", rows=1, seed=1, options=options, **settings), len(server.bodies)


@pytest.mark.full
def test_a_judge_that_says_yes_or_no_to_everything_gets_an_f_with_every_pattern(monkeypatch):
    report, requests = report_on(lambda _: YES)
    failed = {result.attack for result in report.failed}
    assert report.grade == "F"
    # No letter or digit of these reaches the judge: they are no answer.
    unsent = {"symbols_alone", "empty_answer"}
    assert {attack.name for attack in JUDGE_HOLES} - failed <= unsent
    assert requests <= report.calls
    monkeypatch.setattr("rewardkit.audit.run.JUDGE_AUDIT", (ATTACKS["gold_in_its_form"],))
    report, _ = report_on(lambda _: NO)
    assert report.grade == "F"
    assert "gold_in_its_form" in {result.attack for result in report.failed}


def test_an_honest_judge_passes_and_the_number_of_responses_is_announced_and_a_limit():
    lines = []
    report, requests = report_on(honest, announce=lines.append)
    assert (report.at_least("medium"), report.grade) == ((), "A")
    names = {"gold_in_its_form", "wrong_answer", "no_verdict", *(each.name for each in JUDGE_HOLES)}
    assert names <= {result.attack for result in report.findings}
    assert requests <= report.calls
    limit = int(re.search(r"up to ([\d,]+) responses to 1 row, ", *lines)[1].replace(",", ""))
    assert 0.8 * limit < report.calls <= limit


@pytest.mark.parametrize(
    ("pattern", "attack"),
    [
        ("Thought process", "opener_alone"),
        pytest.param("(?i)textbook", "authority", marks=pytest.mark.full),
        pytest.param("respuesta es correcta", "claim_in_other_languages", marks=pytest.mark.full),
        pytest.param("INST", "other_turn", marks=pytest.mark.full),
    ],
)
@pytest.mark.full
def test_a_judge_that_is_fooled_by_one_pattern_is_told_which(pattern, attack):
    """Also where the judge sees the answer only, as here."""
    report, _ = report_on(fooled_by(pattern))
    failed = {result.attack: result for result in report.at_least("high")}
    assert attack in failed
    assert len(failed) <= 3
    assert re.search(pattern, failed[attack].failures[0].response)


def test_a_judge_without_a_verdict_is_one_line():
    with serving(lambda _: YES) as server:
        server.always = "prose"
        options = {"base_url": server.url, "timeout_seconds": 0.5, "retries": 0}
        with pytest.raises(DataError, match="^[^\n]*none of its first 2 calls has a verdict: .*$"):
            audit("judge", rows=1, options=options)


@pytest.mark.full
def test_calls_without_a_verdict_are_a_finding_and_count_in_no_attack(monkeypatch):
    """A server that fails at times must not make a judge look honest."""
    monkeypatch.setattr("rewardkit.audit.run.JUDGE_AUDIT", JUDGE_HOLES)
    with serving(lambda _: YES) as server:
        server.faults = lambda number, _: "prose" if number > 40 else None
        report = audit("judge", rows=1, options={"base_url": server.url, **LIMITS})
    findings = {result.attack: result for result in report.findings}
    assert findings["no_verdict"].failed > 50
    assert "not a verdict" in findings["no_verdict"].failures[0].got
    assert sum(r.tried for r in report.findings if r.kind == "hole") < report.calls


@pytest.mark.parametrize(
    ("ask", "confirm", "grade"),
    [
        pytest.param("undecided", False, "D", marks=pytest.mark.full),
        ("wrong", False, "F"),
        pytest.param("wrong", True, "A", marks=pytest.mark.full),
    ],
)
def test_a_hybrid_is_attacked_too(tmp_path, monkeypatch, ask, confirm, grade):
    """A judge that says yes to everything costs as much as it is asked; a confirmation helps."""
    monkeypatch.setattr("rewardkit.audit.run.JUDGE_AUDIT", JUDGE_HOLES)
    with serving(lambda _: YES) as server:
        (tmp_path / "r.yaml").write_text(
            f"scorer: math\nsecond: judge\nsecond_options: {{base_url: '{server.url}'}}\n"
            f"ask: {ask}\nconfirm: {str(confirm).lower()}\nparts: {{correct: 1}}\n"
        )
        out = write_reward_file(tmp_path / "r.yaml", tmp_path / "reward.py")
        report = audit(f"{out}:compute_score", rows=1)
    assert report.grade == grade or (grade == "D" and report.grade in "DF")


def test_texts_of_attacks_on_judges_state_no_gold_by_accident():
    """A response that gives the gold alone would be a correct answer."""
    for row in packaged_rows("auto", 40, 0):
        target = Target(row, FORMS[1])
        if states_gold(target.wrong, target.gold) or len(target.gold) == 1:
            continue
        for attack in {*JUDGE_HOLES} - {ATTACKS["every_answer"], ATTACKS["question_restated"]}:
            for response in attack.responses(target):
                shown = response.replace(target.respond(target.wrong), "")
                assert not states_gold(shown, target.gold), (attack.name, response)


def test_a_judge_gets_no_attack_with_a_gold_of_ours_or_long_text():
    assert all(not attack.golds for attack in JUDGE_AUDIT)
    target = Target(packaged_rows("judge", 1, 0)[0], FORMS[1])
    lengths = {a.name: max(map(len, a.responses(target)), default=0) for a in JUDGE_AUDIT}
    assert max(lengths.values()) < 20_000, lengths
    assert {attack.name for attack in JUDGE_AUDIT} <= ATTACKS.keys()
