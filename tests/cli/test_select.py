"""`rewardkit select` as a user meets it: from scored responses to a smaller parquet."""

import json

import pyarrow.parquet as pq
import pytest

#: Number of right responses, of 8, to each of the first rows.
RIGHT = (0, 1, 4, 8)
TRAIN = ("--train", "t.parquet")
OPTIONS = (*TRAIN, "--pass-rate", "0.1:0.9", "--out", "o.parquet")


@pytest.fixture
def scored_file(run, sample, tmp_path):
    """Score r.jsonl, a dump with 8 responses to each of the first rows of t.parquet (GSM8K)."""
    sample(tmp_path / "t.parquet")
    lines = []
    for row, correct in zip(pq.read_table(tmp_path / "t.parquet").to_pylist(), RIGHT, strict=False):
        gold = row["reward_model"]["ground_truth"]
        question = f"system\nYou are helpful.\nuser\n{row['prompt'][0]['content']}\nassistant\n"
        answers = [f"#### {gold if i < correct else -1}" for i in range(8)]
        lines += [{"input": question, "output": text, "gts": gold, "step": 1} for text in answers]
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = run("score", "r.jsonl", "--scorer", "gsm8k", "--out", "s.jsonl")
    assert done.returncode == 0, done.stderr
    return "s.jsonl"


def test_a_dump_of_verl_becomes_a_smaller_parquet_that_passes_check(run, scored_file, tmp_path):
    done = run("select", scored_file, *OPTIONS)
    assert (done.returncode, done.stderr) == (0, "")
    assert "matched to rows: 32 by prompt" in done.stdout
    assert "groups without a gradient: 2 of 4" in done.stdout
    train, out = (pq.read_table(tmp_path / name) for name in ("t.parquet", "o.parquet"))
    assert out.equals(train.slice(1, 2))
    assert run("check", "o.parquet").returncode == 0


def test_select_and_a_page_of_scores_count_the_same_groups_without_a_gradient(
    run, scored_file, tmp_path
):
    """A prompt that was solved never in a step and always in another has no gradient in either."""
    rows = [json.loads(line) for line in (tmp_path / scored_file).read_text().splitlines()]
    later = [{**row, "step": 2, "score": 1.0, "acc": 1.0} for row in rows]
    (tmp_path / "steps.jsonl").write_text("\n".join(map(json.dumps, rows + later)))
    selected = json.loads(run("select", "steps.jsonl", *OPTIONS, "--json").stdout)
    reported = json.loads(run("score", "steps.jsonl", "--html", "r.html", "--json").stdout)
    assert selected["groups"] == reported["groups"]
    assert (reported["groups"]["n"], reported["groups"]["without_gradient"]) == (8, 6)
    assert "groups without a gradient" in (tmp_path / "r.html").read_text()


def test_the_best_responses_become_sft_data_and_the_report_counts_the_prompts(
    run, scored_file, tmp_path
):
    train = pq.read_table(tmp_path / "t.parquet").to_pylist()
    done = run("select", scored_file, *TRAIN, "--sft", "sft.parquet")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"3 responses to 3 of {len(train)} prompts" in done.stdout
    assert f"prompts without one, no responses: {len(train) - 4}" in done.stdout
    assert "right responses: 13, wrong: 19" in done.stdout
    answer = {"role": "assistant", "content": f"#### {train[1]['reward_model']['ground_truth']}"}
    rows = pq.read_table(tmp_path / "sft.parquet").to_pylist()
    assert rows[0]["messages"] == [*train[1]["prompt"], answer]


@pytest.mark.parametrize(
    ("options", "code", "expected"),
    [
        ((*OPTIONS, "--pass-rate", "0.9:0.1"), 2, "low is above high; write 0.1:0.9 (LOW:HIGH)"),
        ((*OPTIONS, "--pass-rate", "0.2:0.3"), 4, "no row would be kept"),
        ((*OPTIONS, "--min-samples", "9"), 4, "fewer than 9 responses"),
        ((*OPTIONS, "--out", "t.parquet", "--overwrite"), 2, "is the input file"),
        (TRAIN, 2, "name one output"),
        ((*OPTIONS, "--per-prompt", "2"), 2, "--per-prompt needs --sft"),
        ((*TRAIN, "--sft", "s.parquet", "--unseen", "keep"), 2, "--unseen needs --out"),
    ],
)
def test_an_error_is_one_line(run, scored_file, options, code, expected):
    done = run("select", scored_file, *options)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)
    assert expected in done.stderr
