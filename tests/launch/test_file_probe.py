"""Before a rehearsal: missing columns, text prompts and prompts over the limit are named."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewardkit.launch.preflight import files
from rewardkit.launch.preflight.files import probe_files
from rewardkit.launch.preflight.report import PreflightReport
from tests.tables import every

LONG = "word " * 700


def write(path, questions, **columns):
    """Write a verl parquet with these questions; a column of None is left out."""
    chats = [[{"role": "user", "content": text}] for text in questions]
    golds = [{"ground_truth": "1", "style": "rule"}] * len(questions)
    table = {"prompt": chats, "data_source": ["d"] * len(questions), "reward_model": golds}
    table |= {name: values and values * len(questions) for name, values in columns.items()}
    pq.write_table(pa.table({name: v for name, v in table.items() if v}), path)
    return str(path)


@pytest.fixture
def probe(plan, tmp_path):
    """Return a function that probes a file of a plan for a release of verl, with settings."""

    def run(name, release="0.9.1", *settings, **parts):
        report = PreflightReport()
        settings = ("data.max_prompt_length=64", *settings)
        data = {"train": name, "val": str(tmp_path / "none.parquet")}
        probe_files(plan(release, *settings, data=data, **parts), report)
        return report

    return run


@every(
    ("release", "settings", "severity", "outcome"),
    [
        ("0.7.1", ["data.truncation=left"], "error", "verl 0.7.1 stops at the first"),
        ("0.9.1", [], "error", "cuts them from the left, despite data.truncation=error"),
        ("0.9.1", ["data.truncation=left"], "warning", "verl 0.9.1 cuts them"),
        (
            "0.9.1",
            ["data.truncation=left", "actor_rollout_ref.model.path=/m/Qwen2.5-VL-7B"],
            "error",
            "verl 0.9.1 stops at the first",
        ),
        ("0.9.1", ["data.filter_overlong_prompts=True"], "warning", "verl filters them out"),
    ],
)
def test_a_prompt_over_the_limit_is_named_with_what_verl_does(
    probe, tmp_path, release, settings, severity, outcome
):
    """Without the model's tokenizer the words of a prompt are a lower bound of its tokens."""
    file = write(tmp_path / "rows.parquet", ["short", LONG, "short"])
    model = next((s.partition("=")[2] for s in settings if "model.path" in s), "/models/tiny")
    settings = [s for s in settings if "model.path" not in s]
    (finding,) = probe(file, release, *settings, model=model).findings
    assert (finding.severity, finding.rule) == (severity, "L-24")
    assert f"{file}: 1 of 3 prompts are over 64 tokens (longest at least 700)" in finding.text
    assert outcome in finding.text


def test_prompts_are_counted_with_the_tokenizer_of_the_model(probe, tmp_path, monkeypatch):
    """Only prompts that have more bytes than the limit has tokens need it."""
    lengths = {"short": 10**6, "x" * 200: 50, "y" * 201: 65, "z" * 202: 80}
    count = lambda messages: lengths[messages[0]["content"]]  # noqa: E731
    monkeypatch.setattr(files, "token_counter", lambda _: count)
    file = write(tmp_path / "rows.parquet", lengths)
    report = probe(file, model=str(tmp_path))
    (finding,) = report.findings
    assert "2 of 4 prompts are over 64 tokens (longest 80)" in finding.text
    assert "data.max_prompt_length=80" in finding.fix
    assert report.unchecked == []


def test_a_file_of_which_no_prompt_is_left_is_an_error(probe, tmp_path):
    file = write(tmp_path / "rows.parquet", [LONG])
    (finding,) = probe(file, "0.9.1", "data.filter_overlong_prompts=True").findings
    assert (finding.severity, finding.rule) == ("error", "L-24")


def test_what_only_the_tokenizer_can_tell_is_not_checked_and_that_is_said(probe, tmp_path):
    report = probe(write(tmp_path / "rows.parquet", ["x" * 500]))
    assert report.findings == []
    (line,) = report.unchecked
    assert line.startswith("prompt lengths in tokens: /models/tiny is not a folder")
    assert probe(write(tmp_path / "rows.parquet", ["short"])).unchecked == []


@every(
    ("columns", "settings", "words"),
    [
        ({"prompt": None}, (), "no column prompt[].content"),
        ({"data_source": None}, (), "no column data_source"),
        ({"reward_model": None}, (), "no column reward_model.ground_truth"),
        ({"prompt": ["What?"]}, (), "prompt is string; verl reads prompt[].content"),
        ({"chat": ["What?"]}, ("data.prompt_key=chat",), "chat is string; verl reads chat[]"),
        ({}, ("data.prompt_key=chat",), "no column chat[].content"),
    ],
)
def test_a_missing_column_or_a_text_prompt_is_named(probe, tmp_path, columns, settings, words):
    file = write(tmp_path / "rows.parquet", ["a", "b"], **columns)
    findings = probe(file, "0.9.1", *settings).findings
    assert {finding.severity for finding in findings} == {"error"}
    assert any(f"{file}: missing: {words}" in finding.text for finding in findings), findings


def test_a_prompt_under_another_key_is_read_there(probe, tmp_path):
    chat = [[{"role": "user", "content": LONG}]]
    file = write(tmp_path / "rows.parquet", ["a", "b"], chat=chat, prompt=["text"])
    (finding,) = probe(file, "0.9.1", "data.prompt_key=chat").findings
    assert "2 of 2 prompts" in finding.text


def test_a_file_of_training_and_validation_is_named_once(plan, tmp_path):
    file = write(tmp_path / "rows.parquet", ["a", LONG])
    report = PreflightReport()
    settings = ("data.max_prompt_length=64",)
    probe_files(plan("0.9.1", *settings, data={"train": file, "val": file}), report)
    assert len(report.findings) == 1
