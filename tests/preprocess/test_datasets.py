"""The same five tests for every dataset: schema, determinism, counts, golds score, others do not.

They run on the packaged samples, and on real rows where REWARDKIT_SHARED names a folder of them.
"""

import hashlib
import json
from collections import Counter
from dataclasses import replace
from itertools import chain, count

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rewardkit
from rewardkit import registry
from rewardkit.answers.number import read_number
from rewardkit.checks.duplicates import question_key
from rewardkit.errors import DataError
from rewardkit.preprocess.base import Problem
from rewardkit.preprocess.card import read_card
from rewardkit.preprocess.datasets.math import last_boxes
from rewardkit.preprocess.load import load_dataset
from rewardkit.preprocess.prep import preview
from rewardkit.preprocess.source import SAMPLES, RawRows, find_source
from rewardkit.row import IMAGES, METADATA_KEY, read_rows
from rewardkit.scorers.base import spec_of
from rewardkit.scorers.gold import another_answer
from rewardkit.scorers.load import load_scorer, scorer_for
from rewardkit.testing import check_counts, check_dataset, check_prompts, check_schema
from tests.preprocess.rows import golds, infos
from tests.tables import every

DATASETS = sorted(registry.DATASETS)
COUNTER = count()

#: Why the row that has too many values because of a missing quote is dropped.
IMO_CATEGORIES = "empty row, or a row that does not fit the header"

REPEATED, CONFLICTING = "duplicate question", "conflicting golds"
SEVERAL = "the solution has several answers"

#: Samples with one row without a gold.
NO_GOLD = (
    "big-math:train beyond-aime:test brumo:2025 deepmath:train deepscaler:train nq:train orz:train "
    "polaris:train hmmt:feb-2026 math-perturb:simple minerva:test olymmath:en-hard "
    "gaokao-choice:test gaokao-cloze:test gaokao2023-en:test"
).split()

#: What is dropped of a sample, by reason; whatever is not here loses nothing.
DROPPED = {
    **{key: {"no gold answer": 1} for key in NO_GOLD},
    "rlla-4k:train": {"no '<tool_call>' in the text": 1},
    "apps:train": {"no tests": 1},
    "codeforces:train": {"not input_mode = stdio": 1},
    "eurus-2-code:train": {"not ability = code": 1},
    "aime:2025": {"the answer is not an integer from 0 to 999": 1},
    "aime:2026": {"the answer is not an integer from 0 to 999": 1},
    "amc23:test": {"the answer is not an integer": 1},
    "dapo-math-17k:train": {REPEATED: 1, CONFLICTING: 2, "two answer instructions": 1},
    "dianjin-mcq:train": {
        "the gold is not among the options": 1, "no box in <answer>": 1, "several answers": 1,
        "several letters for one choice": 1,
    },
    "eurus-2:train": {"not ability = math": 1, "no gold answer": 1},
    "eurus-2:validation": {"not ability = math": 1},
    "hotpotqa:train": {"the question is empty": 1},
    "math:train": {SEVERAL: 1, "the solution's box is empty": 1},
    "numina-math-1.5:train": {
        "not question_type != proof": 1, "not answer != proof|notfound": 3,
        "not problem_is_valid = Yes": 1, "not solution_is_valid = Yes": 1, "no gold answer": 1,
    },
    "openr1-math:train": {"not answer != proof|notfound": 1},
    "skywork-or1:math": {"several answers": 1, "no gold answer": 1},
    "olympiadbench:maths": {"not error = null": 1, "no gold answer": 1},
    "olympiadbench:physics": {"not error = null": 1},
    "gpqa-diamond:test": {"several options have the gold's text": 1},
    "imo-answerbench:test": {IMO_CATEGORIES: 1},
    "math-v:test": {"an image is not in the file": 1},
    "mathvista:testmini": {"several options have the gold's text": 1},
    "multimodal-open-r1:train": {"no '<answer>' in the text": 1},
}  # fmt: skip

DAPO = {REPEATED: 1377, CONFLICTING: 32, "two answer instructions": 20, "the gold is wrong": 10}

#: Real files: dataset, split, folder below `data`, raw rows, distinct rows, and what is dropped.
REAL = [
    ("aime", "2024", "aime_2024/HuggingFaceH4", 30, 30, {}),
    ("aime", "2024", "aime_2024/BytedTsinghua-SIA", 960, 30, {}),
    ("aime", "2025", "aime_2025/math-ai", 30, 30, {}),
    ("amc23", "test", "benchmarks", 40, 40, {}),
    ("dapo-math-17k", "train", "dapo-math-17k", 17_917, 17_917, DAPO),
    ("dianjin-mcq", "train", "dianjin-r1", 3_864, 3_864, {}),
    ("cmath", "validation", "benchmarks/cmath.jsonl", 600, 600, {}),
    ("gaokao-choice", "test", "benchmarks/gaokao_math_qa.jsonl", 351, 351, {}),
    ("gaokao-cloze", "test", "benchmarks/gaokao_math_cloze.jsonl", 118, 118, {}),
    ("gaokao2023-en", "test", "benchmarks/gaokao2023en.jsonl", 385, 385, {"no gold answer": 2}),
    ("geometry3k", "train", "geometry3k", 7, 7, {}),
    ("geometry3k", "validation", "geometry3k", 1, 1, {}),
    ("geometry3k", "test", "geometry3k", 2, 2, {}),
    ("gsm8k", "train", "gsm8k", 7_473, 7_473, {}),
    ("gsm8k", "test", "gsm8k", 1_319, 1_319, {}),
    ("imo-answerbench", "test", "benchmarks/imo_answerbench_v2.csv", 400, 400, {IMO_CATEGORIES: 1}),
    ("math", "train", "math", 7_500, 7_500, {"the solution's box is empty": 2, SEVERAL: 3}),
    ("math", "test", "math", 5_000, 5_000, {SEVERAL: 2}),
    ("math-500", "test", "math-500", 500, 500, {}),
    ("orz", "train", "orz", 2_028, 2_028, {}),
    ("math-perturb", "simple", "benchmarks", 279, 279, {}),
    ("math-perturb", "hard", "benchmarks", 279, 279, {}),
    ("minerva", "test", "benchmarks", 272, 272, {}),
    ("olymmath", "en-easy", "benchmarks", 100, 100, {}),
    ("olymmath", "en-hard", "benchmarks", 100, 100, {}),
    ("olymmath", "zh-easy", "benchmarks", 100, 100, {}),
    ("olymmath", "zh-hard", "benchmarks", 100, 100, {}),
    ("olympiadbench", "maths", "benchmarks", 675, 675, {"not error = null": 1}),
]

#: Datasets of which the real files here are parts, or another edition than the hub's.
PARTS = frozenset({"dianjin-mcq", "geometry3k", "olympiadbench", "orz"})

#: Over the fields verl's own script writes, row by row, as `digest` below reads them. Made by
#: running verl's examples/data_preprocess/gsm8k.py (63b2ae3) on the hub's files, November 2026.
VERL_DIGESTS = {
    "train": "0fa1c7096d6698acf4f74eb8954370864300631a923ff78bd8d2b9fd8ff58cae",
    "test": "4335ab2c13ef0b2f9351fc9caea4edfa00ca1aaf1e0496eb900996abba62f461",
}


@pytest.fixture(
    scope="module", params=REAL, ids=lambda real: f"{real[0]}-{real[1]}-{real[2].split('/')[-1]}"
)
def real(request, shared, tmp_path_factory):
    """The prepared real rows of one split: (the entry of REAL, the file, the report)."""
    name, split, folder, *_ = request.param
    out = tmp_path_factory.mktemp(name) / f"{split}.parquet"
    report = rewardkit.prep(name, out, split=split, source=shared / "data" / folder)
    return request.param, out, report.splits[0]


def raw_rows(name, split, path=None):
    """The raw rows of a split, of the sample unless a path is given."""
    card, dataset = read_card(name), load_dataset(name)
    source = find_source(card, split, path=path, hub="huggingface", sample=path is None)
    return RawRows(source.files, card.columns, dataset.repeats)


def problems(name, split, path=None):
    """The problem, or the reason to drop it, of every distinct raw row."""
    to_problem = load_dataset(name).to_problem
    return [to_problem(raw) for _, raw in raw_rows(name, split, path)]


def check_schema_and_metadata(file, name, split, origin):
    """The one schema, with pictures where the card names some, and metadata that say how it was made."""
    check_schema(file)
    schema = pq.read_schema(file)
    assert (IMAGES.name in schema.names) == any(layout["images"] for layout in read_card(name).maps)
    metadata = json.loads(schema.metadata[METADATA_KEY])
    assert (metadata["dataset"], metadata["split"], metadata["origin"]) == (name, split, origin)


def test_every_real_row_is_a_copy_or_dropped_or_written(real):
    (name, split, _, read, distinct, dropped), out, report = real
    assert (report.read, report.distinct, report.dropped) == (read, distinct, Counter(dropped))
    check_counts(report)
    card = read_card(name)
    assert name in PARTS or card.splits[split].rows == distinct
    check_schema_and_metadata(out, name, split, "path")
    rows = list(read_rows(out))
    assert {row["data_source"] for row in rows} == {card.reward_key(split)}
    check_prompts(rows[:: len(rows) // 600 + 1])  # `prep` has scored all of them


@every("name", DATASETS)
def test_a_card_says_verified_by_rows_only_of_splits_whose_rows_are_tested(name):
    card = read_card(name)
    tested = {("math-v", "test"), *((other, split) for other, split, *_ in REAL)}
    for split in card.splits:
        assert (card.splits[split].verified or card.verified) == (
            "rows" if (name, split) in tested else "documentation"
        )


@every("name", DATASETS)
def test_a_sample_is_large_enough_and_has_every_question_once(name):
    found = chain.from_iterable(problems(name, split) for split in read_card(name).splits)
    questions = Counter(
        question_key(p.question, p.images or ()) for p in found if isinstance(p, Problem)
    )
    assert len(questions) >= (64 if name == "gsm8k" else 16)
    assert max(questions.values()) == (2 if name == "dapo-math-17k" else 1)


#: The datasets whose five tests run hundreds of programs each, but for one.
PROGRAMS = {name for name in DATASETS if read_card(name).scorer == "code"} - {"livecodebench"}
MARKED = [pytest.param(n, marks=[pytest.mark.full] * (n in PROGRAMS)) for n in DATASETS]


@pytest.mark.parametrize("name", MARKED)
def test_every_dataset_passes_the_checks_and_drops_what_its_table_says(name, tmp_path):
    """`check_dataset`: card, schema, two equal runs, counts, golds and prompts, values of other types."""
    check_dataset(name)
    for split in rewardkit.prep(name, tmp_path, split="all", sample=True).splits:
        check_schema_and_metadata(split.out, name, split.split, "sample")
        assert split.read - split.distinct == (name == "dapo-math-17k")
        assert split.dropped == DROPPED.get(f"{name}:{split.split}", {})


GSM8K, GSM8K_CARD = load_dataset("gsm8k"), read_card("gsm8k")


def changed(**fields):
    return lambda raw: replace(GSM8K.to_problem(raw), **fields)


def last_word(raw, commas=","):
    return Problem(raw["question"], raw["answer"].split()[-1].replace(",", commas))


@every(
    ("message", "fields"),
    [
        ("the card of other has the name gsm8k", {"name": "other"}),
        ("'mine' has no scorer.*install the package again", {"card": replace(GSM8K_CARD, data_source="mine")}),
        ("the card's scorer is rewardkit.scorers.math:score", {"card": replace(GSM8K_CARD, scorer="math")}),
        ("two runs of prep", {"to_problem": lambda raw: replace(GSM8K.to_problem(raw), source_id=str(next(COUNTER)))}),
        ("solution_is_wrong", {"to_problem": changed(answer="#### 0")}),
        ("'18', but .* is correct", {"to_problem": changed(question="#### 18")}),
        ("bad_gold: gold '[0-9]+,[0-9]+' cannot be scored; fix", {"to_problem": last_word}),
        ("answer=None: AttributeError.*return a Problem, or a Dropped", {"to_problem": lambda raw: last_word(raw, "")}),
    ],
)  # fmt: skip
def test_a_fault_of_a_dataset_is_reported_in_a_sentence(message, fields):
    broken = replace(GSM8K, **({"card": GSM8K_CARD} | fields))
    with pytest.raises((AssertionError, DataError), match=message):
        check_dataset(broken, SAMPLES / "gsm8k/train.jsonl")


@pytest.mark.parametrize("name", DATASETS)
def test_no_problem_of_a_sample_is_from_the_dataset(name, shared):
    real = [(split, shared / "data" / folder) for other, split, folder, *_ in REAL if other == name]
    ours = [(split, None) for split in read_card(name).splits]
    theirs, questions = (
        {
            question_key(p.question)
            for each in sets
            for p in problems(name, *each)
            if isinstance(p, Problem)
        }
        for sets in (real, ours)
    )
    assert not theirs & questions


def digest(file):
    """Only the fields that verl's script writes."""
    total = hashlib.sha256()
    for row in read_rows(file):
        info, model = row["extra_info"], row["reward_model"]
        prompt = [[m["role"], m["content"]] for m in row["prompt"]]
        fields = [row["data_source"], prompt, row["ability"], model["style"], model["ground_truth"]]
        fields += [info[name] for name in ("index", "split", "question", "answer")]
        total.update(json.dumps(fields, ensure_ascii=True, separators=(",", ":")).encode())
    return total.hexdigest()


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_gsm8k_equals_what_verl_s_script_writes(shared, tmp_path, suffix):
    """All 7,473 and 1,319 rows, field by field, from the hub's parquet and from jsonl."""
    card = read_card("gsm8k")
    for split, expected in VERL_DIGESTS.items():
        [file] = sorted((shared / "data/gsm8k/main").glob(f"{split}*.{suffix}"))
        out = tmp_path / f"{split}.parquet"
        report = rewardkit.prep("gsm8k", out, split=split, source=file)
        assert report.splits[0].written == card.splits[split].rows
        assert digest(out) == expected


GOLDS = st.text() | st.integers(-3, 99).map(str) | st.decimals(allow_nan=False).map(str)


@given(st.lists(GOLDS | st.sampled_from("ABC"), min_size=1))
def test_another_answer_is_none_of_the_golds(golds):
    other = another_answer(*golds)
    assert other not in golds
    assert (
        len(golds) > 1 or read_number(other) != read_number(golds[0]) or read_number(other) is None
    )


@every("gold", [r"\{0\}", r"\{7919\}", "x=0", r"0^\circ", r"\frac{0}{5}", r"[0,0]", "1, 2", "zero"])
@every("scorer", ["math", "qa"])
def test_another_answer_to_an_expression_is_wrong_for_the_scorer_too(gold, scorer):
    score = load_scorer(scorer)
    respond = spec_of(score).respond
    assert score(respond(gold), gold).correct
    assert not score(respond(another_answer(gold)), gold).correct


@given(st.recursive(st.text("ab1 ,+", min_size=1), lambda inner: inner.map(r"\frac{{{}}}".format)))
def test_any_balanced_content_is_read_from_a_box(content):
    assert last_boxes(rf"Thus $\boxed{{{content}}}$.") == [content.strip()]


def test_dianjin_rebuilt_and_cflue_itself_become_the_same_rows(shared):
    """The gold is not read from the box in the instruction."""
    folders = [shared / "data" / name for name in ("dianjin-r1", "cflue")]
    dianjin, cflue = (
        [(p.ground_truth, p.prompt, p.question, p.kind, p.options) for p in each]
        for each in (problems("dianjin-mcq", "train", folder) for folder in folders)
    )
    assert dianjin == cflue
    raws = raw_rows("dianjin-mcq", "train", folders[1])
    assert [gold for gold, *_ in cflue] == [raw["answer"] for _, raw in raws]


def math(problem, solution):
    return {"problem": problem, "solution": solution, "level": "Level ?", "type": "Algebra"}


def dianjin(answer, question="q（）。\nA. x\nB. y\nC. z", kind="多选题，可能存在多个正确的答案"):
    before = f"假设你是一位金融行业专家，请回答下列问题。\n注意：题目是{kind}。"
    after = "请一步步思考，并把答案选项放到\\boxed{}中，如\\boxed{A}。\n"
    output = f"<think>\n\\boxed{{A}}\n</think>\n\n<answer>\n{answer}\n</answer>"
    return {"instruction": f"{before}\n\n{question}\n\n{after}", "output": output}


def cflue(**changes):
    raw = {"名称": "x", "task": "单项选择题", "question": "q（）。", "answer": "B"}
    return raw | {"choices": "{'A': 'x', 'B': 'y'}"} | changes


TASK = "Find all roots."
LINES = "材料：\nA. 甲公司\n\n问题（）。\nA. 一\n续\nB. 二"
RATED = [{"from": "human", "value": "q"}, {"from": "assistant", "ground_truth": {"value": "7", "pass_at_n": 0.25}}]  # fmt: skip
MULTIPLE = {"ground_truth": "BC", "kind": "multiple", "options": ("x", "y", "z")}
MULTIPLE["question"] = "q（）。\nA. x\nB. y\nC. z"

#: Raw rows by dataset, each with fields of its problem, or the reason why it is dropped.
RAW_ROWS = [
    ("aime", {"id": 60, "problem": "q", "answer": "025"}, {"ground_truth": "25"}),
    ("aime", {"question": "q", "answer": r" 25 ^{\circ}"}, {"ground_truth": "25"}),
    ("aime", {"reward_model": {"ground_truth": "25"}, "extra_info": {"index": 4, "raw_problem": "q"}}, {"question": "q"}),
    ("math", math(TASK, r"\boxed{1} and \boxed{2}"), {"ground_truth": "1, 2", "level": "Level ?"}),
    ("math", math("?", r"\boxed{0.5} or \boxed{\frac{1}{2}}"), {"ground_truth": r"\frac{1}{2}"}),
    ("math", math(TASK, r"cut off: \boxed{\frac{1}{2}"), "no box in the solution"),
    ("math", math(TASK, r"so $x = \boxed 2$, whose half is $\frac{2}{2}$"), {"ground_truth": "2"}),
    *(("dianjin-mcq", dianjin(rf"\boxed{{{box}}}"), MULTIPLE) for box in ("CB", "B、C", r"\text{B, C}")),
    ("dianjin-mcq", dianjin(r"\boxed{B}", LINES, "单选题"), {"options": ("一\n续", "二"), "kind": "single"}),
    ("dianjin-mcq", dianjin(r"\boxed{A}", "q\nA. 对\nB. 错", "单选题"), {"kind": "true_false"}),
    ("dianjin-mcq", dianjin(r"\boxed{国库券}"), "no letters in the box"),
    ("dianjin-mcq", dianjin("\\boxed{A}</answer><answer>\\boxed{B}"), "several answers"),
    ("dianjin-mcq", dianjin(r"\boxed{A}", "q\nA. x\nC. y"), "fewer than two options"),
    *(
        ("dianjin-mcq", cflue(choices=choices), "the options cannot be read")
        for choices in (
            "{'A': 'x', 'B': __import__('os').getpid()}", "{'A': 'x', 'C': 'y'}", "{'A': 1, 'B': 2}",
            "(" * 9_999, "{'A': '" + "x" * 20_000 + "', 'B': 'y'}",
        )
    ),
    ("dianjin-mcq", cflue(answer="?"), "no letters in the answer"),
    ("dianjin-mcq", cflue(task="简答题"), "not a choice question"),
    ("orz", {"0": RATED[0], "1": RATED[1]}, {"question": "q", "level": "0.25"}),
]  # fmt: skip


@every(("name", "raw", "expected"), RAW_ROWS)
def test_a_raw_row_becomes_its_problem_or_is_dropped_with_the_reason(name, raw, expected):
    result = load_dataset(name).to_problem(raw)
    if isinstance(expected, str):
        assert result.reason == expected
    else:
        assert {field: getattr(result, field) for field in expected} == expected


def test_dapo_rows_have_the_prompt_and_id_of_the_hub(shared):
    path = shared / "data/dapo-math-17k"
    raws = [raw for _, raw in raw_rows("dapo-math-17k", "train", path)]
    theirs = {str(raw["extra_info"]["index"]): raw for raw in raws}
    for row in preview("dapo-math-17k", 500, source=path, dedup=False):
        raw = theirs[row["extra_info"]["source_id"]]
        assert row["prompt"][0]["content"] == raw["prompt"][0]["content"]
        assert row["reward_model"]["ground_truth"] == raw["reward_model"]["ground_truth"]


def test_the_seed_of_the_options_is_in_the_rows_and_in_the_file(tmp_path):
    """Another seed gives another order; the letter still leads to the same text."""
    orders, right = [], set()
    for seed in (None, 0, 7):
        file = tmp_path / f"{seed}.parquet"
        rewardkit.prep("gpqa-diamond", file, sample=True, options_seed=seed)
        metadata = json.loads(pq.read_schema(file).metadata[METADATA_KEY])
        assert metadata["options_seed"] == (seed or 0)
        options = infos(file, "options")
        assert set(infos(file, "columns")) == {json.dumps({"options_seed": seed or 0})}
        orders.append(options)
        assert set(golds(file)) == set("ABCD")
        pairs = zip(options, golds(file), strict=True)
        right.add(tuple(texts["ABCD".index(gold)] for texts, gold in pairs))
    assert orders[0] == orders[1] != orders[2]
    [answers] = right
    texts = {raw["Correct Answer"].strip() for _, raw in raw_rows("gpqa-diamond", "test")}
    assert set(answers) <= texts


def test_gaokao_s_layouts_of_the_hub_and_of_the_repositories_give_the_same_problems():
    """The hub repeats question and options in AGIEval's prompt; the repositories name the parts."""
    options = ["$1$", "$-1$", "0", "2"]
    lettered = [f"({letter}){text}" for letter, text in zip("ABCD", options, strict=True)]
    query = f"问题：选 ( ) 选项：{' '.join(lettered)}\n答案：从A到D, 我们应选择"
    hub = {"query": query, "choices": lettered, "gold": [0, 3]}
    agieval = {"question": "选 ( )", "options": lettered, "label": "A D"}
    qwen = {**agieval, "options": dict(zip("ABCD", options, strict=True))}
    found = [load_dataset("gaokao-choice").to_problem(raw) for raw in (hub, agieval, qwen)]
    assert [problem.ground_truth for problem in found] == ["AD", "A D", "A D"]
    question = "选 ( )\nA. $1$\nB. $-1$\nC. 0\nD. 2"
    expected = Problem(question, "", kind="multiple", options=tuple(options))
    assert [replace(problem, ground_truth="") for problem in found] == [expected] * 3
    cloze = load_dataset("gaokao-cloze").to_problem
    hub = {"query": "问题：$1+1=(\\quad)$\n答案：", "answer": "2"}
    assert cloze(hub) == cloze({"question": "$1+1=(\\quad)$", "answer": "2"})


# MATH-V's own texts and golds, with a stand-in for every picture: the copy at hand has none


#: Rows whose labels are wrong: the response has another option's value, or none's.
WRONG_LABELS = {"mathv:Gemini-Pro-CoT:2199", "mathv:Qwen-VL-Max-CoT:1410"}


@pytest.fixture(scope="module")
def prepared(shared, tmp_path_factory):
    """The rows by id, and the report of `prep`."""
    folder = tmp_path_factory.mktemp("math-v")
    lines = (shared / "data/benchmarks/mathv_test.jsonl").read_text(encoding="utf-8").splitlines()
    schema = pq.read_schema(SAMPLES / "math-v/test.parquet")
    picture = {"bytes": b"a picture", "path": None}
    rows = [{**json.loads(line), "decoded_image": picture} for line in lines]
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), folder / "test-0.parquet")
    out = folder / "out.parquet"
    report = rewardkit.prep("math-v", out, split="test", source=folder / "test-0.parquet")
    return {row["extra_info"]["source_id"]: row for row in read_rows(out)}, report.splits[0]


def test_all_rows_are_written_with_one_mark_and_figures_keep_their_names(prepared):
    rows, report = prepared
    assert (report.read, report.written, report.dropped) == (3_040, 3_040, {})
    kinds = Counter(row["extra_info"]["kind"] for row in rows.values())
    assert kinds == {"single": 1_532, "": 1_508}
    texts = {name: row["prompt"][-1]["content"] for name, row in rows.items()}
    assert all(text.count("<image>") == 1 for text in texts.values())
    named = [text for text in texts.values() if "<image1>" in text]
    assert len(named) == 340
    assert all(text.startswith("<image>") for text in named)
    assert "A. <image1>\nB. <image2>" in texts["2673"]


@pytest.mark.parametrize("file", ["mathv_choice", "mathv_free"])
def test_the_scorer_of_a_row_judges_letters_option_values_and_values(prepared, shared, file):
    rows, _ = prepared
    wrong = []
    cases = (shared / f"cases/{file}.jsonl").read_text(encoding="utf-8").splitlines()
    for case in map(json.loads, cases):
        row = rows[case["id"].rpartition(":")[2]]
        info, gold = row["extra_info"], row["reward_model"]["ground_truth"]
        assert info["options"] == case["options"]
        verdict = scorer_for(row["data_source"], info)(case["solution_str"], gold, info)
        if verdict.correct != case["label"]:
            wrong.append(case["id"])
    assert set(wrong) <= WRONG_LABELS
