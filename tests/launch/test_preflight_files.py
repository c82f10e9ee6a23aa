"""The preflight checks the parquet files of a plan."""

import rewardkit
from rewardkit.launch.preflight import files
from rewardkit.launch.preflight.report import PreflightReport


def test_prompts_over_the_limit_are_a_single_finding_that_names_the_setting(
    plan, tmp_path, monkeypatch
):
    """The rule `long_prompt` of `rewardkit check` adds no second finding."""
    rewardkit.prep("gsm8k", tmp_path / "train.parquet", sample=True)
    model = tmp_path / "model"
    model.mkdir()
    monkeypatch.setattr(files, "token_counter", lambda _: lambda messages: 2000)
    data = {"train": str(tmp_path / "train.parquet"), "val": str(tmp_path / "train.parquet")}
    verl = {"data.max_prompt_length": 1024}
    report = PreflightReport()
    files.check_files(plan(model=str(model), data=data, verl=verl), report)
    texts = [finding.text for finding in report.findings]
    assert any("over 1024" in text for text in texts)
    assert not any("long prompt" in text for text in texts)
