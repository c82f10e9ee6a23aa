"""`rewardkit select`: how responses match rows, and which rows are kept."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rewardkit.errors import DataError, OutputError, UsageError
from rewardkit.responses.figures import Cell
from rewardkit.responses.matching import INDEX, PROMPT, TrainIndex, squeeze
from rewardkit.responses.samples import Sample
from rewardkit.responses.select import PassRateFilter, band, select

#: Questions in the chat templates of some models, without special tokens, as in verl's dumps.
TEMPLATES = (
    "system\nYou are a helpful assistant.\nuser\n{}\nassistant\n",
    "user\n\n{}assistant\n\n",
    "[INST] {} [/INST]",
    "{}",
)
DAPO = (
    "Solve the following math problem step by step. The last line of your response should be of "
    "the form Answer: $Answer (without quotes).\n\n{}\n\nRemember to put your answer on its own "
    'line after "Answer:".'
)

MIDDLE = PassRateFilter(0.1, 0.9)


def row(i, question=None, *, gold="1", info=None, **more):
    identity = {"index": i, "split": "train", "source_id": f"id-{i}"}
    return {
        "data_source": "d",
        "prompt": [{"role": "user", "content": question or f"What is {i} + 0?"}],
        "reward_model": {"style": "rule", "ground_truth": gold},
        "extra_info": identity if info is None else info,
        **more,
    }


def answer(acc, gold="1", **fields):
    return {"response": "x", "ground_truth": gold, "acc": acc, **fields}


def response_by_index(i, acc):
    return answer(acc, data_source="d", extra_info={"index": i, "split": "train"})


def files(folder, rows, answers):
    pq.write_table(pa.Table.from_pylist(rows), folder / "t.parquet")
    (folder / "s.jsonl").write_text("\n".join(map(json.dumps, answers)))
    return [folder / "s.jsonl"], folder / "t.parquet", folder / "o.parquet"


def select_rows(folder, rows, answers, limits=MIDDLE, **options):
    report = select(*files(folder, rows, answers), limits, **options)
    rows_out = pq.read_table(folder / "o.parquet").to_pylist()
    return report, [rows.index(row) for row in rows_out]


def sample(gold="1", **fields):
    info = {"data_source": fields.get("data_source", ""), **fields.get("extra_info", {})}
    return Sample("s:1", "x", gold, info, fields)


def test_rows_that_are_never_or_always_solved_are_dropped_with_their_pass_rate(tmp_path):
    accs = ((0, 0), (0, 1, 1), (1, 1))
    answers = [response_by_index(i, acc) for i, own in enumerate(accs) for acc in own]
    report, indices = select_rows(tmp_path, [row(i) for i in range(4)], answers)
    assert indices == [1]
    assert (report.rows, report.written, report.unseen) == (4, 1, 1)
    assert (report.groups.n, report.groups.without_gradient) == (3, 2)
    assert report.responses == {INDEX: 7}
    reasons = ("pass rate below 0.1", "pass rate above 0.9", "no responses")
    assert report.dropped == dict.fromkeys(reasons, 1)
    bands = {name: n for name, n in report.bands.items() if n}
    assert bands == {"never": 1, "60% to 69%": 1, "always": 1}
    lines = (tmp_path / "o.parquet.dropped.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    rates = [(d["index"], d["pass_rate"], d["responses"]) for d in records]
    assert rates == [(0, 0.0, 2), (2, 1.0, 2), (3, None, 0)]
    assert records[1]["row"] == row(2)


@given(st.integers(1, 40), st.data())
def test_both_bounds_are_inclusive(n, data):
    low, high = sorted(data.draw(st.tuples(st.integers(0, n), st.integers(0, n))))
    right = data.draw(st.integers(0, n))
    rate = Cell(n, right)
    assert (not PassRateFilter(low / n, high / n).drop_reason(rate)) == (low <= right <= high)


@given(st.integers(1, 2000), st.data())
def test_every_pass_rate_is_in_its_band(n, data):
    right = data.draw(st.integers(0, n))
    name = band(right / n)
    assert (name == "never", name == "always") == (right == 0, right == n)
    if name[0].isdigit():
        low, high = int(name.partition("%")[0]), int(name.split()[-1][:-1]) + 1
        assert low <= 100 * right / n + 1e-9 < high


@given(st.lists(st.lists(st.booleans(), max_size=4), min_size=1, max_size=12), st.randoms())
def test_rows_stay_in_order_for_any_order_of_the_responses(tmp_path_factory, groups, random):
    answers = [response_by_index(i, int(acc)) for i, group in enumerate(groups) for acc in group]
    random.shuffle(answers)
    expected = [i for i, group in enumerate(groups) if len(set(group)) == 2]
    rows = [row(i) for i in range(len(groups))]
    folder = tmp_path_factory.mktemp("s")
    if expected:
        assert select_rows(folder, rows, answers)[1] == expected
    else:
        with pytest.raises(DataError, match="no row would be kept|no response matches"):
            select_rows(folder, rows, answers)
        assert not (folder / "o.parquet").exists()


def test_rows_are_written_unchanged_with_columns_types_and_metadata(tmp_path):
    table = pa.table(
        {
            "data_source": pa.array(["d"] * 3).dictionary_encode(),
            "prompt": [[{"role": "user", "content": f"q {i} \0 é", "extra": i}] for i in range(3)],
            "reward_model": [{"ground_truth": i} for i in range(3)],
            "extra_info": [{"index": f"uuid-{i}", "split": None} for i in range(3)],
            "images": [[{"bytes": b"\xff\0", "path": None}]] * 3,
            "weight": pa.array([1.5, None, float("inf")], pa.float32()),
            "large": pa.array(["a", None, "b"], pa.large_string()),
        }
    ).replace_schema_metadata({"pandas": "{}", "rewardkit": '{"a": 1}'})
    (responses,), train, out = files(tmp_path, [row(0)], [])
    pq.write_table(table, train)
    lines = [
        answer(i == 1, str(i), data_source="d", extra_info={"index": f"uuid-{i}"}) for i in range(3)
    ]
    responses.write_text("\n".join(map(json.dumps, lines)))
    select([responses], train, out, PassRateFilter(0, 0))
    output_table = pq.read_table(out)
    assert output_table.schema.equals(pq.read_table(train).schema, check_metadata=True)
    assert output_table.equals(pq.read_table(train).take([0, 2]))


def test_rows_without_enough_responses_can_be_kept(tmp_path):
    rows = [row(i) for i in range(3)]
    answers = [response_by_index(i, acc) for i, acc in ((0, 1), (0, 0), (1, 1))]
    other = response_by_index(5, 1)
    report, indices = select_rows(tmp_path, rows, [*answers, other], PassRateFilter(0.1, 0.9, 2))
    assert (indices, report.few, report.unseen, report.unjoined) == ([0], 1, 1, 1)
    assert "answers no row" in report.examples[0]
    assert set(report.dropped) == {"fewer than 2 responses", "no responses"}
    limits = PassRateFilter(0.1, 0.9, 2, unseen=True)
    assert select_rows(tmp_path, rows, answers, limits, overwrite=True)[1] == [0, 1, 2]


@pytest.mark.parametrize("has_acc", [False, True])
def test_scores_are_not_verdicts_unless_the_right_ones_are_known(tmp_path, has_acc):
    """verl's managers write the score as `acc`: -1 is not right because it is not 0."""
    base = {"response": "x", "ground_truth": "1", "input": "q one"}
    rows = [base | {"score": s} | ({"acc": s} if has_acc else {}) for s in (-1.0, 1.0) * 2]
    train = [row(0, "q one"), row(1, "q two")]
    with pytest.raises(DataError, match=r"the scores are -1 to 1.*--right-score"):
        select_rows(tmp_path, train, rows)
    report, indices = select_rows(tmp_path, train, rows, right_score=1.0)
    assert (indices, report.bands["50% to 59%"]) == ([0], 1)


def test_a_score_that_contradicts_the_first_ones_is_an_error(tmp_path):
    """A thousand scores of 0 and 1 do not make 3 right, nor 0.5 wrong."""
    rows = [response_by_index(0, n % 2) for n in range(1200)]
    with pytest.raises(DataError, match=r"s.jsonl:1201: .* 0.5 .*--right-score"):
        select_rows(tmp_path, [row(0)], [*rows, response_by_index(0, 0.5)])


@given(
    template=st.sampled_from(TEMPLATES),
    questions=st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=8, unique=True),
    wrap=st.sampled_from(["{}", DAPO]),
)
@example(template="{}", questions=["What is 2+2?", "What is 2+2? Explain.", "2+2"], wrap="{}")
@example(template="[INST] {} [/INST]", questions=["x" * 100, "x" * 101, "x"], wrap=DAPO)
@example(template=TEMPLATES[0], questions=["0", "0\r"], wrap=DAPO)
def test_an_input_matches_the_row_whose_message_it_contains(template, questions, wrap):
    """If the template's words add the message of another row, several rows or that row match.

    Rows that differ only in blanks are one prompt.
    """
    messages = [wrap.format(question) for question in questions]
    index = TrainIndex(row(i, message) for i, message in enumerate(messages))
    for i, message in enumerate(messages):
        text = template.format(message.strip())
        try:
            match = index.match(sample(input=text))
        except DataError as error:
            assert "which differ, by prompt" in str(error)
        else:
            assert match[0] == PROMPT
            other_message = squeeze(messages[index.prompts[match[1]].row])
            is_part = squeeze(message) in other_message and other_message in squeeze(text)
            assert match[1] == i or is_part


@pytest.mark.parametrize(
    ("rows", "fields"),
    [
        ([row(0), row(0, "Another?")], {"data_source": "d", "extra_info": row(0)["extra_info"]}),
        ([row(0, images=[b"a"]), row(0, images=[b"b"])], {"input": "What is 0 + 0?"}),
        ([row(0), row(1)], {"input": "What is 0 + 0? What is 1 + 0?"}),
        ([row(0, info={"source_id": "s"}), row(1, info={"source_id": "s"})], {"source_id": "s"}),
    ],
)
def test_a_response_that_matches_several_rows_is_refused(rows, fields):
    with pytest.raises(DataError, match="s:1 matches row 0 and row 1 of the training file"):
        TrainIndex(rows).match(sample(**fields))


def test_an_impossible_selection_is_one_clear_error(tmp_path):
    (responses,), train, out = files(tmp_path, [row(0)], [response_by_index(5, 1)])
    with pytest.raises(DataError, match=r"no response matches a row .*1 answer other"):
        select([responses], train, out, PassRateFilter(0, 1))
    responses.write_text(json.dumps(response_by_index(0, 1)))
    out.write_text("mine")
    with pytest.raises(OutputError, match="--overwrite"):
        select([responses], train, out, PassRateFilter(0, 1))
    for columns, message in (({"x": [1]}, "not a verl"), ({"prompt": [[]]}, "row 0 of .*t.parquet has no prompt")):  # fmt: skip
        pq.write_table(pa.table(columns), train)
        with pytest.raises(DataError, match=message):
            select([responses], train, out, PassRateFilter(0, 1), overwrite=True)
    assert out.read_text() == "mine"


@pytest.mark.parametrize("text", ["", "0.1", "0.9:0.1", "0:2", "-0.1:1", "nan:1", "a:b", "0:1:2"])
def test_bounds_are_two_fractions(text):
    with pytest.raises(UsageError, match="LOW:HIGH"):
        PassRateFilter.parse(text)


@pytest.mark.parametrize(
    ("fields", "unread", "band"),
    [
        *(({"status": status}, 1, "always") for status in ("bad_ground_truth", "failed")),
        *(({"status": status}, 0, "50% to 59%") for status in (None, ["failed"], {"failed": 1}, 7)),
        *(({"acc": acc}, 1, "always") for acc in ("yes", float("nan"), None)),
    ],
)
def test_a_response_without_a_verdict_is_not_one_that_failed(tmp_path, fields, unread, band):
    """Its prompt is not one that is never solved; a status of another tool is left alone."""
    answers = [response_by_index(0, 0) | fields, response_by_index(0, 1)]
    report, _ = select_rows(tmp_path, [row(0)], answers, PassRateFilter(0, 1))
    assert (report.unread, report.bands[band]) == (unread, 1)
    assert not unread or report.examples[0].startswith(f"{tmp_path}/s.jsonl:1: ")


def test_dropped_rows_without_an_output_do_not_block_a_selection_but_a_file_of_the_users_does(
    tmp_path,
):
    """A run that was killed between its two renames leaves them."""
    dropped = tmp_path / "o.parquet.dropped.jsonl"
    answers = [response_by_index(0, acc) for acc in (0, 1)]
    dropped.write_text("my notes")
    with pytest.raises(OutputError, match=r"dropped\.jsonl exists; add --overwrite"):
        select_rows(tmp_path, [row(0), row(1)], answers)
    assert dropped.read_text() == "my notes"
    dropped.write_text("")  # a run that dropped nothing
    select_rows(tmp_path, [row(0), row(1)], answers)
    text = dropped.read_text()
    (tmp_path / "o.parquet").unlink()
    assert select_rows(tmp_path, [row(0), row(1)], answers)[1] == [0]
    assert dropped.read_text() == text
