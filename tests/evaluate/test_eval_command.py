"""`rewardkit eval` from end to end."""

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from rewardkit.cli.eval import app
from rewardkit.errors import RewardkitError


@pytest.fixture
def run(cli, tmp_path):
    def run_eval(*arguments, **environment):
        env = os.environ | {"COLUMNS": "140", **environment}
        return cli("eval", *arguments, cwd=tmp_path, env=env)

    return run_eval


def test_the_commands_generate_print_and_compare_results(serve, parquet, run, tmp_path):
    rows = parquet(12, subject=lambda i: ["algebra", "geometry"][i % 2], level=lambda _: "1")
    with serve() as server:
        for name, seed in (("a", 1), ("b", 2)):
            request = ["--base-url", server.url, "--model", "M", "-n", 4, "--seed", seed]
            done = run(
                "run", rows, *request, "--out", f"runs/{name}.jsonl", "--api-key-env", "K", K="sk-1"
            )
            assert done.returncode == 0, done.stderr
    assert "openai/gsm8k" in done.stdout
    assert "openai/gsm8k: geometry" in done.stdout
    assert "pass@k, unbiased (Chen et al. 2021)" in done.stdout
    assert "sk-1" not in done.stdout + done.stderr
    both = ("compare", "A=runs/a.jsonl", "runs/b.jsonl")
    comparison = json.loads(run(*both, "--json").stdout)
    assert comparison["differences"]["all"]["questions"] == 12
    runs = {entry["name"]: entry for entry in comparison["runs"]}
    assert runs["A"]["of"][0]["sampling"]["seed"] == 1
    table = run(*both, "--html", "board.html")
    for text in ("mean@n [95 %]", "* [", "second run minus first", "56.2*"):
        assert text in table.stdout
    assert (tmp_path / "board.html").is_file()
    again = run(*both, "--html", "board.html")
    assert (again.returncode, again.stdout) == (5, "")
    markdown = run("compare", "runs/a.jsonl", "--format", "markdown").stdout
    assert markdown.startswith("| run | openai/gsm8k |\n| --- |")
    rejudged = run("responses", rows, "runs/a.jsonl", "--json")
    total = json.loads(rejudged.stdout)["total"]
    assert total["mean"]["value"] == runs["A"]["by_data_source"]["openai/gsm8k"]["value"]
    assert (len(total["pass@k"]), list(total["maj@k"])) == (4, ["4"])


def test_the_options_of_a_scorer_are_environment_variables_too(parquet, run, tmp_path):
    (tmp_path / "r.jsonl").write_text('{"input": "Which number is 10?", "output": "#### 10"}\n')
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(9)\n")
    arguments = ("responses", parquet(1), "r.jsonl", "--scorer", "slow.py:score")
    done = run(*arguments, REWARDKIT_LOAD_SECONDS="0.3")
    assert (done.returncode, "0.3 s" in done.stderr) == (2, True)
    assert "REWARDKIT_JOBS" in run(*arguments, REWARDKIT_JOBS="0").stderr
    assert run(*arguments, "--load-seconds", 0.2, REWARDKIT_SECONDS_PER_ROW="x").returncode == 2


def test_each_wrong_argument_is_a_one_line_error_with_a_remedy(parquet, tmp_path, monkeypatch):
    rows = parquet(2)
    request = ["run", "--base-url", "http://127.0.0.1:9/v1", "--model", "M", "--out"]
    cases = {
        (*request, "m.jsonl"): "either a parquet with questions, or sets with --suite",
        (*request, "m.jsonl", rows, "--suite", "gsm8k"): "either a parquet with questions",
        (*request, "m.jsonl", rows, "--hub", "modelscope"): "--hub needs --suite",
        (*request, "m.txt", rows): "must end in .jsonl",
        (*request, "m.jsonl", rows, "--extra-body", "[1]"): "write a JSON object",
        (*request, "m.jsonl", rows, "--api-key-env", "NO_SUCH"): "the variable is not set",
        (*request, "m.jsonl", rows, "--scorer", "nope"): "nope",
        (*request, "m.jsonl", rows, "--base-url", "host:8000"): "http://HOST:PORT",
        (*request, "m.jsonl", rows, "--resume", "--overwrite"): "--resume keeps",
        ("compare", rows, "--metric", "mean"): "not a scored response",
        ("responses", rows, "none.jsonl"): "no such file",
        ("responses", "none.parquet", "none.jsonl"): "no such file",
    }
    monkeypatch.chdir(tmp_path)
    for arguments, message in cases.items():
        error = CliRunner().invoke(app, list(map(str, arguments))).exception
        assert isinstance(error, RewardkitError), (arguments, error)
        assert message in str(error)
        assert "\n" not in str(error)


def test_loading_the_command_loads_no_http_and_no_arrow():
    code = "import rewardkit.cli.eval, sys; print({'httpx', 'pyarrow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "set()"
