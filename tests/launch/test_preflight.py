"""Before a launch the files, the reward in another process, and this machine are checked."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewardkit import prep
from rewardkit.launch.findings import FileFacts, PreflightReport
from rewardkit.launch.preflight import files, preflight
from rewardkit.launch.preflight.reward import check_reward
from rewardkit.launch.rules import facts
from rewardkit.launch.rules.facts import read_machine, reserved_cores
from tests.tables import every

LONG = "word " * 700


def write(path, questions, **columns):
    """Write a verl parquet with these questions; a column of None is left out."""
    chats = [[{"role": "user", "content": text}] for text in questions]
    golds = [{"ground_truth": "18", "style": "rule"}] * len(questions)
    table = {"prompt": chats, "data_source": ["acme/test"] * len(questions), "reward_model": golds}
    table |= {name: values and values * len(questions) for name, values in columns.items()}
    pq.write_table(pa.table({name: v for name, v in table.items() if v}), path)
    return str(path)


@pytest.fixture
def probe(plan, tmp_path):
    """Return a function that checks columns and prompts of a file, for a release and with settings."""

    def run(name, release="0.9.1", *settings, **parts):
        report = PreflightReport()
        parts = {"data": {"train": name, "val": name}, **parts}
        planned = plan(release, "data.max_prompt_length=64", *settings, **parts)
        files.check_files(planned, report, None)
        return report

    return run


@every(("questions", "release", "settings", "severity", "outcome"), [
    ("short|long", "0.7.1", "data.truncation=left", "error", "verl 0.7.1 stops at the first"),
    ("short|long", "0.9.1", "", "error", "cuts them from the left, despite data.truncation=error"),
    ("short|long", "0.9.1", "data.truncation=left", "warning", "verl 0.9.1 cuts them"),
    ("short|long", "0.9.1", "data.truncation=left actor_rollout_ref.model.path=/m/Qwen2.5-VL-7B",
     "error", "verl 0.9.1 stops at the first"),
    ("short|long", "0.9.1", "data.filter_overlong_prompts=True", "warning", "verl filters them out"),
    ("long", "0.9.1", "data.filter_overlong_prompts=True", "error", "verl filters them out"),
])  # fmt: skip
def test_a_prompt_over_the_limit(probe, tmp_path, questions, release, settings, severity, outcome):
    """Without the model's tokenizer the words of a prompt are a lower bound of its tokens."""
    rows = questions.replace("long", LONG).split("|")
    file = write(tmp_path / "rows.parquet", rows)
    (finding,) = probe(file, release, *settings.split()).findings
    assert (finding.severity, finding.rule) == (severity, "L-24")
    few = f"{file}: 1 of {len(rows)} prompts are over 64 tokens (longest at least 700)"
    assert few in finding.text
    assert outcome in finding.text


def test_prompts_are_counted_with_the_tokenizer_of_the_model(probe, tmp_path, monkeypatch):
    """Only prompts that have more bytes than the limit has tokens need it."""
    lengths = {"short": 10**6, "x" * 200: 50, "y" * 201: 65, "z" * 202: 80}
    count = lambda messages: lengths[messages[0]["content"]]  # noqa: E731
    monkeypatch.setattr(files, "token_counter", lambda _: count)
    file = write(tmp_path / "rows.parquet", lengths)
    report = probe(file, model=str(tmp_path))
    (finding,) = report.findings
    assert "2 of 4 prompts are over 64 tokens (longest 80)" in finding.text
    assert "data.max_prompt_length=80" in finding.fix
    assert report.unchecked == []


def test_what_only_the_tokenizer_can_tell_is_not_checked_and_that_is_said(probe, tmp_path):
    report = probe(write(tmp_path / "rows.parquet", ["x" * 500]))
    assert report.findings == []
    (line,) = report.unchecked
    assert line.startswith("prompt lengths in tokens: /models/tiny is not a folder")
    assert probe(write(tmp_path / "rows.parquet", ["short"])).unchecked == []


@every(("columns", "settings", "words"), [
    ({"prompt": None}, (), "no column prompt[].content"),
    ({"reward_model": None}, (), "no column reward_model.ground_truth"),
    ({"prompt": ["What?"]}, (), "prompt is string; verl reads prompt[].content"),
    ({"chat": ["What?"]}, ("data.prompt_key=chat",), "chat is string; verl reads chat[]"),
    ({}, ("data.prompt_key=chat",), "no column chat[].content"),
])  # fmt: skip
def test_a_missing_column_or_a_text_prompt_is_named(probe, tmp_path, columns, settings, words):
    file = write(tmp_path / "rows.parquet", ["a", "b"], **columns)
    findings = probe(file, "0.9.1", *settings).findings
    assert {finding.severity for finding in findings} == {"error"}
    assert f"{file}: missing: {words}" in str(findings)


@pytest.mark.parametrize("role", ["train", "val"])
def test_files_that_verl_cannot_load_together_are_named(plan, tmp_path, role):
    def together(**types):
        paths = []
        for name, kind in types.items():
            table = pq.read_table(write(tmp_path / "plain.parquet", ["a"]))
            paths.append(str(tmp_path / f"{name}.parquet"))
            pq.write_table(table.append_column("x", pa.nulls(len(table), kind)), paths[-1])
        report = PreflightReport()
        other = {"train": str(tmp_path / "plain.parquet")}
        files.check_files(plan(data={**other, role: paths}), report, None)
        return paths, [finding for finding in report.findings if "together" in finding.text]

    paths, [finding] = together(text=pa.string(), number=pa.int64())
    assert (finding.severity, finding.where) == ("error", f"data.{role}_files")
    assert f"{paths[1]}: x is int64, but string in {paths[0]}" in finding.text
    assert finding.fix == f"Write one file: rewardkit mix {' '.join(paths)} --out FILE"
    one = pa.struct([("b", pa.string())])
    both = pa.struct([("a", pa.string()), ("b", pa.string())])
    paths, [finding] = together(one=one, both=both)  # an older pyarrow refuses it
    assert finding.severity == "warning"
    assert finding.fix.startswith(f"Name {paths[1]} first.")
    assert together(both=both, one=one)[1] == []


def test_a_file_that_is_not_parquet_is_an_error(plan, tmp_path):
    broken = tmp_path / "broken.parquet"
    broken.write_text("no parquet")
    data = {"train": str(broken), "val": str(broken)}
    (finding,) = preflight(plan(reward={"scorer": "verl"}, data=data), rehearse=True).findings
    assert (finding.severity, finding.rule) == ("error", "files")
    assert "broken.parquet" in finding.text


@pytest.fixture
def report_of(tmp_path, plan):
    """Return a function that checks a reward file on rows, or without rows, and returns the report."""

    def check(code, settings=(), rows=None, **options):
        file = tmp_path / "mine.py"
        file.write_text(code)
        reward = {"scorer": f"{file}:compute_score", "options": options}
        facts = FileFacts(path=rows, role="train", rows=1, data_sources=("acme/test",))
        report = PreflightReport(files=[facts] if rows else [])
        check_reward(plan("0.9.1", *settings, reward=reward), report)
        return report

    return check


def reward(body="return 1.0", rest="", head=""):
    """Return the code of a reward with verl's keywords."""
    arguments = f"data_source, solution_str, ground_truth, extra_info=None{rest}"
    return f"{head}\ndef compute_score({arguments}):\n    {body}\n"


PLAIN = "def compute_score(solution_str, ground_truth):\n    return 1.0\n"
KIND = reward(rest=", kind: Literal['a', 'bc'] = 'a'", head="from typing import Literal")
REMOTE = ("reward.reward_manager.name=remote",)


@every(("code", "settings", "options", "message"), [
    (reward(), (), {}, ""),
    (reward(rest=", **kwargs"), (), {"bonus": 1}, ""),
    (reward(), REMOTE, {}, ""),
    (reward().replace("def", "async def"), REMOTE, {}, "is async, which the reward manager remote refuses"),
    (PLAIN, (), {}, "verl calls it with data_source=, solution_str=, ground_truth=, extra_info="),
    (KIND, (), {"kind": "bd"}, "has no kind 'bd'. Did you mean 'bc'?"),
    (KIND, (), {"kid": "a"}, "has no option 'kid'. Did you mean 'kind'?"),
    ("import os\nos._exit(3)\n", (), {}, "ended while it was imported (exit code 3)"),
])  # fmt: skip
def test_a_reward_verl_cannot_call(report_of, tmp_path, code, settings, options, message):
    """Its golds and its behaviour would fail for the same reason."""
    rows = write(tmp_path / "rows.parquet", ["What is 9 + 9?"]) if code == PLAIN else None
    messages = [finding.text for finding in report_of(code, settings, rows, **options).findings]
    assert len(messages) == bool(message)
    assert message in "".join(messages)


@pytest.mark.full
def test_a_call_that_hangs_is_reported_with_its_line_and_its_gold(report_of, tmp_path):
    prep("gsm8k", tmp_path / "rows.parquet", sample=True)
    body = "while 'boxed' in solution_str:\n        time.sleep(1)\n    return 0.0"
    report = report_of(reward(body, head="import time"), rows=str(tmp_path / "rows.parquet"))
    (message,) = [finding.text for finding in report.findings if "No verdict" in finding.text]
    assert f"no verdict within 5 s, at {tmp_path}/mine.py:4" in message
    assert "(gold '" in message


@every(("source", "scorer", "rules"), [
    ("openai/gsm8k", "verl", set()),
    ("me/unknown", "verl", {"L-52"}),
    ("numina_cn_k12", "verl", {"runs-answers"}),
    ("numina_cn_k12", "math", set()),
    ("hiyouga/geometry3k", "verl", {"runs-answers"}),
    ("searchR1_news", "verl", {"L-52"}),
])  # fmt: skip
def test_the_data_sources_of_verl_s_own_scorer(tmp_path, plan, source, scorer, rules):
    file = write(tmp_path / "rows.parquet", ["a"], data_source=[source])
    data = {"train": file, "val": file}
    findings = preflight(plan(reward={"scorer": scorer}, data=data), rehearse=True).findings
    assert {finding.rule for finding in findings} == rules
    for finding in findings:
        line = "reward.custom_reward_function.path=$(rewardkit path auto)" in finding.fix
        assert ("runs Python's eval" in finding.text) == line == ("runs" in finding.rule)


def test_a_plan_for_verl_s_own_scorer_without_its_files_says_what_is_not_known(plan):
    report = PreflightReport()
    check_reward(plan(reward={"scorer": "verl"}), report)
    assert "runs their answers as code: this machine has no file" in report.unchecked[0]


@pytest.mark.full
@every(("fields", "message"), [
    ("algorithm=dapo dapo.dynamic_sampling.metric=acc",
     "returns form, pred, score, but not acc: verl stops"),
    ("algorithm=gdpo verl.algorithm.gdpo_reward_keys=[score,from,pred]",
     "returns form, score, but no number for from, pred: verl"),
])  # fmt: skip
def test_the_rules_see_what_the_scorer_returns(tmp_path, words, fields, message):
    """The text of a `pred` would become a number in verl for some answers, and fail for others."""
    scorer, rows = tmp_path / "mine.py", write(tmp_path / "train.parquet", ["What is 9 + 9?"])
    scorer.write_text(reward("return {'score': 1.0, 'form': 1, 'pred': '18'}"))
    own = f"reward.scorer={scorer} data.train={rows} data.val={rows}"
    findings = preflight(words("0.9.1", f"{own} {fields}")).findings
    assert any(message in finding.text for finding in findings)


@pytest.mark.full
def test_a_judge_that_cannot_be_asked_here_does_not_stop_the_launch(tmp_path, words):
    """verl starts its reward model with the run, and a server may be reachable from the nodes only."""
    rows = write(tmp_path / "rows.parquet", ["What is 9 + 9?"])
    training = FileFacts(path=rows, role="train", rows=1, data_sources=("acme/test",))
    judge = "reward.scorer=judge reward.options.rubric=qa"
    model = "verl.reward.reward_model"
    own = f"{model}.enable=True {model}.enable_resource_pool=True {model}.model_path=/models/judge"
    served, far = PreflightReport(files=[training]), PreflightReport(files=[training])
    check_reward(words("0.9.1", f"{judge} {own}"), served)
    assert not served.findings
    assert "starts with the run" in served.unchecked[0]
    url = "reward.options.base_url=http://127.0.0.1:9/v1 reward.options.retries=0"
    check_reward(words("0.9.1", f"{judge} {url}"), far)
    (finding,) = far.findings
    assert (finding.severity, finding.rule) == ("warning", "conduct")
    assert "cannot connect" in finding.text


@every(("trl", "new", "queue"), [("1.13.0", "1.13.0", True), ("1.12.0", None, None)])
def test_the_packages_of_this_machine_are_read(trl, new, queue, plan):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(facts, "installed_verl", lambda: "0.9.1")
        patch.setattr(facts, "package_version", lambda _: trl)
        patch.setattr(facts, "find_spec", lambda _: queue)
        machine = read_machine(plan(), [])
    assert (machine.has_verl, machine.new_trl) == (True, new)
    assert machine.has_transfer_queue is bool(queue)


def test_the_cores_of_another_ray_cluster_are_not_judged_by_this_machine(monkeypatch, plan):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(facts.os, "cpu_count", lambda: 3)
    assert read_machine(plan(), []).cores == 3
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert read_machine(plan(), []).cores is None


@every(("verl", "fields", "needed"), [
    ("0.7.1", "devices_per_node=1", 4),
    ("0.9.1", "devices_per_node=1", 12),
    ("0.9.1", "devices_per_node=1 verl.trainer.use_v1=False", 3),
    ("0.9.1", "devices_per_node=1 verl.reward.reward_manager.name=remote", 12 + 64),
    ("0.9.1", "devices_per_node=1 nodes=2 verl.reward.reward_manager.name=remote", 3 + 5 + 32),
])  # fmt: skip
def test_verl_reserves_cores_for_its_workers(words, verl, fields, needed):
    assert sum(reserved_cores(words(verl, fields)).values()) == needed
