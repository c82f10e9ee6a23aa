"""The pages together: every command shown is one that there is, every page is found, and
docs/architecture.md is the package.
"""

import importlib.util
import re
import shlex
from functools import cache
from pathlib import Path

import pytest
import typer

from rewardkit.cli.main import app

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "rewardkit"
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("**/*.md"), *ROOT.glob("data_cards/*.md")])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = typer.main.get_command(app)
ENDS = {"|", "||", "&&", ";", "(", ")", "<", ">", "&", "2"}  # shlex parts `2>` so


def calls(text, *, prompts):
    """The arguments of each call of rewardkit in the lines of a block."""
    for line in text.replace("\\\n", " ").splitlines():
        if "rewardkit " not in line or (prompts and not line.startswith("$ ")):
            continue
        words = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars="();<>|&")
        words.whitespace_split, words.commenters = True, "#"
        yield from calls_of(list(words))


def calls_of(words):
    """The same of the words of a line."""
    for place, word in enumerate(words):
        before = words[place - 1] if place else ";"
        if word == "rewardkit" and (before in ENDS or before in {"$", "nice"} or "=" in before):
            rest = words[place + 1 :]
            stop = next((i for i, one in enumerate(rest) if set(one) <= set("();<>|&")), len(rest))
            yield rest[: stop - 1] if rest[stop - 1 : stop] == ["2"] else rest[:stop]


def parse(arguments):
    """Let click take a call apart, as it would before running it."""
    command, name, rest = COMMAND, "rewardkit", list(arguments)
    while hasattr(command, "commands"):
        name = rest.pop(0)
        assert name in command.commands, f"no command {name!r}"
        command = command.commands[name]
    command.make_context(name, rest)


def shown():
    """(page, arguments) of every call in a block of a page."""
    for page in PAGES:
        for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")):
            if kind in {"console", "bash", "text", "sh", "shell"}:
                for arguments in calls(text, prompts=kind == "console"):
                    if "[OPTIONS]" not in arguments and "..." not in arguments:
                        yield page, arguments


def test_every_command_of_every_page_is_one_that_there_is():
    """Every option has its name, every value its type, every argument is given."""
    wrong, found = [], 0
    for page, arguments in shown():
        found += 1
        if not arguments or arguments[0].startswith("-"):
            continue
        try:
            parse(arguments)
        except Exception as error:  # noqa: BLE001 - click's own, or vendored by typer
            said = getattr(error, "message", None) or str(error) or type(error).__name__
            wrong.append(f"{page.relative_to(ROOT)}: rewardkit {shlex.join(arguments)}: {said}")
    assert not wrong, "\n".join(wrong)
    assert found > 150


@pytest.mark.parametrize(
    "line", ["rewardkit prep", "rewardkit perp x", "x | rewardkit score --scorers a -", "rewardkit train --set"]
)  # fmt: skip
def test_a_command_that_there_is_not_is_seen(line):
    (arguments,) = calls(line, prompts=False)
    with pytest.raises(Exception, match=r".|"):
        parse(arguments)


def anchors(page):
    """The anchors that Markdown gives the headings of a page."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = (re.sub(r"[^\w\s-]", "", title.lower()).replace(" ", "-") for title in titles)
    return set(plain)


def test_links_lead_to_headings_that_there_are():
    for page in PAGES:
        text = BLOCK.sub("", page.read_text(encoding="utf-8"))
        for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", text):
            other = (page.parent / target).resolve() if target else page
            assert anchor in anchors(other), (page.name, target, anchor)


def test_every_page_is_in_the_index():
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    for page in DOCS.glob("**/*.md"):
        if page != DOCS / "README.md":
            assert f"]({page.relative_to(DOCS).as_posix()})" in index, page.relative_to(DOCS)


def test_the_pages_are_laid_out_for_a_site_builder(tmp_path):
    """`make docs`: all links between files hold there, and no card has front matter."""
    spec = importlib.util.spec_from_file_location("docs_site", ROOT / "tools/docs_site.py")
    site = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(site)
    site.OUT = tmp_path / "out"
    site.main()
    pages = list(site.OUT.rglob("*.md"))
    assert len(pages) >= len(PAGES)
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not text.startswith("---\n")
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", BLOCK.sub("", text)):
            assert (page.parent / target).exists(), (page, target)


# ---------------------------------------------------------------- docs/architecture.md

ARCHITECTURE = (DOCS / "architecture.md").read_text(encoding="utf-8")


@cache
def layers():
    """The package's own top-level packages and modules."""
    found = {path.stem for path in PACKAGE.glob("*.py")}
    found |= {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    return found - {"__init__", "__main__"}


def imports():
    """(layer, layer that it imports) of all imports of the package, those in functions too."""
    for file in PACKAGE.rglob("*.py"):
        layer = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
        text = file.read_text(encoding="utf-8")
        names = re.findall(r"^\s*(?:from|import) rewardkit\.(\w+)", text, re.MULTILINE)
        for listed in re.findall(r"^\s*from rewardkit import (\([^)]*\)|.*)", text, re.MULTILINE):
            names += re.findall(r"\w+", listed)
        yield from ((layer, other) for other in names if other in layers() - {layer})


def allowed():
    """The table of docs/architecture.md: layer -> what it may import."""
    rows = re.findall(r"^\| `(\w+)` \|(.*?)\| .* \|$", ARCHITECTURE, re.MULTILINE)
    return {layer: set(re.findall(r"`(\w+)`", others)) for layer, others in rows}


def test_every_part_of_the_package_has_a_row():
    assert set(allowed()) == layers()


def test_layers_import_what_the_page_allows():
    table = allowed()
    assert all(others <= layers() for others in table.values())
    more = {
        (layer, other)
        for layer, other in imports()
        if layer in table and layer != "cli" and other not in table[layer]
    }
    assert not more, f"docs/architecture.md does not allow {sorted(more)}"


def test_a_part_imports_only_from_parts_above_it():
    """The rows of the table are in order, so that no arrow goes up."""
    place = {layer: number for number, layer in enumerate(allowed())}
    assert not {
        (layer, other)
        for layer, others in allowed().items()
        for other in others
        if place[other] >= place[layer]
    }


def answers_steps():
    """The table of what is inside `answers`: module -> the number of its row."""
    table = ARCHITECTURE.partition("### Inside `answers`")[2].partition("## ")[0]
    rows = re.findall(r"^\| \w+ \| (`.*?`) \| .* \|$", table, re.MULTILINE)
    return {name: place for place, row in enumerate(rows) for name in re.findall(r"`(\w+)`", row)}


def answers_imports():
    """(module of answers, module of answers that it imports)."""
    for file in (PACKAGE / "answers").rglob("*.py"):
        module = file.relative_to(PACKAGE / "answers").parts[0].removesuffix(".py")
        text = file.read_text(encoding="utf-8")
        names = re.findall(r"^\s*from rewardkit\.answers\.(\w+)", text, re.MULTILINE)
        for listed in re.findall(r"^\s*from rewardkit\.answers import (.*)", text, re.MULTILINE):
            names += re.findall(r"^\w+", listed)
        yield from ((module, other) for other in names if other != module)


def test_every_module_of_answers_has_a_step():
    modules = {path.stem for path in (PACKAGE / "answers").glob("*.py")} | {"parsing"}
    assert set(answers_steps()) == modules - {"__init__"}


def test_no_step_of_answers_imports_from_a_later_one():
    steps = answers_steps()
    later = {(one, other) for one, other in answers_imports() if steps[other] > steps[one]}
    assert not later, f"docs/architecture.md does not allow {sorted(later)}"


def test_every_path_in_the_page_is_there():
    """`launch/verl/key_renames.py`, `data_cards/`, `tests/x.py`, and dotted names of the package."""
    code = re.findall(r"`([^`\n]+)`", BLOCK.sub("", ARCHITECTURE))
    paths = [one for one in code if re.fullmatch(r"[\w./-]+/[\w./*-]*|[\w-]+\.(py|toml|yaml)", one)]
    assert len(paths) > 20
    for path in paths:
        homes = (ROOT / path, PACKAGE / path)
        assert any(home.exists() for home in homes) or any(PACKAGE.glob(path)), path
    names = [one for one in code if one.startswith("rewardkit.")]
    for name in names:
        found = importlib.util.find_spec(name.rpartition(".")[0])
        assert found, name
