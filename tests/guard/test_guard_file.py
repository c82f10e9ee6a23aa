"""`rewardkit guard` tries a reward and writes the file that verl loads."""

import importlib.util
import json
from contextlib import closing

import pytest

import rewardkit
from rewardkit import registry
from rewardkit.errors import UsageError
from rewardkit.guard.guard import GuardSettings
from rewardkit.guard.guard_file import try_reward
from tests.tables import every

REWARD = """
def compute_score(data_source, solution_str, ground_truth, extra_info=None, bonus=0.0):
    if not extra_info.get("question", "") and data_source == "openai/gsm8k":
        raise ValueError("the row has no question")
    right = solution_str == f"#### {ground_truth}"
    return {"score": 1.0 + bonus if right else -1.0, "acc": right, "form": 1.0}

def needs_rows(data_source, solution_str, ground_truth, extra_info=None):
    return {"score": float(len(extra_info["question"]) > 0), "long": 1.0}

async def wait(data_source, solution_str, ground_truth, extra_info=None):
    return 0.5

broken = 3
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "my_reward.py").write_text(REWARD, encoding="utf-8")
    return tmp_path


def load(path):
    spec = importlib.util.spec_from_file_location("custom_module", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_file_scores_with_the_keys_and_the_wrong_score_of_the_trial(cli, folder):
    options = ("--out", "guarded.py", "--set", "bonus=0.5")
    result = cli("guard", "my_reward.py:compute_score", *options, cwd=folder)
    assert result.returncode == 0, result.stderr
    assert "score, acc, form, timeout, error" in result.stdout
    module = load(folder / "guarded.py")
    with closing(module.GUARD):
        right = module.compute_score("test", "#### 18", "18", {})
        assert right == {"score": 1.5, "acc": 1.0, "form": 1.0, "timeout": 0.0, "error": 0.0}
        failed = module.compute_score("openai/gsm8k", "#### 18", "18", {})
        assert failed == {"score": -1.0, "acc": 0.0, "form": 0.0, "timeout": 0.0, "error": 1.0}


def test_rows_show_the_keys_of_a_reward_that_needs_them(cli, folder):
    rewardkit.prep("gsm8k", folder / "rows.parquet", sample=True)
    command = ["guard", "my_reward.py:needs_rows", "--out", "guarded.py"]
    refused = cli(*command, cwd=folder)
    assert refused.returncode == 2
    assert "my_reward.py:9: KeyError: 'question'." in refused.stderr
    assert "--rows train.parquet" in refused.stderr
    assert not (folder / "guarded.py").exists()
    result = cli(*command, "--rows", "rows.parquet", "--json", cwd=folder)
    assert json.loads(result.stdout)["keys"] == ["error", "long", "score", "timeout"]
    half = cli(*command, "--keys", "long", "--overwrite", cwd=folder)
    assert (half.returncode, "--wrong-score 0" in half.stderr) == (2, True)


@every(
    "body, score",
    [
        # It raises unless there is a box: the score of the right one is no score for a failure.
        ("return float(re.search(r'boxed{(.*)}', solution_str).group(1) == ground_truth)", 0.0),
        # It pays short responses: the longest wrong one of the trial has the lowest score.
        ("return 1 / (1 + len(solution_str)) + (ground_truth in solution_str)", 1 / 15),
        ("return {True: 1.0}[ground_truth in solution_str]", None),
        ("return -1.0", -1.0),
    ],
)
def test_a_failure_never_scores_more_than_a_wrong_response(cli, tmp_path, body, score):
    """A reward that fails on all of them is refused: any number could pay for failures."""
    head = "import re\ndef compute_score(data_source, solution_str, ground_truth, extra_info=None):"
    (tmp_path / "odd.py").write_text(f"{head}\n    {body}\n", encoding="utf-8")
    result = cli("guard", "odd.py", "--out", "guarded.py", "--json", "--overwrite", cwd=tmp_path)
    if score is None:
        assert result.returncode == 2
        assert "--wrong-score 0" in result.stderr
    else:
        assert score - 0.07 < json.loads(result.stdout)["wrong_score"] <= score


def test_a_coroutine_function_is_seen(cli, folder):
    command = ["guard", "my_reward.py:wait", "--out", "guarded.py"]
    result = cli(*command, "--json", cwd=folder)
    assert json.loads(result.stdout)["is_async"] is True
    refused = cli(*command, "--cpu-seconds", "1", "--overwrite", cwd=folder)
    assert refused.returncode == 2
    assert "--cpu-seconds" in refused.stderr


@every(
    "reward, message",
    [
        ("my_reward.py:missing", "has no 'missing'"),
        ("my_reward.py:broken", "is int, not a function"),
        ("gsm8k", "needs no guard"),
        ("gsm8", "Did you mean 'gsm8k'"),
        ("slow.py:f --load-seconds 0.5", "slow.py:2: the import stood at this line after 0.5 s"),
    ],
)
def test_a_reward_that_cannot_be_guarded_is_one_line(cli, folder, reward, message):
    (folder / "slow.py").write_text("import time\ntime.sleep(600)\n", encoding="utf-8")
    result = cli("guard", *reward.split(), "--out", "guarded.py", cwd=folder)
    assert result.returncode == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (folder / "guarded.py").exists()


def test_the_scorer_of_a_plug_in_is_guarded_by_its_file(monkeypatch):
    """It keeps no deadline of its own, so that it may need a guard."""
    monkeypatch.setattr(registry, "_plugins", lambda group: {"exam": "exam.scorer:score"})
    with pytest.raises(UsageError, match="name its file, which `rewardkit path exam` prints"):
        try_reward("exam", GuardSettings(), [], keys=(), wrong_score=None)


def test_the_file_is_code_of_literals_only(cli, folder):
    text = 'x\'"""); import os; os._exit(9)  #'
    setting = f"bonus={json.dumps(text)}"
    options = ("--set", setting, "--keys", "x", "--wrong-score", "0", "--out", "guarded.py")
    cli("guard", "my_reward.py:wait", *options, cwd=folder)
    module = load(folder / "guarded.py")
    with closing(module.GUARD):
        assert module.GUARD.settings.options == {"bonus": text}


def test_a_guarded_file_reads_a_secret_option_from_the_environment(cli, folder, monkeypatch):
    secret = "Zq7canaryValue42"
    head = "def f(data_source, solution_str, ground_truth, extra_info=None, api_key=''):"
    (folder / "keyed.py").write_text(f"{head}\n    return float(api_key == {secret!r})\n")
    options = ("keyed.py:f", "--set", f"api_key={secret}", "--out", "guarded.py")
    result = cli("guard", *options, cwd=folder)
    assert "guarded.py reads it from API_KEY. Export that where verl runs." in result.stderr
    assert secret not in (folder / "guarded.py").read_text(encoding="utf-8")
    monkeypatch.delenv("API_KEY", raising=False)
    with pytest.raises(UsageError, match="API_KEY is not set. Export it where verl runs"):
        registry.load("scorers", f"{folder / 'guarded.py'}:compute_score")
    monkeypatch.setenv("API_KEY", secret)
    compute_score = registry.load("scorers", f"{folder / 'guarded.py'}:compute_score")
    assert compute_score("d", "1", "1")["score"] == 1.0
