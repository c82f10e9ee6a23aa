"""One meaning of "correct": what a reward states, or a score that the gold's own answer gets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.errors import UsageError
from rewardkit.scorers.base import Score, Status, call_scorer
from rewardkit.scorers.isolated import learn_rule
from rewardkit.scorers.options import as_scorer
from rewardkit.scorers.right_score import learn_right
from rewardkit.scorers.score import RewardResult, RightRule, rule_of_results
from tests.reward_shapes import SHAPES, docs_rows, write_rewards
from tests.tables import every

REPOSITORY = Path(__file__).parents[2]

#: Responses of a policy: right, wrong and without an answer, some of them long.
RESPONSES = [
    {"response": f"{start}{gold}{end}", "ground_truth": gold, "data_source": "own"}
    for gold in ("72", "5", "B")
    for start, end in (
        *((f"{text}\\boxed{{", "}") for text in ("", "<think>so</think> ", "It is so. " * 150)),
        *(("#### ", ""), ("\\boxed{", "1}"), ("<think>no</think> \\boxed{A", "}"), ("#### 8", "")),
        ("I do not know ", "."),
    )
]
RIGHT = 4 * 3


@pytest.fixture(scope="module")
def rewards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shapes")
    write_rewards(folder)
    lines = "".join(json.dumps(row) + "\n" for row in RESPONSES)
    (folder / "responses.jsonl").write_text(lines, encoding="utf-8")
    return folder


def loaded(rewards, name):
    """The function of a shape, in this process."""
    namespace: dict[str, object] = {}
    exec(compile((rewards / "shapes.py").read_text(), "shapes.py", "exec"), namespace)
    return namespace[name]


def learned(function, golds=("72", "5", "B")):
    scorer = as_scorer(function)
    return learn_right(
        lambda requests: [call_scorer(scorer, *each) for each in requests],
        [(gold, {}) for gold in golds],
    )


@every("name", list(SHAPES))
def test_the_lowest_right_score_of_each_shape_is_learned_from_golds(rewards, name):
    """The long right answers count too, and the wrong ones that are paid for their form do not."""
    function, right = loaded(rewards, name), SHAPES[name].right
    rule = learned(function)
    assert rule.is_known == (right != "unknown")
    assert rule.takes_verdict == (right is None)
    least = pytest.approx(right, abs=0.005) if isinstance(right, (int, float)) else None
    assert rule.least == least
    for row in RESPONSES:
        text, gold = row["response"], row["ground_truth"]
        is_right = text.endswith((f"{{{gold}}}", f"# {gold}")) if rule.is_known else None
        assert rule.judge(call_scorer(as_scorer(function), text, gold)).correct is is_right


def test_the_docs_say_of_each_shape_what_is_right():
    page = (REPOSITORY / "docs/how-to/own-reward.md").read_text(encoding="utf-8")
    rights = {None: "as stated", "unknown": "not known"}
    rows = [
        (shape.text, rights.get(shape.right) or f"at least {shape.right:g}")
        for shape in SHAPES.values()
    ]
    assert len(docs_rows(page)) == 8
    assert set(docs_rows(page)) <= set(rows)


@pytest.fixture(scope="module")
def call(cli, rewards):
    """Run a command beside the rewards; return its exit code, stdout and stderr."""

    def run(*arguments, text=""):
        done = cli(*arguments, cwd=rewards, text=text)
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.fixture(scope="module")
def rows(rewards):
    import pyarrow as pa
    import pyarrow.parquet as pq

    golds = [{"style": "rule", "ground_truth": gold} for gold in ("72", "5", "B")]
    fixed = {"data_source": "own", "prompt": [{"role": "user", "content": "q"}]}
    train = [
        {**fixed, "reward_model": gold, "extra_info": {"index": index}}
        for index, gold in enumerate(golds)
    ]
    pq.write_table(pa.Table.from_pylist(train), rewards / "rows.parquet")


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize("name", ["pays_form", "length"])
@pytest.mark.full
def test_score_prints_the_same_of_a_reward_and_of_its_guard(call, name):
    spec, guarded = f"shapes.py:{name}", f"guarded_{name}.py"
    assert call("guard", spec, "--out", guarded, "--rows", "rows.parquet")[0] == 0
    (table, values), (guarded_table, guarded_values) = (
        [
            call("score", "responses.jsonl", "--scorer", scorer, *flags)[1]
            for flags in ((), ("--json",))
        ]
        for scorer in (spec, f"{guarded}:compute_score")
    )
    assert table == guarded_table
    plain, guarded = json.loads(values), json.loads(guarded_values)
    assert {**plain, "right_score": 0} == {**guarded, "right_score": 0}
    accuracy = None if SHAPES[name].right == "unknown" else RIGHT / len(RESPONSES)
    assert plain["total"]["accuracy"] == accuracy


def test_without_a_known_right_score_there_is_no_accuracy(call, rewards):
    """The mean score stands, and one line says how to name the right one."""
    command = ("score", "responses.jsonl", "--scorer", "shapes.py:length")
    code, output, error = call(*command)
    assert (code, "not known" in output, "scored 24" in output) == (0, True, True)
    assert "which score is right is not known" in error
    assert "--right-score" in error
    code, output, error = call(*command, "--right-score", "-1.9", "--json")
    assert json.loads(output)["total"]["accuracy"] is not None
    assert "right is a score of at least -1.9: --right-score" in error


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize(
    ("name", "code", "words"),
    [("minus_three_to_three", 0, "what the gold gets"), ("length", 1, "unknown_right")],
)
def test_check_finds_bad_golds_only_where_the_right_score_is_not_known(call, name, code, words):
    command = ("check", "rows.parquet", "--scorer", f"shapes.py:{name}", "--allow-duplicates")
    done, output, error = call(*command)
    assert (done, words in output) == (code, True), output + error


def test_explain_says_from_which_score_on_an_answer_is_right(call, rewards):
    command = ("explain", "--gold", "72", "--scorer", "shapes.py:pays_form")
    output = call(*command, text="\\boxed{71}")[1]
    assert "at least 1" in output
    assert json.loads(call(*command, "--json", text="\\boxed{72}")[1])["correct"] is True


def test_a_composed_reward_pays_what_its_scorer_calls_right_if_that_is_known(call, rewards):
    for name, (code, words) in {
        "nine_tenths": (0, "at least 0.9"),
        "length": (UsageError.exit_code, "Name it with right_score"),
    }.items():
        text = f"scorer: shapes.py:{name}\nparts: {{correct: 1.0}}\n"
        (rewards / "parts.yaml").write_text(text, encoding="utf-8")
        done = call("compose", "parts.yaml", "--out", f"composed_{name}.py")
        assert (done[0], words in done[2]) == (code, True), done
    command = ("score", "responses.jsonl", "--scorer", "composed_nine_tenths.py:compute_score")
    report = json.loads(call(*command, "--json")[1])
    assert report["total"]["mean_score"] == report["total"]["accuracy"] == RIGHT / len(RESPONSES)


def test_a_reward_that_fails_on_all_golds_is_judged_by_what_it_states():
    rule = learn_right(lambda requests: [ValueError("x")] * len(requests), [("1", {}), ("2", {})])
    assert rule.judge(RewardResult.of({"score": 0.2, "acc": 1}).as_score()).correct is True
    assert rule.judge(RewardResult.of(0.2).as_score()).status is Status.SCORED
    assert "none of the first golds" in rule.sentence


def test_the_threshold_is_that_of_all_golds_that_are_tried():
    """A hard question may pay more than an easy one."""
    weighted = reward_of("return float(len(gold)) * right")
    assert learned(weighted, ("123", "7", "45")).least == 1.0


def test_only_a_custom_scorer_learns():
    assert learn_rule(len, [("1", {})]) == (len, RightRule())
    with pytest.raises(UsageError, match="--right-score"):
        learn_rule(len, [], 1.0)


@given(st.floats(allow_nan=False), st.floats(allow_nan=False), st.booleans())
def test_a_higher_score_is_never_less_right(one, other, takes_verdict):
    rule = RightRule(1.0, takes_verdict, "x")
    low, high = (
        rule.judge(Score(score, None, "", Status.SCORED)) for score in sorted((one, other))
    )
    assert low.correct <= high.correct
    assert [(each.status is Status.CORRECT) for each in (low, high)] == [low.correct, high.correct]


def test_results_in_files_need_a_verdict_each():
    def rule(*results):
        return rule_of_results([RewardResult.of(each) for each in results])

    assert rule({"score": 0.5, "acc": 1.0}, {"score": 0.5, "acc": 0.0}).is_known
    assert not rule({"score": -1.0, "acc": -1.0}, {"score": 1.0, "acc": 1.0}).is_known
    assert not rule({"score": 0.5}, {"score": 1.0}).is_known


def reward_of(body):
    """A reward whose body sees `text`, `gold`, `right`, `info` and `re`."""
    source = (
        "import re\n"
        "def reward(data_source, solution_str, ground_truth, extra_info=None):\n"
        "    text, gold, info = solution_str, ground_truth, extra_info or {}\n"
        "    marked = re.findall(r'\\\\boxed\\{([^{}]*)\\}|<answer>\\s*([^<]*?)\\s*</answer>', text)\n"
        "    right = bool(marked) and gold in marked[-1]\n"
        f"    {body}\n"
    )
    namespace: dict[str, object] = {}
    exec(source, namespace)
    return namespace["reward"]


OPEN_R1 = r"re.match(r'^<think>\n.*?\n</think>\n<answer>\n.*?\n</answer>$', text, re.DOTALL)"


@pytest.mark.parametrize(
    "body",
    [
        f"return 1.0 * right + bool({OPEN_R1})",
        "return 0.5 * right + 0.5 * bool(re.match(r'^<think>.+?</think>\\s*<answer>', text))",
        "return 1.0 * right + bool(re.search('<reasoning>', text))",
        "return right * (1 - len(text) / 10000)",
        "return (2.0 if right else 1.0) if '[[' in text else 0.0",
    ],
)
def test_a_score_that_a_wrong_answer_may_get_as_well_is_not_called_right(body):
    """The format alone may pay as much as the answer alone, or the length take off as much."""
    assert not learned(reward_of(body)).is_known


@pytest.mark.parametrize(
    ("body", "least"),
    [
        ("return right * (1 - min(0.5, len(text) / 20000))", 0.5),
        ("return right * (1.2 if len(text) < 8000 else 1.0)", 1.0),
        ("return right * (1.0 if len(text) < 9000 else 0.7)", 0.7),
        ("return 2.0 * right + 0.5 * text.rstrip('.</answer>}\\n')[-1:].isdigit()", 2.5),
    ],
)
def test_what_is_taken_off_a_long_right_answer_leaves_it_right(body, least):
    assert learned(reward_of(body)).least == pytest.approx(least, abs=0.05)


def test_a_copy_of_the_score_is_no_verdict():
    """Nothing that was tried is right, and `acc` repeats the score: 1 may be paid for the form."""
    body = "score = 0.0 if '<final>' not in text else 1.0 + right\n    return {'score': score, 'acc': score}"
    rule = learned(reward_of(body))
    assert not rule.is_known
    read = RewardResult.of({"score": 1.0, "acc": 1.0}).as_score()
    assert rule.judge(read).status is Status.SCORED
    stated = RewardResult.of({"score": 1.0, "acc": True}).as_score()
    assert (stated.status, stated.correct) == (Status.CORRECT, True)


def test_a_score_above_that_of_every_gold_is_not_judged():
    """It is paid for a form or a length that was not tried, in which a wrong answer may get much, too."""
    rule = learned(reward_of("return 1.0 * right + 1.0 * ('[[' in text)"))
    assert rule.least == 1.0
    verdicts = [rule.judge(Score(s, None, "", Status.SCORED)).correct for s in (0.0, 1.0, 2.0)]
    assert verdicts == [False, True, None]
    assert "more than 1.05" in rule.doubt(scored=1, total=3)


def test_golds_of_each_data_source_are_tried_and_no_other_source_is_judged():
    function = as_scorer(reward_of("return right * (0.5 if data_source == 'b' else 1.0)"))
    rows = [("1", {"data_source": "a"})] * 50 + [("2", {"data_source": "b"})]
    rule = learn_right(lambda requests: [call_scorer(function, *r) for r in requests], rows)
    assert (rule.least, rule.sources) == (0.5, {"a", "b"})
    score = Score(0.5, None, "", Status.SCORED)
    assert [rule.judge(score, source).correct for source in ("a", "b", "c")] == [True, True, None]
    names = set("abcdefgh")  # the first sources of a large mix do not use up the trials
    rows = [(str(n), {"data_source": name}) for n in range(5) for name in names]
    rule = learn_right(lambda requests: [call_scorer(function, *r) for r in requests], rows)
    assert rule.sources == names


@pytest.mark.usefixtures("rows")
def test_check_learns_from_rows_whose_extra_info_is_not_a_struct(call, rewards):
    """The column is a finding of its own, and the command does not end on it."""
    import pyarrow.parquet as pq

    table = pq.read_table(rewards / "rows.parquet")
    place = table.schema.get_field_index("extra_info")
    texts = table.set_column(place, "extra_info", [["x"] * table.num_rows])
    pq.write_table(texts, rewards / "texts.parquet")
    code, output, error = call("check", "texts.parquet", "--scorer", "shapes.py:nine_tenths")
    assert (code, "what the gold gets" in output) == (1, True), output + error
