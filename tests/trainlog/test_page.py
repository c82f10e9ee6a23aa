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
from rewardkit.trainlog.rules import diagnose
from rewardkit.trainlog.table_builder import TableBuilder
from rewardkit.trainlog.topics import elapsed_hours


def make(n=60, name="run", *, grad=0.5, times=True):
    builder = TableBuilder()
    for step in range(1, n + 1):
        row = {"critic/rewards/mean": step / n, "actor/grad_norm": grad if step > n / 2 else 0.5}
        if times:
            row["timing_s/step"] = 36.0
        if step % 20 == 0:
            row["val-core/a set/acc/mean@1"] = 0.5
        builder.add(step, row, "here")
    return builder.run(name=name, path=f"{name}.log", source="console")


def page(tmp_path, *runs, **options):
    path = tmp_path / "page.html"
    write_page(runs, [diagnose(run) for run in runs], path, **options)
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
    run = make()
    run = replace(run, table={**run.table, "actor/kl_loss": (nan,) * 60})
    charts = charts_of(tmp_path, run)
    assert [title for title, chart in charts.items() if chart["marks"]] == ["KL to the reference"]


def test_control_characters_of_names_are_escaped_in_the_page(tmp_path):
    bad = "actor/\x1b[31m\u202e"
    run = make(name="run\x1b[31m\u202e")
    run = replace(run, table={**run.table, bad: (nan,) * 60})
    text = page(tmp_path, run)
    titles = [chart["title"] for chart in data(text)["others"]]
    assert "actor/\\x1b[31m\\u202e" in titles
    assert "\\x1b[31m\\u202e NaN" in text
    assert not {"\x1b", "\u202e"} & set(text)
    assert bad not in titles


def test_several_runs_share_a_chart_and_every_metric_can_be_added(tmp_path):
    runs = make(10, "a"), make(20, "b")
    content = data(page(tmp_path, *runs))
    assert [curve["run"] for curve in content["charts"][0]["curves"]] == [0, 1]
    assert [chart["title"] for chart in content["others"]] == sorted(runs[1].table)


def test_long_curves_are_reduced_to_means_and_keep_their_end(tmp_path):
    (curve,) = charts_of(tmp_path, make(5000))["reward"]["curves"]
    assert len(curve["steps"]) <= MAX_CURVE_POINTS
    assert curve["steps"][-1] == 5000
    assert curve["values"][0] == pytest.approx((1 + 2 + 3) / 3 / 5000)


def test_hours_come_from_the_time_stamps_or_the_durations_of_steps():
    assert elapsed_hours(make(3)) == pytest.approx([0.01, 0.02, 0.03])
    assert elapsed_hours(make(3, times=False)) is None
    builder = TableBuilder()
    for step in (1, 2):
        builder.add(step, {"a/b": 1.0, "timing_s/step": 1.0}, "here", clock=step * 7200.0)
    assert elapsed_hours(builder.run(name="r", path="r", source="console")) == [0, 2]


def test_a_page_contains_the_curves_and_fetches_nothing(tmp_path):
    text = page(tmp_path, make(), window=5, x="hours")
    content = data(text)
    assert content["charts"][0]["curves"][0]["values"][-1] == 1.0
    assert (content["window"], content["x"]) == (5, "hours")
    assert not re.search(r'(?:src|href)="', text)
    assert "default-src 'none'" in text


def test_the_policy_allows_only_the_script_of_the_page(tmp_path):
    text = page(tmp_path, make())
    script = re.search(r"<script>(.*?)</script>", text, re.DOTALL)[1]
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text


def test_text_of_a_log_stays_text_in_the_page(tmp_path):
    builder = TableBuilder()
    hostile = "</script><script>alert(1)</script>"
    builder.add(1, {f"val-core/{hostile}/acc/mean@1": 1.0, f"x/{hostile}": 2.0}, "here")
    run = builder.run(name=hostile, path="x", source="console")
    text = page(tmp_path, run)
    assert "<script>alert" not in text
    assert text.count("</script>") == 2
    assert any(hostile in chart["title"] for chart in data(text)["others"])


def test_a_chinese_page_is_chinese_throughout(tmp_path):
    text = page(tmp_path, make(grad=nan), lang="zh")
    for label in ("奖励", "发现的问题", "出现 NaN 或无穷", "损失或梯度", "第 31-60 步"):
        assert label in text


def test_an_existing_page_is_replaced_only_with_overwrite(tmp_path):
    page(tmp_path, make())
    with pytest.raises(OutputError, match="exists"):
        page(tmp_path, make())
    page(tmp_path, make(), overwrite=True)


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
    slow, fast = make(name="slow"), make(name="fast")
    fast = replace(fast, table={**fast.table, "timing_s/step": (18.0,) * 60})
    text = page(tmp_path, slow, fast, compare=True)
    assert "fast compared with slow" in text
    assert "better on 1 of 4 curves" in text
    assert "-18 (-18 to -18) *" in text
    row = next(part for part in text.split("<tbody>") if "seconds per step" in part)
    assert 'class="badge good">better<' in row
    chinese = page(tmp_path, slow, fast, compare=True, lang="zh", overwrite=True)
    assert "4 条曲线中 1 条更好" in chinese


def test_a_page_without_compare_has_no_differences(tmp_path):
    assert "compared with" not in page(tmp_path, make(name="a"), make(name="b"))


def test_the_best_validation_is_marked_and_named(tmp_path):
    run = make()
    values = [None] * 60
    values[19], values[39], values[59] = 0.4, 0.75, 0.6
    run = replace(run, table={**run.table, "val-core/a set/acc/mean@1": tuple(values)})
    text = page(tmp_path, run)
    (chart,) = [chart for chart in data(text)["charts"] if chart["title"] == "validation: a set"]
    assert chart["curves"][0]["best"] == 40
    assert chart["curves"][0]["best_text"] == "best: step 40, 0.75"
    assert "0.4 → 0.6" in text
    assert "best: step 40, 0.75" in text.partition('id="data"')[0]
    assert all("best" not in c for chart in data(text)["charts"][:1] for c in chart["curves"])


def test_the_heading_counts_errors_and_warnings(tmp_path):
    assert 'class="badge good">no findings<' in page(tmp_path, make())
    assert 'class="badge error">errors: ' in page(tmp_path, make(grad=nan), overwrite=True)
