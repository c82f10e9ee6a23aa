"""A larger n on a finished output requests only what it adds."""

import json

import pytest

from rewardkit.errors import DataError, OutputError, SourceError, UsageError
from rewardkit.evaluate.evaluation import ScorerConfig, evaluate
from rewardkit.evaluate.generate import GenerationConfig, Sampling
from rewardkit.evaluate.suite import SuiteMember, evaluate_suite
from rewardkit.model_client import retries
from rewardkit.model_client.client import Server

E400 = (400, {}, {"error": {"message": "This model's maximum context length is 512 tokens"}})
E500 = (500, {}, {"error": {"message": "engine died"}})


@pytest.fixture
def generate(parquet, tmp_path, monkeypatch):
    """Return a function that evaluates 3 rows with n responses and returns the file's lines."""
    monkeypatch.setattr(retries, "BACKOFF_SECONDS", 0.01)

    def run(server, n, *, out="m.jsonl", rows=3, model="M", seed=1, resume=True, **options):
        path = tmp_path / out
        server_config = Server(server.url, "chat")
        generation = GenerationConfig(server_config, model, Sampling(seed=seed), n=n, **options)
        evaluate(parquet(rows), generation, path, resume=resume)
        return [json.loads(line) for line in path.read_text().splitlines()]

    return run


@pytest.mark.parametrize("per_request", [1, 2])
def test_only_the_added_responses_are_requested_and_the_file_is_that_of_one_run(
    serve, generate, per_request
):
    with serve() as server:
        expected = generate(server, 8, out="whole.jsonl", choices_per_request=per_request)
    with serve() as server:
        four = generate(server, 4, choices_per_request=per_request)
    with serve() as server:
        assert generate(server, 8, choices_per_request=per_request) == expected
    assert len(server.bodies) == 3 * 4 // per_request
    assert [line for line in expected if line["sample"] < 4] == four


def test_the_same_n_requests_nothing(serve, generate, tmp_path):
    with serve() as server:
        expected = generate(server, 4)
        assert generate(server, 4) == expected
    assert len(server.bodies) == 12
    assert not list(tmp_path.glob(".*"))


def test_a_smaller_n_is_an_error_and_the_file_stays(serve, generate, tmp_path):
    with serve() as server:
        generate(server, 4)
        before = (tmp_path / "m.jsonl").read_bytes()
        with pytest.raises(DataError, match="more than 2 responses.*larger -n"):
            generate(server, 2)
    assert (tmp_path / "m.jsonl").read_bytes() == before
    assert len(server.bodies) == 12


def test_an_interrupted_addition_goes_on_and_the_finished_file_stays_until_then(
    serve, generate, tmp_path
):
    with serve() as server:
        expected = generate(server, 6, out="whole.jsonl")
        generate(server, 4)
    before = (tmp_path / "m.jsonl").read_bytes()
    with serve(faults={3: E500}) as server, pytest.raises(SourceError):
        generate(server, 6, tries=1, concurrency=1)
    assert (tmp_path / "m.jsonl").read_bytes() == before
    with serve() as server:
        assert generate(server, 6) == expected
    assert len(server.bodies) == 1


def test_responses_that_the_server_refused_are_requested_again(serve, generate):
    with serve() as server:
        expected = generate(server, 2, out="whole.jsonl")
    with serve(faults={3: E400}) as server:
        generate(server, 1, concurrency=1, out="x.jsonl", rows=3)
        generate(server, 2, concurrency=1, out="x.jsonl")
    with serve() as server:
        assert generate(server, 2, out="x.jsonl") == expected
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "other"}, "another model"),
        ({"seed": 2}, "another sampling"),
        ({"rows": 2}, "answers row 2"),
    ],
)
def test_an_output_of_another_run_is_not_continued(serve, generate, change, message, tmp_path):
    with serve() as server:
        generate(server, 1)
        with pytest.raises(DataError, match=message):
            generate(server, 2, **change)
        with pytest.raises(OutputError, match="--resume adds responses"):
            generate(server, 2, resume=False)
    assert len(server.bodies) == 3


def test_a_suite_adds_responses_to_the_sets_that_are_finished(serve, parquet, tmp_path):
    def run(n, *, resume):
        generation = GenerationConfig(Server(server.url, "chat"), "M", Sampling(seed=1))
        suite = [SuiteMember("a", parquet(2, "a.parquet"), n), SuiteMember("b", parquet(1), 1)]
        return evaluate_suite(suite, generation, tmp_path / "o", ScorerConfig(), resume=resume)

    with serve() as server:
        run(1, resume=False)
        with pytest.raises(DataError, match="of another n.*--resume"):
            run(3, resume=False)
        reports = run(3, resume=True)
    assert len(server.bodies) == 3 + 4
    assert reports["a"].metrics.summary()["total"]["n"] == [3, 3]


def test_resume_and_overwrite_exclude_each_other():
    from typer.testing import CliRunner

    from rewardkit.cli.eval import app

    arguments = ["run", "a.parquet", "--base-url", "http://127.0.0.1:1/v1", "--model", "M"]
    done = CliRunner().invoke(app, [*arguments, "--out", "m.jsonl", "--resume", "--overwrite"])
    assert isinstance(done.exception, UsageError)
