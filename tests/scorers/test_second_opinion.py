"""A composed reward of two scorers: rules decide, and a second scorer is asked about the rest."""

import asyncio
import json
import pickle
from inspect import iscoroutinefunction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.errors import UsageError
from rewardkit.recorder.writer import PATTERN
from rewardkit.scorers import instructions
from rewardkit.scorers.base import Score, Status, spec_of
from rewardkit.scorers.compose import METRICS, Part, Reward, SecondOpinion, build, write_reward_file
from rewardkit.scorers.load import load_scorer
from rewardkit.strict_yaml import read_yaml
from tests.judging.faulty_server import prompt_of, serving
from tests.scorers.test_compose import FIXED, load_as_verl_does, load_reward
from tests.tables import every

ASKS = ("wrong", "undecided", "correct", "never")
CORRECT = Part("correct", 1.0, lambda score, _: float(score.correct))
BASE = Part("base", 1.0, lambda score, _: score.score)
#: A response for each status of the rules below.
STATUSES = {status.value: status for status in Status if status is not Status.SCORED}
YES, NO = {"reason": "x", "verdict": "yes"}, {"reason": "x", "verdict": "no"}


def by_status(response, ground_truth, extra_info=None):
    """Rules whose status is the first word of the response."""
    status = STATUSES[response.split()[0]] if response.split() else Status.NO_ANSWER
    return Score(float(status is Status.CORRECT), status is Status.CORRECT, response[:9], status)


def second_in_words(response, ground_truth, extra_info=None):
    """A second scorer whose opinion is the last word of the response."""
    responses_seen.append(response)
    word = response.split()[-1]
    if word == "raises":
        raise RuntimeError("no model")
    statuses = {"yes": Status.CORRECT, "no": Status.WRONG}
    status = statuses.get(word) or Status(word)
    return Score(0.75 if word == "yes" else 0.0, word == "yes", "theirs", status)


responses_seen: list[str] = []


def reward(ask="wrong", confirm=None, second=second_in_words):
    return Reward(by_status, (CORRECT,), SecondOpinion(second, ask, confirm))


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("status", STATUSES)
def test_who_is_asked_about_what(ask, status):
    """Never about no answer at all, or a fault of the data; about a correct answer if it may refuse it."""
    undecided = {"unparsed_answer", "ambiguous_answer", "too_long", "timeout"}
    statuses = {"wrong": {*undecided, "wrong"}, "undecided": undecided, "correct": {"correct"}}
    expected = statuses.get(ask, set())
    responses_seen.clear()
    result = reward(ask).compute_score("s", f"{status} yes", "18")
    assert bool(responses_seen) == (status in expected) == (result["second_asked"] == 1.0)
    is_verdict = status in ("correct", "wrong", "no_answer")
    assert result["rule_decided"] == float(is_verdict and status not in expected)
    assert result["second_changed"] == float(status in expected and status != "correct")
    assert result["acc"] == float(status == "correct" or status in expected)


@pytest.mark.parametrize("opinion", ["raises", "failed", "bad_ground_truth", "timeout"])
def test_a_second_scorer_that_fails_leaves_the_score_of_the_rules_and_says_so(opinion):
    """Its failure is never a silent 0: `error` or `timeout` is set, and the rule's number stays."""

    def rule(response, ground_truth, extra_info=None):
        return Score(-0.5, False, "a", Status.WRONG)

    both = Reward(rule, (BASE,), SecondOpinion(second_in_words, "wrong"))
    result = both.compute_score("s", opinion, "18")
    assert (result["score"], result["acc"], result["pred"]) == (-0.5, 0.0, "a")
    timeout = float(opinion == "timeout")
    assert (result["timeout"], result["error"]) == (timeout, 1.0 - timeout)
    assert (result["second_asked"], result["second_changed"]) == (1.0, 0.0)


@pytest.mark.parametrize("word", ["yes", "no", "failed", "timeout"])
def test_a_yes_counts_only_if_it_is_confirmed(word):
    """A yes has the second scorer's score and the rule's answer, and a no is the rule's verdict.

    The second question is asked after a yes only, and its failure is a failure.
    """
    both = Reward(by_status, (BASE,), SecondOpinion(second_in_words, "wrong"))
    assert both("wrong yes", "18") == Score(0.75, True, "wrong yes", Status.CORRECT)
    assert both("unparsed_answer no", "18") == Score(0.0, False, "unparsed_", Status.WRONG)
    questions = []

    def other(response, ground_truth, extra_info=None):
        questions.append(response)
        return second_in_words(word, ground_truth)

    both = reward("wrong", other)
    result = both.compute_score("s", "wrong yes", "18")
    assert result["acc"] == float(word == "yes")
    assert result["second_contradicted"] == float(word == "no")
    flags = ("error", "timeout")
    assert [result[flag] for flag in flags] == [word == "failed", word == "timeout"]
    assert both("wrong yes", "18").correct == (word == "yes")
    both.compute_score("s", "wrong no", "18")
    assert questions == ["wrong yes"] * 2


@every(
    ("opinion", "acc", "flags"),
    [
        ("yes", 1.0, (0.0, 0.0)),
        ("no", 0.0, (0.0, 0.0)),
        ("no_answer", 0.0, (0.0, 0.0)),
        ("failed", 1.0, (1.0, 0.0)),
        ("timeout", 1.0, (0.0, 1.0)),
    ],
)
def test_a_second_scorer_that_is_asked_about_right_answers_refuses_them(opinion, acc, flags):
    """Only its no counts, with the wrong score of the rules; a failure is no refusal, and sets its flag."""
    gate = SecondOpinion(second_in_words, "correct", wrong_score=-1.0)
    result = Reward(by_status, (BASE,), gate).compute_score("s", f"correct {opinion}", "18")
    assert (result["acc"], result["score"]) == (acc, 1.0 if acc else -1.0)
    assert (result["error"], result["timeout"]) == flags
    assert result["second_changed"] == float(not acc)


@pytest.mark.parametrize("budget", [0, 3])
def test_the_line_of_the_scorer_instructions_pays_no_text_that_ignores_the_question(budget):
    """A judge whose budget of tokens is spent is not asked, and refuses nothing."""
    with serving(lambda _: {"reason": "x", "correctness": 1, "helpfulness": 1}) as server:
        line = next(line for line in instructions.__doc__.splitlines() if "second: judge" in line)
        spec = read_yaml(line, "reward.yaml")
        spec["second_options"] |= {"base_url": server.url, "budget_tokens": budget}
        row = json.dumps({"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]})
        info = {"question": "Name a river, without commas."}
        results = [
            build(spec).compute_score("google/IFEval", text, row, info)
            for text in ("All is well.", "La la la.", "No, well.")
        ]
    assert [r["score"] for r in results] == ([0.0, 0.0, 0.0] if not budget else [0.0, 1.0, 0.0])
    assert [r["second_asked"] for r in results] == [1.0, 1.0, 0.0]


@given(
    status=st.sampled_from(sorted(STATUSES)),
    opinion=st.sampled_from(["yes", "no", "raises", "failed", "timeout", "no_answer"]),
    ask=st.sampled_from(ASKS),
)
def test_every_sample_has_the_same_keys_and_both_ways_agree(status, opinion, ask):
    """Sync and async give the same dictionary, and a command the same verdict."""
    both = reward(ask)
    response = f"{status} {opinion}"
    now = both.compute_score("s", response, "18")
    later = asyncio.run(both.compute_score_async("s", response, "18"))
    assert now == later
    assert now.keys() == {*FIXED, "correct", *METRICS}
    assert both(response, "18").correct == bool(now["acc"])
    assert all(type(value) is float for key, value in now.items() if key != "pred")


@pytest.mark.full
def test_a_user_s_own_judge_is_awaited_at_the_same_time_as_others(tmp_path):
    """The file's function for verl is async where the judge's is; a hundred calls wait together."""
    (tmp_path / "my_judge.py").write_text(
        "import asyncio\n"
        "active, most = 0, 0\n"
        "async def judge(data_source, solution_str, ground_truth, extra_info=None):\n"
        "    global active, most\n"
        "    active += 1\n"
        "    most = max(most, active)\n"
        "    await asyncio.sleep(0.2)\n"
        "    active -= 1\n"
        "    return {'score': 1.0 if 'good' in solution_str else 0.0, 'most': most}\n"
    )
    (tmp_path / "r.yaml").write_text(
        "scorer: math\nsecond: my_judge.py:judge\nsecond_right_score: 1\nask: wrong\n"
        "parts: {correct: 1}\n"
    )
    module = load_as_verl_does(write_reward_file(tmp_path / "r.yaml", tmp_path / "reward.py"))
    assert iscoroutinefunction(module.compute_score)

    async def run():
        texts = [rf"good \boxed{{{i}}}" for i in range(100)]
        return await asyncio.gather(*(module.compute_score("s", text, "-1") for text in texts))

    results = asyncio.run(run())
    assert [result["acc"] for result in results] == [1.0] * 100
    assert "most" not in results[0]
    assert module.REWARD.second.scorer.args[0].__globals__["most"] > 20


def test_the_file_of_a_reward_with_the_judge_asks_it_about_what_the_rules_reject(tmp_path):
    """The file is a scorer too, and its function for verl has the judge's numbers, asked or not."""
    with serving(
        lambda body: YES if "eighteen" in prompt_of(body).split("REFERENCE")[-1] else NO
    ) as server:
        (tmp_path / "r.yaml").write_text(
            f"scorer: math\nsecond: judge\nsecond_options: {{base_url: '{server.url}'}}\n"
            "ask: wrong\nparts: {correct: 1}\n"
        )
        path = write_reward_file(tmp_path / "r.yaml", tmp_path / "reward.py")
        module = load_as_verl_does(path)
        assert module.SPEC.asks_server
        texts = (r"\boxed{18}", r"\boxed{\text{eighteen, I think}}", r"\boxed{19}", "")
        results = [module.compute_score("s", text, "18") for text in texts]
        scores = [load_scorer(f"{path}:score")(text, "18").correct for text in texts]
        assert spec_of(load_scorer(f"{path}:compute_score")).asks_server
    assert [r["acc"] for r in results] == [1.0, 1.0, 0.0, 0.0] == list(map(float, scores))
    assert [r["second_asked"] for r in results] == [0.0, 1.0, 1.0, 0.0]
    assert [r["second_changed"] for r in results] == [0.0, 1.0, 0.0, 0.0]
    assert [r["judge_tokens"] > 0 for r in results] == [False, True, True, False]
    assert len({tuple(sorted(r)) for r in results}) == 1
    assert results[3]["no_answer"] == 1.0


@pytest.mark.parametrize("is_confirmed", [False, True])
def test_a_judge_that_says_yes_to_everything_is_not_paid_if_its_yes_is_confirmed(is_confirmed):
    """Asked the other way round, it contradicts itself."""
    with serving(lambda _: YES) as server:
        options = {"base_url": server.url}
        spec = {"scorer": "math", "second": "judge", "second_options": options, "ask": "wrong"}
        both = build({**spec, "confirm": is_confirmed, "parts": {"correct": 1}})
        result = both.compute_score("s", r"\boxed{19}", "18")
        assert pickle.loads(pickle.dumps(both)).compute_score("s", r"\boxed{18}", "18")["acc"] == 1
    assert result["acc"] == float(not is_confirmed)
    assert result["second_contradicted"] == float(is_confirmed)
    assert result["judge_tokens"] == 60 * (1 + is_confirmed)


@pytest.mark.parametrize("fault", ["500", "cut body", "prose", "never"])
def test_a_failing_server_never_costs_the_rule_s_verdict(fault):
    """`error` or `timeout` is 1, the score is the rule's, and correct answers never ask."""
    with serving(lambda _: YES) as server:
        server.always = fault
        options = {"base_url": server.url, "timeout_seconds": 1.0, "retries": 0}
        spec = {"scorer": "math", "second": "judge", "second_options": options, "ask": "wrong"}
        both = build({**spec, "parts": {"correct": 1, "base": 1}})
        right, wrong = (
            both.compute_score("s", rf"\boxed{{{answer}}}", "18") for answer in (18, 19)
        )
    assert (right["score"], right["error"], right["timeout"]) == (2.0, 0.0, 0.0)
    assert (wrong["score"], wrong["error"] + wrong["timeout"], wrong["judge_failed"]) == (0, 1, 1)
    assert wrong["timeout"] == float(fault == "never")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("ask: wrong", "ask is for a second scorer, as in `second: judge`"),
        ("second: judge\nask: wrog", "Did you mean 'wrong'"),
        ("second: judge\nsecond_options: {rubric: nothing}", "no rubric 'nothing'"),
        ("second: qa\nconfirm: true", "qa has no option `reverse`"),
        ("second: judge\nsecond_options: {rubric: open}\nconfirm: true", "only a question of"),
    ],
)
def test_a_mistake_about_the_second_scorer_is_one_line_with_its_place(tmp_path, lines, message):
    path = tmp_path / "reward.yaml"
    path.write_text(f"scorer: math\n{lines}\nparts: {{correct: 1}}\n")
    with pytest.raises(UsageError) as error:
        load_reward(path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_record_has_the_shares_and_the_parts_of_every_sample(tmp_path):
    """One record for each sample, of the dictionary that verl gets."""
    row = ("s", "wrong yes", "18", {"split": "train"})
    result = asyncio.run(reward().compute_score_async(*row, record=str(tmp_path)))
    [file] = tmp_path.glob(PATTERN)
    [line] = file.read_text(encoding="utf-8").splitlines()
    numbers = {key: value for key, value in result.items() if key != "pred"}
    assert json.loads(line)["values"] == numbers
