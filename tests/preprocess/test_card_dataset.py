"""A card of a user's as a dataset: `rewardkit prep my_dataset.md`."""

import json

import pytest
import yaml

import rewardkit
from rewardkit.errors import DataError, SourceError, UnknownNameError, UsageError
from rewardkit.preprocess.base import Dropped, Problem
from rewardkit.preprocess.load import load_dataset
from rewardkit.registry import card_folder
from rewardkit.row import read_rows
from rewardkit.strict_yaml import read_yaml

CARD = """---
name: {name}
title: Sums
data_source: acme/sums
ability: math
template: {template}
scorer: {scorer}
licence: ours
columns:
  {columns}
{more}splits:
  train: {{rows: 3, files: sums.jsonl}}
---
# Sums
"""


def write_card(folder, columns, more="", template="boxed", scorer="math", name="sums"):
    lines = [f"{part}: {value}" for part, value in columns.items()]
    text = CARD.format(
        name=name, template=template, scorer=scorer, columns="\n  ".join(lines), more=more
    )
    card = folder / f"{name}.md"
    card.write_text(text)
    return card


def write_rows(folder, *rows):
    file = folder / "sums.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def prepare(folder, columns, *rows, options=None, **card):
    out = folder / "out.parquet"
    report = rewardkit.prep(
        str(write_card(folder, columns, **card)),
        out,
        source=write_rows(folder, *rows),
        overwrite=True,
        **(options or {}),
    )
    return list(read_rows(out)), report.splits[0]


def test_a_card_alone_prepares_a_file(tmp_path):
    rows, report = prepare(
        tmp_path,
        {
            "question": "[context, q]",
            "gold": "a",
            "level": "hard",
            "id": "n",
            "subject": '"= sums"',
        },
        {"context": "Add.", "q": "1 + 1?", "a": 2, "hard": 1, "n": "a1"},
        {"context": None, "q": "1 + 2?", "a": "3", "hard": None, "n": 7},
        {"context": "", "q": "1 + 3?", "a": None, "hard": 2.5, "n": ""},
    )
    first, second = (row["extra_info"] for row in rows)
    assert (first["question"], first["level"], first["source_id"]) == ("Add.\n\n1 + 1?", "1", "a1")
    assert (second["question"], second["level"], second["source_id"]) == ("1 + 2?", "", "7")
    assert [row["reward_model"]["ground_truth"] for row in rows] == ["2", "3"]
    assert first["subject"] == "sums"
    assert rows[0]["data_source"] == "acme/sums"
    assert report.dropped == {"no gold answer": 1}


def test_the_first_layout_whose_columns_a_file_has_is_read_with_its_own_conditions(tmp_path):
    layouts = "- {question: q, gold: a, id: n, where: from = sums}\n  - {question: q, gold: a}"
    card = tmp_path / "sums.md"
    card.write_text(
        CARD.format(name="sums", template="boxed", scorer="math", columns=layouts, more="")
    )
    to_problem = load_dataset(str(card)).to_problem
    raw = {"q": "x", "a": "1"}
    assert to_problem({**raw, "n": "7", "from": "sums"}) == Problem("x", "1", source_id="7")
    assert to_problem({**raw, "n": "7", "from": "nq"}) == Dropped("not from = sums")
    assert to_problem(raw) == Problem("x", "1")
    card.write_text(card.read_text().replace("from = sums", "sums"))
    with pytest.raises(DataError, match=r"sums.md: columns: where: 'sums' is not a condition"):
        load_dataset(str(card))


def test_a_seed_without_shuffled_options_is_refused(tmp_path):
    columns = {"question": "q", "gold": "a"}
    with pytest.raises(UsageError, match="sums does not shuffle options: leave out --options-seed"):
        prepare(tmp_path, columns, {"q": "x", "a": "1"}, options={"options_seed": 3})


def test_options_by_letter_and_options_that_only_repeat_their_letters(tmp_path):
    rows, _ = prepare(
        tmp_path,
        {"question": "q", "gold": "a", "options": "o"},
        {"q": "Which?", "a": "B", "o": {"A": "one", "B": "two", "C": None}},
        {"q": "Which picture?", "a": "A", "o": ["A", "B"]},
        {"q": "How many?", "a": "3", "o": []},
        template="boxed",
    )
    assert [row["extra_info"]["question"] for row in rows] == [
        "Which?\nA. one\nB. two",
        "Which picture?",
        "How many?",
    ]
    assert [row["extra_info"]["kind"] for row in rows] == ["single", "single", ""]


def test_keep_writes_columns_as_one_json_text(tmp_path):
    rows, _ = prepare(
        tmp_path,
        {"question": "q", "gold": "a"},
        {"q": "1 + 1?", "a": "2", "info": {"difficulty": 6.5}, "topic": ["sums", "加法"]},
        options={"keep": ["info.difficulty", "topic"]},
    )
    text = rows[0]["extra_info"]["columns"]
    assert json.loads(text) == {"info.difficulty": 6.5, "topic": ["sums", "加法"]}


def test_where_drops_the_other_rows_with_the_condition_as_reason(tmp_path):
    rows, report = prepare(
        tmp_path,
        {"question": "q", "gold": "a"},
        *({"q": f"{n} + 1?", "a": str(n + 1), "difficulty": n} for n in range(5)),
        options={"where": ["difficulty >= 3"]},
    )
    assert [row["extra_info"]["index"] for row in rows] == [3, 4]
    assert report.dropped == {"not difficulty >= 3": 3}
    lines = (tmp_path / "out.parquet.dropped.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["reasons"] == ["not difficulty >= 3: difficulty is 0"]


def test_a_card_without_the_meaning_of_its_columns_needs_code(tmp_path):
    card = tmp_path / "sums.md"
    text = CARD.format(name="sums", template="boxed", scorer="math", columns="- [q, a]", more="")
    card.write_text(text)
    with pytest.raises(UsageError, match="columns does not say what each column holds"):
        load_dataset(str(card))
    with pytest.raises(SourceError, match="no such file"):
        load_dataset(str(tmp_path / "other.md"))
    with pytest.raises(UnknownNameError, match="unknown dataset"):
        load_dataset("no-such-set")


@pytest.mark.parametrize(
    ("question", "images", "expected"),
    [
        ("Find x.", 1, "<image>Find x."),
        ("See <image1>. Find x.", 1, "See <image>. Find x."),
        ("Compare <image 1> and <image 2>.", 2, "Compare <image> and <image>."),
        ("From <image1> to <image3>?", 1, "<image>From <image1> to <image3>?"),
        ("<image1> and again <image1>", 1, "<image><image1> and again <image1>"),
        ("<image><image>x?", 1, "marks and images differ in number"),
        ("<image> and <image1>", 1, "marks and images differ in number"),
        ("<image1>, <image2>, <image3>", 2, "marks and images differ in number"),
        ("<image2> before <image1>", 2, "the marks are not in the order of the images"),
        ("Only <image2>.", 1, "the marks are not in the order of the images"),
    ],
)
def test_a_question_has_one_mark_for_each_picture(tmp_path, question, images, expected):
    """One picture for several numbered marks shows all figures under their marks, as in MATH-V."""
    card = write_card(tmp_path, {"question": "q", "gold": "a", "images": "i"})
    pictures = [{"bytes": b"png", "path": None}] * images
    problem = load_dataset(str(card)).to_problem({"q": question, "a": "1", "i": pictures})
    assert getattr(problem, "question", None) == expected or problem.reason == expected


def test_the_marks_of_options_count_as_marks_of_the_question(tmp_path):
    """A picture of all options comes first, and the options keep the names of its parts."""
    columns = {"question": "q", "gold": "a", "options": "o", "images": "i"}
    to_problem = load_dataset(str(write_card(tmp_path, columns))).to_problem
    raw = {"q": "Which one?", "a": "B", "o": ["<image1>", "<image2>"], "i": {"bytes": b"png"}}
    problem = to_problem(raw)
    assert problem.question == "<image>Which one?\nA. <image1>\nB. <image2>"
    assert problem.options == ("<image1>", "<image2>")
    two = to_problem({**raw, "i": [{"bytes": b"one"}, {"bytes": b"two"}]})
    assert two.question == "Which one?\nA. <image>\nB. <image>"


def test_a_card_s_front_matter_is_read_strictly(tmp_path):
    """Nine aliases of nine aliases, and so on, were gigabytes."""
    card = write_card(tmp_path, {"question": "q", "gold": "a"})
    lines = card.read_text().splitlines()
    lines[2:2] = ["area: &a [x, x]", "gold_kind: [*a, *a]"]
    card.write_text("\n".join(lines))
    with pytest.raises(DataError, match=r"sums\.md:4: aliases are not read"):
        load_dataset(str(card))


def test_our_own_cards_mean_the_same_to_the_fast_reader_and_to_the_strict_one():
    for card in card_folder().glob("*.md"):
        front_matter = card.read_text(encoding="utf-8").split("---\n")[1]
        assert yaml.safe_load(front_matter) == read_yaml(front_matter, card.name)
