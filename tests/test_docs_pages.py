"""The pages together: their commands exist, the index lists every page, and docs/architecture.md
describes the package.
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
PATTERNS = ("*.md", "docs/**/*.md", "data_cards/*.md", "skills/*/SKILL.md")
PAGES = sorted(page for pattern in PATTERNS for page in ROOT.glob(pattern))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = typer.main.get_command(app)
ENDS = {"|", "||", "&&", ";", "(", ")", "<", ">", "&", "2"}  # shlex splits `2>`


def calls(text, *, prompts):
    """Yield the arguments of each call of rewardkit in the lines of a block."""
    for line in text.replace("\\\n", " ").splitlines():
        if "rewardkit " not in line or (prompts and not line.startswith("$ ")):
            continue
        words = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars="();<>|&")
        words.whitespace_split, words.commenters = True, "#"
        yield from calls_of(list(words))


def calls_of(words):
    """Yield the arguments of each call in the words of a line."""
    for place, word in enumerate(words):
        before = words[place - 1] if place else ";"
        if word == "rewardkit" and (before in ENDS or before in {"$", "nice"} or "=" in before):
            rest = words[place + 1 :]
            stop = next((i for i, one in enumerate(rest) if set(one) <= set("();<>|&")), len(rest))
            yield rest[: stop - 1] if rest[stop - 1 : stop] == ["2"] else rest[:stop]


def parse(arguments):
    """Let click parse a call, as it would before running it."""
    command, name, rest = COMMAND, "rewardkit", list(arguments)
    while hasattr(command, "commands"):
        name = rest.pop(0)
        assert name in command.commands, f"no command {name!r}"
        command = command.get_command(None, name)
    command.make_context(name, rest)


def calls_of_pages():
    """Yield (page, arguments) of every call in a block of a page."""
    for page in PAGES:
        for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")):
            if kind in {"console", "bash", "text", "sh", "shell"}:
                for arguments in calls(text, prompts=kind == "console"):
                    if "[OPTIONS]" not in arguments and "..." not in arguments:
                        yield page, arguments
        if page.name.startswith("README"):
            for command in re.findall(
                r"^\|.*\| `(rewardkit .*?)` \|", page.read_text("utf-8"), re.MULTILINE
            ):
                yield page, shlex.split(command)[1:]


#: Pages that do not begin with a command, with the reason.
WITHOUT_A_COMMAND = {
    "docs/architecture.md": "it describes the code",
    "docs/how-to/new-verl-release.md": "it is for maintainers, who decide first which release",
    "docs/style.md": "it describes sentences",
}


@pytest.mark.parametrize(
    "page",
    [
        str(page.relative_to(ROOT))
        for page in PAGES
        if page.is_relative_to(DOCS) and page.parent.name != "reference"
    ],
)
def test_a_page_begins_with_a_command(page):
    """A reader sees what to type, and what it prints, before the first sentence."""
    begins = re.match(r"# .+\n\n```(console|bash)\n", (ROOT / page).read_text(encoding="utf-8"))
    assert bool(begins) != (page in WITHOUT_A_COMMAND)


def test_every_command_of_every_page_exists():
    """Options exist, values have the right type, and no argument is missing."""
    problems, count = [], 0
    for page, arguments in calls_of_pages():
        count += 1
        if not arguments or arguments[0].startswith("-"):
            continue
        try:
            parse(arguments)
        except Exception as error:  # noqa: BLE001 - click's own, or vendored by typer
            message = getattr(error, "message", None) or str(error) or type(error).__name__
            problems.append(
                f"{page.relative_to(ROOT)}: rewardkit {shlex.join(arguments)}: {message}"
            )
    assert not problems, "\n".join(problems)
    assert count > 150


@pytest.mark.parametrize(
    "line", ["rewardkit prep", "rewardkit perp x", "x | rewardkit score --scorers a -", "rewardkit train --set"]
)  # fmt: skip
def test_a_wrong_command_is_detected(line):
    (arguments,) = calls(line, prompts=False)
    with pytest.raises(Exception, match=r".|"):
        parse(arguments)


def anchors(page):
    """Return the anchors of the headings of a page."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = (re.sub(r"[^\w\s-]", "", title.lower()).replace(" ", "-") for title in titles)
    return set(plain)


def test_links_lead_to_headings_that_exist():
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


def test_the_pages_are_copied_for_a_site_builder(tmp_path):
    """In the copy of `make docs`, all links between files work, and no card has front matter."""
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
    """Return the top-level packages and modules of the package."""
    names = {path.stem for path in PACKAGE.glob("*.py")}
    names |= {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    return names - {"__init__", "__main__"}


def imports():
    """Yield (layer, imported layer) of all imports of the package, including those in functions."""
    for file in PACKAGE.rglob("*.py"):
        layer = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
        text = file.read_text(encoding="utf-8")
        names = re.findall(r"^\s*(?:from|import) rewardkit\.(\w+)", text, re.MULTILINE)
        for listed in re.findall(r"^\s*from rewardkit import (\([^)]*\)|.*)", text, re.MULTILINE):
            names += re.findall(r"\w+", listed)
        yield from ((layer, other) for other in names if other in layers() - {layer})


ROWS = re.findall(r"^\| `(\w+)` \| ([\d,]+) \|(.*?)\| .* \|$", ARCHITECTURE, re.MULTILINE)


def allowed():
    """Read the table of docs/architecture.md: layer -> the layers that it may import."""
    table, base = {}, set()
    for layer, _, others in ROWS:
        table[layer] = base | set(re.findall(r"`(\w+)`", others))
        base |= {layer} if others.strip() == "base" else set()
    return table


@pytest.mark.parametrize(("part", "budget"), [row[:2] for row in ROWS])
def test_no_part_is_longer_than_its_budget(part, budget):
    files = [PACKAGE / f"{part}.py", *(PACKAGE / part).rglob("*.py")]
    lines = sum(file.read_text("utf-8").count("\n") for file in files if file.exists())
    assert 0 < lines <= int(budget.replace(",", "")), f"{part} has {lines:,} lines"


def test_every_part_of_the_package_has_a_row():
    assert set(allowed()) == layers()


def test_layers_import_what_the_page_allows():
    table = allowed()
    assert all(others <= layers() for others in table.values())
    forbidden = {
        (layer, other)
        for layer, other in imports()
        if layer in table and layer != "cli" and other not in table[layer]
    }
    assert not forbidden, f"docs/architecture.md does not allow {sorted(forbidden)}"


def test_a_part_imports_only_from_parts_above_it():
    """The rows of the table are in the order of imports."""
    place = {layer: number for number, layer in enumerate(allowed())}
    assert not {
        (layer, other)
        for layer, others in allowed().items()
        for other in others
        if place[other] >= place[layer]
    }


def test_every_path_in_the_page_exists():
    """Paths are, for example, `launch/verl/releases.py`, `data_cards/` and dotted names."""
    code = re.findall(r"`([^`\n]+)`", BLOCK.sub("", ARCHITECTURE))
    paths = [one for one in code if re.fullmatch(r"[\w./-]+/[\w./*-]*|[\w-]+\.(py|toml|yaml)", one)]
    assert len(paths) > 20
    for path in paths:
        places = (ROOT / path, PACKAGE / path)
        assert any(place.exists() for place in places) or any(PACKAGE.glob(path)), path
    names = [one for one in code if one.startswith("rewardkit.")]
    for name in names:
        assert importlib.util.find_spec(name.rpartition(".")[0]), name
