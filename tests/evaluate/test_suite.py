"""`--suite` names sets of questions, and missing ones are prepared."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from rewardkit import registry
from rewardkit.cli.eval import app
from rewardkit.errors import SourceError, UnknownNameError, UsageError
from rewardkit.evaluate.generate import GenerationConfig, Sampling
from rewardkit.evaluate.suite import SuiteMember, evaluate_suite, parse_suite, prepare_member
from rewardkit.model_client.client import Server
from rewardkit.responses.score import ScoringPlan


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A Hugging Face cache with three GSM8K test questions, and no network."""
    from huggingface_hub import constants

    folder = tmp_path / "hf/hub/datasets--openai--gsm8k"
    snapshot = folder / "snapshots/0123456789abcdef/main"
    snapshot.mkdir(parents=True)
    question = "Ann has {} pens and buys none. How many?"
    rows = [{"question": question.format(n), "answer": f"none\n#### {n}"} for n in (3, 4, 5)]
    pq.write_table(pa.Table.from_pylist(rows), snapshot / "test-00000-of-00001.parquet")
    (folder / "refs").mkdir()
    (folder / "refs/main").write_text("0123456789abcdef")
    # A command reads the variables; this process has read them if another test imported the hub.
    for name, value in (("HF_HOME", tmp_path / "hf"), ("HF_HUB_CACHE", tmp_path / "hf/hub")):
        monkeypatch.setenv(name, str(value))
        monkeypatch.setattr(constants, name, str(value))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.delenv("HF_DATASETS_CACHE", raising=False)


def generation_config(server, n=2, seed=1):
    return GenerationConfig(Server(server.url), "M", Sampling(seed=seed), n=n, tries=2)


def test_a_name_is_a_dataset_with_its_test_split_or_a_split_in_the_name_or_a_parquet(tmp_path):
    suite = parse_suite("aime2024:32,aime-2025,gsm8k,math-train,my/f.parquet:8", tmp_path, 4)
    names = [f"{member.dataset} {member.split} {member.n}" for member in suite]
    assert names == ["aime 2024 32", "aime 2025 4", "gsm8k test 4", "math train 4", "  8"]
    assert suite[-1].name == "f"
    assert suite[0].parquet == tmp_path / "aime2024.parquet"
    with pytest.raises(SourceError, match="no such file"):
        prepare_member(suite[-1], "huggingface", 1)


def test_every_built_in_dataset_can_be_named_with_each_of_its_splits(tmp_path):
    from rewardkit.preprocess.load import card_of, load_dataset

    for name in registry.DATASETS:
        for split in card_of(load_dataset(name)).splits:
            member = parse_suite(f"{name}-{split}", tmp_path, 1)[0]
            assert (member.dataset, member.split) == (name, split)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("gsm9k", UnknownNameError, "gsm8k"),
        ("aime", UsageError, "aime2024 or aime2025"),
        ("aime2023", UnknownNameError, "unknown set 'aime2023'. Did you mean 'aime202[456]'"),
        ("gsm8k,gsm8k:4", UsageError, "two sets are called gsm8k"),
        (" , ", UsageError, "name the sets"),
        ("gsm8k:0", UsageError, "n must be between 1 and 999999"),
    ],
)
def test_a_wrong_name_is_a_one_line_error(text, error, message, tmp_path):
    with pytest.raises(error, match=message) as exception:
        parse_suite(text, tmp_path, 1)
    assert "\n" not in str(exception.value)


def test_a_missing_set_is_prepared_once_or_its_error_has_the_command_to_provide_it(hub, tmp_path):
    present, missing = parse_suite("gsm8k,math-500", tmp_path / "suite", 1)
    assert prepare_member(present, "huggingface", 1)
    assert pq.read_metadata(present.parquet).num_rows == 3
    assert not prepare_member(present, "huggingface", 1)
    command = "run: rewardkit prep math-500 --split test --source FILE"
    with pytest.raises(SourceError, match=command):
        prepare_member(missing, "huggingface", 1)


def evaluate(suite, server, out, *, n=2, seed=1, **options):
    return evaluate_suite(suite, generation_config(server, n, seed), out, **options)


def test_of_a_finished_set_only_what_is_missing_is_generated(serve, parquet, tmp_path):
    """That is a prompt that was refused, and what a larger n adds."""
    suite = [SuiteMember(name, parquet(3, f"{name}.parquet"), 2) for name in ("a", "b")]
    with serve(faults={1: (400, {}, {})}) as server:
        reports = evaluate(suite, server, tmp_path / "out")
        assert (len(server.bodies), reports["a"].metrics.total.unusable) == (12, {"refused": 1})
        (tmp_path / "out/b.jsonl").unlink()
        again = evaluate(suite, server, tmp_path / "out")
        assert (len(server.bodies), again["a"].metrics.total.unusable) == (12 + 1 + 6, {})
        assert again["b"].summary() == reports["b"].summary()
        more = evaluate([SuiteMember("a", suite[0].parquet, 3)], server, tmp_path / "out")
        assert (len(server.bodies), more["a"].metrics.total.n) == (19 + 3, (3, 3))
        plan = ScoringPlan("gsm8k", (("method", "robust"),))
        evaluate(suite[1:], server, tmp_path / "out", plan=plan)
        assert len(server.bodies) == 22
    (line, *_) = (tmp_path / "out/b.jsonl").read_text().splitlines()
    assert json.loads(line)["scorer"] == "gsm8k?method=robust"


def test_the_command_prepares_evaluates_and_prints_a_line_per_set(
    serve, hub, parquet, tmp_path, monkeypatch
):
    parquet(4, "own.parquet")
    monkeypatch.chdir(tmp_path)
    with serve() as server:
        line = ["run", "--suite", "gsm8k:2,own.parquet", "--suite-dir", "sets"]
        line += ["--base-url", server.url, "--model", "M", "--out"]
        first = CliRunner().invoke(app, [*line, "runs/m"])
        as_json = CliRunner().invoke(app, [*line, "runs/m", "--json"])
        single = CliRunner().invoke(app, [*line, "m.jsonl"])
    assert "gsm8k: prepared sets/gsm8k.parquet" in first.stderr
    assert "gsm8k: openai/gsm8k" in first.stdout
    assert len((tmp_path / "runs/m/gsm8k.jsonl").read_text().splitlines()) == 6
    assert json.loads(as_json.stdout)["own"]["total"]["questions"] == 4
    assert "name a folder" in str(single.exception)
