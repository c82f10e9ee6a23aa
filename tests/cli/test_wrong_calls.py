"""A wrong call is one clear error with its exit code, and neither reads nor writes anything else."""

import shlex

import pytest

#: (command line, exit code, what the error says); t.parquet, r.jsonl, and rows in other formats exist.
CALLS = [
    ("prep gms8k --out x.parquet", 2, "Did you mean 'gsm8k'"),
    ("prep gsm8k --out x.parquet --limit 0", 2, "--limit"),
    ("prep gsm8k", 2, "--out"),
    ("prep aime --sample --out x.parquet", 2, "Choose one: --split 2024, 2025, 2026, or all."),
    ("prep aime --sample --year 1999 --out x.parquet", 2, "aime has no split '1999'"),
    ("prep aime --year 2024 --split 2024 --out x.parquet", 2, "exclude each other"),
    ("prep gsm8k --question-key q --out x.parquet", 2, "--question-key needs a data file of your"),
    ("prep mine.csv --source x --out x.parquet", 2, "holds the rows"),
    ("prep nope.csv --out x.parquet", 3, "nope.csv"),
    ("prep nope.py --out x.parquet", 3, "nope.py: no such file"),
    ("prep gsm8k --sample --html . --out x.parquet", 5, "is a directory"),
    ("prep gsm8k --sample --out x.parquet --seed 0", 2, "--seed needs --shuffle."),
    ("prep gsm8k --sample --out x.parquet --hub modelscope", 2, "--hub is not used with a file"),
    ("prep gsm8k --sample --out x", 2, "name a file that ends in .parquet"),
    ("prep mine.csv --out x.parquet --html mine.csv --overwrite", 2, "is the input file"),
    ("prep mine.csv --out x.parquet --html x.parquet", 2, "name the same file"),
    ("path gsm8", 2, "Did you mean 'gsm8k'"),
    ("path gsm8k --set metod=robust", 2, "Did you mean 'method'"),
    ("path gsm8k --verl --verl-version new", 2, "is not a version of verl"),
    ("list gsm", 2, "Did you mean 'gsm8k'"),
    ("card gsm8k", 2, "`rewardkit card` is now `rewardkit list NAME`."),
    ("report s.jsonl --html x.html", 2, "is now `rewardkit score FILES --html PAGE`."),
    ("eval t.parquet --model m --out m.jsonl", 2, "`rewardkit eval` is now `rewardkit eval run`."),
    ("eval --suite aime --model m --out runs", 2, "`rewardkit eval` is now `rewardkit eval run`."),
    ("eval t.parquet --responses r.jsonl", 2, "is now `rewardkit eval responses PARQUET FILES`."),
    ("eval --suite aime --watch run --out runs", 2, "`rewardkit eval --watch` is gone"),
    ("score r.jsonl --set x", 2, "NAME=VALUE"),
    ("score r.jsonl --scorer gsm8k --scorer gsm8k --scorer gsm8k", 2, "set 3 times"),
    ("score r.jsonl --scorer gsm8k --scorer math --out x.jsonl", 2, "is not used with two scorers"),
    ("score r.jsonl --scorer gsm8k --scorer math --html r.jsonl --overwrite", 2, "the input file"),
    ("score r.jsonl --scorer gsm8k --scorer math --export x.parquet", 2, "that ends in .jsonl"),
    ("score r.jsonl --set-b method=robust", 2, "--set-b needs a second --scorer"),
    ("score r.jsonl --scorer gsm8k --max-responses 200", 2, "--max-responses needs --html"),
    ("score r.jsonl --seconds-per-row nan", 2, "nan is not a number"),
    ("score r.jsonl --seconds-per-row 1e300", 2, "--seconds-per-row"),
    ("audit gsm8k --load-seconds -1", 2, "--load-seconds"),
    ("logs train.log --follow --interval inf", 2, "--interval"),
    ("logs train.log --csv x.parquet", 2, "name a file that ends in .csv"),
    ("logs train.log --smooth 3", 2, "--smooth needs --html."),
    ("logs train.log --interval 3", 2, "--interval needs --follow."),
    ("logs train.log --follow --config c.yaml", 2, "--config is not used with --follow"),
    ("mix t.parquet:0 --out x.parquet", 2, "above 0"),
    ("mix t.parquet --rows 65 --out x.parquet", 2, "--oversample"),
    ("mix t.parquet --oversample --out x.parquet", 2, "needs --rows"),
    ("mix t.parquet --out t.parquet --overwrite", 2, "is the input file"),
    ("mix t.parquet nope.parquet:2 --out x.parquet", 3, "nope.parquet: no such file"),
    ("check t.parquet --against t.parquet --drop-overlap x.json", 2, "that ends in .parquet"),
    ("check t.parquet --against ' , '", 2, "--against is empty"),
    ("check t.parquet --threshold 0.5", 2, "--threshold needs --against."),
    ("check t.parquet --verl-version 0.9.1", 2, "--verl-version needs a recipe."),
    ("check t.parquet --max-prompt-length 9", 2, "--max-prompt-length needs --tokenizer."),
    ("check t.parquet --html t.parquet --overwrite", 2, "is the input file"),
    ("check qwen3-8b-dapo.yaml --html x.html", 2, "--html is not used with a recipe"),
    ("check t.parquet t.parquet", 2, "is given twice"),
    ("check t.parquet .", 2, "is given twice"),
    ("check t.parquet my.yaml", 2, "a recipe is checked alone"),
    ("check t.parquet empty", 3, "no parquet in this folder or below it"),
    ("check rows", 4, "--question-key problem --answer-key final"),
    ("check rows/odd.jsonl", 4, "this is JSON Lines, not parquet. Run this first:"),
    ("check . --html x.html", 2, "--html writes the result of one parquet"),
    ("show gsm8k --sample --hub modelscope", 2, "--hub is not used with --source or"),
    ("show rows", 2, "rows is a folder: name a file in it"),
    ("eval run t.parquet --suite-dir s --base-url u --model m --out o", 2, "needs --suite."),
    ("select s.jsonl --train t.parquet --sft --out x", 2, "--sft has no value"),
    ("chekc x", 2, "check"),
]
#: Commands that take the options of a scorer.
SCORING = [
    "path gsm8k --verl",
    "path auto",
    "check t.parquet",
    "check t.parquet --scorer auto",
    "check t.parquet --scorer gsm8k",
    "score r.jsonl",
    "score r.jsonl --scorer gsm8k --html x.html",
    "score r.jsonl --scorer gsm8k --scorer gsm8k",
    "explain --gold 1 --response r.jsonl --scorer gsm8k",
    "audit gsm8k",
    "eval responses t.parquet r.jsonl --out x.jsonl --scorer gsm8k",
    "reward-server gsm8k --port 0",
    "train qwen2.5-0.5b-ppo-gsm8k --dry-run --verl-version 0.9.1",
]
for call in SCORING:
    setting = "'reward.options={method: robst}'" if call.startswith("train") else "method=robst"
    CALLS.append((f"{call} --set {setting}", 2, "has no method 'robst'. Did you mean 'robust'?"))
#: Commands with a file that does not exist.
CALLS += [
    (line, 3, "no such f")
    for line in (
        "check nope.parquet", "score nope.jsonl --scorer gsm8k", "show nope.parquet",
        "audit nope.py:f", "explain --gold 1 --response nope.txt",
        "score nope.jsonl --scorer gsm8k --scorer math",
        "select nope.jsonl --train x.parquet --out y.parquet --pass-rate 0.1:0.9", "logs nope.log",
        "train nope.yaml --verl-version 0.9.1", "eval merge nope out --dry-run",
        "compose nope.yaml --out x.py", "guard nope.py:f --out x.py", "eval compare nope",
        "recipes import nope.sh", "mix nope.parquet --out x.parquet",
        "prep nope.csv --out x.parquet", "eval responses nope.parquet nope.jsonl",
    )
]  # fmt: skip


@pytest.mark.parametrize(("line", "code", "expected"), CALLS, ids=[line for line, *_ in CALLS])
def test_a_wrong_call_is_one_clear_error(run, sample, tmp_path, line, code, expected):
    sample(tmp_path / "t.parquet")
    (tmp_path / "mine.csv").write_text("question,answer\nWhat is 1+1?,2\n")
    (tmp_path / "r.jsonl").write_text('{"response": "#### 1", "ground_truth": "1"}\n')
    (tmp_path / "empty").mkdir()
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows/odd.jsonl").write_text('{"problem": "What is it?", "final": 2}\n')
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    done = run(*shlex.split(line))
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert expected in done.stderr
    assert done.stderr.startswith("Usage: ") or not done.stderr.partition("\n")[2].strip().count(
        "\n"
    )
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
