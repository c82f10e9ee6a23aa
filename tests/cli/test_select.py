"""`rewardkit select` as a user meets it: from scored responses to a smaller parquet."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

#: Number of right responses, of 8, to each of the first rows.
RIGHT = (0, 1, 4, 8)


@pytest.fixture
def scored_file(run, sample, tmp_path):
    """Score r.jsonl, a dump with 8 responses to each of the first rows of t.parquet (GSM8K)."""
    sample(tmp_path / "t.parquet")
    lines = []
    for row, correct in zip(pq.read_table(tmp_path / "t.parquet").to_pylist(), RIGHT, strict=False):
        gold = row["reward_model"]["ground_truth"]
        question = f"system\nYou are helpful.\nuser\n{row['prompt'][0]['content']}\nassistant\n"
        for i in range(8):
            output = f"#### {gold}" if i < correct else "#### -1"
            lines.append({"input": question, "output": output, "gts": gold, "step": 1})
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = run("score", "r.jsonl", "--scorer", "gsm8k", "--out", "s.jsonl")
    assert done.returncode == 0, done.stderr
    return "s.jsonl"


OPTIONS = ("--train", "t.parquet", "--pass-rate", "0.1:0.9", "--out", "o.parquet")


def test_a_dump_of_verl_becomes_a_smaller_parquet_that_passes_check(run, scored_file, tmp_path):
    done = run("select", scored_file, *OPTIONS, "--html", "s.html")
    assert (done.returncode, done.stderr) == (0, "")
    for expected in (
        "2 of ",
        "matched to rows: 32 by prompt",
        "groups without a gradient: 2 of 4 (50.0%)",
        "never",
        "█",
    ):
        assert expected in done.stdout
    train, out = (pq.read_table(tmp_path / name) for name in ("t.parquet", "o.parquet"))
    assert out.equals(train.slice(1, 2))
    assert run("check", "o.parquet").returncode == 0
    assert "Groups without a gradient" in (tmp_path / "s.html").read_text()


def test_json_has_the_histogram_and_unseen_rows_can_be_kept(run, scored_file, tmp_path):
    rows = pq.read_table(tmp_path / "t.parquet").num_rows
    done = run("select", scored_file, *OPTIONS, "--unseen", "keep", "--json")
    report = json.loads(done.stdout)
    assert (report["written"], report["unseen"]) == (rows - 2, rows - 4)
    assert report["percents"] == {"0": 1, "12": 1, "50": 1, "100": 1}
    groups = {"n": 4, "without_gradient": 2, "all_correct": 1, "none_correct": 1, "responses": 32}
    assert (report["groups"], report["responses"]) == (groups, {"prompt": 32})


def test_select_and_report_count_the_same_groups_without_a_gradient(run, scored_file, tmp_path):
    """select pooled the steps: a prompt that was solved never and then always had a gradient."""
    rows = [json.loads(line) for line in (tmp_path / scored_file).read_text().splitlines()]
    later = [{**row, "step": 2, "score": 1.0, "acc": 1.0} for row in rows]
    later[0] |= {"score": 0.0, "acc": 0.0, "status": "bad_ground_truth"}
    half = [{**row, "step": 3, "score": -0.5, "acc": 0.0} for row in rows[:3]]
    (tmp_path / "steps.jsonl").write_text("\n".join(map(json.dumps, rows + later + half)))
    selected = json.loads(run("select", "steps.jsonl", *OPTIONS, "--json").stdout)
    reported = json.loads(run("report", "steps.jsonl", "--html", "r.html", "--json").stdout)
    assert selected["groups"] == reported["groups"]
    assert reported["groups"]["n"] == 9
    assert reported["groups"]["without_gradient"] == 6
    assert "groups without a gradient" in (tmp_path / "r.html").read_text()


def test_folders_and_rows_with_lists_are_read(run, scored_file, tmp_path):
    (tmp_path / "scored").mkdir()
    lines = [json.loads(line) for line in (tmp_path / scored_file).read_text().splitlines()]
    rows = [
        {
            "input": lines[start]["input"],
            "gts": lines[start]["gts"],
            "responses": [line["output"] for line in lines[start : start + 8]],
            "acc": [line["acc"] for line in lines[start : start + 8]],
        }
        for start in range(0, len(lines), 8)
    ]
    for name, part in (("1", rows[:2]), ("2", rows[2:])):
        pq.write_table(pa.Table.from_pylist(part), tmp_path / f"scored/{name}.parquet")
    reports = [
        json.loads(run("select", s, *OPTIONS, "--overwrite", "--json").stdout)
        for s in (scored_file, "scored")
    ]
    assert reports[1]["scored"] == "2 files"
    assert {**reports[1], "scored": scored_file} == reports[0]
    assert reports[0]["responses"] == {"prompt": 32}


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (("--pass-rate", "0.9:0.1"), 2, "low is above high; write 0.1:0.9 (LOW:HIGH)"),
        (("--unseen", "maybe"), 2, "maybe"),
        (("--train", "nope.parquet"), 3, "no such file"),
        (("--pass-rate", "0.2:0.3"), 4, "no row would be kept"),
        (("--min-samples", "9"), 4, "fewer than 9 responses"),
        (("--out", "t.parquet", "--overwrite"), 2, "is the input file"),
    ],
)
def test_an_error_is_one_line(run, scored_file, arguments, code, expected):
    done = run("select", scored_file, *OPTIONS, *arguments)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)
    assert expected in done.stderr


def test_the_best_responses_become_sft_data_and_the_report_counts_the_prompts(
    run, scored_file, tmp_path
):
    prompts = pq.read_table(tmp_path / "t.parquet").num_rows
    done = run("select", scored_file, "--train", "t.parquet", "--sft", "sft.parquet")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"3 responses to 3 of {prompts} prompts" in done.stdout
    assert f"prompts without one, no responses: {prompts - 4}" in done.stdout
    assert "right responses: 13, wrong: 19" in done.stdout
    rows = pq.read_table(tmp_path / "sft.parquet").to_pylist()
    train = pq.read_table(tmp_path / "t.parquet").to_pylist()
    gold = train[1]["reward_model"]["ground_truth"]
    answer = {"role": "assistant", "content": f"#### {gold}"}
    assert rows[0]["messages"] == [*train[1]["prompt"], answer]
    done = run("select", scored_file, "--train", "t.parquet", "--sft", "sft.parquet", "--json")
    assert done.returncode != 0
    assert done.stdout == ""
    assert "--overwrite" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "name one output"),
        (("--out", "o.parquet", "--sft", "s.parquet"), "name one output"),
        (("--out", "o.parquet"), "--out needs --pass-rate"),
        ((*OPTIONS[2:], "--per-prompt", "2"), "--per-prompt needs --sft"),
        (("--sft", "s.parquet", "--html", "s.html"), "--html needs --out"),
    ],
)
def test_options_of_the_other_output_are_refused(run, options, message):
    done = run("select", "s.jsonl", "--train", "t.parquet", *options)
    assert done.returncode == 2
    assert message in done.stderr
