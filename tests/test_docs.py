"""README and docs are executed: `console` blocks are run and compared, `python` blocks are run.

A block of another language whose first line is `# NAME.SUFFIX` is the file of that name. Chinese pages
have the same code as their English twins, which a test checks, so that they are not run again.

Of the pages in IN_A_CLONE every block is run, `bash` blocks too, command by command in a copy of the
clone. A command whose comment is `# exits N` has to end with that code; all others end with 0. What
cannot run in a test, such as a training, is in a `text` block.
"""

import html
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewardkit.errors import EXIT_CODES
from rewardkit.preprocess.source import SAMPLES
from rewardkit.strict_yaml import read_yaml
from tests.judging.faulty_server import serving

ROOT = Path(__file__).parents[1]
SKILLS = sorted(ROOT.glob("skills/*/SKILL.md"))
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md"), *SKILLS]
)
#: Pages whose blocks a reader pastes into the clone, line by line.
IN_A_CLONE = [ROOT / "README.md", ROOT / "AGENTS.md", *SKILLS]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
#: The first line of a block that is a file: its name.
FILE = re.compile(r"# ([\w-]+\.(?:py|yaml|sh))\n")
#: The comment of a command that ends with another exit code than 0.
EXITS = re.compile(r"# exits (\d+)\b")
#: Pages in two languages.
TWINS = [(page, twin) for page in PAGES if (twin := page.with_suffix(".zh-CN.md")) in PAGES]
#: The server of the pages, for which the tests put a judge on loopback.
JUDGE_URL = "http://127.0.0.1:8000/v1"
RUN = [page for page in PAGES if page not in dict(map(reversed, TWINS))]


def blocks(page, language):
    return [
        text for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")) if kind == language
    ]


def steps(text):
    """Yield (command, expected output) of a console block."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output.strip()


def commands_of(kind, text):
    """Yield (command, expected output) of a block; a `bash` block shows no output: it may be anything."""
    if kind == "console":
        yield from steps(text)
    elif kind == "bash" and not FILE.match(text):
        lines = re.split(r"(?<!\\)\n", text)
        yield from ((line, "...") for line in lines if line.strip() and not line.startswith("#"))


def run_commands(commands, folder, environment):
    """Run commands one after the other, each in a shell of its own, and compare what they print."""
    for command, expected in commands:
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True
        )
        code = int(match[1]) if (match := EXITS.search(command)) else 0
        assert done.returncode == code, (command, done.stdout, done.stderr)
        assert agrees(expected, done.stdout), (command, expected, done.stdout)


def write_files(text, folder):
    """Write the blocks that are files."""
    for _, block in BLOCK.findall(text):
        if match := FILE.match(block):
            (folder / match[1]).write_text(block, encoding="utf-8")


def agrees(expected, output):
    """Compare output with a block in which `...` stands for anything; spaces do not matter."""
    first, *pieces = ("".join(piece.split()) for piece in expected.split("..."))
    rest = "".join(output.split())
    if not pieces:
        return rest == first
    if not rest.startswith(first):
        return False
    rest, last = rest[len(first) :], pieces.pop()
    for piece in pieces:
        _, mark, rest = rest.partition(piece) if piece else ("", "...", rest)
        if not mark:
            return False
    return rest.endswith(last)


@pytest.fixture
def user(tmp_path):
    """A user's folder and environment, with the sample in place of the hub's GSM8K: no network."""
    snapshot = tmp_path / "hf/hub/datasets--openai--gsm8k/snapshots/0000000000000000"
    (snapshot / "main").mkdir(parents=True)
    refs = snapshot.parents[1] / "refs"
    refs.mkdir()
    (refs / "main").write_text(snapshot.name)
    for file in (SAMPLES / "gsm8k").glob("*.jsonl"):
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        out = snapshot / "main" / f"{file.stem}-00000-of-00001.parquet"
        pq.write_table(pa.Table.from_pylist(rows), out)
    work = tmp_path / "work"
    shutil.copytree(ROOT / "examples", work / "examples")
    return work, os.environ | {
        "HF_HOME": str(tmp_path / "hf"),
        "HF_HUB_OFFLINE": "1",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }


@pytest.fixture
def clone(user, tmp_path):
    """A copy of this tree without what git ignores, and an environment that reaches no network."""
    _, environment = user
    list_files = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(list_files, cwd=ROOT, capture_output=True, text=True)
    if files.returncode:
        pytest.skip("these tests are not in a checkout (tools/release.py)")
    folder = tmp_path / "clone"
    for name in filter(None, files.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    (folder / ".venv").symlink_to(sys.prefix)
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), "http://127.0.0.1:9")
    pip = {  # what `pip install` installs: this package alone, into a folder of the test
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip's spelling of "without"
        "PIP_TARGET": str(tmp_path / "installed"),
    }
    return folder, environment | nowhere | pip | {"no_proxy": "127.0.0.1,localhost"}


def compare_numbers(body):
    """Judge as a good model would: right if the response has the number of the reference."""
    properties = body["response_format"]["json_schema"]["schema"]["properties"]
    if "verdict" not in properties:
        return {name: each.get("enum", ["good"])[-1] for name, each in properties.items()}
    prompt = body["messages"][-1]["content"]
    reference, response = (
        re.findall(r"-?\d[\d.,/]*", prompt.partition(f"[{name} ")[2].partition("]\n")[2])[:1]
        for name in ("REFERENCE", "RESPONSE")
    )
    is_yes = (reference == response) != ("have to be rejected" in prompt)
    return {"reason": "The numbers were compared.", "verdict": "yes" if is_yes else "no"}


def golds():
    """Return the golds of GSM8K's sample by question."""
    lines = (SAMPLES / "gsm8k/test.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["question"]: row["answer"].rpartition("#### ")[2] for row in map(json.loads, lines)}


def answer_question(body):
    """Answer as a model would: `tuned` is wrong on one question in eight, any other on three."""
    prompt = body["messages"][-1]["content"]
    place, gold = next(
        (place, gold) for place, (text, gold) in enumerate(golds().items()) if text in prompt
    )
    is_right = place % 8 >= (1 if body["model"] == "tuned" else 3)
    return f"The working is short. #### {gold if is_right else 7}"


def reply(body):
    """Judge if the request is one of a judge, else answer the question."""
    return compare_numbers(body) if "response_format" in body else answer_question(body)


@pytest.fixture(scope="module")
def judge_url():
    with serving(reply) as server:
        yield server.url


@pytest.mark.full
@pytest.mark.parametrize(
    "page", [p for p in RUN if p not in IN_A_CLONE and blocks(p, "console")], ids=lambda p: p.name
)
def test_commands_print_what_the_page_shows(page, user, judge_url):
    folder, environment = user
    text = page.read_text(encoding="utf-8").replace(JUDGE_URL, judge_url)
    write_files(text, folder)
    for block in [block for kind, block in BLOCK.findall(text) if kind == "console"]:
        run_commands(steps(block), folder, environment)


@pytest.mark.full
@pytest.mark.parametrize("page", IN_A_CLONE, ids=lambda p: p.name)
def test_every_block_of_a_page_runs_when_it_is_pasted_into_a_clone(page, clone, judge_url):
    folder, environment = clone
    text = page.read_text(encoding="utf-8").replace(JUDGE_URL, judge_url)
    write_files(text, folder)
    for kind, block in BLOCK.findall(text):
        run_commands(commands_of(kind, block), folder, environment)


#: Commands of the README's table that a test cannot run, by what they need.
NOT_RUN = {
    "rewardkit check train.parquet --against": "evaluation sets of a hub",
    "rewardkit train my.yaml": "verl",
    "rewardkit eval run": "a model server",
    "rewardkit reward-server": "somebody who ends it",
}
#: The files of a user who reads the README's table.
TABLE_FILES = r"""
rewardkit prep gsm8k --sample --out train.parquet
rewardkit prep math --sample --out maths.parquet
rewardkit prep humaneval --sample --out code.parquet
printf '%s' '{scorer: qa, parts: {correct: 1, answer_after_tools: 0.2}}' > search.yaml
cp examples/hackable_reward.py my_reward.py
cp examples/train.log train.log
printf '%s' '{"q": "1 + 1?", "a": "2"}' > my.jsonl
printf '%s' 'It is \boxed{18}.' > answer.txt
printf '%s' 'python3 -m verl.trainer.main_ppo data.train_files=/d/t.parquet data.val_files=/d/v.parquet actor_rollout_ref.model.path=/m' > run.sh
mkdir rollouts
python -c 'import json, pyarrow.parquet as pq; print(*(json.dumps({"input": r["prompt"][0]["content"], "output": "#### " + r["reward_model"]["ground_truth"] * (i % 2), "gts": r["reward_model"]["ground_truth"], "step": 1}) for r in pq.read_table("train.parquet").to_pylist() for i in range(2)), sep="\n")' > rollouts/1.jsonl
"""


@pytest.mark.full
def test_every_command_of_the_readmes_table_runs_on_a_users_files(clone):
    folder, environment = clone
    (folder / "train.parquet").unlink(missing_ok=True)
    run_commands(commands_of("bash", TABLE_FILES.strip()), folder, environment)
    table = re.findall(
        r"^\|.*\| `(rewardkit .*?)` \|",
        (ROOT / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    commands = [
        (
            command.replace("train.parquet", "hub.parquet") if "prep gsm8k" in command else command,
            "...",
        )
        for command in table
        if not command.startswith(tuple(NOT_RUN))
    ]
    assert len(commands) >= 10
    run_commands(commands, folder, environment)


def test_the_readme_runs_make_only_as_ci_does():
    """The `sh` block of the README is not run by a test: .ci/run runs it, on a clean clone."""
    (block,) = blocks(ROOT / "README.md", "sh")
    ci = (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()
    assert {line.partition("#")[0].strip() for line in block.splitlines()} <= set(ci)


@pytest.mark.full
def test_the_picture_of_the_readme_shows_what_the_audit_prints():
    script = runpy.run_path(str(ROOT / "tools/audit_picture.py"))
    lines = script["picture_lines"](script["audit_lines"]())
    svg = script["PICTURE"].read_text(encoding="utf-8")
    texts = re.findall(r"<text [^>]*audit-r\d[^>]*>(.*?)</text>", svg, re.DOTALL)
    shown = html.unescape("".join(texts))
    assert "".join(shown.split()) == "".join("".join(lines).split())
    assert "http" not in re.sub(r'xmlns="[^"]*"|<!--.*?-->', "", svg)


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_the_run_that_a_readme_plans_reads_the_files_that_it_has_prepared(name, cli, tmp_path):
    block = next(block for block in blocks(ROOT / name, "bash") if "--dry-run" in block)
    outputs = [
        cli(*shlex.split(line, comments=True)[1:], cwd=tmp_path).stdout
        for line in block.splitlines()
        if line.startswith(("rewardkit prep", "rewardkit train"))
    ]
    files = re.findall(r"data\.(?:train|val)_files=(\S+)", outputs[-1])
    assert len(files) == 2
    assert [file for file in files if not (tmp_path / file).is_file()] == []


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("false", "..."),
        ("true  # exits 1", "..."),
        ("cd missing", "..."),
        ("echo b", "a"),
        ("echo a b c", "a...d...c"),
    ],
)
def test_a_command_that_does_not_do_what_the_page_says_is_detected(line, output, tmp_path):
    with pytest.raises(AssertionError):
        run_commands([(line, output)], tmp_path, os.environ)


@pytest.mark.full
@pytest.mark.parametrize("page", [p for p in RUN if blocks(p, "python")], ids=lambda p: p.name)
def test_python_runs_as_shown(page, user):
    folder, environment = user
    code = "\n".join(blocks(page, "python"))
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_links_between_pages_lead_to_files():
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), (page, target)


@pytest.mark.parametrize(("page", "twin"), TWINS, ids=lambda p: p.name)
def test_both_languages_of_a_page_have_the_same_structure(page, twin):
    """They have the same code blocks in order, and equal numbers of sections and table rows."""
    english, chinese = (one.read_text(encoding="utf-8") for one in (page, twin))
    # Comments in code are translated; a first line that names a file is not one.
    strip = re.compile(r"(?:\A(?!# [\w-]+\.\w+\n)|\s+)# .*$", re.MULTILINE)

    def code(text):
        return [
            (kind, body if kind == "console" else strip.sub("", body))
            for kind, body in BLOCK.findall(text)
        ]

    assert code(english) == code(chinese)
    for mark in ("\n## ", "\n|"):
        assert english.count(mark) == chinese.count(mark)
    assert written_rows(english) == written_rows(chinese)


def test_chinese_pages_link_to_chinese_pages():
    """Only the line that offers the English page leads from a Chinese page to a page that has a twin."""
    pages = {page.resolve() for page, _ in TWINS}
    for _, twin in TWINS:
        links = re.findall(r"\[([^]]*)\]\((?!https?:)([^)#]+)", twin.read_text(encoding="utf-8"))
        for words, target in links:
            is_english = words in {"English", "英文版"}
            assert is_english or (twin.parent / target).resolve() not in pages, (twin, target)


def written_rows(text):
    """Return the tables that a script writes, without their headings."""
    return re.findall(
        r"^<!-- (\w+) -->\n.*?\n\|---(.*?)^<!-- end -->", text, re.MULTILINE | re.DOTALL
    )


def chinese_texts():
    """Yield (name, text) of the Chinese pages without code, and of the files of Chinese messages."""
    for page in [page for page in PAGES if page.name.endswith(".zh-CN.md")]:
        yield page.name, BLOCK.sub("", page.read_text(encoding="utf-8"))
    for folder in ("glossary", "trainlog"):
        for file in (ROOT / "rewardkit" / folder).glob("*.yaml"):
            yield file.name, file.read_text(encoding="utf-8")


def test_chinese_texts_use_one_word_for_one_thing():
    """回复 is a response, 打分器 a scorer, 提示词 a prompt; a host that is down is 没有响应."""
    han = "[\u4e00-\u9fff]"
    banned = re.compile(
        "回答|评分器|奖励管理器|训练器|评判模型|词元|策略模型|行动者|评论家|数据污染|(?<!没有)响应"
        f"|演练|提示(?:长度|截断|模板|比例)|{han}[,;:?!]{han}"
    )
    texts = list(chinese_texts())
    assert len(texts) > 12
    found = [(name, hit[0], hit.start()) for name, text in texts for hit in banned.finditer(text)]
    assert not found


@pytest.mark.parametrize("page", SKILLS, ids=lambda p: p.parent.name)
def test_a_skill_begins_with_its_name_and_description(page):
    """Agents read these two to decide whether to open the file: at most 64 and 1,024 characters."""
    _, head, text = page.read_text(encoding="utf-8").split("---\n", 2)
    fields = read_yaml(head, str(page))
    assert set(fields) == {"name", "description"}
    assert fields["name"] == page.parent.name
    assert len(fields["description"]) <= 1024
    assert len(re.findall(r"^## \d+\. ", text, re.MULTILINE)) == 10


def test_the_skill_has_the_exit_codes_of_the_command_line():
    text = (ROOT / "skills/rewardkit/SKILL.md").read_text(encoding="utf-8")
    codes = set(re.findall(r"^\| (\d+) \| ", text, re.MULTILINE))
    assert codes == {code for code in EXIT_CODES if code.isdigit()}
