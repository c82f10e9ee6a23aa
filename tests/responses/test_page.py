"""The page counts and shows every response, and executes nothing that a response contains."""

import gzip
import json
import re
import shutil
import subprocess
from base64 import b64decode, b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rewardkit.errors import DataError, OutputError
from rewardkit.responses.report import page as page_module
from rewardkit.responses.report.page import (
    FIELD,
    MAX_SCORE_BARS,
    MAX_TEXT_CHARACTERS,
    PACK_RESPONSES,
    RECORD,
    ReportPage,
    ShownResponses,
    answer_span,
    display_text,
    reasoning_end,
    score_bars,
    utf16_length,
)
from rewardkit.responses.samples import Sample
from rewardkit.responses.score import score_files
from rewardkit.scorers.base import Score, Status
from rewardkit.text import printable
from tests.responses.test_files import write

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
    "x" * 100_000,
]
ANY_TEXT = st.text(st.characters())


def row(**fields):
    return {"input": "q", "output": "so \\boxed{1}", "gts": "1", "score": 1.0, "step": 1, **fields}


def write_page(out, files, *, scorer=None, **options):
    """Write the page of files as `score --html` does; rows keep their scores without a scorer."""
    page = ReportPage(out, **options)
    report = score_files(files, scorer or "auto", keeps_scores=not scorer, on_score=page.add)
    return report, page.write(report, overwrite=True)


@pytest.fixture
def render(tmp_path):
    def render_rows(*rows, **options):
        write_page(tmp_path / "o.html", [write(tmp_path / "r.jsonl", rows)], **options)
        return (tmp_path / "o.html").read_text(encoding="utf-8")

    return render_rows


class ParsedPage(HTMLParser):
    """Parser that collects elements and their text as a browser would."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.text, self.last = [], {}, ""
        self.feed(html)
        self.close()
        inert = [text for text in self.text["script"] if re.fullmatch(r"[A-Za-z0-9+/=]+", text)]
        index, *packs = [gzip.decompress(b64decode(text)).decode() for text in inert]
        self.index = json.loads(index)
        n = -(-len(self.index["status"]) // PACK_RESPONSES)
        self.records = [r.split(FIELD) for pack in packs[:n] for r in pack.split(RECORD)]
        self.formulas = [json.loads(r) for pack in packs[n:] for r in pack.split(RECORD)]

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.last = tag

    def handle_data(self, data):
        self.text.setdefault(self.last, []).append(data)

    def assert_inert(self):
        scripts = [attrs for tag, attrs in self.elements if tag == "script"]
        assert [attrs.get("type") for attrs in scripts].count(None) == 1
        for tag, attrs in self.elements:
            assert tag not in {"img", "iframe", "object", "embed", "link", "form", "base", "a"}
            assert not any(name.startswith("on") for name in attrs)
            assert not {"src", "srcset", "href", "action", "data"} & attrs.keys()
        assert self.elements[0][0] == "html"


def test_the_figures_count_all_responses_even_if_the_list_is_a_sample(render):
    rows = [row(output=str(i), score=float(i % 2)) for i in range(300)]
    page = render(*rows, max_responses=100)
    no_verdict = render(*(row(score=n / 4, acc=n / 4) for n in range(5)))
    assert "5 responses; which scores are right is not known" in no_verdict
    assert "50.0% of 300 responses are correct" in page
    assert "100 of 300 responses, sampled evenly" in page
    assert len(ParsedPage(page).records) == 100
    assert render(*rows, max_responses=100) == page


def test_no_file_is_overwritten_and_no_page_is_written_without_responses(tmp_path):
    files, out = [write(tmp_path / "r.jsonl", [row()])], tmp_path / "o.html"
    out.write_text("mine")
    page = ReportPage(out)
    report = score_files(files, keeps_scores=True, on_score=page.add)
    with pytest.raises(OutputError, match="--overwrite"):
        page.write(report)
    with pytest.raises(DataError, match="no responses: no response"):
        write_page(tmp_path / "p.html", [write(tmp_path / "e.jsonl", [{"a": 1}])])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.jsonl", "o.html", "r.jsonl"]


@given(st.dictionaries(st.floats(-1e6, 1e6), st.integers(1, 9), min_size=1, max_size=40))
def test_every_score_is_in_one_bar(counts):
    bars = score_bars(counts)
    assert sum(n for _, n in bars) == sum(counts.values())
    assert len(bars) <= MAX_SCORE_BARS


def listed(tmp_path, n, max_responses, status_of):
    shown = ShownResponses(max_responses, tmp_path)
    for i in range(n):
        score = Score(1.0, True, "p", status_of(i))
        shown.add(Sample(f"f:{i}", "t", "g", {}, {}), score, "q", 7)
    return [int(response.where[2:]) for response in shown]


def test_a_sample_is_even_has_rare_statuses_and_is_reproducible(tmp_path):
    rare = {500: Status.TIMEOUT, 7000: Status.TOO_LONG}

    def status_of(i):
        return rare.get(i, Status.CORRECT)

    numbers = listed(tmp_path, 10_000, 400, status_of)
    assert len(numbers) == 400
    assert numbers == sorted(set(numbers)) == listed(tmp_path, 10_000, 400, status_of)
    assert rare.keys() <= set(numbers)
    assert 150 < sum(number < 5000 for number in numbers) < 250


@pytest.mark.parametrize(
    ("text", "pred", "expected"),
    [
        ("first 5, then \\boxed{5}, not 5", "5", "\\boxed{|"),
        ("15 are 5\n#### 5\nof 25", "5", "#### |"),
        ("He has 5. The answer is 5 apples.", "5", "nswer is |"),
        ("cost: $1,764 in all", "1764", "$|"),
        ("<think>\\boxed{7}</think>it is 7", "7", "it is |"),
        ("so 3 and 3 it is", "3", "and |"),
        ("125", "2", None),
        ("x" * 200, "x" * 200, None),
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
@example("1" * 20_000 + "a", "1" * 99)
@example("1, " * 7_000, "1" * 99 + "2")
def test_the_offsets_of_answer_and_reasoning_are_inside_the_text(text, pred):
    start, end = answer_span(text, pred)
    assert 0 <= start <= end <= len(text)
    assert 0 <= reasoning_end(text, start if end else len(text)) <= len(text)


def test_reasoning_ends_at_the_think_tag_or_before_the_last_paragraph():
    long = "a" * 500 + "\n\nthe answer is 4\n\nbye\n"
    assert reasoning_end("<think>a</think>\n\nb", 19) == len("<think>a</think>\n\n")
    assert reasoning_end("<think>never ends", 17) == 17
    assert reasoning_end(long, long.index("4")) == 502
    assert reasoning_end("short\n\n4", 7) == 0


def test_a_long_text_is_shown_without_its_middle():
    half = MAX_TEXT_CHARACTERS // 2
    text = display_text("a" * 500_000 + "b" * 500_000)
    assert re.fullmatch(f"a{{{half}}}.*980,000 characters left out.*b{{{half}}}", text, re.DOTALL)


@given(ANY_TEXT)
def test_a_shown_text_has_no_control_characters_and_can_be_encoded(text):
    assert display_text(text) == printable(text)
    assert not set(display_text(text)) & {FIELD, RECORD, "\0", "\u2028", "\u202e"}
    display_text(text).encode()


@given(st.text(), st.integers(0, 50))
def test_offsets_are_those_of_javascript(text, at):
    units = text.encode("utf-16-le")[: 2 * utf16_length(text[:at])]
    assert units.decode("utf-16-le") == text[:at]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_is_kept_and_adds_no_element(render, text):
    def fields(value):
        output = f"{value} \\boxed{{1}}"
        return row(input=value, output=output, gts=value, pred=value, data_source=value)

    html = ParsedPage(render(fields(text), fields(text), row(step=2)))
    harmless = fields("a" * len(text))
    html.assert_inert()
    expected = ParsedPage(render(harmless, harmless, row(step=2)))
    assert [tag for tag, _ in html.elements] == [tag for tag, _ in expected.elements]
    assert html.records[0][1:3] == [display_text(text), display_text(f"{text} \\boxed{{1}}")]
    assert len(html.index["status"]) == len(html.records) == 3
    assert {len(record) for record in html.records} == {5}


@given(st.lists(ANY_TEXT, min_size=1, max_size=5))
def test_the_page_is_valid_for_any_texts(tmp_path_factory, texts):
    folder = tmp_path_factory.mktemp("page")
    rows = [row(input=text, output=text, data_source=text) for text in texts]
    write_page(folder / "r.html", [write(folder / "r.jsonl", rows)])
    html = ParsedPage((folder / "r.html").read_text(encoding="utf-8"))
    html.assert_inert()
    assert [record[2] for record in html.records] == [display_text(text) for text in texts]


def test_the_policy_allows_only_our_script_and_no_requests(render):
    html = ParsedPage(render(row()))
    policy = next(attrs["content"] for _, attrs in html.elements if "http-equiv" in attrs)
    (script,) = [text for text in html.text["script"] if "use strict" in text]
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; script-src 'sha256-{digest}'" in policy
    for word in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "fetch("):
        assert word not in script


CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.mark.full
@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on PATH")
def test_a_browser_lists_hostile_responses_and_executes_none(tmp_path):
    rows = [row(input=text, output=text, gts=text, pred=text) for text in HOSTILE] * 40
    write_page(tmp_path / "out.html", [write(tmp_path / "r.jsonl", rows)])
    flags = "--headless --no-sandbox --disable-gpu --virtual-time-budget=20000 --dump-dom".split()
    flags += ["--window-size=1280,900", f"--user-data-dir={tmp_path}/profile"]
    command = [CHROMIUM, *flags, str(tmp_path / "out.html")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "400 of 400 responses" in done.stdout
    assert 5 < done.stdout.count('role="option"') < 60
    assert "&lt;script&gt;document.title" in done.stdout.split('id="detail"')[1]
    assert "owned" not in done.stdout.partition("</title>")[0].rpartition("<title>")[2]
    assert not re.search(r"<img|<[^>]* on\w+=", done.stdout.partition("<body")[2])


def test_formulas_of_a_response_are_packed_beside_its_texts(render, monkeypatch):
    rows = [row(input="Find $x$", output="\\boxed{\\frac12}", gts="\\frac{1}{2}"), row(output="12")]
    (prompt, text, gold, _), without = ParsedPage(render(*rows)).formulas
    assert without == [[], [], [], []]
    assert (prompt[0][:2], text[0][:2], gold[0][:2]) == ([5, 3], [0, 15], [0, 11])
    assert prompt[0][3] == [["mi", {}, "x"]]
    monkeypatch.setattr(page_module, "MAX_FORMULA_TEXT_CHARACTERS", 10)
    page = render(*[row(output="$x$ is the answer")] * (PACK_RESPONSES + 1))
    assert len(ParsedPage(page).formulas) == PACK_RESPONSES
    assert f"Formulas are shown in the first {PACK_RESPONSES}" in page
