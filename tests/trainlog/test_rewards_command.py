"""`rewardkit logs` shows the records of a reward, alone and beside a log, also while they grow."""

from __future__ import annotations

import json

import pytest

from rewardkit.errors import DataError, UsageError
from rewardkit.trainlog.follow import RunTail
from tests.trainlog.runs import run_logs
from tests.trainlog.simulated_runs import GROUP, Exploit, Scenario, record, rising

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


def output(*arguments):
    result = run_logs(*arguments)
    assert result.exit_code == 0, result.output
    return result.output.replace("\n", " ")


def test_records_are_shown_beside_the_log_and_the_onset_is_named(paths):
    log, folder = paths
    output(folder)
    text = output(log, "--rewards", folder, "--samples-per-step", SAMPLES)
    assert "a phrase spreads that the reward pays for (hack_phrase)" in text
    assert all(part in text for part in ("full marks please", "before", "after"))
    assert "\x1b" not in text


def test_json_has_the_status_of_every_rule_on_hacking_and_examples(paths):
    log, folder = paths
    document = json.loads(output(log, "--rewards", folder, "--samples-per-step", SAMPLES, "--json"))
    statuses = {check["rule"]: check["status"] for check in document["hacking"]}
    assert (statuses["hack_phrase"], len(statuses)) == ("found", 3)
    assert statuses["hack_correctness"] == "not enough data"
    finding = next(it for it in document["findings"] if it["rule"] == "hack_phrase")
    assert all("full marks" in it["response"] for it in finding["examples"]["after"])
    assert document["rewards"]["rewards/score/mean"]["points"] == SCENARIO.steps


def test_records_that_cannot_be_aligned_or_belong_to_no_run_are_refused(paths):
    log, folder = paths
    error = run_logs(log, "--rewards", folder).exception
    assert isinstance(error, DataError)
    assert "--samples-per-step" in str(error)
    for arguments in ((log, "--samples-per-step", "8"), (log, log, "--rewards", folder)):
        assert isinstance(run_logs(*arguments).exception, UsageError)


def run_folder(tmp_path, paths, record, created="2020-01-01T00:00:00+00:00"):
    """Return the folder of a run of `rewardkit train` whose manifest names a folder of records."""
    log, folder = paths
    runs = tmp_path / "runs" / "one"
    runs.mkdir(parents=True)
    settings = "{'actor_rollout_ref': {'rollout': {'n': 8}}, 'data': {'train_batch_size': 24}}\n"
    (runs / "console.log").write_text(settings + log.read_text(encoding="utf-8"), encoding="utf-8")
    tree = {"reward": {"record": record}}
    manifest = {"created": created, "folder": str(folder.parent), "tree": tree}
    (runs / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return runs


def test_the_folder_of_a_run_is_shown_with_the_records_that_its_manifest_names(paths, tmp_path):
    runs = run_folder(tmp_path, paths, paths[1].name)
    text = output(runs)
    assert f"with the records of its reward in {paths[1]}" in text
    assert "(hack_phrase)" in text
    assert {"rewards/score/mean", "critic/rewards/mean"} <= RunTail(runs).poll().table.keys()


@pytest.mark.parametrize("record", [None, 7, "nowhere", "\0", {}])
def test_a_manifest_that_names_no_records_of_the_run_changes_nothing(paths, tmp_path, record):
    runs = run_folder(tmp_path, paths, record)
    assert "rewards/score/mean" not in RunTail(runs).poll().table


def test_records_of_an_earlier_run_are_not_shown(paths, tmp_path):
    runs = run_folder(tmp_path, paths, str(paths[1]), created="2036-01-01T00:00:00+00:00")
    assert "rewards/score/mean" not in output(runs)


def test_records_beside_the_log_in_a_run_s_folder_are_shown_with_it(paths, tmp_path):
    runs = run_folder(tmp_path, paths, None)
    for file in paths[1].iterdir():
        (runs / file.name).write_bytes(file.read_bytes())
    assert "(hack_phrase)" in output(runs)
    assert "critic/rewards/mean" in RunTail(runs).poll().table
