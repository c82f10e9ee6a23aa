"""A page shows its model whatever the texts are, executes nothing and fetches nothing."""

from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import rewardkit
from rewardkit.pages.html import MAX_BARS, MAX_CHARACTERS, to_html
from rewardkit.pages.model import Bars, Histogram, Page, Pair, Pairs, RowExample, Rows, Steps
from rewardkit.table import Table
from rewardkit.text import printable

HOSTILE = [
    "<script>alert(1)</script>", "</style><img src=x onerror=alert(1)>",
    "</title></svg></details><!-- ", '" onmouseover="alert(1)" x=\'',
    "{{ 7 * 7 }} {% include 'page.css' %} {# gone #}",
    "NUL \0, lone \ud800, bidi \u202e, escape \x1b[2J", "&lt;b&gt; &amp;",
]  # fmt: skip
#: Any text, with surrogates and control characters.
ANY_TEXT = st.text(st.characters())
VOID = {"meta"}


@pytest.fixture(autouse=True)
def same_date(monkeypatch):
    """Let pages that are written in different minutes be equal."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")


class ParsedPage(HTMLParser):
    """Parser that collects elements, attributes and text as a browser would."""

    def __init__(self):
        super().__init__()
        self.elements, self.open, self.texts, self.styles = [], [], [], []
        self.outside_formulas = []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if "math" not in self.open:
            self.outside_formulas.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        (self.styles if self.open[-1:] == ["style"] else self.texts).append(data)

    @property
    def text(self):
        return "".join(self.texts)

    def ids(self):
        return [attrs["id"] for _, attrs in self.elements if "id" in attrs]


def parse(page):
    parser = ParsedPage()
    parser.feed(to_html(page))
    parser.close()
    assert parser.open == []
    return parser


def full_page(text, count=3):
    """Return a page that has `text` wherever a page has text."""
    return Page(
        text,
        ((text, text),),
        (
            Steps(text, ((text, 10), (text, 7), (text, 14)), text),
            Bars(text, ((text, count), ("b", 1)), text),
            Histogram(text, Counter({1: count, 9: 1}), text, ((text, 1),), 5, text),
            Table((text, "n"), [(text, "12")], text, note=text, details=[(text, "x")], fold=text),
            Pairs(text, (Pair(text, (text, "b"), (text, f"{text} more"), text),), text),
            Rows(text, (RowExample(text, text, text),), text),
        ),
        (text,),
    )


def page_with(section):
    return Page("title", (), (section,))


def assert_inert(html):
    for tag, attrs in html.elements:
        assert tag not in {"script", "img", "iframe", "object", "embed", "link", "form"}
        assert not any(name.startswith("on") for name in attrs)
        assert attrs.get("href", "#").startswith("#")
        assert not {"src", "srcset", "action", "data"} & attrs.keys()
    assert html.elements[0][0] == "html"
    assert [tag for tag, _ in html.elements].count("style") == 1
    assert not any(word in "".join(html.styles) for word in ("url(", "@import", "//"))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_shown_and_has_no_effect(text):
    html = parse(full_page(text))
    assert_inert(html)
    assert html.text.count(printable(text).strip()) >= 18
    assert len(html.ids()) == len(set(html.ids()))


@given(ANY_TEXT)
@example("\r\n")
@example("a\x00b\ud800\udc00")
@example("^0")
def test_any_text_leaves_the_page_well_formed(text):
    page = full_page(text)
    html = parse(page)
    assert_inert(html)
    assert printable(text[:MAX_CHARACTERS]) in html.text
    to_html(page).encode("utf-8")
    harmless = parse(full_page("a")).outside_formulas
    # Only folding of long texts and marks of shared words depend on the text.
    extra = {"mark", "details", "summary", "div", "span"}
    mine, other = (
        [t for t in tags if t not in extra] for tags in (html.outside_formulas, harmless)
    )
    assert mine == other or not text.strip()


@given(ANY_TEXT)
def test_cleaning_is_idempotent_and_leaves_only_visible_characters(text):
    assert printable(printable(text)) == printable(text)
    assert not any(c in printable(text) for c in "\0\r\x1b\u202e\ud800\u2028")


def test_a_text_of_a_megabyte_is_cut_and_the_page_says_so():
    text = "x" * 1_000_000
    html = parse(page_with(Bars("t", ((text, 1),))))
    assert f"… {1_000_000 - MAX_CHARACTERS:,} more characters" in html.text
    assert "x" * MAX_CHARACTERS in html.text
    assert "x" * (MAX_CHARACTERS + 1) not in html.text
    assert len(to_html(full_page(text))) < 60_000
    assert len(to_html(full_page("\0" * 1_000_000))) < 180_000


def test_a_page_has_no_external_urls():
    html = to_html(full_page("a"))
    assert "://" not in html
    assert "default-src 'none'" in html


def test_table_headers_have_a_scope():
    html = parse(full_page("a"))
    assert all("scope" in attrs for tag, attrs in html.elements if tag == "th")


@given(st.lists(st.integers(0, 10**9), min_size=1))
def test_losses_add_up_to_the_difference_of_input_and_output(counts):
    losses = list(Steps("s", tuple(("step", n) for n in counts)).losses())
    assert counts[0] - sum(loss for _, _, loss in losses) == counts[-1]
    assert [n for _, n, _ in losses] == counts


@pytest.mark.parametrize(
    ("section", "words", "others"),
    [
        (Steps("s", (("raw", 10), ("dropped", 7), ("repeated", 28))), ["−3", "+21"], []),
        (
            Bars("b", tuple((f"label {i}", 2) for i in range(100))),
            [f"label {MAX_BARS - 2}", f"{100 - MAX_BARS + 1} others"],
            [f"label {MAX_BARS - 1}"],
        ),
        (Bars("b", (("a", 99_999), ("b", 1), ("c", 0))), ["> 99.9%", "< 0.1%", "0.0%"], ["100.0%"]),
    ],
)
def test_a_chart_says_what_it_leaves_out_and_rounds_nothing_to_none_or_all(section, words, others):
    text = parse(page_with(section)).text
    assert [word for word in words if word not in text] == []
    assert [word for word in others if word in text] == []


def test_every_page_extends_the_base_page_and_no_other_module_renders_html():
    package = Path(rewardkit.__file__).parent
    templates = {path.relative_to(package).as_posix() for path in package.rglob("*.html.j2")}
    for name in templates - {"pages/base.html.j2", "pages/parts.html.j2"}:
        text = (package / name).read_text(encoding="utf-8")
        assert '{% extends "pages/base.html.j2" %}' in text, name
        assert "<!doctype" not in text.lower(), name
    modules = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if "<html" in (text := path.read_text(encoding="utf-8")) or ".html.j2" in text
    }
    renderers = {"pages/html.py", "responses/report/page.py", "trainlog/page.py"}
    assert modules == renderers


def test_details_show_formulas_only_where_the_table_says_so():
    table = Table(("x", "y"), [("a", "b")], "t", details=[[r"so $\frac12$ and <b>"]])
    shown = to_html(page_with(replace(table, formulas=True)))
    assert "<mfrac><mn>1</mn><mn>2</mn></mfrac>" in shown
    assert "&lt;b&gt;" in shown
    assert "<mfrac>" not in to_html(page_with(table))
