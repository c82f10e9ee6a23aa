"""benchmarks/import_scripts.py: every way in which a plan can differ from bash's command is noticed."""

import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
SCRIPT = """\
python3 -m verl.trainer.main_ppo data.train_files=/d/a.parquet data.val_files=/d/b.parquet \\
    actor_rollout_ref.model.path=Qwen/Qwen3-4B data.train_batch_size=64 \\
    'trainer.project_name=$(date)' data.no_such_key=1
"""
ARGV = [
    "python3",
    "-m",
    "verl.trainer.main_ppo",
    "data.train_files=/d/a.parquet",
    "data.val_files=/d/b.parquet",
    "actor_rollout_ref.model.path=Qwen/Qwen3-4B",
    "data.train_batch_size=64",
    "trainer.project_name=$(date)",
]


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
    return folder


@pytest.fixture
def judge(benchmark, folder, monkeypatch):
    def verdict(argv, script=SCRIPT):
        monkeypatch.setenv("HOME", benchmark.HOME)
        (folder / "a.sh").write_text(script, encoding="utf-8")
        (folder / "a.json").write_text(json.dumps({"argv": argv}), encoding="utf-8")
        [run] = benchmark.read_runs(folder)
        return benchmark.judge(run, "0.9.1")

    return verdict


def test_a_plan_with_the_keys_and_values_of_bash_is_equal(judge):
    script = SCRIPT.replace(" data.no_such_key=1", "")
    assert judge(ARGV, script).verdict == "equal"


def test_a_key_that_a_finding_names_is_reported_not_lost(judge):
    verdict = judge([*ARGV, "data.no_such_key=1"])
    assert verdict.verdict == "equal, less what is reported"
    assert verdict.notes == ["equal, less what is reported: data.no_such_key=1"]


def test_a_key_that_only_bash_has_is_lost(judge):
    assert judge([*ARGV, "data.max_prompt_length=77"]).verdict == "lost key"


def test_a_key_with_the_default_of_verl_is_not_lost(judge):
    assert judge([*ARGV, "data.max_prompt_length=512"]).verdict == "equal"


def test_a_key_that_only_the_plan_has_is_foreign(judge):
    assert judge([word for word in ARGV if "train_batch_size" not in word]).verdict == "foreign key"


def test_a_value_that_differs_is_wrong(judge):
    verdict = judge([word.replace("=64", "=65") for word in ARGV])
    assert verdict.verdict == "wrong value"
    assert verdict.notes == ["wrong value: data.train_batch_size: bash '65', plan '64'"]


def test_an_expansion_in_the_plan_where_bash_has_a_value_is_shell_left_in(judge):
    assert judge([word.replace("$(date)", "today") for word in ARGV]).verdict == "shell left in"


def test_a_name_with_the_time_is_wrong_unless_a_finding_names_the_key(judge):
    argv = [word.replace("$(date)", "run_20261122_1402") for word in ARGV]
    script = SCRIPT.replace(
        "'trainer.project_name=$(date)'", "trainer.project_name=run_$(date +%F)"
    )
    assert judge(argv, script).verdict == "equal, less what is reported"
    assert judge(argv, SCRIPT.replace("$(date)", "run")).verdict == "wrong value"


def test_a_mapping_is_equal_to_its_keys(judge):
    config = "actor_rollout_ref.model.override_config"
    script = SCRIPT.replace("data.no_such_key=1", f"+{config}.attn_implementation=sdpa")
    argv = [*ARGV, f"+{config}={{attn_implementation: sdpa}}"]
    assert judge(argv, script).verdict == "equal"


def test_another_trainer_is_reported_only_if_a_finding_names_it(judge):
    argv = [word.replace("main_ppo", "main_ppo_sync") for word in ARGV]
    assert judge(argv).verdict == "wrong value"
    script = SCRIPT.replace("main_ppo", "main_ppo_sync")
    assert judge(argv, script).verdict == "equal, less what is reported"


def test_the_folder_of_the_script_is_that_of_the_recorded_run(judge):
    argv = [word.replace("$(date)", "/SCRIPTS") for word in ARGV]
    script = SCRIPT.replace("'trainer.project_name=$(date)'", 'trainer.project_name="$HERE"')
    here = 'HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)\n'
    assert judge(argv, here + script).verdict == "equal"


def test_a_script_that_does_not_start_verl_is_refused_with_the_reason(judge):
    verdict = judge(ARGV, "echo hello\n")
    assert verdict.verdict == "refused"
    assert "does not start verl" in verdict.notes[0]


def test_a_relative_reward_file_is_the_same_file_as_the_absolute_one(judge):
    script = SCRIPT.replace("data.no_such_key=1", "reward.custom_reward_function.path=./r.py")
    assert judge([*ARGV, "reward.custom_reward_function.path=./r.py"], script).verdict == "equal"
    wrong = judge([*ARGV, "reward.custom_reward_function.path=/CWD/s.py"], script)
    assert wrong.verdict == "wrong value"


def test_the_small_scripts_are_equal_with_every_variable_and_argument(
    benchmark, folder, monkeypatch
):
    import small_scripts

    monkeypatch.setenv("HOME", benchmark.HOME)
    small_scripts.write_scripts(folder / "scripts")
    runs = benchmark.read_runs(folder / "scripts")
    assert [benchmark.judge(run, "0.9.1").verdict for run in runs] == ["equal"] * 4


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1e-6", "0.000001"),
        ("True", "true"),
        ("'a b'", '"a b"'),
        ("[a, 'b',1]", "[a,b,1.0]"),
        ("{a: 1, b: [x]}", "{a:1,b:[x]}"),
        ("hdfs://a:9/b", "'hdfs://a:9/b'"),
    ],
)
def test_two_spellings_of_a_value_are_equal(benchmark, one, other):
    assert benchmark.is_equal(benchmark.hydra_value(one), benchmark.hydra_value(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [("1", "'1'"), ("1", "True"), ("[a]", "a"), ("[a,b]", "[b,a]"), ("null", "''"), ("[a", "[a]")],
)
def test_two_values_are_not_equal(benchmark, one, other):
    assert not benchmark.is_equal(benchmark.hydra_value(one), benchmark.hydra_value(other))
