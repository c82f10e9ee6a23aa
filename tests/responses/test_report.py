"""A report counts and shows every response, and executes nothing that a response contains."""

import gzip
import json
import re
import shutil
import subprocess
from base64 import b64decode, b64encode
from collections import Counter
from hashlib import sha256
from html.parser import HTMLParser
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rewardkit.errors import DataError, OutputError, UsageError
from rewardkit.evaluate.evaluation import evaluate_responses
from rewardkit.pages.text import clean
from rewardkit.responses.report import figures
from rewardkit.responses.report.figures import ReportTotals, length_histogram
from rewardkit.responses.report.page import (
    FIELD,
    PACK_RESPONSES,
    RECORD,
    utf16_length,
    write_report,
)
from rewardkit.responses.report.responses import (
    MAX_TEXT_CHARACTERS,
    ScoredResponse,
    ShownResponses,
    answer_span,
    display_text,
    read_scored_responses,
    reasoning_end,
    view_response,
)
from rewardkit.responses.samples import SkippedRow
from rewardkit.responses.score import score_files
from rewardkit.responses.tally import count_groups
from rewardkit.scorers.base import Status
from rewardkit.statistics import clustered_interval

HOSTILE = [
    "<script>document.title='owned'</script>",
    "</script><script>document.title='owned'</script>",
    "<!--<script>",
    "]]></svg></textarea></title></style></noscript>",
    "<img src=x onerror=\"document.title='owned'\">",
    '" onmouseover="alert(1)" x=\'',
    "{{ 7 * 7 }} {% raw %}",
    "U+2028 \u2028, NUL \0, lone \ud800, bidi \u202e, escape \x1b[2J, \x1e \x1f",
    "💡 astral 𝒳 \\boxed{4}",
    "x" * 1_000_000,
]
ANY_TEXT = st.text(st.characters())


def row(**fields):
    return {"input": "q", "output": "so \\boxed{1}", "gts": "1", "score": 1.0, "step": 1, **fields}


@pytest.fixture
def write(tmp_path):
    """Return a function that writes rows to a file."""

    def write_file(*rows, name="scored.jsonl"):
        file = tmp_path / name
        file.write_text("\n".join(map(json.dumps, rows)))
        return file

    return write_file


@pytest.fixture
def render_page(write, tmp_path):
    """Return a function that writes the report of rows and returns its text."""

    def render(*rows, **options):
        out = tmp_path / "out.html"
        write_report([write(*rows)], out, overwrite=True, **options)
        return out.read_text(encoding="utf-8")

    return render


class ParsedPage(HTMLParser):
    """Parser that collects elements and their text as a browser would."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.text, self.last = [], {}, ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.last = tag

    def handle_data(self, data):
        self.text.setdefault(self.last, []).append(data)

    def packed(self):
        """Return the index and the records of a page."""
        index, *packs = self.packs()
        packs = packs[: -(-len(index["status"]) // PACK_RESPONSES)]
        records = [record for chunk in packs for record in chunk.split(RECORD)]
        return index, [record.split(FIELD) for record in records]

    def formulas(self):
        """Return the formulas of each response."""
        index, *packs = self.packs()
        packs = packs[-(-len(index["status"]) // PACK_RESPONSES) :]
        return [json.loads(record) for chunk in packs for record in chunk.split(RECORD)]

    def packs(self):
        """Return the index and the unpacked texts of the page's inert scripts."""
        inert = [text for text in self.text["script"] if re.fullmatch(r"[A-Za-z0-9+/=]+", text)]
        unpacked = [gzip.decompress(b64decode(text)).decode() for text in inert]
        return json.loads(unpacked[0]), *unpacked[1:]


def read(*rows, write):
    return list(read_scored_responses([str(write(*rows))]))


def test_a_score_of_a_dump_without_acc_is_a_verdict_if_all_are_zero_or_one(write):
    responses = read(
        row(),
        row(score=0.0),
        row(score=0.0, no_answer=1.0),
        row(score=0.0, timeout=1.0),
        row(score=0.0, error=1.0),
        row(score=-1.0, acc=1.0, pred=1),
        row(score=0.0, status="too_long", pred=None),
        write=write,
    )
    assert [r.status.value for r in responses] == [
        "correct", "wrong", "no_answer", "timeout", "bad_ground_truth", "correct", "too_long",
    ]  # fmt: skip
    assert [r.correct for r in responses] == [True, False, False, False, False, True, False]
    assert (responses[5].pred, responses[6].pred, responses[0].prompt, responses[0].step) == (
        "1",
        "",
        "q",
        1,
    )


def test_rows_without_a_score_are_scored(write):
    rows = [
        {"response": "#### 1", "ground_truth": "1", "data_source": "openai/gsm8k"},
        {"response": "#### 2", "ground_truth": "1", "data_source": "nobody"},
    ]
    record, skipped = read(*rows, write=write)
    assert (record.status, record.pred, record.source) == (Status.CORRECT, "1", "openai/gsm8k")
    assert isinstance(skipped, SkippedRow)
    assert "no scorer is known" in skipped.reason


@pytest.mark.parametrize("score", [float("nan"), float("-inf"), 1e301])
def test_a_row_whose_score_is_not_finite_is_skipped(write, score):
    """Its own score instead would be averaged with those of the run."""
    (skipped,) = read(row(score=score, data_source="aime"), write=write)
    assert isinstance(skipped, SkippedRow)
    assert "its score is" in skipped.reason


def test_without_a_score_acc_is_the_score(write):
    (response,) = read(row(score=None, acc=0.0, data_source="aime"), write=write)
    assert (response.score, response.correct, response.status) == (0.0, False, Status.WRONG)


@pytest.mark.parametrize("score", [None, "1", [1]])
def test_a_score_that_is_not_a_number_is_ignored(write, score):
    (response,) = read(row(score=score, data_source="aime"), write=write)
    assert (response.score, response.status) == (1.0, Status.CORRECT)


def test_a_custom_score_that_is_not_finite_is_reported(write, tmp_path):
    (tmp_path / "nan.py").write_text(
        "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
        "    return float('nan')\n"
    )
    (response,) = read_scored_responses(
        [str(write(row(score=None)))], f"{tmp_path}/nan.py:compute_score"
    )
    assert "score is nan" in response.reason


def test_a_parquet_with_chats_is_read(tmp_path):
    rows = [{**row(), "input": None, "prompt": [{"role": "user", "content": "how?"}]}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    (response,) = read_scored_responses([str(tmp_path / "a.parquet")])
    assert response.prompt == "user: how?"


def test_responses_are_grouped_by_prompt_or_else_by_index(write):
    groups = [
        r.group
        for r in read(
            row(), row(output="b"), row(input="p"), row(input="", index=1), row(input="", index=1),
            row(input="", extra_info={"index": 2}), row(input=""), row(input=""), write=write,
        )
    ]  # fmt: skip
    numbers = [groups.index(group) for group in groups]
    assert numbers == [0, 0, 2, 3, 3, 5, 6, 7]


PROMPTS = st.lists(st.tuples(st.integers(1, 20), st.integers(0, 20)), min_size=1)


@given(PROMPTS)
def test_an_interval_contains_the_accuracy_and_narrows_with_more_prompts(prompts):
    prompts = [(n, min(n, correct)) for n, correct in prompts]
    (low, high), narrower = clustered_interval(prompts), clustered_interval(prompts * 10)
    n, correct = (sum(column) for column in zip(*prompts, strict=True))
    assert 0 <= low <= correct / n <= high <= 1
    assert narrower[1] - narrower[0] <= high - low + 1e-9


def test_equal_responses_to_one_prompt_count_as_one():
    repeated, different = (
        clustered_interval([(8, 8), (8, 0)] * 10),
        clustered_interval([(1, 1), (1, 0)] * 80),
    )
    assert repeated[1] - repeated[0] > 2 * (different[1] - different[0])
    wilson = clustered_interval([(1, 1)] * 10 + [(1, 0)] * 10)
    assert wilson == pytest.approx((0.299, 0.701), abs=0.01)


def totals_of(*rows, write):
    totals = ReportTotals()
    for response in read(*rows, write=write):
        totals.add(response)
    return totals


def test_a_group_with_a_single_score_has_no_gradient(write):
    rows = [
        *(row(input="same"), row(input="same")),
        *(row(input="differs"), row(input="differs", score=0.0)),
        *(row(input="none", score=0.0), row(input="none", score=0.0)),
        row(input="alone"),
        row(input="differs", step=2),
    ]
    groups = count_groups(totals_of(*rows, write=write).cells.values())
    assert (groups.n, groups.without_gradient, groups.responses) == (3, 2, 6)
    assert dict(groups.kinds) == {
        "scores differ": 1, "same score, all correct": 1, "same score, none correct": 1,
    }  # fmt: skip


def test_prompts_that_improved_and_that_got_worse_are_listed(write):
    rows = [
        row(input=f"{direction} {i}", step=step, score=float((step > 2) == (direction == "better")))
        for direction in ("better", "worse")
        for i in range(15)
        for step in range(1, 5)
    ] + [row(input="steady", step=step) for step in range(1, 5)]
    steps, better, worse = figures.changes(totals_of(*rows, write=write))
    assert steps == ["1", "2", "3", "4"]
    assert {change.shares for change in better} == {(0, 0, 1, 1)}
    assert {change.shares for change in worse} == {(1, 1, 0, 0)}
    assert len(better) == len(worse) == figures.MAX_CHANGES


def test_many_steps_share_the_cells_of_a_strip(write):
    rows = [row(step=step, score=float(step > 60)) for step in range(100)]
    steps, (change,), _ = figures.changes(totals_of(*rows, write=write))
    assert (len(steps), steps[0], steps[-1]) == (34, "0 to 2", "99")
    assert (change.shares[0], change.shares[19], change.shares[-1]) == (0, 0, 1)


@given(st.dictionaries(st.floats(-1e6, 1e6), st.integers(1, 9), min_size=1, max_size=40))
def test_every_score_is_in_one_bar(counts):
    bars = figures.scores(counts)
    assert sum(n for _, n in bars) == sum(counts.values())
    assert len(bars) <= figures.MAX_SCORE_BARS


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 10**6)), min_size=1, max_size=60))
def test_every_length_is_in_one_column(values):
    counts = {flag: Counter(n for f, n in values if f == flag) for flag in (True, False)}
    histogram = length_histogram(counts)
    assert sum(column.correct for column in histogram.columns) == counts[True].total()
    assert sum(column.other for column in histogram.columns) == counts[False].total()
    for box in histogram.boxes:
        assert list(box.values) == sorted(box.values)
        assert all(0 <= x <= 100 for x in box.x)


def response(number, status=Status.CORRECT):
    return ScoredResponse(
        where=f"f:{number}", prompt="q", text="t", gold="g", pred="p", status=status, score=1.0,
        correct=True, source="s", step=None, group=7, is_math=False,
    )  # fmt: skip


def test_a_sample_is_even_has_rare_statuses_and_is_reproducible():
    rare = {500: Status.TIMEOUT, 7000: Status.TOO_LONG}

    def draw():
        sample = ShownResponses(400, BytesIO())
        for number in range(10_000):
            sample.add(response(number, rare.get(number, Status.CORRECT)))
        return list(sample)

    sample = draw()
    numbers = [int(item.where[2:]) for item in sample]
    assert len(sample) == 400
    assert numbers == sorted(set(numbers))
    assert rare.keys() <= set(numbers)
    assert 150 < sum(number < 5000 for number in numbers) < 250
    assert sample == draw()


def test_the_sample_has_all_responses_if_they_fit():
    sample = ShownResponses(100, BytesIO())
    for number in range(100):
        sample.add(response(number, list(Status)[number % 8]))
    assert [item.where for item in sample] == [f"f:{number}" for number in range(100)]


@pytest.mark.parametrize(
    ("text", "pred", "expected"),
    [
        ("first 5, then \\boxed{5}, not 5", "5", "\\boxed{|"),
        ("15 are 5\n#### 5\nof 25", "5", "#### |"),
        ("He has 5. The answer is 5 apples.", "5", "nswer is |"),
        ("cost: $1,764 in all", "1764", "$|"),
        ("<think>\\boxed{7}</think>it is 7", "7", "it is |"),
        ("125", "2", None),
        ("", "2", None),
        ("2", "", None),
    ],
)
def test_the_answer_is_marked_where_it_was_read(text, pred, expected):
    start, end = answer_span(text, pred)
    if expected is None:
        assert (start, end) == (0, 0)
    else:
        assert text[:start].endswith(expected[:-1])
        assert text[start:end].replace(",", "") == pred


@given(ANY_TEXT, ANY_TEXT)
@example("1" * 20_000 + "a", "1")
def test_the_offsets_of_answer_and_reasoning_are_inside_the_text(text, pred):
    start, end = answer_span(text, pred)
    assert 0 <= start <= end <= len(text)
    assert 0 <= reasoning_end(text, start if end else len(text)) <= len(text)


def test_reasoning_ends_at_the_think_tag_or_before_the_last_paragraph():
    assert reasoning_end("<think>a</think>\n\nb", 19) == len("<think>a</think>\n\n")
    assert reasoning_end("<think>never ends", 17) == 17
    text = "a" * 500 + "\n\nthe answer is 4\n\nbye\n"
    assert reasoning_end(text, text.index("4")) == 502
    assert reasoning_end("short\n\n4", 7) == 0


def test_only_scores_of_math_are_explained(write):
    math, other = read(
        row(data_source="aime", pred="1", status="correct"), row(pred="1"), write=write
    )
    assert view_response(math).why == "answer found in: box · decided by text: equal"
    assert view_response(other).why == ""


def test_a_status_that_math_does_not_reproduce_is_not_explained(write):
    (response,) = read(row(data_source="aime", status="wrong", score=0.0), write=write)
    assert view_response(response).why == ""


@given(ANY_TEXT)
def test_a_shown_text_has_no_control_characters_and_can_be_encoded(text):
    assert display_text(text) == clean(text)
    assert not set(display_text(text)) & {FIELD, RECORD, "\0", "\u2028", "\u202e"}
    display_text(text).encode()


def test_a_long_text_is_shown_without_its_middle():
    text = display_text("a" * 500_000 + "b" * 500_000)
    assert "980,000 characters left out" in text
    assert text.startswith("a" * (MAX_TEXT_CHARACTERS // 2))
    assert text.endswith("b" * (MAX_TEXT_CHARACTERS // 2))


@given(st.text(), st.integers(0, 50))
def test_offsets_are_those_of_javascript(text, at):
    units = text.encode("utf-16-le")[: 2 * utf16_length(text[:at])]
    assert units.decode("utf-16-le") == text[:at]


def assert_inert(html):
    scripts = [attrs for tag, attrs in html.elements if tag == "script"]
    assert [attrs.get("type") for attrs in scripts].count(None) == 1
    for tag, attrs in html.elements:
        assert tag not in {"img", "iframe", "object", "embed", "link", "form", "base", "a"}
        assert not any(name.startswith("on") for name in attrs)
        assert not {"src", "srcset", "href", "action", "data"} & attrs.keys()
    assert html.elements[0][0] == "html"


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_is_kept_and_adds_no_element(render_page, text):
    def fields(value):
        return row(
            input=value, output=f"{value} \\boxed{{1}}", gts=value, pred=value, data_source=value
        )

    html = ParsedPage(render_page(fields(text), fields(text), row(step=2)))
    harmless = ParsedPage(
        render_page(fields("a" * len(text)), fields("a" * len(text)), row(step=2))
    )
    assert_inert(html)
    assert [tag for tag, _ in html.elements] == [tag for tag, _ in harmless.elements]
    index, records = html.packed()
    assert records[0][1] == display_text(text)
    assert records[0][2] == display_text(f"{text} \\boxed{{1}}")
    assert len(index["status"]) == len(records) == 3
    assert {len(record) for record in records} == {6}


@given(st.lists(ANY_TEXT, min_size=1, max_size=5))
def test_the_page_is_valid_for_any_texts(tmp_path_factory, texts):
    folder = tmp_path_factory.mktemp("page")
    rows = [row(input=text, output=text, data_source=text) for text in texts]
    (folder / "r.jsonl").write_text("\n".join(map(json.dumps, rows)))
    write_report([folder / "r.jsonl"], folder / "r.html")
    html = ParsedPage((folder / "r.html").read_text(encoding="utf-8"))
    assert_inert(html)
    assert [record[2] for record in html.packed()[1]] == [display_text(text) for text in texts]


def test_the_policy_allows_only_our_script_and_no_requests(render_page):
    html = ParsedPage(render_page(row()))
    policy = next(attrs["content"] for _, attrs in html.elements if "http-equiv" in attrs)
    (script,) = [text for text in html.text["script"] if "use strict" in text]
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; script-src 'sha256-{digest}'" in policy
    for word in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "fetch("):
        assert word not in script


def test_the_figures_count_all_responses_even_if_the_list_is_a_sample(render_page):
    rows = [row(output=str(i), score=float(i % 2)) for i in range(300)]
    page = render_page(*rows, max_responses=100)
    assert "50.0% of 300 responses are correct" in page
    assert "100 of 300 responses, sampled evenly" in page
    assert len(ParsedPage(page).packed()[1]) == 100


def test_equal_rows_produce_equal_pages(render_page):
    rows = [row(output=str(i)) for i in range(PACK_RESPONSES + 1)]
    assert render_page(*rows) == render_page(*rows)
    assert len(ParsedPage(render_page(*rows)).packed()[1]) == PACK_RESPONSES + 1


def test_a_folder_of_dumps_is_one_report(write, tmp_path):
    for step in (1, 2, 10):
        write(row(step=step), row(step=step, score=0.0), name=f"{step}.jsonl")
    out = tmp_path / "page" / "out.html"
    result = write_report([tmp_path], out)
    assert list(result.totals.steps) == [1, 2, 10]
    assert result.size == out.stat().st_size
    assert "Accuracy of all by step" in out.read_text()


def test_no_file_is_overwritten_and_no_page_is_written_without_responses(write, tmp_path):
    file, out = write(row()), tmp_path / "out.html"
    write_report([file], out)
    with pytest.raises(OutputError, match="--overwrite"):
        write_report([file], out)
    with pytest.raises(UsageError, match="is the input file"):
        write_report([file], file, overwrite=True)
    with pytest.raises(DataError, match="no response"):
        write_report([write({"a": 1})], tmp_path / "other.html")
    assert not (tmp_path / "other.html").exists()
    assert not list(tmp_path.glob(".*.tmp"))


CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.mark.full
@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on PATH")
def test_a_browser_lists_hostile_responses_and_executes_none(write, tmp_path):
    rows = [row(input=text, output=text, gts=text, pred=text) for text in HOSTILE] * 40
    write_report([write(*rows)], tmp_path / "out.html")
    done = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,900",
            f"--user-data-dir={tmp_path}/profile", "--virtual-time-budget=20000", "--dump-dom",
            str(tmp_path / "out.html"),
        ],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    html = ParsedPage(done.stdout)
    assert "400 of 400 responses" in done.stdout
    options = [attrs for tag, attrs in html.elements if attrs.get("role") == "option"]
    assert 5 < len(options) < 60
    detail = done.stdout.split('id="detail"')[1]
    assert "&lt;script&gt;document.title" in detail
    assert "owned" not in done.stdout.partition("</title>")[0].rpartition("<title>")[2]
    for tag, attrs in html.elements:
        assert tag != "img"
        assert not any(name.startswith("on") for name in attrs)
    assert [a for t, a in html.elements if t == "script" and "type" not in a] == [{}]


def test_score_report_and_eval_count_missing_answers_alike(write, tmp_path):
    """They count the status `no_answer`; an ambiguous or unreadable answer is an answer."""
    texts = ["I do not know.", r"\boxed{18 or 20}", r"\boxed{there are no cats}", r"\boxed{18}"]
    parquet, scored, page = (tmp_path / name for name in ("q.parquet", "s.jsonl", "r.html"))
    prompt = [{"role": "user", "content": "How many?"}]
    gold = {"style": "rule", "ground_truth": "18"}
    question = {"data_source": "d", "prompt": prompt, "reward_model": gold}
    pq.write_table(pa.Table.from_pylist([question | {"extra_info": {"scorer": "math"}}]), parquet)
    rows = [{"prompt": prompt, "response": text, "ground_truth": "18"} for text in texts]
    by_score = score_files([str(write(*rows))], "math", out=scored).summary()["total"]
    assert set(by_score["statuses"]) >= {"no_answer", "ambiguous_answer", "correct"}
    flags = [json.loads(line)["no_answer"] for line in scored.read_text().splitlines()]
    by_report = write_report([scored], page).summary()
    by_eval = evaluate_responses(parquet, [str(scored)]).summary()["total"]
    assert by_score["no_answer"] == by_report["no_answer"] == sum(flags) / len(flags) == 1 / 4
    assert (by_eval["no_answer"]["n"], by_eval["responses"]) == (1, 4)
    assert re.search(r"<dt>no answer</dt><dd><span class=.text.>25.0%", page.read_text())


def test_formulas_of_a_response_are_packed_beside_its_texts(render_page):
    page = ParsedPage(
        render_page(
            row(input="Find $x$", output="\\boxed{\\frac12}", gts="\\frac{1}{2}"), row(output="12")
        )
    )
    (prompt, text, gold, _), without = page.formulas()
    assert without == [[], [], [], []]
    assert (prompt[0][:2], text[0][:2], gold[0][:2]) == ([5, 3], [0, 15], [0, 11])
    assert prompt[0][3] == [["mi", {}, "x"]]
    assert gold[0][3][0][:2] == ["mfrac", {}]


def test_formulas_beyond_the_budget_of_a_page_stay_text(render_page, monkeypatch):
    monkeypatch.setattr("rewardkit.responses.report.page.MAX_FORMULA_TEXT_CHARACTERS", 10)
    page = render_page(*(row(output="$x$ is the answer") for _ in range(PACK_RESPONSES + 1)))
    assert len(ParsedPage(page).formulas()) == PACK_RESPONSES
    assert f"Formulas are shown in the first {PACK_RESPONSES}" in page
