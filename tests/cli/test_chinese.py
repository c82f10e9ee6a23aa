"""`--lang zh`: every text of ours has Chinese, and the Chinese fits the English of the code."""

import ast
import re
import string
from pathlib import Path

import pytest

import rewardkit
from rewardkit.cli.shared import chinese
from rewardkit.cli.shared.chinese import MAX_CHARACTERS, chinese_texts, localized
from rewardkit.launch.rules import RULES as LAUNCH_RULES
from rewardkit.preprocess.row_checks import RULES as ROW_RULES

#: Sentences that the code puts together from several places, so that no text of it has them whole.
COMPOSED = {
    "{path}: {verdict!t}.", "{path}: {verdict!t}", "{aspect!t} ({note!l})", "{n} row, all good",
    "{n} rows, all good", "step {step}  {values}", "{share}% of {item}",
    "{n} files, all good.", "{n} files: {counts!l}.", "{n} good", "{n} with findings",
}  # fmt: skip


@pytest.fixture
def zh(monkeypatch):
    monkeypatch.setattr(chinese, "_language", ["zh"])


def texts_of(path):
    """Return the texts of a module in their order, with a NUL for each value of an f-string."""
    texts = []

    def visit(node):
        if isinstance(node, ast.FormattedValue):
            texts.append("\0")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.append(node.value)
        else:
            for child in ast.iter_child_nodes(node):
                visit(child)

    visit(ast.parse(path.read_text(encoding="utf-8")))
    return "".join(texts)


@pytest.mark.full
def test_each_sentence_is_in_the_code_word_for_word():
    """A changed English text would print English with `--lang zh`; a text may have two parts."""
    root = Path(rewardkit.__file__).parent
    folders = ("cli", "launch", "preprocess", "trainlog", "scorers", "pages")
    code = "\n".join(texts_of(path) for name in folders for path in (root / name).rglob("*.py"))
    sentences = chinese_texts()["sentences"].keys() - COMPOSED
    pieces = {piece for s in sentences for piece in re.split(r"\{\w+(?:![tl])?\}", s)}
    whole = {piece.strip(" .") for piece in pieces} - {""}
    missing = {piece for piece in whole if piece not in code}
    assert not {
        piece
        for piece in missing
        if not any(piece[:i] in code and piece[i:] in code for i in range(1, len(piece)))
    }


def test_each_chinese_sentence_has_the_values_of_the_english_one():
    for english, translated in chinese_texts()["sentences"].items():
        values = {name for name, _ in re.findall(r"\{(\w+)(![tl])?\}", english)}
        if values:
            used = {name for _, name, _, _ in string.Formatter().parse(translated) if name}
            assert used == values, english


def test_each_rule_has_chinese(zh):
    assert {rule.id for rule in LAUNCH_RULES} <= chinese_texts()["rules"].keys()
    assert not [todo for todo in ROW_RULES.values() if localized(todo) == todo]


def test_chinese_texts_have_full_width_punctuation():
    texts = [t for part in chinese_texts().values() for t in part.values()]
    assert not [t for t in texts if re.search(r"[\u4e00-\u9fff][,;:?!](?!\S)", t)]


@pytest.mark.parametrize(
    ("text", "translated"),
    [
        ("t.parquet: 3 of 64 rows are bad.", "t.parquet：64 行中有 3 行不合格。"),
        ("Checked: schema, golds.", "已检查：字段结构、标准答案。"),
        ("same prompt and gold as row 4", "提示词和标准答案与第 4 行相同"),
        ("preflight: 2 errors, 1 info", "启动前检查：2 个错误、1 条提示"),
        ("gold '{n}', but '{0}' scores as right", "标准答案 '{n}'，但 '{0}' 也被判为正确"),
        ("a text of a user", "a text of a user"),
        ("", ""),
        ("row " + "x" * MAX_CHARACTERS, "row " + "x" * MAX_CHARACTERS),
    ],
)
def test_a_text_is_translated_with_its_values_or_stays(zh, text, translated):
    assert localized(text) == translated


def test_check_and_train_print_chinese_only_if_asked(cli, tmp_path):
    cli("prep", "gsm8k", "--sample", "--out", "t.parquet", cwd=tmp_path)
    environment = {"LANG": "zh_CN.UTF-8", "REWARDKIT_LANG": "zh", "PYTHONUTF8": "1"}
    english = cli("check", "t.parquet", cwd=tmp_path, env=environment)
    assert english.stdout.isascii()
    done = cli("check", "t.parquet", "--lang", "zh", cwd=tmp_path)
    assert done.stdout.startswith("t.parquet：64 行，全部合格。\n已检查：字段结构、提示词、")
    done = cli("check", "qwen2.5-0.5b-ppo-gsm8k", "--lang", "zh", cwd=tmp_path)
    assert "data.train_files：data/gsm8k/train.parquet：文件不存在。生成办法：" in done.stdout
    done = cli("train", "qwen2.5-0.5b-ppo-gsm8k", "--lang", "zh", cwd=tmp_path)
    assert done.stderr.endswith("错误：未启动：请先修复上面的错误，或用 --no-check 强行启动。\n")
