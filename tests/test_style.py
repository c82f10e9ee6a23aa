"""docs/style.md holds for names and sentences, as far as a program can check it."""

import ast
import io
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest
import typer

from rewardkit.cli.main import app
from tests.command import all_commands

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "rewardkit"
MODULES = sorted(PACKAGE.rglob("*.py"))
PAGES = sorted(
    page
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("skills/*/*.md")]
    # style.md quotes what it forbids, the changelog quotes earlier releases, and the tables of
    # docs/reference are the code's sentences.
    if page.name not in {"style.md", "CHANGELOG.md"} and page.parent.name != "reference"
)

#: Names that say what happened to a thing, not what the thing is.
PARTICIPLES = {"asked", "found", "kept", "said", "told"}
#: Public names of a participle that stay, with the reason.
ALLOWED_PARTICIPLES = {
    "kept": "field of the public CheckReport, and of the JSON that `rewardkit check` prints"
}

#: "There is no file" is plain English; "x.jsonl is no file" is not.
IDIOMS = re.compile(
    r"(?<!\bthere )\bis no (?!longer\b|more than\b|less than\b)|\bso many\b|\bgave no verdict\b",
    re.IGNORECASE,
)


@cache
def tree(module):
    return ast.parse(module.read_text(encoding="utf-8"))


def path_of(file):
    return str(file.relative_to(ROOT))


COMMANDS = [("rewardkit", typer.main.get_command(app)), *all_commands()]


def strings(module):
    """Yield (line, text) of every string, docstring and comment of a module."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
    source = module.read_text(encoding="utf-8")
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = [token for token in tokens if token.type == tokenize.COMMENT]
    for i, token in enumerate(comments):  # a sentence may go on in the comment below
        below = comments[i + 1] if i + 1 < len(comments) else None
        after = below.string if below and below.start[0] == token.start[0] + 1 else ""
        yield token.start[0], f"{token.string} {after.lstrip('#: ')[:20]}"


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[name for name, _ in COMMANDS])
def test_help_says_what_a_value_is(name, command):
    for param in command.params:
        text = getattr(param, "help", None) or ""
        assert not re.match(r"(Of|As|That)\b", text), (name, param.name, text)
        assert text.rstrip().endswith((".", "]")), (name, param.name, text)


def may_have_an_idiom(module):
    """Whether the words of a module without quotes and hashes have one: much faster than parsing."""
    return IDIOMS.search(re.sub(r"[\s\"'#:]+", " ", module.read_text(encoding="utf-8")))


def test_no_idiom_is_in_the_code_in_the_texts_that_it_reads_or_in_the_pages():
    sources = [(module, strings(module)) for module in filter(may_have_an_idiom, MODULES)]
    texts = [*PACKAGE.rglob("*.yaml"), *PACKAGE.rglob("*.j2"), *PAGES]
    sources += [(file, enumerate(file.read_text("utf-8").split("\n\n"), 1)) for file in texts]
    problems = [
        f"{path_of(file)}:{line}: ...{words[max(match.start() - 30, 0) : match.end() + 20]}"
        for file, parts in sources
        for line, text in parts
        for words in [" ".join(text.split())]
        for match in IDIOMS.finditer(words)
    ]
    assert not problems, "\n".join(problems)


def public_names(module):
    """Yield (line, name) of public functions, classes, constants, fields, and parameters."""
    for node in tree(module).body:
        yield from names_of(node)


def names_of(node):
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if not node.name.startswith("_"):
            yield node.lineno, node.name
            arguments = node.args
            for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                yield node.lineno, argument.arg
    elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
        yield node.lineno, node.name
        for inner in node.body:
            yield from names_of(inner)
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.lineno, node.target.id
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield node.lineno, target.id


def test_no_participle_is_a_public_name():
    problems = [
        f"{path_of(module)}:{line}: {name}"
        for module in MODULES
        for line, name in public_names(module)
        if name.lower() in PARTICIPLES and name not in ALLOWED_PARTICIPLES
    ]
    assert not problems, "\n".join(problems)
