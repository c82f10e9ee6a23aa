"""Adapters are loaded and called as their trainers do."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import pickle
import sys
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.errors import UnknownNameError
from rewardkit.scorers import auto, base

ADAPTERS = ("trl", "ms_swift", "openrlhf", "slime", "easyr1", "areal", "verifiers")
PROMPT = "<|im_start|>user\nWrite #### and a number: 2+2?<|im_end|>\n<|im_start|>assistant\n"
ROW = {"data_source": "openai/gsm8k", "ground_truth": "4", "extra_info": {"index": 0}}

import_module = importlib.import_module


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch):
    """Empty the log; replace ms-swift by a dictionary, and torch.tensor by a list if it is missing."""
    monkeypatch.setattr(base, "_logged", set())
    if importlib.util.find_spec("torch") is None:
        torch = ModuleType("torch")
        torch.tensor = list
        monkeypatch.setitem(sys.modules, "torch", torch)
    rewards = ModuleType("swift.rewards")
    rewards.orms = {}
    monkeypatch.setitem(sys.modules, "swift", ModuleType("swift"))
    monkeypatch.setitem(sys.modules, "swift.rewards", rewards)


def file_of(name):
    module = import_module(f"rewardkit.adapters.{name}")
    return Path(module.__path__[0]) / "plugin.py" if name == "ms_swift" else Path(module.__file__)


def load(name):
    """Load the adapter's file by its path, without an entry in `sys.modules`, as OpenRLHF does."""
    spec = importlib.util.spec_from_file_location("custom_reward_fn", file_of(name))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def trl_calls(function, response, row):
    """TRL: keywords, every column repeated for each completion, and three of TRL's."""
    own = {"trainer_state": object(), "log_extra": lambda *_: None, "log_metric": lambda *_: None}
    columns = {key: [value, value] for key, value in row.items()}
    pairs = {
        "prompts": ["p", "p"],
        "completions": [response, "another"],
        "completion_ids": [[1], [2]],
    }
    rewards = function(**pairs, **columns, **own)
    assert (type(rewards), len(rewards)) == (list, 2)
    return rewards[0]


def ms_swift_calls(function, response, row):
    """ms-swift: completions by position, columns as keywords."""
    columns = {key: [value] for key, value in row.items()}
    rewards = function([response], messages=[[]], trainer_state=None, **columns)
    assert type(rewards) is list
    return rewards[0]


def openrlhf_calls(function, response, row):
    """OpenRLHF: prompt and response with special tokens, a batch of one, the label's column."""
    text = response if isinstance(response, str) else ""
    result = function([f"{PROMPT}{text}<|im_end|>"], [PROMPT], [row])
    assert result.keys() == {"rewards", "scores", "extra_logs"}
    assert len(result["rewards"]) == len(result["scores"]) == 1
    assert all(len(values) == 1 for values in result["extra_logs"].values())
    return float(result["rewards"][0])


def slime_calls(function, response, row):
    """slime: `await fn(args, sample)`, the row's other columns as the sample's metadata."""
    info = {**(row.get("extra_info") or {}), "data_source": row.get("data_source")}
    sample = SimpleNamespace(
        prompt=PROMPT, response=response, label=row.get("ground_truth"), metadata=info
    )
    return asyncio.run(function(SimpleNamespace(reward_key=None), sample))


def easyr1_calls(function, response, row):
    """EasyR1: a list of dictionaries, with keywords bound by `partial`."""
    (result,) = function([{"response": response, "response_length": 3, "ground_truth": row}])
    assert all(type(value) is float for value in result.values())
    return result["overall"]


def areal_calls(function, response, row):
    """AReaL: four by position, the whole row as keywords, all of it pickled."""
    bound = partial(function, "p", response, [1], [2], **row, prompt=[{"role": "user"}])
    return pickle.loads(pickle.dumps(bound))()


def verifiers_calls(function, response, row):
    """verifiers 0.4: a coroutine function, with those of `task` and `trace` that it names."""
    task = {"idx": 0, "prompt": "p", **row}
    return asyncio.run(function(task=task, trace=SimpleNamespace(last_reply=response)))


CALLS = {name: globals()[f"{name}_calls"] for name in ADAPTERS}


def reward_of(name, scorer="auto", **options):
    return import_module(f"rewardkit.adapters.{'trl' if name == 'ms_swift' else name}").reward(
        scorer, **options
    )


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_call_in_code_names_the_scorer_and_its_options(name, tmp_path):
    row = {**ROW, "data_source": "", "extra_info": None}
    assert CALLS[name](reward_of(name, "gsm8k", method="robust"), "####4", row) == 1.0
    assert CALLS[name](reward_of(name, "gsm8k"), "####4", row) == 0.0
    for arguments in ({"scorer": "gsmk8"}, {"scorer": "gsm8k", "metod": "robust"}):
        with pytest.raises(UnknownNameError, match="Did you mean"):
            reward_of(name, **arguments)
    (tmp_path / "mine.py").write_text(
        "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
        "    assert data_source == 'openai/gsm8k' and extra_info['index'] == 0\n"
        "    return {'score': 0.25, 'acc': solution_str.endswith(ground_truth)}\n"
    )
    function = reward_of(name, f"{tmp_path / 'mine.py'}:compute_score")
    assert CALLS[name](function, "it is 4", ROW) == 0.25


@pytest.mark.parametrize("name", ADAPTERS)
def test_the_file_loads_by_path_and_the_environment_names_the_scorer(name, monkeypatch):
    def loaded():
        module = load(name)
        return module.orms["rewardkit"](args=None) if name == "ms_swift" else module.reward_func

    def called(row, response):
        if name == "areal":  # AReaL pickles the function and accepts a name, not a path
            return loaded()("p", response, [1], [2], **row)
        return CALLS[name](loaded(), response, row)

    row = {**ROW, "data_source": "", "extra_info": None}
    if name != "ms_swift":  # it uses trl's, which read the environment at import
        monkeypatch.setenv("REWARDKIT_SCORER", "math_dapo")
        assert called(row, "Answer: 5") == -1.0
        monkeypatch.setenv("REWARDKIT_SCORER", "gsmk8")
        with pytest.raises(UnknownNameError, match="Did you mean 'gsm8k'"):
            loaded()
    monkeypatch.delenv("REWARDKIT_SCORER", raising=False)
    assert called(ROW, "#### 4") == 1.0


@pytest.mark.parametrize("name", ADAPTERS)
def test_for_a_fault_in_the_data_trl_gets_none_and_others_the_wrong_score(name, caplog):
    gives_none = name in ("trl", "ms_swift")
    dapo = {"data_source": "math_dapo", "ground_truth": None}
    for fault in (
        {"ground_truth": "four"},
        {"data_source": "openai/gsm9k"},
        {"data_source": None},
        dapo,
    ):
        reward = CALLS[name](reward_of(name), "#### 4", {**ROW, **fault})
        assert reward == (None if gives_none else -1.0 if fault == dapo else 0.0), fault
    assert "REWARDKIT_SCORER=gsm8k" in caplog.text


ANSWERS = st.sampled_from(["#### 4", "Answer: 4", "\\boxed{4}", "4", "#### 5\n#### 4"])
AFTER = st.text(st.characters(exclude_characters="<>|"))
RESPONSES = st.tuples(st.text(), ANSWERS, AFTER).map("".join)
KEYS = st.sampled_from(["role", "content", "a"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
)


@pytest.mark.parametrize("name", ADAPTERS)
@given(response=RESPONSES, source=st.sampled_from(["openai/gsm8k", "math_dapo", "aime"]))
def test_the_reward_is_the_score_that_verl_would_get(name, response, source):
    """The data source chooses the scorer."""
    row = {**ROW, "data_source": source}
    for text in (response, "#### 4", "Answer: 4"):
        verdict = auto.compute_score(source, text, "4", ROW["extra_info"])
        if verdict["error"] == 0.0:
            assert CALLS[name](reward_of(name), text, row) == verdict["score"]


@pytest.mark.parametrize("name", ADAPTERS)
@given(response=JSON, gold=JSON)
def test_no_response_makes_an_adapter_raise(name, response, gold):
    reward = CALLS[name](reward_of(name, "gsm8k"), response, {**ROW, "ground_truth": gold})
    assert reward is None or type(reward) is float


@pytest.mark.parametrize("name", ["trl", "ms_swift", "slime", "areal", "verifiers"])
def test_the_rows_of_prep_work_unchanged(name):
    """The rows have verl's columns: the gold in `reward_model`, the scorer in `extra_info`."""
    row = {
        "data_source": "acme/sums",
        "reward_model": {"style": "rule", "ground_truth": "4"},
        "extra_info": {"index": 0, "scorer": "gsm8k", "answer": "2+2=4\n#### 4"},
    }
    if name == "slime":
        row["ground_truth"] = row["reward_model"]  # --label-key reward_model
    assert CALLS[name](reward_of(name), "#### 4", row) == 1.0


def test_trl_metrics_have_the_name_of_the_scorer():
    gsm8k_reward, math_reward = reward_of("trl", "gsm8k"), reward_of("trl", "math")
    assert (gsm8k_reward.__name__, math_reward.__name__) == ("gsm8k", "math")
    assert reward_of("trl").__name__ == "rewardkit"
    assert pickle.loads(pickle.dumps(gsm8k_reward)).__name__ == "gsm8k"
    metrics, columns = {}, {}
    rewards = gsm8k_reward(
        completions=["#### 4", "#### 5", "none", "#### 4"],
        ground_truth=["4", "4", "4", "four"],
        answer=["9", "9", "9", "9"],
        log_metric=metrics.__setitem__,
        log_extra=columns.__setitem__,
    )
    assert rewards == [1.0, 0.0, 0.0, None]
    shares = {"acc": 0.25, "no_answer": 0.25, "timeout": 0.0, "error": 0.25}
    assert metrics == {f"gsm8k/{name}": share for name, share in shares.items()}
    assert columns == {"gsm8k_pred": ["4", "5", "", "4"]}
    assert gsm8k_reward(completions=[]) == []


def test_openrlhf_responses_do_not_include_the_prompt():
    """Examples in the prompt would count as answers, and the prompt may be cut at its start."""
    function = reward_of("openrlhf", "gsm8k")
    prompt = f"<|im_start|>user\nAn example: #### 4\n{'words ' * 50}\n<|im_start|>assistant\n"
    for query in (prompt, prompt[100:]):
        assert function([f"{query}no idea<|im_end|>"], [prompt], ["4"])["rewards"][0] == 0.0
        result = function([f"{query}#### 4<|im_end|>"], [prompt], ["4"])
        assert result["rewards"][0] == result["scores"][0] == result["extra_logs"]["acc"][0] == 1.0
    batch_result = function([PROMPT + "#### 4", PROMPT + "#### 5"], [PROMPT, PROMPT], ["4", "4"])
    assert list(batch_result["rewards"]) == [1.0, 0.0]


def test_slime_groups_get_lists_and_a_reward_key_dictionaries():
    function, info = reward_of("slime"), {"data_source": "openai/gsm8k"}
    samples = [SimpleNamespace(response=t, label="4", metadata=info) for t in ("#### 4", "#### 5")]
    assert asyncio.run(function(SimpleNamespace(), samples)) == [1.0, 0.0]
    results = asyncio.run(function(SimpleNamespace(reward_key="score"), samples, extra=1))
    assert [(r["score"], r["acc"], r["pred"]) for r in results] == [
        (1.0, 1.0, "4"),
        (0.0, 0.0, "5"),
    ]


def test_easyr1_kwargs_name_the_scorer_and_its_options():
    module = load("easyr1")
    assert (module.REWARD_TYPE, module.REWARD_NAME) == ("batch", "rewardkit")
    inputs = [{"response": "####4", "response_length": 5, "ground_truth": "4"}]
    expected = {"overall": 1.0, "accuracy": 1.0, "no_answer": 0.0, "timeout": 0.0, "error": 0.0}
    assert partial(module.reward_func, scorer="gsm8k", method="robust")(inputs) == [expected]
    assert partial(module.reward_func, scorer="gsm8k")(inputs)[0]["overall"] == 0.0


@pytest.mark.parametrize("name", ["slime", "verifiers"])
def test_a_slow_scorer_does_not_block_the_event_loop(name, tmp_path):
    """The scorers wait for a file that the loop writes after all have begun (three for slime)."""
    (tmp_path / "slow.py").write_text(
        "import time\nfrom pathlib import Path\nHERE = Path(__file__).parent\n"
        "def compute_score(data_source, solution_str, ground_truth, extra_info):\n"
        "    (HERE / f'begun-{time.monotonic_ns()}').touch()\n"
        "    end = time.monotonic() + 60\n"
        "    while not (HERE / 'go').exists() and time.monotonic() < end:\n"
        "        time.sleep(0.01)\n"
        "    return float((HERE / 'go').exists())\n"
    )
    function = reward_of(name, f"{tmp_path / 'slow.py'}:compute_score")
    sample = SimpleNamespace(response="x", label="4", metadata={}, last_reply="x")
    is_group = name == "slime"

    async def run():
        args = (SimpleNamespace(reward_key=None), [sample] * 3) if is_group else ({}, sample)
        task = asyncio.create_task(function(*args))
        while len(list(tmp_path.glob("begun-*"))) < (3 if is_group else 1):
            assert not task.done()
            await asyncio.sleep(0.01)
        (tmp_path / "go").touch()
        return await task

    assert asyncio.run(run()) == ([1.0] * 3 if is_group else 1.0)
