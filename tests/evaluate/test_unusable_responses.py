"""A reply with status 200 and no usable response is requested again, then counted and reported."""

import json
import os

import pytest

from rewardkit.cli.shared.eval_output import warn_about
from rewardkit.errors import DataError, OutputError, SourceError
from rewardkit.evaluate.evaluation import ScorerConfig, evaluate, evaluate_responses
from rewardkit.evaluate.generate import GenerationConfig, Sampling
from rewardkit.evaluate.leaderboard import build_leaderboard
from rewardkit.evaluate.results import read_results
from rewardkit.evaluate.suite import SuiteMember, evaluate_suite
from rewardkit.jsonl import MAX_LINE_BYTES
from rewardkit.model_client import retries as module
from rewardkit.model_client.client import Server, _retry_after
from rewardkit.model_client.completions import parse_choice
from rewardkit.responses.response_log import MAX_LOG_LINE_BYTES
from rewardkit.responses.resumable_output import part_path

INTERRUPTED = ["abort", "error", "insufficient_system_resource"]
WITHHELD = ["content_filter", "no_content"]


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr(module, "BACKOFF_SECONDS", 0.01)


def unusable(reason, content="#### 10"):
    """Return a reply with status 200 whose only choice is unusable; `no_content` has null content."""
    if reason == "no_content":
        reason, content = "stop", None
    choice = {"message": {"role": "assistant", "content": content}, "finish_reason": reason}
    return (200, {}, {"choices": [choice], "usage": {"completion_tokens": 1}})


@pytest.fixture
def generate(parquet, tmp_path):
    def run(server, rows=3, n=2, out="m.jsonl", **options):
        generation = GenerationConfig(
            Server(server.url, "chat"), "M", Sampling(seed=1), n=n, **options
        )
        report = evaluate(parquet(rows), generation, tmp_path / out)
        return report, [json.loads(x) for x in (tmp_path / out).read_text().splitlines()]

    return run


@pytest.mark.parametrize("reason", INTERRUPTED + WITHHELD)
def test_an_unusable_response_is_requested_again(serve, generate, reason):
    with serve() as server:
        _, expected = generate(server, out="clean.jsonl")
    with serve(faults={1: unusable(reason), 4: unusable(reason)}) as server:
        report, lines = generate(server)
    assert lines == expected
    assert len(server.bodies) == 8
    assert report.metrics.summary()["total"]["unusable"] == {}


@pytest.mark.parametrize("reason", INTERRUPTED + WITHHELD)
def test_a_response_that_stays_unusable_counts_as_wrong_and_is_reported(
    serve, generate, reason, capsys
):
    """This holds even if the text contains the right answer, because the model did not finish it."""
    tries = 4 if reason in INTERRUPTED else 3
    faults = dict.fromkeys(range(2, 2 + tries), unusable(reason))
    with serve(faults=faults) as server:
        report, lines = generate(server, rows=4, n=1, tries=4, concurrency=1)
    assert len(server.bodies) == 3 + tries
    assert [line["finish_reason"] for line in lines] == ["stop", "stop", reason, "stop"]
    assert (lines[2]["response"], lines[2]["acc"]) == ("", 0.0)
    summary = report.summary()
    assert summary["total"]["unusable"] == {reason: 1}
    assert (summary["total"]["responses"], summary["unanswered"]) == (4, 0)
    warn_about(report)
    assert f"no usable response for 1 of 4 ({reason} 1)" in capsys.readouterr().err


def test_usable_choices_of_a_reply_are_kept(serve, generate):
    """Only the unusable ones of several choices are requested again."""
    texts = [("#### 10", "stop"), ("", "abort"), (None, "stop"), ("#### 11", "length")]
    choices = [{"message": {"content": c}, "finish_reason": reason} for c, reason in texts]
    with serve(faults={0: (200, {}, {"choices": choices})}) as server:
        _, lines = generate(server, rows=1, n=4, choices_per_request=4)
    assert [body.get("n", 1) for body in server.bodies] == [4, 2]
    assert [line["response"] for line in lines[:2]] == ["#### 10", "#### 11"]
    assert len(lines) == 4


@pytest.mark.parametrize("reason", ["error", "content_filter"])
def test_a_run_without_a_usable_response_is_an_error_and_not_a_score_of_0(
    serve, generate, tmp_path, reason
):
    with (
        serve(always=unusable(reason)) as server,
        pytest.raises(SourceError, match=f"finish_reason is {reason}"),
    ):
        generate(server, rows=2, n=1, tries=2)
    assert [path.name for path in tmp_path.iterdir()] == ["test.parquet"]


@pytest.mark.parametrize(
    ("message", "finish"),
    [
        ({"content": None, "reasoning_content": "hm, so"}, "length"),
        ({"content": None, "reasoning_content": "hm, so"}, "stop"),
        ({"content": None, "reasoning": "hm, so"}, "stop"),
        ({"content": None, "tool_calls": [{"id": "1"}]}, "tool_calls"),
        ({"content": None, "refusal": "I will not."}, "stop"),
        ({"content": None}, "length"),
        ({"content": ""}, "stop"),
        ({"content": "x"}, None),
    ],
)
def test_everything_that_the_model_itself_did_is_a_response(message, finish):
    """Truncated reasoning (null content in vLLM and SGLang), a tool call, an empty text."""
    choice = parse_choice({"message": message, "finish_reason": finish})
    assert (choice.is_usable, choice.finish_reason) == (True, finish or "")


@pytest.mark.parametrize("message", [{}, {"content": None}, {"content": None, "tool_calls": []}])
@pytest.mark.parametrize("finish", ["stop", None])
def test_null_content_with_nothing_beside_it_is_not_a_response(message, finish):
    choice = parse_choice({"message": message, "finish_reason": finish})
    assert (choice.is_usable, choice.finish_reason) == (False, "no_content")


def test_an_absurdly_long_text_is_discarded(monkeypatch):
    monkeypatch.setattr("rewardkit.model_client.completions.MAX_CHARACTERS", 10)
    choice = parse_choice({"message": {"content": "a" * 6, "reasoning": "b" * 5}})
    assert (choice.text, choice.reasoning, choice.finish_reason) == ("", "", "too_long")


def test_unfinished_responses_from_files_count_as_wrong_and_are_reported(parquet, tmp_path, capsys):
    bodies = [
        {"choices": [{"message": {"content": f"#### {row + 10}"}, "finish_reason": reason}]}
        for row, reason in enumerate(["stop", "content_filter", "abort", "stop"])
    ]
    bodies[3]["choices"][0]["message"]["content"] = None
    file, out = tmp_path / "batch.jsonl", tmp_path / "out.jsonl"
    records = [
        {"custom_id": f"{row}", "response": {"body": body}} for row, body in enumerate(bodies)
    ]
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    report = evaluate_responses(parquet(4), [str(file)], out)
    assert [line["acc"] for line in map(json.loads, out.read_text().splitlines())] == [1, 0, 0, 0]
    warn_about(report)
    warnings = capsys.readouterr().err
    assert "no usable response for 3 of 4 (abort 1, content_filter 1, no_content 1)" in warnings


def test_the_leaderboard_reports_unusable_responses(serve, generate, tmp_path):
    refusal = (400, {}, {"error": {"message": "too long"}})
    filtered = dict.fromkeys(range(2, 5), unusable("content_filter"))
    with serve(faults={**filtered, 5: refusal}) as server:
        generate(server, rows=6, n=1, concurrency=1)
    notes = build_leaderboard([read_results("run", [tmp_path / "m.jsonl"])]).notes
    assert notes == (
        "run: no usable response for 2 of 6 (content_filter 1, refused 1); they count as wrong.",
    )


def test_a_finished_set_with_a_refused_prompt_is_not_generated_again(serve, parquet, tmp_path):
    """The line of the refused prompt has model and sampling like all others."""
    suite = [SuiteMember("set", parquet(3), 1)]
    for _ in range(2):
        with serve(faults={1: (400, {}, {})}) as server:
            generation = GenerationConfig(Server(server.url), "M", Sampling(seed=1), concurrency=1)
            report = evaluate_suite(suite, generation, tmp_path / "out", ScorerConfig())["set"]
        assert report.metrics.total.unusable == {"refused": 1}
    assert server.bodies == []


ABSURD = [
    "Fri, 99999999999999999999 Nov 2026 08:49:37 GMT",
    "Fri, 06 Nov 99999999999999999999 08:49:37 GMT",
    "Fri, 06 Nov 2026 08:49:37 +99999999999999999999",
    "Fri, 31 Dec 9999 23:59:59 -2359",
    "Mon, 01 Jan 0001 00:00:00 +2359",
    "Fri, 06 Nov 2026 99:99:99 GMT",
]


@pytest.mark.parametrize("date", ABSURD)
def test_an_absurd_retry_after_date_is_accepted(date):
    assert _retry_after(date) >= 0.0


def test_a_symbolic_link_in_place_of_the_part_is_an_error_and_its_target_stays(
    serve, generate, tmp_path
):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    part_path(tmp_path / "m.jsonl").symlink_to(victim)
    with (
        serve() as server,
        pytest.raises(OutputError, match=r"\.m\.jsonl\.part is a symbolic link"),
    ):
        generate(server)
    assert victim.read_text() == "precious"


def test_an_output_link_stays_a_link_and_its_part_is_beside_the_target(serve, generate, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "m.jsonl").symlink_to(tmp_path / "there" / "real.jsonl")
    with serve(always=(500, {}, {})) as server, pytest.raises(SourceError):
        generate(server, rows=2, n=1, tries=1)
    with serve(faults={1: (500, {}, {})}) as server, pytest.raises(SourceError):
        generate(server, rows=2, n=1, tries=1, concurrency=1)
    assert os.listdir(tmp_path / "there") == [".real.jsonl.part"]  # noqa: PTH208
    with serve() as server:
        _, lines = generate(server, rows=2, n=1)
    assert len(server.bodies) == 1
    assert len(lines) == 2
    assert (tmp_path / "m.jsonl").is_symlink()
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["real.jsonl"]


def test_an_endless_line_in_a_result_file_is_an_error_with_its_number(serve, generate, tmp_path):
    path = tmp_path / "m.jsonl"
    with serve() as server:
        generate(server, rows=1, n=1)
    os.truncate(path, path.stat().st_size + MAX_LINE_BYTES + 10)  # sparse
    with pytest.raises(DataError, match=r"m\.jsonl:2: the line has 67,108,874 bytes"):
        read_results("m", [path])


@pytest.mark.full
def test_an_endless_line_in_a_part_file_is_an_error_with_its_number(serve, generate, tmp_path):
    part = part_path(tmp_path / "m.jsonl")
    part.touch()
    os.truncate(part, MAX_LOG_LINE_BYTES + 10)
    with (
        serve() as server,
        pytest.raises(DataError, match=r"part:1: the line has 268,435,466 bytes"),
    ):
        generate(server)
