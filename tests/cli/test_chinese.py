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
from tests.launch.test_rules import EXAMPLES, findings_of
from tests.tables import every

#: Sentences that the code puts together from several places, so that no text of it has them whole.
COMPOSED = {
    "{path}: {verdict!t}.", "{path}: {verdict!t}", "{aspect!t} ({note!l})", "{n} row, all good",
    "{n} rows, all good", "step {step}  {values}", "{share}% of {item}",
    "{n} files, all good.", "{n} files: {counts!l}.", "{n} good", "{n} with findings",
}  # fmt: skip

#: Parts of which the code may put a text together.
MAX_PARTS = 4

#: Sources of findings, which stay as they are.
CITATIONS = {"verl pull request"}

#: English words in Chinese sentences: terms, and what stands in quotes.
TERMS = (
    r"'[^']*'|(micro|mini) batch|reward (manager|worker)|logger \w+|rewardkit \w+|No module named"
)

#: Two plain words in a row, or one that no Chinese sentence has.
ENGLISH = r"(?<![\w./=])([a-z]{2,},? [a-z]{2,}|the|and|or|is|of|if|not|but|with|to|for)(?![\w./=(])"


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


def parts_in(code, text):
    """Return the fewest parts of a text of which each is in the code; a part may be a character."""
    parts = []
    while text:
        end = next((n for n in range(len(text), 1, -1) if text[:n] in code), 1)
        parts.append(text[:end])
        text = text[end:]
    return parts


@pytest.mark.full
def test_each_sentence_is_in_the_code_word_for_word():
    """A changed English text would print English with `--lang zh`; a text may have a few parts."""
    root = Path(rewardkit.__file__).parent
    folders = ("cli", "launch", "preprocess", "trainlog", "scorers", "pages", "audit")
    files = (path for name in folders for path in (root / name).rglob("*.py"))
    modules = [*root.glob("*.py"), *files]
    keys = (root / "launch" / "verl" / "key_renames.yaml").read_text(encoding="utf-8")
    code = "\n".join([*map(texts_of, modules), " ".join(keys.split())])
    sentences = chinese_texts()["sentences"].keys() - COMPOSED
    pieces = {piece for s in sentences for piece in re.split(r"\{\w+(?:![tls])?\}", s)}
    whole = {piece.strip(" .:`") for piece in pieces} - {""}
    assert not {piece for piece in whole if len(parts_in(code, piece)) > MAX_PARTS}


def test_each_chinese_sentence_has_the_values_of_the_english_one():
    for english, translated in chinese_texts()["sentences"].items():
        values = {name for name, _ in re.findall(r"\{(\w+)(![tls])?\}", english)}
        if values:
            used = {name for _, name, _, _ in string.Formatter().parse(translated) if name}
            assert used == values, english


def prose_of(path):
    """Return the runs of three plain words in the texts of a module, besides names and errors."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    raised = [node for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    others = [
        *(node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)
          and isinstance(node.value, ast.Constant)),
        *(argument for call in calls if getattr(call.func, "id", "") in {"expected", "UsageError"}
          for argument in call.args if not isinstance(argument, ast.Call)),
        *(call.func.value for call in calls if getattr(call.func, "attr", "") == "split"),
        *(part for node in raised for part in ast.walk(node)),
    ]  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in others:
            for text in re.split(r"\{[^{}]*\}|\S*[=_]\S*", node.value):
                yield from re.findall(r"(?<![\w./])(?:[a-z']+,? ){2,}[a-z']+(?![\w./=(])", text)


def test_each_text_of_the_rules_and_the_preflight_has_chinese():
    launch = Path(rewardkit.__file__).parent / "launch"
    files = [
        *sorted((launch / "rules").glob("[a-z]*.py")),
        *sorted((launch / "preflight").glob("*.py")),
        launch / "verl" / "translate.py",
        launch / "rehearsal" / "checks.py",
    ]
    known = "\n".join(chinese_texts()["sentences"])
    assert not {
        (path.name, run)
        for path in files
        for run in prose_of(path)
        if run not in known and run not in CITATIONS
    }


@every(("rule", "breaking", "fixed", "message"), EXAMPLES)
def test_the_evidence_and_the_fix_of_each_rule_are_chinese_throughout(
    zh, rule, breaking, fixed, message
):
    for finding in findings_of(breaking).values():
        for text in (finding.text, finding.fix):
            prose = re.sub(TERMS, "", localized(text))
            assert re.search("[\u4e00-\u9fff]", prose), text
            assert not re.search(ENGLISH, prose), prose


def test_each_rule_has_chinese(zh):
    assert {rule.id for rule in LAUNCH_RULES} <= chinese_texts()["rules"].keys()
    assert not [todo for todo in ROW_RULES.values() if localized(todo) == todo]


def test_each_sentence_is_translated_as_itself_and_not_by_another_one(zh):
    for english, translated in chinese_texts()["sentences"].items():
        kinds = dict(re.findall(r"\{(\w+)(?:!([tls]))?\}", english))
        if not {"t", "l"} & set(kinds.values()):
            values = {name: "7" if name in {"n", "m"} else "a.b" for name in kinds}
            text = re.sub(r"\{(\w+)(?:!s)?\}", lambda name, v=values: v[name[1]], english)
            assert localized(text) == (translated.format(**values) if values else translated)


def test_chinese_texts_have_full_width_punctuation():
    texts = [t for part in chinese_texts().values() for t in part.values()]
    assert not [t for t in texts if re.search(r"[\u4e00-\u9fff][,;:?!](?!\S)", t)]


@pytest.mark.parametrize(
    ("text", "translated"),
    [
        ("error: a.yml: 'x' is missing.", "错误：a.yml：缺少 'x'。"),
        (
            "error: a.yml: nodes: input should be greater than 0 (it is 0).",
            "错误：a.yml：nodes：应为大于 0 的数（现为 0）。",
        ),
        ("unknown recipe 'a'. Did you mean 'b' or 'c'?", "未知的配方 'a'。是否指 'b'、'c'？"),
        ("Set a.b=1 and c.d=2, or more.", "设置 a.b=1、c.d=2，或更大。"),
        ("Checked: schema, contamination (a, b).", "已检查：字段结构、数据泄漏（a、b）。"),
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
    done = cli("check", "none.parquet", "--lang", "zh", cwd=tmp_path)
    assert done.stderr == "错误：none.parquet：文件不存在。\n"
    done = cli("check", "qwen2.5-0.5b-ppo-gsm8k", "--lang", "zh", cwd=tmp_path)
    assert "data.train_files：data/gsm8k/train.parquet：文件不存在。生成办法：" in done.stdout
    done = cli("train", "qwen2.5-0.5b-ppo-gsm8k", "--lang", "zh", cwd=tmp_path)
    assert done.stderr.endswith(
        "错误：未启动：请先修复上面的本机问题，或用 --no-check 强行启动。\n"
    )
