import importlib.util
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.errors import OutputError, UsageError
from rewardkit.scorers import gsm8k
from rewardkit.scorers.base import spec_of
from rewardkit.scorers.compose import Part, Reward, build, write_reward_file
from rewardkit.scorers.load import load_scorer
from rewardkit.strict_yaml import read_yaml
from tests.tables import every

FIXED = {"score", "acc", "pred", "no_answer", "timeout", "error"}
NAMES = ["correct", "format", "repetition", "length"]
YAML = """\
scorer: gsm8k
options: {method: robust}
parts:
  correct: 1.0
  format: {weight: 0.1, tags: [think, answer]}
  repetition: {weight: 0.2, n: 20}
  length: {weight: 0.5, max_chars: 1000}
"""
SPEC = read_yaml(YAML, "reward.yaml")
GOOD = "<think>9 + 9</think><answer>it is</answer>\n#### $18.00"


@pytest.fixture
def write_yaml(tmp_path):
    """Return a function that writes text as reward.yaml and returns its path."""

    def write(text=YAML):
        path = tmp_path / "reward.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def load_as_verl_does(path):
    """Execute a file as verl does, without an entry in sys.modules."""
    spec = importlib.util.spec_from_file_location("custom_module", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_reward(path):
    """Return the reward in the file that `compose` writes."""
    return load_as_verl_does(
        write_reward_file(path, path.with_suffix(".py"), overwrite=True)
    ).REWARD


def test_the_score_is_the_sum_of_the_parts_and_acc_is_that_of_the_scorer(write_yaml):
    result = load_reward(write_yaml()).compute_score("openai/gsm8k", GOOD, "18")
    assert result.keys() == FIXED | set(NAMES)
    assert (result["correct"], result["format"], result["repetition"]) == (1.0, 0.1, 0.0)
    assert 0.49 < result["length"] < 0.5
    assert result["score"] == pytest.approx(sum(result[name] for name in NAMES))
    assert (result["acc"], result["pred"]) == (1.0, "$18.00")


def test_every_sample_has_the_same_numeric_keys_even_on_failures(write_yaml):
    reward = load_reward(write_yaml())
    results = [
        reward.compute_score("openai/gsm8k", solution, gold, extra, **kwargs)
        for solution in (GOOD, "", None, 18)
        for gold in ("18", None, 18, "many")
        for extra in (None, {}, {"num_turns": 2}, "text")
        for kwargs in ({}, {"method": "strict"}, {"reward_router_address": "x"}, {"method": "no"})
    ]
    assert {tuple(sorted(r)) for r in results} == {tuple(sorted(FIXED | set(NAMES)))}
    assert {type(value) for r in results for key, value in r.items() if key != "pred"} == {float}


@given(response=st.text(), gold=st.text())
def test_no_text_makes_the_reward_raise_and_the_score_is_always_the_sum(response, gold):
    """The reward is a scorer too, with the same score and verdict."""
    reward = build(SPEC)
    result, score = reward.compute_score("", response, gold), reward(response, gold)
    assert result["score"] == pytest.approx(sum(result[name] for name in NAMES))
    assert -0.7 <= result["score"] <= 1.6
    assert score[:3] == (result["score"], result["acc"] == 1.0, result["pred"])


def test_the_generated_file_scores_as_the_yaml_does(write_yaml, tmp_path):
    """It is a scorer of rewardkit too."""
    path = write_yaml()
    out = write_reward_file(path, tmp_path / "my_reward.py")
    module = load_as_verl_does(out)
    path.unlink()  # the file does not need the YAML
    for response in (GOOD, "#### 17", ""):
        row = {"data_source": "openai/gsm8k", "solution_str": response, "ground_truth": "18"}
        verl = {"extra_info": {"num_turns": 2}, "reward_model_tokenizer": None}
        assert module.compute_score(**row, **verl) == build(SPEC).compute_score(**row)
    for function in ("score", "compute_score"):
        scorer = load_scorer(f"{out}:{function}")
        assert scorer(GOOD, "18").score > 1
        assert spec_of(scorer).respond("18") == "#### 18"


def test_the_file_is_utf_8_and_no_text_of_the_yaml_becomes_code(write_yaml, tmp_path):
    text = YAML.replace("[think, answer]", '[\'"""+open("x")+"""\', \'{spec}\', \'\\\', 你好]')
    out = write_reward_file(write_yaml(text), tmp_path / "my_reward.py")
    tags = load_as_verl_does(out).REWARD.parts[1].value.__self__.tags
    assert tags == ['"""+open("x")+"""', "{spec}", "\\", "你好"]
    assert "你好" in out.read_text(encoding="utf-8")


def test_nothing_is_overwritten_by_default_and_an_invalid_yaml_writes_nothing(write_yaml, tmp_path):
    out = tmp_path / "my_reward.py"
    out.write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError, match="exists"):
        write_reward_file(write_yaml(), out)
    with pytest.raises(UsageError):
        write_reward_file(write_yaml("scorer: gsm8k"), out, overwrite=True)
    assert out.read_text(encoding="utf-8") == "mine"
    assert write_reward_file(write_yaml(), out, overwrite=True) == out.resolve()


def test_a_custom_scorer_is_found_beside_the_yaml(write_yaml, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "def reward(data_source, solution_str, ground_truth, extra_info=None):\n"
        "    return 2.0 if solution_str == data_source else 0.0\n",
        encoding="utf-8",
    )
    path = write_yaml("scorer: mine.py:reward\nright_score: 2\nparts: {base: 0.5, correct: 1}\n")
    monkeypatch.chdir("/")
    module = load_as_verl_does(write_reward_file(path, tmp_path / "my_reward.py"))
    result = module.compute_score("me", "me", "18")
    assert (result["base"], result["correct"], result["score"]) == (1.0, 1.0, 2.0)


def test_auto_reads_the_data_source_that_verl_passes():
    reward = build({"scorer": "auto", "parts": {"correct": 1.0}})
    assert reward.compute_score("openai/gsm8k", "#### 18", "18", {"index": 1})["score"] == 1.0
    assert reward.compute_score("nobody/knows", "#### 18", "18")["error"] == 1.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scorer: gsm8k\nparts: {corect: 1}", "unknown key 'corect'. Did you mean 'correct'"),
        ("scorer: gsm8k\noptions: {method: robst}\nparts: {correct: 1}", "Did you mean 'robust'"),
        ("parts: {correct: 1}", "reward.yaml: scorer: it is missing."),
        ("scorer: gsm8k", "at least one part"),
        ("scorer: gsm8k\nparts: {correct: true}", "correct: weight: give a number, not True"),
        ("scorer: gsm8k\nparts: {correct: .nan}", "not YAML of plain values"),
        ("scorer: gsm8k\nparts: {format: {tags: [a]}}", "parts.format: weight: it is missing"),
        ("scorer: gsm8k\nparts: {repetition: {weight: 1, n: 0}}", "or equal to 1, not 0."),
        ("scorer: gsm8k\nparts: {repetition: {weight: 1, n: 1001}}", "or equal to 1000"),
        ("scorer: gsm8k\nparts: {length: {weight: 1, max_chars: 0}}", "max_chars"),
        ("scorer: [", "reward.yaml:1: "),
        ("", "not NoneType"),
        ("!!python/object/apply:os.system [true]", "tags are not read"),
    ],
)
def test_the_error_for_a_mistake_in_the_yaml_is_one_line_with_its_place(write_yaml, text, message):
    with pytest.raises(UsageError) as error:
        load_reward(write_yaml(text))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


CORRECT = Part("correct", 1.0, lambda score, _: score.correct)


def brevity(score, response):
    return float(score.correct and len(response) < 20)


def test_a_reward_can_be_written_in_ten_lines_of_python():
    reward = Reward(gsm8k.score, (CORRECT, Part("b", 2, brevity)))
    assert reward("#### 18", "18").score == 3.0
    assert reward.compute_score("", "#### 18", "18")["b"] == 2.0
    assert reward.compute_score("", "#### 18" + " " * 20, "18", method="robust")["score"] == 1.0


@pytest.mark.parametrize("value", [lambda s, r: 1 / 0, lambda s, r: float("nan"), lambda s, r: "x"])
def test_a_part_that_fails_contributes_nothing_and_sets_error(value, caplog):
    reward = Reward(gsm8k.score, (CORRECT, Part("b", 1, value)))
    with caplog.at_level(logging.ERROR, "rewardkit"):
        result = reward.compute_score("s", "#### 18", "18")
    assert (result["score"], result["b"], result["acc"], result["error"]) == (1.0, 0.0, 1.0, 1.0)


@pytest.mark.parametrize("name", ["score", "pred", "overlong_reward"])
def test_a_part_cannot_have_a_reserved_name(name):
    for parts in ((Part(name, 1.0, brevity),), (Part("b", 1.0, brevity), Part("b", 2.0, brevity))):
        with pytest.raises(UsageError, match="name is in use"):
            Reward(gsm8k.score, parts)


@every(
    ("parts", "response", "score"),
    [
        ({"base": 2}, "#### 18", 2.0),
        ({"format": {"weight": 1, "outside": False}}, "<think>a</think><answer>b</answer> c", 0.0),
        ({"length": {"weight": 1, "max_chars": 7, "long_correct": 0.25}}, "#### 18", 0.25),
        ({"length": {"weight": 1, "max_chars": 10, "short_wrong": -3.0}}, "", -3.0),
        ({"length": {"weight": 1, "max_chars": 10, "long_wrong": -3.0}}, "x" * 10, -3.0),
        ({"length": {"weight": -1, "max_chars": 10, "long_wrong": -0.5}}, "x" * 10, 0.5),
    ],
)
def test_a_part_of_a_yaml_has_the_value_and_the_defaults_of_its_table(parts, response, score):
    assert build({"scorer": "gsm8k", "parts": parts})(response, "18").score == pytest.approx(score)


@given(
    st.floats(-10, 10), st.floats(-10, 10) | st.none(), st.floats(-10, 10) | st.none(), st.data()
)
def test_no_length_part_pays_a_long_wrong_answer_more_than_a_short_one(weight, short, long, data):
    """Whatever the sign of the weight: what would is refused with what to set, which is accepted."""
    settings = {"weight": weight, "max_chars": 100, "short_wrong": short, "long_wrong": long}
    length = {name: value for name, value in settings.items() if value is not None}
    try:
        reward = build({"scorer": "gsm8k", "parts": {"length": length}})
    except UsageError as error:
        assert str(error).endswith("leave out long_wrong.")
        assert weight * (long - (-1.0 if short is None else short)) > 0
        del length["long_wrong"]
        reward = build({"scorer": "gsm8k", "parts": {"length": length}})
    few, many = sorted(data.draw(st.tuples(st.integers(0, 120), st.integers(0, 120))))
    assert reward("x" * many, "18").score <= reward("x" * few, "18").score + 1e-9


def test_a_secret_in_the_yaml_is_written_into_no_file(write_yaml, tmp_path):
    path = write_yaml("scorer: judge\noptions: {base_url: 'http://h/v1?key=Qx8shapedValue99'}\n")
    with pytest.raises(UsageError, match=r"reward\.yaml: it contains a secret, .* api_key_env\.$"):
        write_reward_file(path, tmp_path / "r.py")
    assert not (tmp_path / "r.py").exists()


class NoText:
    """A value of verl that has no text, although a gold has items."""

    def __str__(self):
        raise RuntimeError("no text")

    def tolist(self):
        return ["1", "2"]


@pytest.mark.parametrize("field", ["data_source", "solution_str", "ground_truth"])
def test_a_value_of_verl_without_a_text_is_an_error_of_its_sample(field):
    row = {"data_source": "s", "solution_str": "#### 18", "ground_truth": "18", field: NoText()}
    for reward in (gsm8k, build({"scorer": "gsm8k", "second": "qa", "parts": {"correct": 1}})):
        assert reward.compute_score(**row)["error"] == float(field != "data_source")
