"""A leaderboard has cells with intervals, marks, averages, notes and an HTML page."""

import json
import re
from array import array
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.errors import DataError, SourceError, UsageError
from rewardkit.evaluate.leaderboard import build_leaderboard, parse_runs
from rewardkit.evaluate.leaderboard_page import row_cells, to_markdown, write_leaderboard_page
from rewardkit.evaluate.results import question_key, read_results


def line(row, sample, right, **fields):
    """Return a line of a result file."""
    return {
        "row": row,
        "sample": sample,
        "model": "M",
        "sampling": {"api": "chat", "seed": 1},
        "response": "so\n#### 1",
        "finish_reason": "stop",
        "tokens": 5,
        "data_source": "set",
        "prompt": [{"role": "user", "content": f"question {row}?"}],
        "ground_truth": "1",
        "extra_info": {"index": row},
        "score": float(right),
        "acc": float(right),
        "pred": "1" if right else f"wrong {sample}",
        "no_answer": 0.0,
        "timeout": 0.0,
        "error": 0.0,
        "status": "correct" if right else "wrong",
        **fields,
    }


@pytest.fixture
def results(tmp_path):
    """Return a function that writes a result file: `rights[i]` of n responses to question i are right."""

    def make(name, rights, n=4, **fields):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [
            line(row, sample, sample < right, **fields)
            for row, right in enumerate(rights)
            for sample in range(n)
        ]
        path.write_text("".join(json.dumps(record) + "\n" for record in lines))
        return path

    return make


def read(*paths):
    return [read_results(path.stem, [path]) for path in paths]


def test_the_best_run_and_runs_within_chance_of_it_are_marked(results):
    best = results("best.jsonl", [4] * 30 + [3] * 10)
    near = results("near.jsonl", [4] * 29 + [3] * 11)
    far = results("far.jsonl", [1] * 40)
    leaderboard = build_leaderboard(read(far, near, best))
    assert [row.run.name for row in leaderboard.rows] == ["best", "near", "far"]
    assert [row.cells["set"].mark for row in leaderboard.rows] == ["best", "near", ""]
    assert leaderboard.rows[0].cells["set"].value == pytest.approx((30 * 4 + 10 * 3) / 160)
    assert row_cells(leaderboard, leaderboard.rows[2])[0].startswith("25.0 [")
    assert leaderboard.best().near == ("near",)
    sentence = leaderboard.best().sentence()
    assert re.fullmatch(r"Best: best, 93\.8% \([\d.]+ to [\d.]+\); near may be as good\.", sentence)
    assert leaderboard.summary()["best"]["name"] == "best"
    pair = build_leaderboard(read(far, best)).best()
    assert pair.sentence().endswith("; the others differ by more than chance.")
    assert build_leaderboard(read(best)).best() is None
    other = results("other.jsonl", [1] * 41)
    assert build_leaderboard(read(best, other)).best() is None  # of other questions


def test_the_best_average_is_named_if_every_data_source_can_be_compared(results):
    runs = [("a", [4] * 20, [0] * 20), ("b", [1] * 20, [2] * 20), ("c", [4] * 20, [1, 0] * 10)]
    paths = [
        [results(f"{name}/x.jsonl", x, data_source="x"), results(f"{name}/y.jsonl", y, data_source="y")]
        for name, x, y in runs
    ]  # fmt: skip
    named = [read_results(path.parent.name, [path, other]) for path, other in paths]
    best = build_leaderboard(named).best()
    assert (best.name, best.value, best.near) == ("c", pytest.approx(0.5625), ("a",))
    assert build_leaderboard(named[:1]).best() is None


def test_cells_of_metrics_with_k_agree_with_eval(results):
    path = results("a.jsonl", [4, 3, 2, 1, 0])
    summary = read(path)[0].metrics.summary()["total"]
    for figure, name in (("pass@2", "pass@k"), ("maj@3", "maj@k")):
        cell = build_leaderboard(read(path), figure).rows[0].cells["set"]
        expected = summary[name][figure[-1]]
        assert cell.value == pytest.approx(expected["value"])
        assert cell.interval == pytest.approx(tuple(expected["interval"]))


def test_an_average_weights_data_sources_equally_and_needs_all_of_them(results):
    big = results("r/big.jsonl", [4] * 90 + [0] * 10, data_source="big")
    small = results("r/small.jsonl", [0] * 10, data_source="small")
    partial = read_results("one", [big, small])
    two = read_results("two", [big])
    leaderboard = build_leaderboard([two, partial])
    assert leaderboard.rows[0].run.name == "one"
    average, (low, high) = leaderboard.rows[0].average
    assert average == pytest.approx(0.45)
    assert 0 <= low < average < high <= 1
    assert leaderboard.rows[1].average is None
    assert row_cells(leaderboard, leaderboard.rows[1])[0] == ""


def test_different_questions_and_samplings_are_noted(results):
    a = results("a.jsonl", [1] * 10)
    b = results("b.jsonl", [1] * 8, sampling={"api": "chat", "temperature": 0.5})
    notes = build_leaderboard(read(a, b)).notes
    assert any("the runs have different questions (10, 8; 8 in all runs)" in note for note in notes)
    assert any("2 different samplings" in note for note in notes)
    c = results("c.jsonl", [1] * 10, sampling={"api": "chat", "seed": 2})
    assert build_leaderboard(read(a, c)).notes == ()


@pytest.mark.parametrize("figure", ["pass@0", "pass", "best@4", "pass@x", "mean@4", "maj@-1"])
def test_an_unknown_metric_is_an_error(results, figure):
    with pytest.raises(UsageError, match="mean@n, pass@K or maj@K"):
        build_leaderboard(read(results("a.jsonl", [1])), figure)


def test_a_metric_that_needs_more_responses_is_an_error_or_a_note(results):
    with pytest.raises(DataError, match="a: set: a question has 4 responses; pass@8 needs 8"):
        build_leaderboard(read(results("a.jsonl", [1])), "pass@8")
    silent = results("b.jsonl", [4], pred="")
    with pytest.raises(DataError, match="does not name the answers"):
        build_leaderboard(read(silent), "maj@2")
    full = results("c.jsonl", [4] * 3, n=8, data_source="other")
    leaderboard = build_leaderboard([read_results("both", [silent, full])], "pass@8")
    assert leaderboard.columns == ("other",)
    assert leaderboard.notes == ("both: set: a question has 4 responses; pass@8 needs 8.",)


def test_with_many_responses_only_the_majority_of_all_is_known(results):
    path = results("a.jsonl", [60] * 4, n=100)
    assert build_leaderboard(read(path), "maj@100").rows[0].cells["set"].value > 0.9
    for k in (1, 64):
        with pytest.raises(DataError, match="only maj@100 is known"):
            build_leaderboard(read(path), f"maj@{k}")


def test_two_files_with_the_same_questions_cannot_be_one_run(results):
    a, b = results("r/a.jsonl", [1]), results("r/b.jsonl", [4])
    with pytest.raises(DataError, match="answer the same questions: name them as two runs"):
        read_results("r", [a, b])


def test_runs_with_different_questions_are_not_marked_and_equal_runs_are_both_best(results):
    a, b = results("a.jsonl", [4, 1, 2]), results("b.jsonl", [4, 1])
    assert {row.cells["set"].mark for row in build_leaderboard(read(a, b)).rows} == {""}
    c = results("c.jsonl", [4, 1, 2])
    assert [row.cells["set"].mark for row in build_leaderboard(read(a, c)).rows] == ["best", "best"]


def test_different_numbers_of_responses_are_noted(results):
    a, b = results("a.jsonl", [1] * 4), results("b.jsonl", [1] * 4, n=2)
    assert build_leaderboard(read(a, b)).notes == (
        "set: the runs have different numbers of responses per question (2, 4).",
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"sampling": "x"},
        {"sampling": [1]},
        {"score": float("nan")},
        {"score": 10**400},
        {"acc": "x"},
        {"extra_info": []},
    ],
)
def test_a_line_with_values_of_wrong_types_is_an_error_with_its_number(results, fields):
    path = results("a.jsonl", [1], n=1, **fields)
    with pytest.raises(DataError, match=r"a\.jsonl:1: not a scored response"):
        read(path)


def test_unexpected_finish_reasons_and_numbers_of_tokens_are_accepted(results):
    path = results("a.jsonl", [1], n=1, finish_reason={}, tokens=10**30)
    assert build_leaderboard(read(path)).rows[0].cells["set"].rates["questions"] == 1


def test_runs_are_named_after_their_files_or_their_paths_if_these_collide(results, tmp_path):
    a, b = results("x/test.jsonl", [1]), results("y/test.jsonl", [1])
    assert [name for name, _ in parse_runs([str(a), f"B={b}"])] == ["test", "B"]
    assert [name for name, _ in parse_runs([str(a), str(b)])] == [str(a), str(b)]
    assert parse_runs([str(tmp_path / "x")]) == [("x", [a])]
    with pytest.raises(UsageError, match="two runs are called B"):
        parse_runs([f"B={a}", f"B={b}"])
    with pytest.raises(SourceError, match="no such file or folder"):
        parse_runs([str(tmp_path / "none")])


def test_a_path_with_an_equals_sign_is_a_path(results):
    path = results("lr=1.jsonl", [1])
    assert parse_runs([str(path)]) == [("lr=1", [path])]


def test_names_cannot_break_the_markdown_or_the_page(results, tmp_path):
    path = results("a.jsonl", [4, 0], data_source="<b>|x`")
    leaderboard = build_leaderboard([read_results("<script>|*a*", [path])])
    lines = to_markdown(leaderboard).splitlines()
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in lines[:3]}) == 1
    assert "<script>" not in to_markdown(leaderboard)
    page_path = tmp_path / "board.html"
    write_leaderboard_page(leaderboard, page_path, overwrite=False)
    page = page_path.read_text()
    assert "<script" not in page
    assert "&lt;b&gt;|x`" in page


def test_the_page_names_the_leader_and_has_a_bar_with_an_interval_in_every_cell(results, tmp_path):
    runs = read(results("good.jsonl", [4] * 19 + [3]), results("bad.jsonl", [1] * 20))
    out = tmp_path / "board.html"
    write_leaderboard_page(build_leaderboard(runs), out, overwrite=False)
    page = out.read_text()
    assert "<h1>good leads: mean@n of 98.8% on set" in page
    assert page.count('class="share"') == 2
    assert '<i style="width:25.00%">' in page
    assert "api chat, seed 1" in page


def test_responses_of_an_unknown_model_have_an_empty_cell(results, tmp_path):
    runs = read(results("a.jsonl", [4, 1], model=None))
    write_leaderboard_page(build_leaderboard(runs), tmp_path / "board.html", overwrite=False)
    assert ">None<" not in (tmp_path / "board.html").read_text()


def test_a_question_that_occurs_twice_in_a_set_counts_twice(results):
    path = results("a.jsonl", [4, 0], prompt=[{"role": "user", "content": "same?"}])
    assert len(read(path)[0].questions) == 2


def test_questions_of_two_files_with_the_same_row_numbers_are_distinguished(results):
    a = results("a.jsonl", [4], data_source="a")
    b = results("b.jsonl", [0], data_source="b")
    run = read_results("both", [a, b])
    assert len(run.metrics.total.questions) == 2
    assert run.metrics.sources["a"].mean()[0] == 1.0


def test_a_question_keeps_its_key_under_another_prompt_if_the_row_names_it():
    first, second = line(0, 0, right=True), line(5, 0, right=False)
    for record in (first, second):
        record["extra_info"] = {"question": "2+2?"}
    second["prompt"] = [{"role": "user", "content": "Think. 2+2?"}]
    assert question_key(first) == question_key(second)
    assert question_key(first) != question_key({**first, "ground_truth": "5"})


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=8))
def test_marks_and_order_agree_with_the_means(tmp_path_factory, rights):
    folder = tmp_path_factory.mktemp("r")
    runs = []
    for number, row in enumerate(rights):
        path = folder / f"{number}.jsonl"
        lines = (json.dumps(line(i, 0, right)) + "\n" for i, right in enumerate(row))
        path.write_text("".join(lines))
        runs.append(read_results(path.stem, [path]))
    leaderboard = build_leaderboard(runs)
    values = [row.cells["set"].value for row in leaderboard.rows]
    assert values == sorted(values, reverse=True)
    marks = [row.cells["set"].mark for row in leaderboard.rows]
    if len(runs) > 1:
        assert values[marks.index("best")] == max(values)
    else:
        assert marks == [""]


def test_a_file_that_is_not_a_result_file_is_an_error_with_the_line(tmp_path, results):
    bad = results("bad.jsonl", [1])
    bad.write_text(bad.read_text() + '{"row": 1}\n')
    with pytest.raises(DataError, match=r"bad\.jsonl:5: not a scored response"):
        read(bad)
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    with pytest.raises(DataError, match="has no results"):
        read(empty)


def test_the_command_prints_a_table_markdown_and_json(cli, results, tmp_path):
    results("r/a.jsonl", [4, 2, 1]), results("r/b.jsonl", [0, 2, 1])

    def run(*arguments):
        return cli("leaderboard", *arguments, cwd=tmp_path)

    table = run("A=r/a.jsonl", "B=r/b.jsonl", "--html", "board.html")
    assert table.returncode == 0, table.stderr
    assert "58.3* [" in table.stdout
    assert "Best: A, 58.3% (" in table.stdout
    assert (tmp_path / "board.html").is_file()
    assert run("r/a.jsonl", "--format", "markdown").stdout.startswith("| run | set |\n| --- |")
    runs = json.loads(run("r/b.jsonl", "r/a.jsonl", "--json").stdout)["runs"]
    assert [entry["name"] for entry in runs] == ["a", "b"]
    assert runs[0]["by_data_source"]["set"]["questions"] == 3
    second_call = run("r/a.jsonl", "--html", "board.html")
    assert (second_call.returncode, second_call.stdout) == (5, "")
    assert second_call.stderr.startswith("error: ")


def test_metrics_and_leaderboard_count_the_same_questions(results):
    path = results("a.jsonl", [4, 1, 0])
    run = read(path)[0]
    assert len(run.questions) == len(run.metrics.total.questions)
    assert all(isinstance(question.majority, array) for _, question in run.questions.values())
    assert Path(run.files[0]) == path
