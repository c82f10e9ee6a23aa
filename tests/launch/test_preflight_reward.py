"""The preflight checks the reward function of a plan, in another process."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewardkit import prep
from rewardkit.launch.preflight import check_before_rehearsal
from rewardkit.launch.preflight.report import FileFacts, PreflightReport
from rewardkit.launch.preflight.reward import check_reward

GOOD = "def compute_score(data_source, solution_str, ground_truth, extra_info=None{rest}):\n    return 1.0\n"

ROWS = [
    {
        "data_source": "acme/test",
        "prompt": [{"role": "user", "content": "What is 9 + 9?"}],
        "reward_model": {"style": "rule", "ground_truth": "18"},
        "extra_info": {"index": 0},
    }
]


@pytest.fixture
def findings_of(tmp_path, plan):
    """The findings of a reward file."""

    def check(text, **options):
        file = tmp_path / "mine.py"
        file.write_text(text)
        reward = {"scorer": f"{file}:compute_score", "options": options}
        report = PreflightReport()
        check_reward(plan(reward=reward), report)
        return [finding.text for finding in report.findings]

    return check


def test_a_function_that_verl_can_call_has_no_finding(findings_of):
    assert findings_of(GOOD.format(rest="")) == []
    assert findings_of(GOOD.format(rest=", **kwargs"), bonus=1) == []


def test_the_finding_for_a_function_without_verl_s_keywords_lists_them(findings_of):
    (message,) = findings_of("def compute_score(solution_str, ground_truth):\n    return 1.0\n")
    assert "mine.py:1: compute_score(solution_str, ground_truth): " in message
    assert "an unexpected keyword argument" in message
    assert "verl calls it with data_source=, solution_str=, ground_truth=, extra_info=" in message


@pytest.mark.full
def test_options_of_a_user_s_function_are_validated(findings_of):
    code = "from typing import Literal\n" + GOOD.format(rest=", kind: Literal['a', 'bc'] = 'a'")
    assert "has no kind 'bd'. Did you mean 'bc'?" in findings_of(code, kind="bd")[0]
    assert "has no option 'kid'. Did you mean 'kind'?" in findings_of(code, kid="a")[0]


@pytest.mark.full
def test_a_call_that_hangs_is_reported_with_its_line_and_its_gold(tmp_path, plan):
    file, rows = tmp_path / "mine.py", tmp_path / "train.parquet"
    file.write_text(
        "import time\n\ndef compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
        "    while 'boxed' in solution_str:\n        time.sleep(1)\n    return 0.0\n"
    )
    prep("gsm8k", rows, sample=True)
    reward, data = {"scorer": str(file)}, {"train": str(rows), "val": str(rows)}
    findings = check_before_rehearsal(plan(reward=reward, data=data)).findings
    (message,) = [finding.text for finding in findings if "No verdict" in finding.text]
    assert f"no verdict within 5 s, at {file}:5" in message
    assert "(gold '" in message


def test_a_function_that_verl_cannot_call_has_one_finding(tmp_path, plan):
    """The golds and the behaviour would fail for the same reason."""
    file, rows = tmp_path / "mine.py", tmp_path / "train.parquet"
    file.write_text("def compute_score(solution, gold):\n    return 1.0\n")
    prep("gsm8k", rows, sample=True)
    reward, data = {"scorer": str(file)}, {"train": str(rows), "val": str(rows)}
    (finding,) = check_before_rehearsal(plan(reward=reward, data=data)).findings
    assert "name them" in finding.text


def test_the_data_sources_of_the_files_are_probed_for_verl_s_own_scorer(tmp_path, plan):
    rows = tmp_path / "train.parquet"
    pq.write_table(pa.table({"data_source": ["openai/gsm8k", "me/unknown"]}), rows)
    data = {"train": str(rows), "val": str(tmp_path / "none.parquet")}
    findings = check_before_rehearsal(plan(reward={"scorer": "verl"}, data=data)).findings
    assert any("no scorer for data_source 'me/unknown'" in finding.text for finding in findings)
    (tmp_path / "broken.parquet").write_text("no parquet")
    data["train"] = str(tmp_path / "broken.parquet")
    (finding,) = check_before_rehearsal(plan(reward={"scorer": "verl"}, data=data)).findings
    assert (finding.severity, finding.rule) == ("error", "files")
    assert "broken.parquet" in finding.text


def test_a_reward_file_that_exits_during_its_import_is_a_finding(findings_of):
    (message,) = findings_of("import os\nos._exit(3)\n")
    assert "ended while it was imported (exit code 3)" in message


@pytest.fixture
def check_rows(tmp_path, plan):
    """Return a function that checks a reward function on one row, for a release."""

    def check(body, release, **parts):
        scorer, parquet = tmp_path / "mine.py", tmp_path / "train.parquet"
        scorer.write_text(GOOD.format(rest="").replace("return 1.0", body))
        pq.write_table(pa.Table.from_pylist(ROWS), parquet)
        report = PreflightReport()
        facts = FileFacts(path=str(parquet), role="train", rows=1, data_sources=("acme/test",))
        report.files.append(facts)
        check_reward(plan(release, reward={"scorer": f"{scorer}:compute_score"}, **parts), report)
        return {finding.rule: finding for finding in report.findings}

    return check


@pytest.mark.parametrize(
    ("verl", "key"),
    [("0.9", "reward.custom_reward_function.path")],
)
def test_a_scorer_that_only_raises_is_reported_without_a_score_under_the_release_s_key(
    check_rows, verl, key
):
    finding = check_rows("raise KeyError('nope')", verl)["L-52"]
    assert finding.key == key
    assert "the gold gets no score, a wrong answer no score" in finding.text


@pytest.mark.full
@pytest.mark.parametrize(
    ("verl", "total"),
    [("0.8", "seq_reward"), ("0.9.0", "score"), ("0.9.1", "reward"), ("main", "score")],
)
def test_the_metric_that_replaces_a_missing_one_is_one_that_the_release_has(
    check_rows, verl, total
):
    dapo = {"dynamic_sampling": {"metric": "acc"}}
    finding = check_rows("return {'score': 1.0, 'fit': 1}", verl, algorithm="dapo", dapo=dapo)
    assert finding["L-50"].fix.endswith(f"set algorithm.filter_groups.metric={total}.")


@pytest.mark.full
@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (["score", "form"], None),
        (
            ["score", "from", "pred"],
            "returns form, score, but no number for from, pred: verl stops at the first step",
        ),
    ],
)
def test_every_key_of_gdpo_is_a_number_that_the_function_returns(check_rows, keys, text):
    """The text of a `pred` would become a number in verl for some answers, and fail for others."""
    settings = {"algorithm.gdpo_reward_keys": keys}
    body = "return {'score': 1.0, 'form': 1, 'pred': '18'}"
    finding = check_rows(body, "0.9.1", algorithm="gdpo", verl=settings).get("gdpo")
    assert text is None if finding is None else text in finding.text
    if "from" in keys:
        assert "Did you mean 'form'" in finding.fix


@pytest.mark.parametrize(("kind", "is_refused"), [("async def", True), ("def", False)])
def test_the_manager_remote_refuses_async_functions(tmp_path, plan, kind, is_refused):
    file = tmp_path / "mine.py"
    file.write_text(GOOD.format(rest="").replace("def", kind))
    settings = {"reward.reward_manager.name": "remote"}
    report = PreflightReport()
    check_reward(plan(reward={"scorer": f"{file}:compute_score"}, verl=settings), report)
    messages = [finding.text for finding in report.findings]
    assert (
        any("is async, which the reward manager remote refuses" in m for m in messages)
        == is_refused
    )


@pytest.mark.full
def test_a_judge_that_cannot_be_asked_here_does_not_stop_the_launch(tmp_path, plan):
    """verl starts its reward model with the run, and a server may be reachable from the nodes only."""
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "rows.parquet")
    rows = str(tmp_path / "rows.parquet")
    facts = FileFacts(path=rows, role="train", rows=1, data_sources=("acme/test",))
    served = PreflightReport(files=[facts])
    model = {"enable": True, "enable_resource_pool": True, "model_path": "/models/judge"}
    options = {"rubric": "qa"}
    reward = {"scorer": "judge", "options": options}
    check_reward(plan(reward=reward, verl={"reward.reward_model": model}), served)
    assert not served.findings
    assert "starts with the run" in served.unchecked[0]
    far = PreflightReport(files=[facts])
    options |= {"base_url": "http://127.0.0.1:9/v1", "retries": 0}
    check_reward(plan(reward=reward), far)
    (finding,) = far.findings
    assert (finding.severity, finding.rule) == ("warning", "conduct")
    assert "cannot connect" in finding.text


@pytest.fixture
def numina(tmp_path):
    """A parquet with the data_source that Eurus-2 has in verl's own layout."""
    prep("gsm8k", tmp_path / "rows.parquet", sample=True)
    table = pq.read_table(tmp_path / "rows.parquet")
    names = pa.array(["numina_cn_k12"] * len(table))
    place = table.schema.get_field_index("data_source")
    pq.write_table(table.set_column(place, "data_source", names), tmp_path / "numina.parquet")
    return tmp_path / "numina.parquet"


def test_a_plan_without_a_reward_for_rows_whose_answers_verl_evaluates_is_an_error(numina, plan):
    data = {"train": str(numina), "val": str(numina)}
    for scorer, errors in (("verl", ["runs-answers"]), ("math", [])):
        report = check_before_rehearsal(plan(reward={"scorer": scorer}, data=data))
        found = [f for f in report.findings if f.rule == "runs-answers"]
        assert [f.rule for f in found] == errors
        line = "reward.custom_reward_function.path=$(rewardkit path math)"
        assert all(line in f.fix and "CVE-2026-6878" in f.text for f in found)


def test_another_numina_source_has_no_scorer_in_verl(numina, plan):
    table = pq.read_table(numina)
    place = table.schema.get_field_index("data_source")
    names = pa.array(["numina_other"] * len(table))
    pq.write_table(table.set_column(place, "data_source", names), numina)
    data = {"train": str(numina), "val": str(numina)}
    findings = check_before_rehearsal(plan(reward={"scorer": "verl"}, data=data)).findings
    assert {finding.rule for finding in findings} == {"L-52"}
