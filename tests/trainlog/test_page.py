"""The page shows every curve of a run and executes nothing from a log."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from math import nan

import pytest

from rewardkit.errors import OutputError
from rewardkit.trainlog.page import MAX_CURVE_POINTS, write_page
from rewardkit.trainlog.summary import summarize
from rewardkit.trainlog.topics import elapsed_hours
from tests.trainlog.runs import make_run


def make(n=60, name="run", *, grad=0.5, **columns):
    """Return a run that learns, whose gradient norm is `grad` in its second half."""
    rows = {}
    for step in range(1, n + 1):
        row = {"critic/rewards/mean": step / n, "timing_s/step": 36.0}
        row["actor/grad_norm"] = grad if step > n / 2 else 0.5
        row |= {"val-core/a set/acc/mean@1": 0.5} if step % 20 == 0 else {}
        rows[step] = row
    run = make_run(rows, name)
    return replace(run, table={**run.table, **{key: tuple(v) for key, v in columns.items()}})


def page(tmp_path, *runs, **options):
    path = tmp_path / "page.html"
    write_page([summarize(run) for run in runs], path, **{"overwrite": True, **options})
    return path.read_text(encoding="utf-8")


def data(text):
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


def charts_of(tmp_path, *runs):
    return {chart["title"]: chart for chart in data(page(tmp_path, *runs))["charts"]}


def test_every_topic_and_validation_has_a_chart_with_its_findings(tmp_path):
    charts = charts_of(tmp_path, make(grad=nan))
    assert list(charts) == ["reward", "validation: a set", "gradient norm", "seconds per step"]
    (mark,) = charts["gradient norm"]["marks"]
    assert (mark["first"], mark["last"], mark["severity"]) == (31, 60, "error")
    assert len(charts["reward"]["curves"][0]["steps"]) == 60
    assert charts["gradient norm"]["curves"][0]["values"][-1] is None  # it interrupts the curve


def test_nan_marks_the_curve_that_has_it(tmp_path):
    charts = charts_of(tmp_path, make(**{"actor/kl_loss": [nan] * 60}))
    assert [title for title, chart in charts.items() if chart["marks"]] == ["KL to the reference"]


def test_long_curves_are_reduced_to_means_and_keep_their_end(tmp_path):
    (curve,) = charts_of(tmp_path, make(5000))["reward"]["curves"]
    assert len(curve["steps"]) <= MAX_CURVE_POINTS
    assert curve["steps"][-1] == 5000
    assert curve["values"][0] == pytest.approx((1 + 2 + 3) / 3 / 5000)


def test_hours_come_from_the_time_stamps_or_the_durations_of_steps():
    run = make(3)
    assert elapsed_hours(run) == pytest.approx([0.01, 0.02, 0.03])
    assert elapsed_hours(replace(run, clock=(0.0, 3600.0, 7200.0))) == [0, 1, 2]
    assert elapsed_hours(make_run({1: {"a/b": 1.0}})) is None


def test_a_page_fetches_nothing_and_allows_only_its_own_script(tmp_path):
    text = page(tmp_path, make(), window=5, x="hours")
    assert (data(text)["window"], data(text)["x"]) == (5, "hours")
    assert not re.search(r'(?:src|href)="', text)
    assert "default-src 'none'" in text
    script = re.search(r"<script>(.*?)</script>", text, re.DOTALL)[1]
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text


def test_text_of_a_log_stays_text_in_the_page(tmp_path):
    hostile = "</script><script>alert(1)</script>\x1b[31m\u202e"
    row = {f"val-core/{hostile}/acc/mean@1": 1.0, f"x/{hostile}": nan}
    text = page(tmp_path, make_run({1: row}, hostile))
    assert "<script>alert" not in text
    assert text.count("</script>") == 2
    titles = [chart["title"] for chart in data(text)["others"]]
    assert "x/</script><script>alert(1)</script>\\x1b[31m\\u202e" in titles
    assert not {"\x1b", "\u202e"} & set(text)


def test_an_existing_page_is_replaced_only_with_overwrite(tmp_path):
    assert 'class="badge good">no findings<' in page(tmp_path, make())
    with pytest.raises(OutputError, match="exists"):
        page(tmp_path, make(), overwrite=False)
    assert 'class="badge error">errors: ' in page(tmp_path, make(grad=nan))


@pytest.mark.skipif(not shutil.which("chromium"), reason="no chromium to open the page in")
def test_a_browser_draws_every_chart(tmp_path):
    page(tmp_path, make(grad=nan), make(80, "other"))
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    address = (tmp_path / "page.html").as_uri()
    result = subprocess.run([*command, address], capture_output=True, text=True, timeout=120)
    assert result.stdout.count("<svg") == 4
    assert result.stdout.count('<rect class="mark error"') == 1
    assert len(re.findall(r'<button type="button" aria-pressed="true"', result.stdout)) == 2


def test_a_comparison_shows_each_difference_with_its_verdict(tmp_path):
    slow, fast = make(name="slow"), make(name="fast", **{"timing_s/step": [18.0] * 60})
    text = page(tmp_path, slow, fast, compare=True)
    for part in ("fast compared with slow", "better on 1 of 4 curves", "-18 (-18 to -18) *"):
        assert part in text
    row = next(part for part in text.split("<tbody>") if "seconds per step" in part)
    assert 'class="badge good">better<' in row


def test_the_best_validation_is_marked_and_named(tmp_path):
    scores = {19: 0.4, 39: 0.75, 59: 0.6}
    run = make(**{"val-core/a set/acc/mean@1": [scores.get(i) for i in range(60)]})
    text, charts = page(tmp_path, run), charts_of(tmp_path, run)
    (curve,) = charts["validation: a set"]["curves"]
    assert (curve["best"], curve["best_text"]) == (40, "best: step 40, 0.75")
    assert "0.4 → 0.6" in text
    assert "best: step 40, 0.75" in text.partition('id="data"')[0]
    assert "best" not in charts["reward"]["curves"][0]
