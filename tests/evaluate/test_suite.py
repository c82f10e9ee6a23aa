"""`--suite`: sets by name, prepared where they are missing."""

import json

import pyarrow.parquet as pq
import pytest

from rewardkit import registry
from rewardkit.errors import DataError, SourceError, UnknownNameError, UsageError
from rewardkit.evaluate.client import Server
from rewardkit.evaluate.evaluation import JudgingConfig
from rewardkit.evaluate.generate import GenerationConfig
from rewardkit.evaluate.sampling import Sampling
from rewardkit.evaluate.suite import SuiteMember, evaluate_suite, parse_suite, prepare_member


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A Hugging Face cache with three GSM8K test questions of ours, and no network."""
    import pyarrow as pa

    snapshot = tmp_path / "hf/hub/datasets--openai--gsm8k/snapshots/0123456789abcdef/main"
    snapshot.mkdir(parents=True)
    rows = [
        {"question": f"Ann has {n} pens and buys none. How many?", "answer": f"none\n#### {n}"}
        for n in (3, 4, 5)
    ]
    pq.write_table(pa.Table.from_pylist(rows), snapshot / "test-00000-of-00001.parquet")
    refs = tmp_path / "hf/hub/datasets--openai--gsm8k/refs"
    refs.mkdir()
    (refs / "main").write_text("0123456789abcdef")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hf/hub"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")


def send_request(server, n=2, seed=1):
    return GenerationConfig(Server(server.url), "M", Sampling(seed=seed), n=n, tries=2)


def test_names_are_datasets_with_their_test_split_or_one_that_they_name(tmp_path):
    found = parse_suite("aime2024:32,aime-2025,math-500,gsm8k,math-train", tmp_path, 4)
    assert [(each.dataset, each.split, each.n) for each in found] == [
        ("aime", "2024", 32),
        ("aime", "2025", 4),
        ("math-500", "test", 4),
        ("gsm8k", "test", 4),
        ("math", "train", 4),
    ]
    assert found[0].parquet == tmp_path / "aime2024.parquet"


def test_every_built_in_dataset_can_be_named_with_each_of_its_splits(tmp_path):
    from rewardkit.preprocess.pipeline import card_of, load_dataset

    for name in registry.DATASETS:
        for split in card_of(load_dataset(name)).splits:
            found = parse_suite(f"{name}-{split}", tmp_path, 1)[0]
            assert (found.dataset, found.split) == (name, split)


def test_a_parquet_of_one_s_own_is_a_set(tmp_path):
    (found,) = parse_suite("my/finance.parquet:8", tmp_path, 1)
    assert (found.name, found.n, found.dataset) == ("finance", 8, "")
    with pytest.raises(DataError, match="no such file"):
        prepare_member(found, "huggingface", 1)


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("gsm9k", UnknownNameError, "gsm8k"),
        ("aime", UsageError, "aime-2024 or aime-2025"),
        ("aime2023", UnknownNameError, "aime-2024 or aime-2025"),
        ("gsm8k,gsm8k:4", UsageError, "two sets are called gsm8k"),
        (" , ", UsageError, "name the sets"),
        ("gsm8k:0", UsageError, "n must be at least 1"),
    ],
)
def test_a_wrong_name_is_one_sentence(text, error, said, tmp_path):
    with pytest.raises(error, match=said) as caught:
        parse_suite(text, tmp_path, 1)
    assert "\n" not in str(caught.value)


def test_a_missing_set_is_prepared_once(hub, tmp_path):
    (member,) = parse_suite("gsm8k", tmp_path / "suite", 1)
    assert prepare_member(member, "huggingface", 1)
    assert pq.read_metadata(member.parquet).num_rows == 3
    assert not prepare_member(member, "huggingface", 1)


def test_a_set_that_is_nowhere_is_said_with_the_command_that_brings_it(hub, tmp_path):
    (member,) = parse_suite("math-500", tmp_path / "suite", 1)
    with pytest.raises(
        SourceError, match="run: rewardkit prep math-500 --split test --source FILE"
    ):
        prepare_member(member, "huggingface", 1)


def test_a_finished_set_is_read_and_not_asked_again(serve, parquet, tmp_path):
    suite = [SuiteMember(name, parquet(3, f"{name}.parquet"), 2) for name in ("a", "b")]
    with serve() as server:
        first = evaluate_suite(suite, send_request(server), tmp_path / "out", JudgingConfig())
        asked = len(server.bodies)
        (tmp_path / "out/b.jsonl").unlink()
        again = evaluate_suite(suite, send_request(server), tmp_path / "out", JudgingConfig())
    assert asked == 12
    assert len(server.bodies) == 18
    for name in ("a", "b"):
        assert again[name].summary() == first[name].summary()


def test_results_of_another_model_sampling_n_or_other_rows_are_refused(serve, parquet, tmp_path):
    suite = [SuiteMember("a", parquet(3), 2)]
    with serve() as server:
        evaluate_suite(suite, send_request(server), tmp_path / "out", JudgingConfig())
        other = [SuiteMember("a", parquet(4, "other.parquet"), 2)]
        for what, said in (
            ((suite, send_request(server, seed=2)), "another sampling"),
            (([SuiteMember("a", suite[0].parquet, 3)], send_request(server)), r"another n \(2\)"),
            ((other, send_request(server)), "other rows than those"),
        ):
            with pytest.raises(DataError, match=said):
                evaluate_suite(*what, tmp_path / "out", JudgingConfig())
        with pytest.raises(DataError, match=r"another scorer \(auto\).*eval responses"):
            evaluate_suite(
                suite,
                send_request(server),
                tmp_path / "out",
                JudgingConfig("gsm8k", {"method": "robust"}),
            )
        evaluate_suite(
            other, send_request(server), tmp_path / "out", JudgingConfig(), overwrite=True
        )


def test_each_set_has_its_own_n(serve, parquet, tmp_path):
    suite = [
        SuiteMember("a", parquet(3, "a.parquet"), 4),
        SuiteMember("b", parquet(2, "b.parquet"), 1),
    ]
    with serve() as server:
        found = evaluate_suite(suite, send_request(server, n=9), tmp_path / "out", JudgingConfig())
    assert found["a"].metrics.total.summary()["n"] == [4, 4]
    assert found["b"].metrics.total.summary()["n"] == [1, 1]


def test_the_command_prepares_asks_and_prints_a_line_for_each_set(
    cli, serve, hub, parquet, tmp_path
):
    parquet(4, "own.parquet")
    with serve() as server:
        line = [
            *("eval", "run", "--suite", "gsm8k:2,own.parquet"),
            *("--suite-dir", "sets", "--base-url", server.url, "--model", "M", "--out", "runs/m"),
        ]
        done = cli(*line, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        as_json = cli(*line, "--json", cwd=tmp_path)
        single = cli(*line[:-1], "m.jsonl", cwd=tmp_path)
    assert "gsm8k: prepared sets/gsm8k.parquet" in done.stderr
    assert "gsm8k: openai/gsm8k" in done.stdout
    assert len((tmp_path / "runs/m/gsm8k.jsonl").read_text().splitlines()) == 6
    found = json.loads(as_json.stdout)
    assert found["own"]["total"]["questions"] == 4
    assert "name a folder" in single.stderr
