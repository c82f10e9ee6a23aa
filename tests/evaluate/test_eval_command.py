"""`rewardkit eval` from end to end."""

import json

import pytest
from typer.testing import CliRunner

from rewardkit.cli.eval import app
from rewardkit.errors import RewardkitError


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs a command: its output, or the error that it ends with."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")

    def run_eval(*arguments, **environment):
        result = CliRunner().invoke(app, list(map(str, arguments)), env=environment)
        return result.exception if isinstance(result.exception, RewardkitError) else result

    return run_eval


def test_the_commands_generate_print_and_compare_results(serve, parquet, run, tmp_path):
    rows = parquet(12, subject=lambda i: ["algebra", "geometry"][i % 2], level=lambda _: "1")
    with serve() as server:
        for name, seed in (("a", 1), ("b", 2)):
            request = ["--base-url", server.url, "--model", "M", "-n", 4, "--seed", seed]
            request += ["--out", f"runs/{name}.jsonl", "--api-key-env", "K"]
            output = run("run", rows, *request, K="sk-1").output
    assert all(text in output for text in ("openai/gsm8k: geometry", "pass@k, unbiased"))
    assert "sk-1" not in output
    both = ("compare", "A=runs/a.jsonl", "runs/b.jsonl")
    comparison = json.loads(run(*both, "--json").stdout)
    assert comparison["differences"]["all"]["questions"] == 12
    runs = {entry["name"]: entry for entry in comparison["runs"]}
    assert runs["A"]["of"][0]["sampling"]["seed"] == 1
    table = run(*both, "--html", "board.html").stdout
    assert all(text in table for text in ("mean@n [95 %]", "second run minus first", "56.2*"))
    assert (tmp_path / "board.html").is_file()
    assert run(*both, "--html", "board.html").exit_code == 5
    total = json.loads(run("responses", rows, "runs/a.jsonl", "--json").stdout)["total"]
    assert total["mean"]["value"] == runs["A"]["by_data_source"]["openai/gsm8k"]["value"]
    assert (len(total["pass@k"]), list(total["maj@k"])) == (4, ["4"])


def test_the_options_of_a_scorer_are_environment_variables_too(parquet, run, tmp_path):
    (tmp_path / "r.jsonl").write_text('{"input": "Which number is 10?", "output": "#### 10"}\n')
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(9)\n")
    arguments = ("responses", parquet(1), "r.jsonl", "--scorer", "slow.py:score")
    assert "0.3 s" in str(run(*arguments, REWARDKIT_LOAD_SECONDS="0.3"))
    assert "REWARDKIT_JOBS" in run(*arguments, REWARDKIT_JOBS="0").output
    assert run(*arguments, "--load-seconds", 0.2, REWARDKIT_SECONDS_PER_ROW="x").exit_code == 2


def test_an_interrupted_run_says_how_to_resume(parquet, run, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    parquet(1)
    monkeypatch.setattr("rewardkit.evaluate.evaluation.evaluate", interrupt)
    message = "m.jsonl: interrupted; run the same command again to resume."
    assert message in run(*REQUEST.split(), "test.parquet").stderr


REQUEST = "run --base-url http://127.0.0.1:9/v1 --model M --out m.jsonl"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (REQUEST, "either a parquet with questions, or sets with --suite"),
        (f"{REQUEST} test.parquet --suite gsm8k", "either a parquet with questions"),
        (f"{REQUEST} test.parquet --hub modelscope", "--hub needs --suite"),
        (f"{REQUEST} test.parquet --out m.txt", "ends in .jsonl"),
        (f"{REQUEST} test.parquet --extra-body [1]", "write a JSON object"),
        (f"{REQUEST} test.parquet --api-key-env NO_SUCH", "the variable is not set"),
        (f"{REQUEST} test.parquet --scorer nope", "nope"),
        (f"{REQUEST} test.parquet --base-url host:8000", "http://HOST:PORT"),
        (f"{REQUEST} test.parquet --resume --overwrite", "--resume keeps"),
        ("compare test.parquet --metric mean", "not a scored response"),
        ("responses test.parquet none.jsonl", "no such file"),
        ("responses none.parquet none.jsonl", "no such file"),
    ],
)
def test_each_wrong_argument_is_a_one_line_error_with_a_remedy(parquet, run, arguments, message):
    parquet(2)
    error = run(*arguments.split())
    assert message in str(error)
    assert "\n" not in str(error)
