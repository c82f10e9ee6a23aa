"""Real verl without mocks loads our reward, reads our parquet, and scores with both."""

from __future__ import annotations

import ast
import inspect
import random
import shutil

import pytest

import rewardkit
from rewardkit import registry
from rewardkit.launch.preflight.reward import VERL_SOURCES
from rewardkit.launch.verl.releases import reward_key, reward_overrides
from rewardkit.row import read_rows, write_rows
from rewardkit.scorers.base import spec_of
from rewardkit.scorers.gold import alternatives, another_answer
from rewardkit.scorers.load import location, scorer_for
from tests.integration.conftest import VERL, row
from tests.tables import every

KEYS = {"score", "acc", "pred", "no_answer", "timeout", "error"}


def right_or_wrong(row):
    """Answer even rows right and odd rows wrong."""
    index, gold = row["extra_info"]["index"], row["reward_model"]["ground_truth"]
    answer = gold if index % 2 == 0 else f"{gold}1"
    return f"#### {answer}" if row["extra_info"]["scorer"] == "gsm8k" else rf"\boxed{{{answer}}}"


def expected(row):
    return 1.0 if row["extra_info"]["index"] % 2 == 0 else 0.0


def rows_of(*files):
    return [each for file in files for each in read_rows(file)]


@pytest.mark.parametrize("name", ["gsm8k", "math", "auto"])
def test_verl_loads_a_scorer_by_path(load_reward, name):
    """verl's own loader accepts the file that `rewardkit path` prints."""
    reward = load_reward(location(name))
    result = reward(
        data_source="openai/gsm8k",
        solution_str="#### 18" if name != "math" else r"\boxed{18}",
        ground_truth="18",
        extra_info={"num_turns": 2},
    )
    assert result.keys() == KEYS
    assert result["score"] == 1.0


def test_verl_loads_a_scorer_as_a_package(load_reward):
    reward = load_reward(location("gsm8k", pkg=True))
    assert reward(data_source="", solution_str="#### 1", ground_truth="1")["score"] == 1.0


def test_the_printed_overrides_set_the_reward(compose):
    """The overrides of `rewardkit path --verl` for this release compose and set the reward."""
    reward = get_reward(compose(*reward_overrides(location("gsm8k"), {"method": "robust"}, VERL)))
    assert reward(data_source="", solution_str="#### $18", ground_truth="18")["score"] == 1.0


def get_reward(config):
    from verl.trainer.ppo.reward import get_custom_reward_fn

    return get_custom_reward_fn(config)


@pytest.mark.parametrize("manager", ["naive", "dapo"])
def test_verl_scores_a_batch_of_our_rows(score_batch, parquet, manager):
    """verl's managers call our function with their own arguments and return every extra key."""
    rewards, extras = score_batch(manager, location("gsm8k"), [parquet], right_or_wrong)
    rows = rows_of(parquet)
    assert rewards == [expected(row) for row in rows]
    assert [e["acc"] for e in extras] == [expected(row) for row in rows]
    assert all(e.keys() >= KEYS for e in extras)
    assert extras[0]["pred"] == rows[0]["reward_model"]["ground_truth"]


def test_verl_concatenates_our_files(score_batch, parquet, boxed_parquet):
    """`auto` judges two datasets with two scorers in one `data.train_files` list."""
    files = [parquet, boxed_parquet]
    rewards, extras = score_batch("naive", location("auto"), files, right_or_wrong)
    assert rewards == [expected(row) for row in rows_of(*files)]
    assert {frozenset(e.keys() & KEYS) for e in extras} == {frozenset(KEYS)}


def test_verl_loads_all_datasets_in_one_list(load, tmp_path):
    """It loads all our datasets, also those with images, as one `data.train_files`."""
    names = sorted(registry.DATASETS)
    for name in names:
        rewardkit.prep(name, tmp_path / name, split="all", sample=True)
    files = sorted(tmp_path.glob("*/*.parquet"))
    loaded = load(*files, processor=object())
    rows = rows_of(*files)
    assert len(files) > len(names)
    assert [r["extra_info"]["index"] for r in loaded] == [r["extra_info"]["index"] for r in rows]
    golds = [r["reward_model"]["ground_truth"] for r in rows]
    assert [r["reward_model"]["ground_truth"] for r in loaded] == golds
    # Every shape of a row is among them; test_turns_in_verl.py has tools, interactions and search.
    assert {4, 10} <= {len(row["extra_info"]["options"] or ()) for row in loaded}
    assert any(len(alternatives(gold)) > 1 for gold in golds)
    assert any(row.get("images") is not None for row in rows)


def test_verl_scores_rows_with_several_golds_and_with_ten_options(score_batch, tmp_path):
    """Each alternative of NQ is right, and so is the letter of one of ten options."""
    files = []
    for name, split in (("nq", "train"), ("mmlu-pro", "test")):
        rewardkit.prep(name, tmp_path / f"{name}.parquet", split=split, sample=True)
        files.append(tmp_path / f"{name}.parquet")
    rows = rows_of(*files)

    def respond(row):
        gold = row["reward_model"]["ground_truth"]
        golds = alternatives(gold) or (gold,)
        answer = golds[-1] if expected(row) else another_answer(*golds)
        return spec_of(scorer_for(row["data_source"], row["extra_info"])).respond(answer)

    whole = ("data.truncation=left", "data.filter_overlong_prompts=False")
    rewards, extras = score_batch("naive", location("auto"), files, respond, *whole)
    assert rewards == [expected(row) for row in rows]
    assert not any(extra["error"] for extra in extras)


def test_an_unknown_data_source_scores_as_wrong_and_sets_error(score_batch, tmp_path, caplog):
    """verl itself raises or drops such samples; with our scorer they are logged once."""
    rows = (row(i, f"Question {i}", 1, "nobody/knows") for i in range(4))
    write_rows(rows, tmp_path / "unknown.parquet", {})
    files = [tmp_path / "unknown.parquet"]
    rewards, extras = score_batch("naive", location("auto"), files, lambda _: "#### 1")
    assert rewards == [0.0] * 4
    assert [e["error"] for e in extras] == [1.0] * 4
    assert len([r for r in caplog.records if "nobody/knows" in r.message]) == 1


def gsm8k_strings(n, seed):
    """Generate responses from pieces that matter for GSM8K's extraction, and golds."""
    rng = random.Random(seed)
    pieces = [
        "#### ", "####", "### ", "#", " ", "\n", "-", "--", ".", ",", "..", "$", "\\boxed{", "}",
        "0", "7", "18", "1,000", "1,000.00", "-5", "3.5", ".5", "5.", "١٨", "１８", "x", "so it is ",
        "the answer is ", "** ", "é", "\ud800", "\x00", "\u202e", "A", "blah " * 80,
    ]  # fmt: skip
    golds = ["18", "7", "0", "1000", "1,000", "-5", "3.5", ".5", "5.", "1000.00", ".", "-", "A"]
    for _ in range(n):
        yield "".join(rng.choices(pieces, k=rng.randint(0, 14))), rng.choice(golds)


@pytest.mark.parametrize("method", ["strict", "flexible"])
def test_gsm8k_gives_verl_s_verdicts(method, gsm8k_responses):
    """No score differs on all available real responses and on 20,000 generated ones."""
    from verl.utils.reward_score import gsm8k as verl_gsm8k

    from rewardkit.scorers.gsm8k import score

    cases = [*gsm8k_responses, *gsm8k_strings(20_000, seed=1)]
    differences = [
        (text, gold)
        for text, gold in cases
        for weight in (0.0, 0.1)
        if score(text, gold, method=method, format_score=weight).score
        != verl_gsm8k.compute_score(text, gold, method=method, format_score=weight)
    ]
    right = sum(score(text, gold, method=method).correct for text, gold in cases)
    assert differences == []
    assert right > 40


@every("folder", ["奖励", "a b", "x=1,2", "it's {here}", "back\\slash"])
def test_our_quoting_survives_hydra(compose, tmp_path, folder):
    """Any path reaches verl unchanged, and option values keep their types."""
    scorer = tmp_path / folder / "gsm8k.py"
    scorer.parent.mkdir()
    shutil.copy(location("gsm8k"), scorer)
    options = {"a": "x y", "b": 1, "c": 1e300, "d": True, "e": None, "f": "1", "g": "it's 中\\'"}
    config = compose(*reward_overrides(str(scorer), options, VERL))
    for part in reward_key(VERL).split("."):
        config = config[part]
    assert config.path == str(scorer)
    assert dict(config.reward_kwargs) == options
    reward = get_reward(compose(*reward_overrides(str(scorer), {}, VERL)))
    assert reward(data_source="", solution_str="#### 1", ground_truth="1")


def sources_of_verl():
    """The data sources that verl's default reward compares with, and its prefixes with a star."""
    import verl.utils.reward_score as module

    sources = set()
    for node in ast.walk(ast.parse(inspect.getsource(module.default_compute_score))):
        if isinstance(node, ast.Compare) and ast.unparse(node.left) == "data_source":
            value = ast.literal_eval(node.comparators[0])
            sources |= {value} if isinstance(value, str) else {*value}
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "data_source.startswith":
            sources.add(f"{ast.literal_eval(node.args[0])}*")
    return sources


def test_every_data_source_of_verl_s_default_reward_has_a_scorer_of_ours():
    assert sources_of_verl() == {*VERL_SOURCES} <= registry.DATA_SOURCES.keys()


def test_verl_s_default_reward_evaluates_an_answer_of_geometry3k():
    """Python's own `id` is called; ours reads the same text and runs nothing."""
    pytest.importorskip("mathruler")
    from verl.utils.reward_score import default_compute_score

    source, response = "hiyouga/geometry3k", r"\boxed{id(7)-id(7)+6.5}"
    assert default_compute_score(source, response, "6.5") == 0.9
    assert scorer_for(source, {})(response, "6.5", {}).score == 0.0
