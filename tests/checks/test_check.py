"""`check` reports the faults of a file with their rows, and can drop these rows."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rewardkit
from rewardkit.checks.row_checks import RULES
from rewardkit.errors import DataError, OutputError
from rewardkit.row import SCHEMA, write_rows
from rewardkit.scorers.base import NeverAnswersError, NoVerdictError
from rewardkit.scorers.load import load_scorer
from tests.preprocess.rows import dropped, infos
from tests.preprocess.rows import verl_row as row
from tests.tables import every


def checked(tmp_path, *rows, **options):
    file = tmp_path / "in.parquet"
    write_rows(rows, file, {}, overwrite=True)
    return rewardkit.check(file, **options)


def user(*contents, role="user"):
    return [{"role": role, "content": content} for content in contents]


NO_GOLD = ["", "nan", "None", "null", "[]", "{}", " ", "<NA>"]


@every(
    ("rule", "bad"),
    [
        ("empty_prompt", row(prompt=[])),
        ("bad_prompt", row(prompt=user("q", role="robot"))),
        ("bad_prompt", row(prompt=[*user("q", role="system"), *user(None)])),
        ("bad_prompt", row(prompt=[None, *user("q")])),
        ("bad_prompt", row(prompt=[*user("q"), *user("0", role="assistant")])),
        ("bad_row", row(data_source=None)),
        ("empty_gold", row(ground_truth=None)),
        *(("empty_gold", row(ground_truth=gold, answer="")) for gold in NO_GOLD),
        ("unknown_data_source", row(data_source="my/data", scorer="")),
        ("unknown_data_source", row(scorer="nope")),
        ("bad_gold", row(ground_truth="1,000", answer="")),
        ("solution_is_wrong", row(ground_truth="7", answer="#### 8")),
        ("solution_is_wrong", row(5, scorer="math", ground_truth="6")),
    ],
)
def test_each_defect_is_reported_with_its_row(tmp_path, rule, bad):
    report = checked(tmp_path, row(1), bad, row(2))
    assert {(f.row, f.rule) for f in report.examples} == {(1, rule)}
    assert (report.ok, report.rows, report.bad_rows) == (False, 3, 1)


BAD, BAD_RULE = row(1, answer="#### 8"), "solution_is_wrong"
GOLD = {"answer": "", "scorer": "math"}


@every(
    ("rows", "findings"),
    [
        ([row(1), row(1)], {(1, "duplicate")}),
        ([row(2), row(2, ground_truth="3", answer="")], {(1, "conflicting_gold")}),
        *(
            ([row(1, ground_truth=gold, **GOLD) for gold in ("1,000", other)], {(1, "duplicate")})
            for other in ["1000", "$1,000", "一千"]
        ),
        # no good row is lost for a repeat that is bad
        ([BAD, BAD, row(1)], {(0, BAD_RULE), (1, BAD_RULE), (1, "duplicate")}),
        ([row(5, scorer="math")], set()),  # solutions keep GSM8K's form under a boxed template
    ],
)
def test_a_repeated_prompt_is_a_duplicate_or_a_conflict(tmp_path, rows, findings):
    assert {(f.row, f.rule) for f in checked(tmp_path, *rows).examples} == findings
    others = {rule for _, rule in findings} - {"duplicate", "conflicting_gold"}
    assert set(checked(tmp_path, *rows, allow_duplicates=True).counts) == others


def test_an_explicit_scorer_without_respond_is_used(tmp_path):
    """The dataset's own scorer must not be used in its place."""
    file = tmp_path / "reward.py"
    file.write_text(
        "def compute_score(data_source, solution_str, ground_truth, extra_info=None, kind='raises'):\n"
        "    if kind == 'raises': raise RuntimeError('boom')\n"
        "    return float(solution_str.endswith(f'#### {ground_truth}')) if kind == 'good' else 0.0\n"
        "async def later(data_source, solution_str, ground_truth, extra_info=None):\n"
        "    return float(solution_str.endswith(f'#### {ground_truth}'))\n"
    )
    for name, kind, rules in (
        ("compute_score", {"kind": "raises"}, {"scorer_raises", "unknown_right"}),
        ("compute_score", {"kind": "nothing"}, {"unknown_right"}),
        ("compute_score", {"kind": "good"}, set()),
        ("later", {}, set()),
    ):
        report = checked(tmp_path, row(1), scorer=load_scorer(f"{file}:{name}", **kind))
        assert set(report.counts) == rules


def test_drop_bad_writes_the_good_rows_and_the_others_with_reasons(tmp_path):
    rows = [row(i) if i % 3 else row(i, ground_truth="") for i in range(3000)]
    out = tmp_path / "good.parquet"
    report = checked(tmp_path, *rows, drop_bad=out)
    assert infos(out, "index") == [i for i in range(3000) if i % 3]
    assert [entry["index"] for entry in dropped(out)] == [i for i in range(3000) if not i % 3]
    assert all("empty_gold" in entry["reasons"][0] for entry in dropped(out))
    assert (report.bad_rows, report.rows, rewardkit.check(out).ok) == (1000, 3000, True)
    with pytest.raises(OutputError, match="--overwrite"):
        checked(tmp_path, *rows, drop_bad=out)


def foreign(tmp_path, change=lambda table: table, **columns):
    """A parquet by another tool: with columns of its own, and what else it changes."""
    table = pa.Table.from_pylist([row(i) for i in range(3)], schema=SCHEMA)
    arrays = dict(zip(table.column_names, table.columns, strict=True)) | columns
    pq.write_table(change(pa.table(arrays)), tmp_path / "foreign.parquet")
    return tmp_path / "foreign.parquet"


@every(
    ("column", "values", "message"),
    [
        ("reward_model", [{"style": "rule", "ground_truth": i} for i in range(3)], "ground_truth is int64"),
        ("ability", pa.array([["x"]] * 3, pa.large_list(pa.string())), "ability is large_list"),
        ("prompt", ["q"] * 3, "rewardkit mix writes text prompts as chats"),
        ("data_source", pa.array(["openai/gsm8k"] * 3).dictionary_encode(), None),
    ],
)  # fmt: skip
def test_a_type_that_verl_cannot_concatenate_is_a_finding(tmp_path, column, values, message):
    report = rewardkit.check(foreign(tmp_path, **{column: values}))
    of_file = [f.message for f in report.examples if f.row is None]
    assert any(message in text for text in of_file) if message else report.ok


def test_a_file_without_rows_or_with_two_columns_of_one_name_is_a_finding(tmp_path):
    assert set(checked(tmp_path).counts) == {"empty_file"}
    nested = foreign(tmp_path, reward_model=[{"ground_truth": {"target": ["a"]}}] * 3)
    assert set(rewardkit.check(nested).counts) == {"bad_gold"}
    file = foreign(tmp_path, lambda table: table.append_column("ability", table["ability"]))
    assert "the file has 2 columns ability" in rewardkit.check(file).examples[0].message


def test_large_strings_and_lists_are_no_finding_because_verl_loads_them(tmp_path):
    """pandas 3 and Polars write them."""
    message = pa.struct([("role", pa.large_string()), ("content", pa.large_string())])
    prompts = [user(f"question {i}") for i in range(3)]
    columns = {"prompt": pa.array(prompts, pa.large_list(message))}
    columns["data_source"] = pa.array(["openai/gsm8k"] * 3, pa.large_string())
    report = rewardkit.check(foreign(tmp_path, **columns), drop_bad=tmp_path / "plain.parquet")
    assert report.ok, report.examples
    assert pq.read_schema(tmp_path / "plain.parquet").field("data_source").type == pa.string()


def test_rows_as_verl_s_own_script_writes_them_are_good(tmp_path):
    """They have fewer fields in extra_info, in another order, and do not name a scorer."""
    info = [{"answer": f"#### {i}", "index": i, "question": f"question {i}"} for i in range(3)]
    assert rewardkit.check(foreign(tmp_path, extra_info=info)).ok
    assert rewardkit.check(foreign(tmp_path, extra_info=[{"index": 1, "split": None}] * 3)).ok
    file = foreign(tmp_path, lambda table: table.drop_columns(["extra_info", "ability"]))
    assert rewardkit.check(file).ok


def test_rows_with_different_images_are_not_duplicates(tmp_path):
    images = [[{"bytes": data}] for data in (b"a", b"b", b"a")]
    report = rewardkit.check(foreign(tmp_path, prompt=[user("Find x.")] * 3, images=images))
    assert [(f.row, f.rule) for f in report.examples] == [(2, "conflicting_gold")]


@every(
    ("template", "scorer", "fits"),
    [("hash", "gsm8k", True), ("answer_line", "math_dapo", True), ("boxed", "gsm8k", False)],
)
def test_a_prompt_that_asks_for_a_form_which_the_scorer_does_not_read_is_a_finding(
    tmp_path, template, scorer, fits
):
    out = tmp_path / f"{template}.parquet"
    rewardkit.prep("gsm8k", out, sample=True, template=template)
    report = rewardkit.check(out, scorer=load_scorer(scorer))
    assert ("form_does_not_fit" in report.counts) is not fits


@every(
    ("gold", "scorer", "message"),
    [
        ('["18", "19"]', "math", ": it is a list of several answers; write one answer as text"),
        ("18.0", "gsm8k", ": answers are compared as text and say 18; write 18, or set method=robust"),
        ("1,000", "gsm8k", ""),
    ],
)  # fmt: skip
def test_a_gold_that_cannot_be_scored_is_reported_once_with_the_reason(
    tmp_path, gold, scorer, message
):
    (finding,) = checked(tmp_path, row(ground_truth=gold, scorer=scorer)).examples
    assert (finding.rule, finding.message.partition("scored")[2]) == ("bad_gold", message)


def test_golds_of_a_list_column_are_read_as_verl_passes_them(tmp_path):
    rows = [row(i, scorer="math") for i in range(3)]
    for each, gold in zip(rows, (["18"], ["18", "19"], []), strict=True):
        each["reward_model"] = {"style": "rule", "ground_truth": gold}
        each["extra_info"]["answer"] = ""
    file = tmp_path / "lists.parquet"
    pq.write_table(pa.Table.from_pylist(rows), file)
    report = rewardkit.check(file)
    findings = {(each.row, each.rule) for each in report.examples if each.row is not None}
    assert findings == {(1, "bad_gold"), (2, "empty_gold")}


def test_an_option_reaches_the_rows_whose_scorer_takes_it(tmp_path):
    dapo = row(1, scorer="math_dapo", ground_truth="feet", answer="")
    choice = row(2, scorer="mcq", ground_truth="B", answer="")
    rows = [{**dapo, "data_source": "math_dapo"}, choice]
    assert not checked(tmp_path, *rows).ok
    assert checked(tmp_path, *rows, options={"mode": "robust"}).ok


def test_a_scorer_that_fails_is_called_once_per_row(tmp_path):
    calls = []

    def late(response, ground_truth, extra_info=None):
        calls.append(response)
        raise NoVerdictError("no verdict within 1 s")

    report = checked(tmp_path, row(1), row(2), scorer=late)
    assert len(calls) == 2
    message = "no verdict within 1 s"
    assert [(f.rule, f.message) for f in report.examples] == [("scorer_raises", message)] * 2


def test_a_scorer_that_fails_on_wrong_answers_only_is_a_finding(tmp_path):
    score = load_scorer("gsm8k")

    def picky(response, ground_truth, extra_info=None):
        result = score(response, ground_truth, extra_info)
        if not result.correct:
            raise RuntimeError("boom")
        return result

    [finding] = checked(tmp_path, row(1), scorer=picky).examples
    assert (finding.rule, finding.message) == ("scorer_raises", "RuntimeError: boom")


def test_a_scorer_in_another_process_that_never_answers_ends_the_check(tmp_path):
    def never(response, ground_truth, extra_info=None):
        raise NeverAnswersError("no verdict on the first 5 responses")

    with pytest.raises(DataError, match="no verdict on the first 5"):
        checked(tmp_path, row(1), scorer=never)


def test_the_rows_that_drop_bad_drops_are_written_with_all_their_columns(tmp_path):
    """Also columns with a type that Python does not have."""
    models = [{"style": "rule", "ground_truth": gold} for gold in ("0", "", "2")]
    made = pa.array([1, 2, 3], pa.timestamp("ns"))
    rewardkit.check(
        foreign(tmp_path, reward_model=models, made=made), drop_bad=tmp_path / "good.parquet"
    )
    [entry] = dropped(tmp_path / "good.parquet")
    assert (entry["index"], entry["row"]["ability"]) == (1, "math")
    assert "00000002" in entry["row"]["made"]
    assert "made" in pq.read_schema(tmp_path / "good.parquet").names


def test_rows_whose_answers_verl_would_run_as_code_are_a_finding_without_a_scorer(tmp_path):
    """verl's default reward evaluates their answers (CVE-2026-6878, and SymPy's for geometry3k)."""
    file = foreign(tmp_path, data_source=["numina_olympiads"] * 3)
    report = rewardkit.check(file)
    (finding,) = [each for each in report.examples if each.rule == "runs_answers"]
    assert finding.row is None
    assert finding.message.startswith(
        "3 rows of numina_olympiads: verl's default reward runs Python's eval"
    )
    assert "rewardkit path auto" in RULES["runs_answers"]
    for reward in ({"scorer": load_scorer("math")}, {"scorer_name": "auto"}):
        assert not rewardkit.check(file, **reward).counts["runs_answers"]
    report = rewardkit.check(foreign(tmp_path, data_source=["hiyouga/geometry3k"] * 3))
    assert "3 rows of hiyouga/geometry3k: verl's default" in report.examples[0].message
    rewardkit.prep("geometry3k", tmp_path / "prepared.parquet", split="train", sample=True)
    assert rewardkit.check(tmp_path / "prepared.parquet").ok
