"""Every attack catches the bad scorer it is meant for, and passes sound ones."""

import json

import pytest

from rewardkit.audit import audit, conduct
from rewardkit.audit import rows as rows_module
from rewardkit.audit.attacks import ATTACKS
from rewardkit.audit.model import FORMS, AttackResult, ScorerProfile, Target, grade
from rewardkit.audit.rows import packaged_rows, sample_rows
from rewardkit.audit.run import check_behaviour
from rewardkit.errors import DataError, SourceError, UnknownNameError, UsageError
from rewardkit.preprocess.card import read_card
from rewardkit.scorers.right_score import AnswerForm


def row(question, gold, **extra):
    prompt = f"{question} Put your final answer within \\boxed{{}}."
    return {
        "data_source": "acme/test",
        "prompt": [{"role": "user", "content": prompt}],
        "reward_model": {"style": "rule", "ground_truth": gold},
        "extra_info": {"index": 0, **extra},
    }


ROWS = [
    row("What is 9 + 9?", "18"),
    row("What is 2 - 9?", "-7"),
    row("What is 700 + 800?", "1500"),
    row("What is 3 of 4, as a fraction?", r"\frac{3}{4}"),
]
CHOICES = [
    row(f"Which? A. {a} B. {b} C. oats D. rye", gold, options=[a, b, "oats", "rye"])
    for a, b, gold in (("hay", "ice", "B"), ("tea", "jam", "A"), ("wax", "zinc", "AC"))
]
MORE = [row("Where?", "(1, 2)"), row("Which day?", r"\text{Saturday}")]

SIGNATURE = "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
LAST_BOX = r"""
import re
def last_box(text):
    boxes = re.findall(r"\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}", text[-2000:])
    return boxes[-1] if boxes else ""
def right(text, gold):
    return float(bool(gold) and last_box(text) == gold)
"""


@pytest.fixture(autouse=True)
def bounds(request, monkeypatch):
    """Make fewer calls in quick tests, and do not call a scorer slow on a slow machine."""
    if request.node.get_closest_marker("full") is None:
        monkeypatch.setattr(conduct, "_LONG_TEXTS", {"prose": "and so we go on "})
        monkeypatch.setattr(conduct, "MAX_HANGS", 1)
    monkeypatch.setattr(conduct, "SLOW_SECONDS", 60.0)
    monkeypatch.setattr(conduct, "SLOW_LONG_SECONDS", 60.0)


@pytest.fixture
def failed_attacks(tmp_path):
    """Return a function that audits a sound scorer with lines before it: the successful attacks."""

    def go(body, rows=ROWS, seconds=20.0):
        file = tmp_path / "reward.py"
        lines = ("r, g = solution_str, ground_truth", *body.splitlines(), "return right(r, g)")
        file.write_text(LAST_BOX + SIGNATURE + "".join(f"    {line}\n" for line in lines))
        report = audit(f"{file}:compute_score", data=rows, seconds=seconds)
        return {finding.attack: finding for finding in report.failed}

    return go


@pytest.mark.parametrize(
    ("body", "wrong"),
    [("raise KeyError", None), ("return 1 / 0 if ground_truth in solution_str else -2.0", -2)],
)
def test_a_call_without_a_score_counts_as_less_than_any_score(tmp_path, body, wrong):
    """A scorer may return -2: no number of ours may stand for a missing score."""
    file = tmp_path / "reward.py"
    file.write_text(f"{SIGNATURE}    {body}\n")
    rows = [row("What is 9 + 9?", "18")]
    profiles, *_ = check_behaviour(f"{file}:compute_score", rows)
    (profile,) = profiles
    assert (profile.right, profile.wrong) == (None, wrong)
    assert not profile.rewards_golds
    assert profile.scores.startswith("the gold gets no score, a wrong answer ")


TOLERANT = "a, b = re.fullmatch('-?[0-9.]+', last_box(r)), re.fullmatch('-?[0-9]+', g)\n"
TOLERANT += "if a and b:\n    return float(abs(float(a[0]) - float(g)) <= 1e-4 * abs(float(g)))"
MAIN_THREAD = (
    "import signal\nsignal.alarm(1)\nsignal.signal(signal.SIGALRM, print)\nsignal.alarm(0)"
)
EVAL = "try:\n    if str(eval(last_box(r))) == g:\n        return 1.0\nexcept Exception: pass"
MEMORY = "seen = globals().setdefault('seen', [])\nif r in seen:\n    return 0.0\nseen.append(r)"
SHARED = "import time\nglobals()['gold'] = g\ntime.sleep(0.0005)\nreturn right(r, gold)"

#: Lines before a sound scorer, and the attack that it does not withstand with them; the first two
#: are quick tests.
BAD_SCORERS = [
    ("return float(g in last_box(r).split(' or '))", "hedge"),
    ("assert len(r) < 9000", "raises"),
    ("return 1.0", "wrong_answer"),
    ("return 0.0", "gold_in_its_form"),
    ("return float(g in r)", "every_number"),
    ("return float(r.partition('boxed{')[2].partition('}')[0] == g)", "answer_then_another"),
    ("return float('boxed{' + g + '}' in r)", "several_answers"),
    ("return float(last_box(r) == g)", "empty_gold"),
    ("return float((last_box(r) or 'None') == g)", "placeholder_gold"),
    (TOLERANT, "near_number"),
    ("r, g = r.replace('-', ''), g.replace('-', '')", "other_sign"),
    ("if 'correct' in r:\n    return 1.0", "correctness_claim"),
    ("", "trailing_zeros"),
    ("r = r[-100:]", "before_afterword"),
    ("return float(re.findall('-?[0-9]+', r)[-1:] == [g])", "before_numbers"),
    (MAIN_THREAD, "raises"),
    ("import sys\nif '9**9' in r:\n    sys.exit()", "exits"),
    ("import os\nif '9**9' in r:\n    os._exit(3)", "exits"),
    ("return right(r, g) or None", "no_number"),
    ("return right(r, g) or float('nan')", "no_number"),
    ("if last_box(r):\n    return {'score': right(r, g), 'pred': last_box(r)}", "keys_differ"),
    ("return 100 * right(r, g)", "out_of_range"),
    ("extra_info['seen'] = True", "changes_extra_info"),
    ("print('hm')", "prints"),
    (MEMORY, "depends_on_order"),
    (SHARED, "thread_unsafe"),
    ("assert type(r) is str", "odd_types"),
    (EVAL, "runs_code"),  # one of its programs never ends
]
BAD_CHOICE_SCORERS = [
    ("return float(g in re.findall('[A-D]', last_box(r)))", "all_letters"),
    ("", "letter_list"),
    ("return float(''.join(c for c in 'ABCD' if c in last_box(r)) == g)", "glued"),
]


@pytest.mark.parametrize(
    ("body", "attack", "rows"),
    [
        *((*case, ROWS) for case in BAD_SCORERS[:2]),
        *(pytest.param(*case, ROWS, marks=pytest.mark.full) for case in BAD_SCORERS[2:]),
        (*BAD_CHOICE_SCORERS[0], CHOICES),
        *(pytest.param(*case, CHOICES, marks=pytest.mark.full) for case in BAD_CHOICE_SCORERS[1:]),
    ],
)
def test_a_bad_scorer_is_caught_by_the_attack_meant_for_it(failed_attacks, body, attack, rows):
    assert attack in failed_attacks(body, rows, seconds=1.0 if attack == "runs_code" else 20.0)


QUADRATIC = "for i in range(0, len(r), 400):\n    r[i:].count('@')"


@pytest.mark.parametrize(
    ("limit", "seconds", "body", "attack"),
    [
        ("SLOW_SECONDS", 0.001, "import time\ntime.sleep(0.0011)", "slow"),
        pytest.param("SLOW_LONG_SECONDS", 0.01, QUADRATIC, "grows", marks=pytest.mark.full),
    ],
)
@pytest.mark.full
def test_a_slow_scorer_is_caught(failed_attacks, monkeypatch, limit, seconds, body, attack):
    monkeypatch.setattr(conduct, limit, seconds)
    assert attack in failed_attacks(body, ROWS[:1])


@pytest.mark.parametrize(
    ("condition", "seconds"),
    [("True", 0.2), pytest.param("'9**9' in r", 1.0, marks=pytest.mark.full)],
)
@pytest.mark.full
def test_a_scorer_that_hangs_does_not_hang_the_audit(failed_attacks, condition, seconds):
    attacks = failed_attacks(f"while {condition}:\n    pass", ROWS[:1], seconds=seconds)
    assert f"no verdict within {seconds:g} s" in attacks["hangs"].failures[0].got
    if condition != "True":
        assert "9**9" in attacks["hangs"].failures[0].response
        assert "trailing_zeros" in attacks


@pytest.mark.parametrize(
    ("scorer", "options", "rows"),
    [
        ("gsm8k", {"method": "robust"}, ROWS[:3]),
        pytest.param("math", {}, [*ROWS, *CHOICES], marks=pytest.mark.full),
        pytest.param("mcq", {}, CHOICES, marks=pytest.mark.full),
        pytest.param("geometry3k", {}, ROWS, marks=pytest.mark.full),
        pytest.param("math_dapo", {"mode": "robust"}, ROWS, marks=pytest.mark.full),
    ],
)
def test_a_sound_scorer_gets_an_a(scorer, options, rows):
    report = audit(scorer, data=rows, options=options, seconds=60)
    assert report.at_least("medium") == ()
    assert report.grade == "A"


@pytest.mark.full
def test_a_scorer_that_looks_for_the_gold_in_the_text_fails_the_attacks_on_open_questions(tmp_path):
    (tmp_path / "r.py").write_text(
        f"import json\n{SIGNATURE}    golds = json.loads(ground_truth)['target']\n"
        "    return float(any(g.lower() in solution_str.lower() for g in golds))\n"
    )
    packaged = packaged_rows("qa", 4, 0)
    rows = [row(each.prompt, json.loads(each.gold)) for each in packaged]
    report = audit(f"{tmp_path}/r.py:compute_score", data=rows, seconds=60)
    failed = {result.attack for result in report.failed}
    assert {"list_of_guesses", "two_guesses", "denied_gold", "gold_in_a_page"} <= failed
    assert report.grade == "F"
    sound = audit("qa", seconds=60)
    assert {result.attack for result in sound.failed} <= {"other_unit"}
    assert sound.grade == "A"


def test_the_packaged_rows_of_a_scorer_are_those_of_its_own_datasets():
    """An audit must not change, or take longer, whenever a dataset is added."""
    for scorer in ("geometry3k", "gsm8k", "math", "math_dapo", "math_verify", "mcq"):
        names = rows_module._DATASETS[scorer].split()
        assert {read_card(name).scorer for name in names} == {scorer.replace("math_verify", "math")}
        assert len({row.data_source for row in packaged_rows(scorer, 30, 0)}) == len(names)


@pytest.mark.full
def test_packaged_rows_that_the_scorer_does_not_reward_are_left_out(tmp_path):
    (tmp_path / "r.py").write_text(
        "import re\n" + SIGNATURE + "    answers = re.findall('#### (-?[0-9]+)$', solution_str)\n"
        "    return float(answers[-1:] == [ground_truth])\n"
    )
    report = audit(f"{tmp_path}/r.py:compute_score", rows=10)
    assert "cflue" in report.left_out
    assert {r.form.name for r in report.readings} == {"hash"}


@pytest.mark.full
def test_the_same_seed_gives_the_same_report():
    report, same_seed, other_seed = (audit("gsm8k", rows=5, seed=seed) for seed in (1, 1, 2))
    assert report.failed == same_seed.failed != other_seed.failed


def test_texts_in_a_report_are_clipped():
    failed = audit("gsm8k", rows=2).failed
    assert 200 < max(len(failure.response) for each in failed for failure in each.failures) < 300


@pytest.mark.parametrize(
    ("right", "wrong", "is_noted"),
    [(1.0, 0.95, True), (1.0, 0.5, False), (-0.5, -1.0, False), (None, 0.9, False), (1.0, None, False)],
)  # fmt: skip
def test_a_reward_that_is_mostly_not_for_the_answer_is_noted(right, wrong, is_noted):
    own = {"data_source": "s", "rows": 1, "form": FORMS[0], "forms": FORMS[:1]}
    profile = ScorerProfile(**own, right=right, wrong=wrong)
    assert ("most of the reward is not for the answer" in profile.scores) == is_noted


def test_input_that_cannot_be_audited_raises_one_clear_error(tmp_path):
    (tmp_path / "x.py").write_text("import os\nos._exit(1)\n")
    for error, message, scorer, options in (
        (UnknownNameError, "gsm8k", "gsm8", {}),
        (SourceError, "no such file", f"{tmp_path}/none.py:score", {"data": ROWS}),
        (UnknownNameError, "no option 'methd'", "gsm8k", {"options": {"methd": "robust"}}),
        (DataError, "no rows", "gsm8k", {"data": []}),
        (UsageError, "ended while it was imported", f"{tmp_path}/x.py:score", {"data": ROWS}),
    ):
        with pytest.raises(error, match=message):
            audit(scorer, **options)
    for gold in (None, "", " ", "nan"):
        row = {"prompt": "1+1?", "reward_model": {"ground_truth": gold}}
        with pytest.raises(DataError, match="a row has no"):
            sample_rows([row], 1, 0)


@pytest.mark.parametrize(
    ("severities", "expected"),
    [(["low"] * 2, "A"), (["medium"] * 3, "B"), (["medium"] * 4, "C"), (["high"] * 3, "D"), (["high"] * 4, "F")],
)  # fmt: skip
def test_grades_follow_their_rule(severities, expected):
    def result(severity, attack="x", failed=1):
        own = {"attack": attack, "severity": severity, "failed": failed}
        return AttackResult(kind="hole", about="", tried=9, **own)

    harmless = result("high", failed=0)
    assert grade((*map(result, severities), harmless)) == expected
    for attack in ("gold_in_its_form", "right_call", "right_text"):
        assert grade((*map(result, severities), result("low", attack))) == "F"


def test_every_attack_has_a_description_and_responses():
    targets = [
        Target(row, form)
        for row in [
            *sample_rows([*ROWS, *CHOICES, *MORE], 20, 0),
            *packaged_rows("qa", 99, 0),
            *packaged_rows("code", 2, 0),
            *packaged_rows("function_call", 2, 0),
            *packaged_rows("json_schema", 2, 0),
            *packaged_rows("instructions", 2, 0),
        ]
        for form in (AnswerForm("box", r"\boxed{", "}"), AnswerForm("answer", "Answer: "))
    ]
    for attack in ATTACKS.values():
        assert attack.about.endswith((".", "`."))
        if attack.kind != "conduct":
            assert any(list(attack.responses(target)) for target in targets), attack.name


def test_no_false_positive_is_just_the_correct_answer():
    """A sound scorer would fail such an attack."""
    holes = [each for each in ATTACKS.values() if each.kind == "hole" and not each.golds]
    for row in sample_rows([*ROWS, *CHOICES], 9, 0):
        target = Target(row, AnswerForm("box", r"\boxed{", "}"))
        for attack in holes:
            assert target.respond(target.gold) not in list(attack.responses(target)), attack.name


@pytest.mark.full
def test_a_scorer_with_our_own_signature_is_audited_without_verl_result(tmp_path):
    """In verl `verl_result` catches its exceptions; the audit reports them."""
    (tmp_path / "own.py").write_text(
        "from rewardkit.scorers.base import Score, Status\n"
        "from rewardkit.scorers.math import score as judge\n"
        "def respond(answer):\n    return f'<answer>{answer}</answer>'\n"
        "def score(response, ground_truth, extra_info=None, *, most=9000):\n"
        "    if len(response) > most:\n        raise ValueError('too long')\n"
        "    return judge(response, ground_truth, extra_info)\n"
    )
    report = audit(f"{tmp_path}/own.py:score", data=ROWS, options={"most": 20_000})
    assert [f.attack for f in report.at_least("medium")] == ["raises"]
    assert {pair.got for pair in report.failed[0].failures} == {"raised ValueError: too long"}
    assert report.readings[0].declared
    assert report.readings[0].form("1") == "<answer>1</answer>"
    coroutine = f"{LAST_BOX}async {SIGNATURE}    return right(solution_str, ground_truth)\n"
    (tmp_path / "a.py").write_text(coroutine)
    assert audit(f"{tmp_path}/a.py:compute_score", data=ROWS).at_least("high") == ()


def test_an_audit_of_verl_without_verl_says_which_answers_verl_runs():
    said = []
    with pytest.raises(UsageError, match="verl is not installed here"):
        audit("verl", announce=said.append)
    assert "numina_cn_k12" in said[0]
    assert "CVE-2026-6878" in said[0]
    assert "hiyouga/geometry3k" in said[1]
    assert all("path=$(rewardkit path auto)" in line for line in said)


@pytest.mark.full
def test_a_reward_that_reads_results_of_tools_pays_what_a_tool_says(failed_attacks, tmp_path):
    """verl's text of a rollout has them; a scorer of ours judges the last message of the model."""
    rows = [row("What is 9 + 9?", "18", tools_kwargs={"search": {"create_kwargs": {"x": "y"}}})]
    attacks = {"tool_states_gold", "answer_in_earlier_turn"}
    assert attacks <= failed_attacks("", rows=rows).keys()
    assert not attacks & failed_attacks("").keys()  # rows without tools
    last = "extra_info['extras']['rollout_messages'][-1]['content']"
    lines = f"if 'extras' in extra_info:\n    r = {last}"
    assert failed_attacks(lines, rows=rows).keys() & attacks <= {"tool_states_gold"}
    tried = {f.attack: f.failed for f in audit("math", data=rows).findings}
    assert {**dict.fromkeys(attacks, 0), "answer_after_tool": 0}.items() <= tried.items()
