"""The files of a plan before the launch."""

import rewardkit
from rewardkit.launch.preflight import files


def test_prompts_over_the_limit_are_one_finding_that_names_the_setting(plan, tmp_path, monkeypatch):
    """Not a second one for the rule of `rewardkit check`."""
    rewardkit.prep("gsm8k", tmp_path / "train.parquet", sample=True)
    model = tmp_path / "model"
    model.mkdir()
    monkeypatch.setattr(files, "tokens_of", lambda _: lambda messages: 2000)
    data = {"train": str(tmp_path / "train.parquet"), "val": str(tmp_path / "train.parquet")}
    verl = {"data.max_prompt_length": 1024}
    report = files.check_files(plan(model=str(model), data=data, verl=verl), [])
    said = [found.text for found in report.findings if "over 1024" in found.text]
    assert said
    assert not [found.text for found in report.findings if "long prompt" in found.text]
