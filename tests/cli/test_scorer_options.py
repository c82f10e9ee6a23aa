"""Scorer options and custom scorers on the command line."""

import json

import pytest
from typer.testing import CliRunner

from rewardkit.cli.main import app
from rewardkit.errors import DataError, UsageError
from rewardkit.row import build_row, write_rows

NEAREST = "has no method 'robst'. Did you mean 'robust'? Its methods: "
#: `auto` may choose any scorer; two of them have methods.
METHODS = {"gsm8k": "strict, flexible, robust.", "auto": "strict, flexible, robust, f1, exact."}

HANGS = """
import time
def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    while True:
        time.sleep(60)
"""

#: Scores only its own format, and misbehaves on some golds.
OWN = """
import os, sys, time
print("printed while it is imported")
def respond(answer):
    return f"<a>{answer}</a>"
def compute_score(data_source, solution_str, ground_truth, extra_info=None, *, late=None):
    if ground_truth == late:
        time.sleep(60)
    if ground_truth == "5":
        os._exit(3)
    return float(solution_str == respond(ground_truth))
"""


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def row(gold, i=0):
    prompt = [{"role": "user", "content": f"question {i}"}]
    return build_row(
        data_source="openai/gsm8k", prompt=prompt, ability="math", ground_truth=gold, index=i,
        split="train", source_id="", question=f"question {i}", answer="", scorer="gsm8k",
    )  # fmt: skip


@pytest.fixture
def parquet(tmp_path):
    file = tmp_path / "x.parquet"
    write_rows([row(str(i), i) for i in range(10)], file, {})
    return file


@pytest.fixture
def responses(tmp_path):
    file = tmp_path / "x.jsonl"
    file.write_text(json.dumps({"response": "#### 1", "ground_truth": "1"}) + "\n")
    return file


@pytest.mark.parametrize(
    "arguments",
    [
        ("path", "gsm8k", "--verl", "--set", "method=robst"),
        ("path", "auto", "--set", "method=robst"),
        ("check", "PARQUET", "--set", "method=robst"),
        ("check", "PARQUET", "--scorer", "auto", "--set", "method=robst"),
        ("check", "PARQUET", "--scorer", "gsm8k", "--set", "method=robst"),
        ("score", "RESPONSES", "--scorer", "gsm8k", "--set", "method=robst"),
        ("score", "RESPONSES", "--set", "method=robst"),
        ("score", "RESPONSES", "--scorer", "gsm8k", "--scorer", "gsm8k", "--set-b", "method=robst"),
        ("explain", "--gold", "1", "--response", "RESPONSES", "--scorer", "gsm8k", "--set", "method=robst"),
        ("audit", "gsm8k", "--set", "method=robst"),
        ("score", "RESPONSES", "--html", "OUT.html", "--scorer", "gsm8k", "--set", "method=robst"),
        ("eval", "responses", "PARQUET", "RESPONSES", "--out", "OUT.jsonl", "--scorer", "gsm8k", "--set", "method=robst"),
        ("reward-server", "gsm8k", "--port", "0", "--set", "method=robst"),
        ("train", "qwen2.5-0.5b-ppo-gsm8k", "--dry-run", "--set", "reward.options={method: robst}"),
    ],
    ids=lambda arguments: " ".join(arguments[:4]),
)  # fmt: skip
def test_an_invalid_value_is_an_error_of_every_command_that_suggests_the_nearest(
    tmp_path, parquet, responses, arguments
):
    names = {"PARQUET": parquet, "RESPONSES": responses}
    names |= {name: tmp_path / name for name in ("OUT.html", "OUT.jsonl")}
    done = call(*(names.get(argument, argument) for argument in arguments))
    assert isinstance(done.exception, UsageError), done.output
    own = str(done.exception).removeprefix("scorer '").partition("'")[0]
    assert str(done.exception).endswith(f"{NEAREST}{METHODS[own]}")
    assert done.exception.exit_code == 2
    assert not done.stdout
    assert sorted(file.name for file in tmp_path.iterdir()) == ["x.jsonl", "x.parquet"]


def test_an_option_of_the_wrong_type_is_reported_and_python_s_true_is_accepted(parquet):
    message = str(call("path", "mcq", "--verl", "--set", "partial=maybe").exception)
    assert message == "scorer 'mcq': partial='maybe' is invalid; give true or false."
    for true in ("true", "True"):
        done = call("path", "mcq", "--verl", "--verl-version", "0.9.1", "--set", f"partial={true}")
        assert done.stdout.splitlines()[-1].endswith("reward_kwargs.partial=True")


@pytest.mark.full
def test_check_and_score_stop_using_a_scorer_that_never_answers(tmp_path, parquet, responses):
    (tmp_path / "hang.py").write_text(HANGS)
    name = f"{tmp_path}/hang.py:compute_score"
    responses.write_text(responses.read_text() * 5)
    messages = []
    for command in (("check", parquet), ("score", responses)):
        done = call(*command, "--scorer", name, "--seconds-per-row", "0.05")
        assert isinstance(done.exception, DataError)
        messages.append(str(done.exception))
    assert messages[0] == messages[1]
    assert "no verdict on its first 5 responses" in messages[0]


def test_a_scorer_that_exits_on_a_row_loses_only_that_row(tmp_path, parquet):
    report, findings = check_findings(tmp_path, parquet)
    assert findings == [(5, "scorer_raises", "the scorer ended its process (exit code 3)")], (
        "the row once; its own `respond` is used, and what it prints is not in the JSON"
    )
    assert (report["rows"], report["bad_rows"]) == (10, 1)


def check_findings(tmp_path, parquet, *options):
    (tmp_path / "own.py").write_text(OWN)
    name = f"{tmp_path}/own.py:compute_score"
    done = call("check", parquet, "--scorer", name, "--json", *options)
    assert done.exit_code == 1
    report = json.loads(done.stdout)
    return report, [
        (example["row"], example["rule"], example["message"]) for example in report["examples"]
    ]
