"""`prep` and `check` on the command line: their options, pages and errors."""

import json
import os
import shlex

import pyarrow as pa
import pyarrow.csv
import pytest

from tests.cli.test_cli import assert_success


@pytest.fixture
def rows(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("q,a\nWhat is 1+1?,2\nwhat is 1 + 1?,2\nWhat is 2+2?,4\n")
    return file


def test_rows_of_the_user_are_prepared_checked_and_reported(run, rows, tmp_path):
    out, page = tmp_path / "out.parquet", tmp_path / "report.html"
    command = ("prep", rows, "--question-key", "q", "--answer-key", "a", "--out", out)
    text = assert_success(run(*command))
    assert "1 row repeats the question of an earlier row (--dedup drops such rows)" in text
    assert "answers: integer 3" in text
    text = assert_success(run(*command, "--overwrite", "--dedup", "--html", page))
    assert "dropped 1: duplicate question" in text
    assert "<title>" in page.read_text(encoding="utf-8")
    report = json.loads(assert_success(run("check", out, "--json")))
    assert report["ok"] is True
    assert report["lengths"]["unit"] == "characters"


def test_the_likely_command_keeps_the_options_of_the_user(run, rows, tmp_path):
    """A pasted command without them would write other rows."""
    options = ["--data-source", "me/quiz", "--dedup", "--where", "a > 1", "--where", "a < 9"]
    result = run("prep", rows, *options, "--out", tmp_path / "o.parquet")
    assert result.returncode == 4
    command = shlex.split(result.stderr.splitlines()[-1])
    assert [*command[3:7], *sorted(command[7:-2])] == [
        *("--question-key", "q", "--answer-key", "a"),
        *sorted(options),
    ]
    assert_success(run(*command[1:]))


@pytest.mark.parametrize(
    ("suffix", "name", "filler"),
    [("jsonl", "input", ""), ("csv", "input", ""), ("csv", "remark", "5")],
)
def test_text_of_a_column_that_fills_late_is_told_with_its_number_of_rows(
    run, tmp_path, suffix, name, filler
):
    question = [f"What is {n}+1?" for n in range(90)]
    late = [f"text {n}" if n > 69 else filler for n in range(90)]
    columns = {"question": question, "answer": list(range(90)), "early": question, name: late}
    table, file = pa.table(columns), tmp_path / f"x.{suffix}"
    if suffix == "csv":
        pa.csv.write_csv(table, file)
    else:
        rows = [{key: v for key, v in row.items() if v != ""} for row in table.to_pylist()]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = run("prep", file, "--out", tmp_path / "a.parquet")
    assert "the text in early is left out; --keep early keeps it" in result.stderr
    assert f"text in {name}, which the first rows lack, is left out of 20 rows;" in result.stdout
    assert "text in early" not in result.stdout
    result = run("prep", file, "--limit", 80, "--out", tmp_path / "b.parquet")
    assert "left out of 10 rows" in result.stdout
    if suffix == "csv":
        result = run("prep", file, "--keep", name, "--out", tmp_path / "c.parquet")
        assert "left out of" not in result.stdout


@pytest.fixture
def tokenizer(tmp_path):
    """Replace transformers by a tokenizer whose tokens are words."""
    (tmp_path / "transformers.py").write_text(
        "class AutoTokenizer:\n"
        "    @classmethod\n"
        "    def from_pretrained(cls, name): return cls()\n"
        "    def encode(self, text, **_): return text.split()\n"
    )
    return {"PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}


def test_rows_over_the_prompt_length_are_findings_and_can_be_dropped(run, tmp_path, tokenizer):
    rows = tmp_path / "mine.csv"
    rows.write_text("question,answer\nWhat is 1 + 1 if at all?,2\nWhat is 2 + 2 then?,4\n")
    options = ("--template", "none", "--scorer", "math")
    assert_success(run("prep", rows, "--out", "t.parquet", *options))
    limit = ("--tokenizer", "any", "--max-prompt-length")
    done = run("check", "t.parquet", *limit, "6", "--drop-bad", "short.parquet", **tokenizer)
    assert (done.returncode, done.stderr) == (1, "")
    assert "all good" not in done.stdout
    assert "t.parquet: 1 of 2 rows is bad" in done.stdout
    assert "8 tokens, more than 6" in done.stdout
    assert "data.filter_overlong_prompts=True" in done.stdout
    assert "over 6 tokens: 50.00% of the rows" in done.stdout
    text = assert_success(run("check", "short.parquet", *limit, "6", **tokenizer))
    assert "short.parquet: 1 row, all good." in text
    assert "prompt lengths (at most 6 tokens)" in " ".join(text.split())


def test_check_lists_which_checks_it_made_and_which_not(run, tmp_path, tokenizer):
    assert_success(run("prep", "gsm8k", "--sample", "--out", "t.parquet"))
    text = " ".join(assert_success(run("check", "t.parquet")).split())
    assert (
        "t.parquet: 64 rows, all good. Checked: schema, prompts, golds, gold self-check (each "
        "row's own scorer), duplicates. Not checked: contamination (--against), prompt lengths "
        "in tokens (--tokenizer)."
    ) in text
    options = ("--against", "t.parquet", "--tokenizer", "any", "--scorer", "gsm8k")
    done = run("check", "t.parquet", *options, "--allow-duplicates", "--json", **tokenizer)
    report = json.loads(done.stdout)
    assert report["checked"][3:] == ["gold self-check (gsm8k)", "contamination (t)"]
    assert report["not_checked"][0] == "duplicates (--allow-duplicates)"


@pytest.mark.full
def test_prints_of_a_user_s_file_do_not_mix_with_results(run, tmp_path):
    """JSON on stdout stays JSON: prints go to stderr."""
    (tmp_path / "noisy.py").write_text(
        "from rewardkit.preprocess.base import Dataset, Problem\n"
        "from rewardkit.preprocess.card import Card, Split\n"
        "print('imported')\n"
        "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
        "    print('scored')\n"
        "    return float(ground_truth in solution_str)\n"
        "def to_problem(raw):\n"
        "    print('read')\n"
        "    return Problem(raw['question'], raw['answer'])\n"
        "CARD = Card(name='x', title='x', data_source='me/x', ability='math', template='boxed',\n"
        "    scorer='math', licence='CC0-1.0', columns=(('question', 'answer'),),\n"
        "    splits={'train': Split(1, ('rows.csv',))})\n"
        "DATASET = Dataset('x', to_problem, card=CARD)\n"
    )
    (tmp_path / "rows.csv").write_text("question,answer\nWhat is 1+1?,2\n")
    (tmp_path / "r.jsonl").write_text('{"response": "2", "ground_truth": "2"}\n')
    data, scorer = ("noisy.py", "--source", "rows.csv"), ("--scorer", "noisy.py:compute_score")
    for arguments in (
        ("prep", *data, "--out", "t.parquet"),
        ("list", "noisy.py"),
        ("check", "t.parquet", *scorer),
        ("score", "r.jsonl", *scorer, "--scorer", "math"),
        ("explain", "--gold", "2", "--response", "r.jsonl", *scorer),
    ):
        done = run(*arguments, "--json")
        assert json.loads(done.stdout), arguments
        assert "imported" in done.stderr or "math" in arguments


@pytest.mark.parametrize(
    ("golds", "scorer", "hint"),
    [
        (["B", "A,C"], "math", "--scorer mcq"),
        (["B", "12"], "math", ""),
        (["水结冰后体积变大，密度变小，所以冰浮在水面上"], "math", "sentences: 1;"),
        ([r"x = 3 \text{ and } y = 4 \text{ or the other way round}"], "math", ""),
    ],
)
def test_prep_names_a_scorer_for_golds_that_math_reads_poorly(run, tmp_path, golds, scorer, hint):
    lines = [json.dumps({"question": f"B or C {i}?", "answer": g}) for i, g in enumerate(golds)]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    done = run("prep", "rows.jsonl", "--scorer", scorer, "--out", "rows.parquet")
    text = " ".join(done.stdout.split())
    assert hint in text
    assert bool(hint) == ("--scorer " in text)


#: Files whose rows have no fault of their own, and what both commands have to say of them.
ODD_FILES = {
    "letters": ([{"question": "Which is a prime?", "answer": "B"}], "gold is a letter: 1;"),
    "columns": ([{"question": "Which is a prime?", "choices": ["4", "5"], "answer": 1}],
                "no prompt shows the options in choices;"),
    "two forms": ([{"question": "What is 1+1? Put your answer in \\boxed{}.", "answer": "2"}],
                  r"two forms, \boxed and ####: 1;"),
    "placeholder": ([{"question": "What is 1+1?", "answer": "?"}], "a placeholder"),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD_FILES)
def test_check_says_what_prep_said_of_the_same_rows_and_neither_calls_them_good(
    run, tmp_path, name
):
    rows, note = ODD_FILES[name]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    template = ("--template", "hash") if name == "two forms" else ()
    prepared = run("prep", "rows.jsonl", "--out", "rows.parquet", *template)
    checked = run("check", "rows.parquet")
    assert (prepared.returncode, checked.returncode) == (0, 0), prepared.stderr
    for done in (prepared, checked):
        assert note in " ".join(done.stdout.split())
    assert "rows.parquet: 1 row, no findings." in checked.stdout
    [of_json] = json.loads(run("check", "rows.parquet", "--json").stdout)["notes"][-1:]
    assert note in of_json
