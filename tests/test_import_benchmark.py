"""benchmarks/import_scripts.py: every way in which a plan can differ from bash's command is noticed."""

import json
from pathlib import Path

import pytest

from tests.tables import every

FOLDER = Path(__file__).parents[1] / "benchmarks"
MAIN = "python3 -m verl.trainer.main_ppo"
SETTINGS = (
    "data.train_files=/d/a.parquet data.val_files=/d/b.parquet actor_rollout_ref.model.path=Qwen/Qwen3-4B "
    "data.train_batch_size=64"
)
RUN = f"{MAIN} {SETTINGS}"
CONFIG = "actor_rollout_ref.model.override_config"
REWARD = "reward.custom_reward_function.path"
HERE = 'HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)\n'


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import import_scripts

    return import_scripts


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "CWD"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", "/HOME/user")
    return folder


@every(
    ("script", "command", "verdict"),
    [
        (RUN, RUN, "equal"),
        (f"{RUN} data.no_such_key=1", f"{RUN} data.no_such_key=1", "equal, less what is reported"),
        (RUN, f"{RUN} data.max_prompt_length=77", "lost key"),
        (RUN, f"{RUN} data.max_prompt_length=512", "equal"),  # verl's default
        (f"{RUN} data.max_prompt_length=77", RUN, "foreign key"),
        (RUN, RUN.replace("=64", "=65"), "wrong value"),
        (f"{RUN} 'trainer.project_name=$(date)'", f"{RUN} trainer.project_name=x", "shell left in"),
        (f"{RUN} trainer.project_name=run_$(date +%F)", f"{RUN} trainer.project_name=run_20261122_1402", "equal, less what is reported"),
        (f"{RUN} trainer.project_name=run", f"{RUN} trainer.project_name=run_20261122_1402", "wrong value"),
        (f"{RUN} +{CONFIG}.a=sdpa", f"{RUN} +{CONFIG}={{a:sdpa}}", "equal"),
        (RUN, RUN.replace("main_ppo", "main_ppo_sync"), "wrong value"),
        (RUN.replace("main_ppo", "main_ppo_sync"), RUN.replace("main_ppo", "main_ppo_sync"), "equal, less what is reported"),
        (f"{HERE}{RUN} trainer.project_name=$HERE", f"{RUN} trainer.project_name=/SCRIPTS", "equal"),
        ("echo hello", RUN, "refused"),
        (f"{RUN} {REWARD}=./r.py", f"{RUN} {REWARD}=./r.py", "equal"),
        (f"{RUN} {REWARD}=./r.py", f"{RUN} {REWARD}=/CWD/s.py", "wrong value"),
    ],
)  # fmt: skip
def test_each_difference_has_its_verdict(benchmark, folder, script, command, verdict):
    (folder / "a.sh").write_text(script, encoding="utf-8")
    (folder / "a.json").write_text(json.dumps({"argv": command.split()}), encoding="utf-8")
    [run] = benchmark.read_runs(folder)
    assert benchmark.judge(run, "0.9.1").verdict == verdict


@every(
    ("one", "other", "is_equal"),
    [
        ("1e-6", "0.000001", True),
        ("True", "true", True),
        ("'a b'", '"a b"', True),
        ("[a, 'b',1]", "[a,b,1.0]", True),
        ("{a: 1, b: [x]}", "{a:1,b:[x]}", True),
        ("hdfs://a:9/b", "'hdfs://a:9/b'", True),
        ("1", "'1'", False),
        ("1", "True", False),
        ("[a]", "a", False),
        ("[a,b]", "[b,a]", False),
        ("null", "''", False),
        ("[a", "[a]", False),
    ],
)
def test_two_spellings_of_a_value_are_equal_and_two_values_are_not(benchmark, one, other, is_equal):
    values = benchmark.hydra_value(one), benchmark.hydra_value(other)
    assert benchmark.is_equal(*values) is is_equal
