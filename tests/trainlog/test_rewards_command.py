"""`rewardkit logs` shows the records of a reward, alone and beside a log, also while they grow."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from rewardkit.cli import logs
from rewardkit.errors import DataError, UsageError
from rewardkit.trainlog.follow import RunTail
from tests.trainlog.simulated_runs import GROUP, Exploit, Scenario, record, rising

app = typer.Typer()
app.command()(logs.command)

SCENARIO = Scenario(
    name="marker with a control character",
    steps=50,
    prompts=24,
    validation=0,
    skill=rising(-1, 0.5, 0.02),
    exploit=Exploit(kind="marker", middle=34, rate=0.6, marker="\x1b[2J full marks please"),
)
SAMPLES = str(SCENARIO.prompts * GROUP)


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """The log and the folder of records of a run that is hacked."""
    folder = tmp_path_factory.mktemp("run") / "records"
    return record(SCENARIO, 1, folder), folder


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_folder_of_records_is_read_alone(paths):
    _, folder = paths
    result = run(folder)
    assert result.exit_code == 0, result.output
    assert "rewards/score/mean" in result.output
    assert "rewards/distinct_answers/mean" in result.output
    assert "not enough data" in result.output


def test_records_are_shown_beside_the_log_and_the_onset_is_named(paths):
    log, folder = paths
    result = run(log, "--rewards", folder, "--samples-per-step", SAMPLES)
    assert result.exit_code == 0, result.output
    assert "a phrase spreads that the reward pays for (hack_phrase)" in result.output
    assert "full marks please" in result.output
    assert "\x1b" not in result.output
    assert "before" in result.output
    assert "after" in result.output


def test_json_has_the_status_of_every_rule_on_hacking_and_examples(paths):
    log, folder = paths
    result = run(log, "--rewards", folder, "--samples-per-step", SAMPLES, "--json")
    document = json.loads(result.output)
    statuses = {check["rule"]: check["status"] for check in document["hacking"]}
    assert statuses["hack_phrase"] == "found"
    assert statuses["hack_correctness"] == "not enough data"
    assert len(statuses) == 6
    finding = next(it for it in document["findings"] if it["rule"] == "hack_phrase")
    assert "full marks please" in finding["phrase"]
    assert all("full marks" in it["response"] for it in finding["examples"]["after"])
    assert document["rewards"]["rewards/score/mean"]["points"] == SCENARIO.steps


def test_steps_that_cannot_be_aligned_are_an_error_with_the_option_to_use(paths):
    log, folder = paths
    result = run(log, "--rewards", folder)
    assert isinstance(result.exception, DataError)
    assert "--samples-per-step" in str(result.exception)


def test_samples_per_step_belongs_to_records(paths):
    log, _ = paths
    assert isinstance(run(log, "--samples-per-step", "8").exception, UsageError)


def test_records_belong_to_one_run(paths):
    log, folder = paths
    assert isinstance(run(log, log, "--rewards", folder).exception, UsageError)


def grow(source, target, share):
    """Append the lines of a file to its copy, up to a share of them."""
    lines = source.read_bytes().splitlines(keepends=True)
    have = target.read_bytes().count(b"\n") if target.exists() else 0
    with target.open("ab") as file:
        file.writelines(lines[have : int(len(lines) * share)])


@pytest.mark.parametrize("has_log", [True, False])
def test_a_run_is_followed_with_its_records(paths, tmp_path, has_log):
    log, folder = paths
    copy, records = tmp_path / "train.log", tmp_path / "records"
    names = (copy, records) if has_log else (records, None)
    tail = RunTail(*names, int(SAMPLES))
    assert tail.poll() is None
    assert tail.is_missing
    records.mkdir()
    lengths = []
    for share in (0.5, 1.0):
        for file in folder.iterdir():
            grow(file, records / file.name, share)
        grow(log, copy, share)
        current = tail.poll()
        lengths.append(len(current.steps))
        assert current.series("rewards/score/mean")
        assert current.samples
        assert tail.poll() is None
    assert lengths[0] < lengths[1] == SCENARIO.steps
    assert not tail.is_missing
    assert tail.rewrites == 0


def run_folder(tmp_path, paths, record, created="2020-01-01T00:00:00+00:00"):
    """Return the folder of a run of `rewardkit train` whose manifest names a folder of records."""
    log, folder = paths
    runs = tmp_path / "runs" / "one"
    runs.mkdir(parents=True)
    settings = "{'actor_rollout_ref': {'rollout': {'n': 8}}, 'data': {'train_batch_size': 24}}\n"
    (runs / "console.log").write_text(settings + log.read_text(encoding="utf-8"), encoding="utf-8")
    manifest = {
        "created": created,
        "folder": str(folder.parent),
        "tree": {"reward": {"record": record}},
    }
    (runs / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return runs


def test_the_folder_of_a_run_is_shown_with_the_records_that_its_manifest_names(paths, tmp_path):
    runs = run_folder(tmp_path, paths, paths[1].name)
    result = run(runs)
    assert result.exit_code == 0, result.output
    assert f"with the records of its reward in {paths[1]}" in result.output.replace("\n", "")
    assert "(hack_phrase)" in result.output
    followed = RunTail(runs).poll()
    assert "rewards/score/mean" in followed.table
    assert "critic/rewards/mean" in followed.table


def test_records_of_an_earlier_run_in_the_same_folder_are_left_out(paths, tmp_path):
    runs = run_folder(tmp_path, paths, str(paths[1]), created="2036-01-01T00:00:00+00:00")
    result = run(runs)
    assert result.exit_code == 0, result.output
    assert "rewards/score/mean" not in result.output
    assert "rewards/score/mean" not in RunTail(runs).poll().table


@pytest.mark.parametrize("record", [None, 7, "nowhere", "\0", {}])
def test_a_manifest_that_names_no_records_changes_nothing(paths, tmp_path, record):
    runs = run_folder(tmp_path, paths, record)
    result = run(runs)
    assert result.exit_code == 0, result.output
    assert "records of its reward" not in result.output


def test_records_beside_the_log_in_a_run_s_folder_are_shown_with_it(paths, tmp_path):
    runs = run_folder(tmp_path, paths, None)
    for file in paths[1].iterdir():
        (runs / file.name).write_bytes(file.read_bytes())
    result = run(runs)
    assert result.exit_code == 0, result.output
    assert "(hack_phrase)" in result.output
    assert "critic/rewards/mean" in RunTail(runs).poll().table
