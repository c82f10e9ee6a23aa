"""The scorer sql: queries are compared by their results, and can only read the database of the row."""

import json
import sqlite3
import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewardkit.checks.row_checks import check_row
from rewardkit.errors import UsageError
from rewardkit.preprocess.prep import preview
from rewardkit.programs import local
from rewardkit.scorers import auto
from rewardkit.scorers.base import Status, spec_of
from rewardkit.scorers.explain import explain_miss, explain_verdict
from rewardkit.scorers.load import load_scorer
from rewardkit.scorers.sql import compute_score, respond, score
from rewardkit.sql import run
from rewardkit.sql.compare import align, first_difference
from rewardkit.sql.query import MAX_QUERY, GoldError, is_query, read_task, with_ties_in_order
from tests.tables import every

SCHEMA = """
CREATE TABLE pet (id INTEGER PRIMARY KEY, name TEXT, age REAL, photo BLOB);
INSERT INTO pet VALUES (1, 'Ada', 2.5, x'00ff'), (2, 'Bo', 3, NULL), (3, 'Cy', 3, NULL), (4, 'Di', NULL, NULL),
    (5, CAST(x'ff41' AS TEXT), 9, NULL);
CREATE VIEW old AS SELECT * FROM pet WHERE age > 2.6;
"""
COUNT = "SELECT count(*) FROM pet"
NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"


def gold(query, **database):
    return json.dumps({"query": query, **(database or {"schema": SCHEMA})})


def judge(query, right=COUNT, **options):
    return score(f"```sql\n{query}\n```", gold(right), **options)


@every(
    ("right", "query"),
    [
        (COUNT, "SELECT COUNT(id) FROM pet;"),
        (COUNT, "-- all of them\nSELECT sum(1) FROM pet /* done */"),
        (COUNT, "WITH n(i) AS (VALUES (5)) SELECT i FROM n WHERE EXISTS (SELECT 1 FROM pet)"),
        ("SELECT name FROM pet WHERE age > 2.6", "SELECT name FROM old ORDER BY 1 DESC"),
        ("SELECT avg(age) FROM pet", "SELECT sum(age) / count(age) FROM pet"),
        ("SELECT 100.0 * 1 / 3 FROM pet", "SELECT 1 / 3.0 * 100 FROM pet"),
        ("SELECT id FROM pet", "SELECT id * 1.0 FROM pet"),
        ("SELECT photo, name FROM pet", "SELECT photo, name FROM pet ORDER BY id DESC"),
        ("SELECT name FROM pet ORDER BY age", "SELECT name FROM pet ORDER BY age, name DESC"),
        ("SELECT name FROM pet ORDER BY age -- young first", "SELECT name FROM pet ORDER BY age, id"),
        ("SELECT name FROM pet WHERE age < 9 ORDER BY age DESC LIMIT 1",
         "SELECT name FROM pet WHERE age < 9 ORDER BY age DESC, id DESC LIMIT 1"),
        ("SELECT * FROM (SELECT name FROM pet ORDER BY age)", "SELECT name FROM pet ORDER BY name"),
        ("SELECT date('now'), name FROM pet", "SELECT CURRENT_DATE, name FROM pet"),
        ("SELECT 3", "SELECT 1 + 2"),
        ("SELECT name FROM pet WHERE 0", "SELECT name FROM pet WHERE id = 99"),
    ],
)  # fmt: skip
def test_a_query_with_the_gold_s_result_is_right(right, query):
    assert judge(query, right).correct


@every(
    ("right", "query", "reason"),
    [
        (COUNT, "SELECT 5", "it reads no table"),
        (COUNT, "SELECT 5 FROM sqlite_master LIMIT 1", "it reads no table"),
        (COUNT, "WITH pets AS (SELECT 5 AS n) SELECT n FROM pets", "it reads no table"),
        (COUNT, "SELECT count(age) FROM pet", "row 1 of its result is not in the gold's"),
        (COUNT, "SELECT name FROM pet", "rows of its result: more than 1; of the gold's: 1"),
        (COUNT, "SELECT count(*), 1 FROM pet", "columns of its result: 2; of the gold's: 1"),
        (COUNT, "SELECT CAST(count(*) AS TEXT) FROM pet", "row 1 of its result is not"),
        (COUNT, "SELECT count(*) FROM cat", "it fails: no such table: cat"),
        ("SELECT name FROM pet", "SELECT DISTINCT 'Ada' FROM pet", "rows of its result: 1"),
        ("SELECT age FROM pet", "SELECT coalesce(age, 0) FROM pet", "row 4 of its result is not"),
        ("SELECT id, name FROM pet", "SELECT name, id FROM pet", "row 1 of its result is not"),
        ("SELECT age FROM pet", "SELECT age + 1e-8 FROM pet", "row 1 of its result is not"),
        ("SELECT name FROM pet ORDER BY age", "SELECT name FROM pet ORDER BY age DESC", "another place"),
        ("SELECT id FROM pet ORDER BY age, id", "SELECT id FROM pet ORDER BY age, -id", "row 3 of its result is at"),
        ("SELECT 1 UNION SELECT 2 ORDER BY 1", "SELECT 2 UNION ALL SELECT 1", "another place"),
    ],
)  # fmt: skip
def test_a_query_with_another_result_is_wrong_and_the_explanation_says_where(right, query, reason):
    scorer, response = load_scorer("sql"), f"```sql\n{query}\n```"
    explanation = explain_verdict(scorer, "sql", response, gold(right))
    assert explanation.score.status is Status.WRONG
    missed = explain_miss(explanation, {}, scorer, response, gold(right))
    assert f"The query is not right: {reason}" in missed.reason or reason in missed.reason
    assert len(explanation.facts) == (3 if "row " in reason or "place" in reason else 1)


def test_a_constant_is_right_without_needs_table():
    assert judge("SELECT 5", needs_table=False).correct
    assert judge("SELECT 5 FROM pet LIMIT 1").correct  # as the docstring says


@every(
    ("response", "status"),
    [
        (COUNT, Status.CORRECT),
        (f"Counting:\n```sqlite\n{COUNT}\n```\nThis counts the rows.", Status.CORRECT),
        (f"So: ```sql\n{COUNT}\n```", Status.CORRECT),
        (f"<think>```sql\nSELECT 1\n```</think><answer>\n{COUNT}\n</answer>", Status.CORRECT),
        (f"```sql\nSELECT 1\n```\nNo:\n```sql\n{COUNT}\n```", Status.CORRECT),
        (f"```sql\n{COUNT}\n```\nNo:\n```sql\nSELECT name FROM pet\n```", Status.WRONG),
        ("", Status.NO_ANSWER),
        (f"<think>```sql\n{COUNT}\n```", Status.NO_ANSWER),
        ("There are five.", Status.UNPARSED_ANSWER),
        (f"EXPLAIN {COUNT}", Status.UNPARSED_ANSWER),
        (f"{COUNT} -- {'x' * MAX_QUERY}", Status.TOO_LONG),
    ],
)  # fmt: skip
def test_the_query_is_the_last_one_of_a_response(response, status):
    assert score(response, gold(COUNT)).status is status


@every(
    "query",
    [
        "ATTACH '/tmp/x.db' AS x", "PRAGMA writable_schema = 1", "DELETE FROM pet", "VACUUM", "CREATE TABLE x (y)",
        "WITH x AS (SELECT 1) INSERT INTO pet (name) SELECT 1", "WITH x AS (SELECT 1) DELETE FROM pet RETURNING 5",
        "SELECT * FROM pragma_table_info('pet')", "SELECT load_extension('libm.so.6') FROM pet",
        "SELECT fts3_tokenizer('simple', x'00') FROM pet", "SELECT 5 + random() * 0 FROM pet LIMIT 1",
        f"{COUNT}; DROP TABLE pet", f"SELECT 1; {COUNT}", "SELECT zeroblob(2000000000) FROM pet",
        "SELECT printf('%*d', 2000000000, 1) FROM pet", "SELECT group_concat(hex(zeroblob(4000000))) FROM pet a, pet b",
        f"SELECT {', '.join(['zeroblob(9000000)'] * 1900)} FROM pet", f"SELECT {', '.join('1' * 9999)} FROM pet",
        f"SELECT {'(' * 9999}1{')' * 9999} FROM pet", f"SELECT {'1 + ' * 9999}1 FROM pet", f"SELECT {'NOT ' * 9999}1",
        f"SELECT * FROM {'(SELECT * FROM ' * 999}pet{')' * 999}", f"SELECT 1 FROM {', '.join(['pet'] * 99)}",
        f"SELECT count(*) FROM pet WHERE hex(zeroblob(99999)) LIKE '{'%0' * 400}1'", f"SELECT {'-- ' * 9999}",
        f"SELECT 1 FROM pet WHERE name = {chr(39) * 9999}", f"{COUNT}\0", "SELECT '\ud800' FROM pet", "SELECT ? FROM pet",
        "SELECT readfile('/etc/passwd') FROM pet", "VALUES (5), (5)", "SELECT", "WITH", "/* " * 9999,
    ],
)  # fmt: skip
def test_a_hostile_query_is_wrong(query):
    started = time.process_time()
    result = judge(query)
    assert not result.correct
    assert result.status in (Status.WRONG, Status.UNPARSED_ANSWER, Status.NO_ANSWER)
    assert time.process_time() - started < 0.5
    result.pred.encode()


@pytest.mark.full
@every(
    ("query", "statuses"),
    [
        (f"{NUMBERS} SELECT count(*) FROM n", (Status.TIMEOUT,)),
        (f"SELECT count(*) FROM {', '.join(f'pet p{i}' for i in range(20))}", (Status.TIMEOUT,)),
        (f"{NUMBERS} SELECT group_concat(i) FROM n, pet", (Status.WRONG, Status.TIMEOUT)),
        (f"{NUMBERS} SELECT hex(i) || name FROM n, pet ORDER BY 1", (Status.WRONG, Status.TIMEOUT)),
        (f"{NUMBERS}, m AS (SELECT i FROM n UNION SELECT i + 1 FROM n) SELECT * FROM m, pet", (Status.WRONG, Status.TIMEOUT)),
    ],
)  # fmt: skip
def test_a_query_without_end_takes_its_seconds_or_its_memory(query, statuses):
    assert judge(query, seconds=1, memory_mb=128).status in statuses


@every(
    ("ground_truth", "reason"),
    [
        ("SELECT 1", "it is not JSON"),
        ("[]", "it is not a JSON object"),
        (gold("DELETE FROM pet"), "its query is not a SELECT"),
        (gold(""), "it has no query"),
        (gold(["SELECT 1"]), "its query is not text"),
        (gold("SELECT 1", db_id="pets", schema=SCHEMA), "it needs db_id"),
        (gold("SELECT 1", database=""), "it needs db_id"),
        *((gold("SELECT 1", db_id=name), "out of the folder")
          for name in ("../pets", "/etc/pets", "a/../../pets", "..", ".", "a//b", "a\\b", "a\0b")),
        (gold(f"SELECT '{'x' * MAX_QUERY}'"), "more than 50,000"),
    ],
)  # fmt: skip
def test_a_ground_truth_that_names_no_query_or_database_is_bad(ground_truth, reason):
    assert score(f"```sql\n{COUNT}\n```", ground_truth).status is Status.BAD_GROUND_TRUTH
    assert reason in spec_of(score).explain_gold(ground_truth)
    with pytest.raises(GoldError, match=reason):
        read_task(ground_truth)


def row(ground_truth):
    return {
        "prompt": [{"role": "user", "content": "How many?"}], "data_source": "xlangai/spider",
        "reward_model": {"ground_truth": ground_truth}, "extra_info": {},
    }  # fmt: skip


@every(
    ("ground_truth", "rule", "message"),
    [
        (gold("SELECT x FROM pet"), "bad_gold", "its query fails: no such column: x"),
        (gold("SELECT random() FROM pet"), "bad_gold", "not authorized to use function: random"),
        (gold(f"{COUNT}; {COUNT}"), "bad_gold", "one statement"),
        (gold("SELECT 1 FROM pet", schema="CREATE pet"), "bad_gold", "the schema of the row: near"),
        (gold("SELECT 1", schema="ATTACH '/tmp/x' AS y"), "bad_gold", "not authorized"),
        (gold("SELECT 1", db_id="no_such"), "bad_gold", "set databases, or REWARDKIT_DATABASES"),
        (gold("SELECT name FROM pet WHERE 0"), "wrong_is_right", "any query without rows is right"),
    ],
)
def test_check_names_a_gold_that_fails_or_returns_no_row(ground_truth, rule, message):
    (finding,) = check_row(row(ground_truth), 0)
    assert finding.rule == rule
    assert message in finding.message


def test_a_bad_gold_is_an_error_for_verl_and_not_a_wrong_answer():
    for ground_truth in (gold("SELECT x FROM pet"), gold("SELECT 1", db_id="no_such"), "?"):
        result = compute_score("x", f"```sql\n{COUNT}\n```", ground_truth, {})
        assert (result["score"], result["error"]) == (0.0, 1.0)


def write_database(path, *statements):
    path.parent.mkdir(exist_ok=True)
    with sqlite3.connect(path) as database:
        database.executescript(";".join(statements))
    database.close()


def test_a_database_is_a_file_that_nobody_writes(tmp_path, monkeypatch):
    """Spider and BIRD have `db_id/db_id.sqlite`; the folder is an option or an environment variable."""
    path = tmp_path / "pets" / "pets.sqlite"
    write_database(path, SCHEMA)
    before = path.read_bytes()
    response, truth = f"```sql\n{COUNT}\n```", gold("SELECT 5 FROM pet LIMIT 1", db_id="pets")
    assert score(response, truth, databases=str(tmp_path)).correct
    monkeypatch.setenv(run.FOLDER_VARIABLE, str(tmp_path))
    assert score(response, truth).correct
    assert not check_row(row(truth), 0)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == ["pets.sqlite"]
    write_database(
        path, "DELETE FROM pet WHERE id > 1"
    )  # a result that was kept is not that of another file
    assert not score(response, gold("SELECT 5 FROM pet", db_id="pets")).correct
    path.write_bytes(b"no database" * 99)
    with pytest.raises(UsageError, match=r"pets.sqlite: file is not a database"):
        score(response, truth)
    with pytest.raises(UsageError, match="is not a folder"):
        load_scorer("sql", databases=str(tmp_path / "nowhere"))


def test_all_databases_of_a_folder_count(tmp_path):
    """As in Spider's test suites, where a constant is right on one of them at most."""
    for number in (1, 2):
        write_database(
            tmp_path / "pets" / f"{number}.sqlite", SCHEMA, f"DELETE FROM pet WHERE id < {number}"
        )
    truth = gold(COUNT, db_id="pets")
    assert score(f"```sql\n{COUNT}\n```", truth, databases=str(tmp_path)).correct
    query = "```sql\nSELECT 5 FROM pet LIMIT 1\n```"
    assert not score(query, truth, databases=str(tmp_path)).correct
    (tmp_path / "pets" / "2.sqlite").unlink()
    assert score(query, truth, databases=str(tmp_path)).correct


def test_a_sandbox_that_fails_is_an_error(monkeypatch):
    def fail(**_):
        raise local.SandboxError("no")

    monkeypatch.setattr(local, "local_sandbox", fail)
    monkeypatch.setattr(local, "RETRY_SECONDS", 0)
    result = compute_score("x", f"```sql\n{COUNT} \n```", gold(f"{COUNT} "), {})
    assert (result["score"], result["error"]) == (0.0, 1.0)


def test_no_query_runs_where_system_calls_cannot_be_filtered(monkeypatch):
    sandbox = local.local_sandbox(queries=True)
    monkeypatch.setattr(sandbox, "failure", "no filter")
    monkeypatch.setattr(local, "RETRY_SECONDS", 0)
    with pytest.raises(local.SandboxError, match="queries cannot be confined here: no filter"):
        score(f"```sql\n{COUNT}  \n```", gold(f"{COUNT}  "))


def test_the_golds_of_the_samples_are_right_in_the_form_of_the_template():
    for name in ("spider", "bird"):
        for sample in preview(name, 2, sample=True, split="train"):
            truth = sample["reward_model"]["ground_truth"]
            assert "between ```sql and ```" in sample["prompt"][-1]["content"]
            assert "CREATE TABLE" in sample["prompt"][-1]["content"]
            assert score(respond(truth), truth).correct


@every(
    ("query", "ordered"),
    [
        ("SELECT a FROM t ORDER BY a", "SELECT a FROM t ORDER BY a, 1 ASC"),
        ("SELECT a FROM t order  by a LIMIT 3;", "SELECT a FROM t order  by a, 1 ASC  LIMIT 3;"),
        ("SELECT 'x -- y' FROM t ORDER BY a -- LIMIT 2", "SELECT 'x -- y' FROM t ORDER BY a, 1 ASC  -- LIMIT 2"),
        ("SELECT a FROM t ORDER BY (SELECT b LIMIT 1)", "SELECT a FROM t ORDER BY (SELECT b LIMIT 1), 1 ASC"),
        ("SELECT (SELECT a ORDER BY a) FROM t", None),
        ("SELECT rank() OVER (ORDER BY a) FROM t", None),
        ('SELECT "a ORDER BY b", [order by] FROM t /* ORDER BY a */', None),
    ],
)  # fmt: skip
def test_only_the_outermost_order_counts(query, ordered):
    ties = with_ties_in_order(query, 1)
    assert (ties[0].rstrip() if ties else None) == ordered


@given(st.text("sSelect'\"`[]()-*/;\n \0\ud800é", max_size=60))
def test_no_text_raises_in_the_reading_of_a_query(text):
    assert is_query(f"/* c */ select {text}")
    ties = with_ties_in_order(f"{text} ORDER BY 1", 2)
    assert ties is None or [*map(len, ties)] == [len(text) + 26, len(text) + 28]


CELLS = (
    st.none()
    | st.integers(-3, 3)
    | st.sampled_from(["", "a", b"a", 0.5, 1.0, 1e300, -float("inf")])
)
ROWS = st.lists(st.tuples(CELLS, CELLS), max_size=6)


@settings(max_examples=60)
@given(ROWS, st.randoms(use_true_random=False), st.sampled_from([0.0, 1e-12, -1e-12]))
def test_equal_multisets_with_noise_in_decimals_are_equal_and_others_are_not(rows, random, noise):
    other = [tuple(v * (1 + noise) if isinstance(v, float) else v for v in row) for row in rows]
    random.shuffle(other)
    assert first_difference(other, [rows]) < 0
    if rows:
        changed = [(*rows[0][:1], "changed"), *rows[1:]]
        assert (first_difference(changed, [rows]) < 0) == (Counter(changed) == Counter(rows))
        assert first_difference(rows, [rows, rows, rows]) < 0


def test_whole_numbers_are_exact_and_near_decimals_are_one_number():
    assert first_difference([(10**17,)], [[(10**17 + 1,)]]) == 0
    assert first_difference([(1234567.89,)], [[(1234567.9,)]]) == 0
    assert first_difference([(2,), (0.1 + 0.2,)], [[(0.3,), (2.0,)]]) < 0
    assert align([[(1.0, "a")], [(1, "a")]]) == [[(1.0, "a")], [(1.0, "a")]]


@given(st.text("SELECT FROMpet*()',;-/\n`\"[]%_=<>|&~+0159.ORDERBYLIMITcountj\0", max_size=40))
@settings(max_examples=25, deadline=None)
def test_no_text_raises(text):
    result = score(f"```sql\nSELECT {text}\n```", gold("SELECT name, age FROM pet"))
    assert not result.correct


def test_auto_passes_the_folder_of_databases_to_the_rows_of_spider_and_bird(tmp_path):
    write_database(tmp_path / "pets" / "pets.sqlite", SCHEMA)
    truth, response = gold(COUNT, db_id="pets"), f"```sql\n{COUNT}\n```"
    for source in ("xlangai/spider", "birdsql/bird"):
        result = auto.compute_score(source, response, truth, {}, databases=str(tmp_path))
        assert (result["score"], result["pred"]) == (1.0, COUNT)
    assert auto.compute_score("xlangai/spider", response, truth, {})["error"] == 1.0
