"""`rewardkit recipes`."""

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from rewardkit.cli.shared import options as opt
from rewardkit.cli.shared.console import print_item, print_json, print_table, warn
from rewardkit.cli.shared.help import PanelGroup
from rewardkit.cli.shared.options import argument, examples, option
from rewardkit.errors import UsageError
from rewardkit.table import Table

EXAMPLES = examples(
    "rewardkit recipes list",
    "rewardkit recipes show qwen3-8b-dapo-dianjin",
    "rewardkit recipes cp qwen2.5-0.5b-ppo-gsm8k my.yaml",
    "rewardkit recipes import run.sh --out my.yaml",
    "rewardkit recipes rules",
)

app = typer.Typer(
    cls=PanelGroup,
    help="List, show, copy and import recipes of verl runs.",
    no_args_is_help=True,
    epilog=EXAMPLES,
    rich_markup_mode=None,
)


@app.command("list", epilog=examples("rewardkit recipes list --json"))
def list_(as_json: opt.JsonFlag = False) -> None:
    """List the recipes that come with rewardkit."""
    from rewardkit.launch.recipe import built_in, load_tree, read_recipe

    recipes = [read_recipe(load_tree(name), name) for name in built_in()]
    if as_json:
        fields = {"name", "about", "algorithm", "strategy", "devices", "hardware", "source"}
        print_json([recipe.model_dump(include=fields) for recipe in recipes])
        return
    rows = [(r.name, r.algorithm, r.strategy, r.hardware, r.about) for r in recipes]
    columns = ("recipe", "algorithm", "strategy", "hardware", "about")
    print_table(Table(columns, rows, wrap={"about"}))


@app.command("show", epilog=examples("rewardkit recipes show qwen3-32b-dapo"))
def show(name: opt.RecipeName) -> None:
    """Print the YAML of a recipe."""
    typer.echo(_text_of(name), nl=False)


def _text_of(name: str) -> str:
    """Return the text of a recipe; raise `UsageError` if it contains a secret."""
    from rewardkit.launch.recipe import load_tree, recipe_path
    from rewardkit.redact import Redactor

    tree = load_tree(name)
    if Redactor().tree(tree) != tree:
        raise UsageError(f"{name} contains a secret; remove it (docs/train.md, Secrets).")
    return recipe_path(name).read_text(encoding="utf-8")


@app.command("cp", epilog=examples("rewardkit recipes cp qwen3-32b-dapo my.yaml"))
def copy(
    name: opt.RecipeName,
    out: Annotated[Path, argument("Output file.")],
    overwrite: opt.Overwrite = False,
) -> None:
    """Copy a recipe to a file of your own."""
    from rewardkit.output import atomic

    text = _text_of(name)
    with atomic(out, overwrite=overwrite) as part:
        part.write_text(text, encoding="utf-8")
    warn(f"next: edit {out} (model, data, cluster), then rewardkit check {out}")


@app.command(
    "import", epilog=examples("rewardkit recipes import run.sh --verl-version 0.9 > my.yaml")
)
def import_(
    script: Annotated[str, argument("Launch script or list of overrides; - reads standard input.")],
    out: Annotated[Path | None, option("Output recipe; the default is standard output.")] = None,
    env: Annotated[
        list[str] | None,
        option("A variable the script is started with. Repeatable.", "--env", metavar="NAME=VALUE"),
    ] = None,
    arguments: Annotated[
        list[str] | None,
        option("An argument the script is started with. Repeatable.", "--arg", metavar="VALUE"),
    ] = None,
    verl_version: opt.VerlVersion = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.JsonFlag = False,
) -> None:
    """Turn a launch script into a recipe without running it.

    Branches are decided by the script's defaults, --env and --arg. Keys that your verl ignores, has
    renamed or does not know are reported on stderr.
    """
    from rewardkit.launch.script_import.importer import import_script, read_script, recipe_text
    from rewardkit.launch.verl.releases import LATEST, installed_verl, release_notice
    from rewardkit.output import atomic

    verl = verl_version or installed_verl() or LATEST
    text = sys.stdin.read() if script == "-" else read_script(Path(script))
    variables = {}
    for pair in env or ():
        name, equals, value = pair.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
            raise UsageError(f"--env {pair[:80]!r} is not NAME=VALUE.")
        variables[name] = value
    imported = import_script(text, script, verl, env=variables, arguments=arguments or ())
    if notice := release_notice(verl):
        warn(f"verl {verl} {notice}")
    for finding in imported.findings:
        print_item(f"{finding.severity}: {finding}", err=True)
    if as_json:
        print_json({**vars(imported), "findings": [each.values() for each in imported.findings]})
    elif out:
        with atomic(out, overwrite=overwrite) as part:
            part.write_text(recipe_text(imported), encoding="utf-8")
        findings = (
            f", with {n} finding{'s' * (n > 1)} above" if (n := len(imported.findings)) else ""
        )
        warn(f"{out} is written{findings}. Next: rewardkit check {out}")
    else:
        typer.echo(recipe_text(imported), nl=False)


@app.command("rules", epilog=examples("rewardkit recipes rules --json"))
def rules(as_json: opt.JsonFlag = False) -> None:
    """List the rules of `rewardkit check RECIPE` and their sources."""
    from rewardkit.launch.rules import RULES

    rows = [(rule.id, rule.severity, rule.key, rule.about, rule.source) for rule in RULES]
    if as_json:
        names = ("id", "severity", "key", "about", "source")
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        columns = ("rule", "severity", "key", "condition", "source")
        print_table(Table(columns, rows, wrap={"condition", "source"}))
