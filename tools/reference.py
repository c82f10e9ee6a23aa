"""Write docs/reference: what the code says of itself, as pages.

    python tools/reference.py

Run it after a change of a command, a rule, a recipe, a card or a schema; tests/test_reference.py
says when. The pages depend on the code only: no width of a terminal, no version of Python or typer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from inspect import Parameter, cleandoc, signature
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/reference"
NOTE = "<!-- Made by `python tools/reference.py`; do not edit. -->"

#: Names of click's types where releases differ.
VALUES = {"text": "TEXT", "str": "TEXT", "integer": "INT", "int": "INT", "float": "FLOAT"}


# ---------------------------------------------------------------- Markdown


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(map(cell, line))} |\n" for line in lines)


def cell(value: object) -> str:
    """A value as a cell: one line, its bars kept from ending it."""
    return " ".join(str(value).split()).replace("|", r"\|")


def code(*names: object) -> str:
    """Names as code, with commas."""
    return ", ".join(f"`{name}`" for name in names if str(name))


def page(title: str, *parts: str) -> str:
    """A page of blocks, with a blank line between each two."""
    blocks = [f"# {title}", NOTE, *(part.strip("\n") for part in parts)]
    return "\n\n".join(block for block in blocks if block) + "\n"


def attributes(documented: type) -> dict[str, str]:
    """What the `Attributes:` of a docstring say of each field."""
    _, _, part = cleandoc(documented.__doc__ or "").partition("Attributes:\n")
    found = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", part, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in found}


# ---------------------------------------------------------------- commands


def cli() -> str:
    """Every command under the heading of its panel in `rewardkit --help`."""
    import typer

    from rewardkit.cli.main import PANELS, app

    root = typer.main.get_command(app)
    parts = []
    for panel, modules in PANELS.items():
        of_panel = [one for name in modules for one in commands(name, root.commands[name])]
        about = [(f"[`{name}`](#{anchor(name)})", summary(command)) for name, command in of_panel]
        parts += [f"## {panel}", table(("command", "what it does"), about)]
        parts += [part for name, command in of_panel for part in command_parts(name, command)]
    return page(
        "Commands",
        "This page has the text of `rewardkit COMMAND --help`. Every command has `-h` and `--help`.\n"
        "`rewardkit --version` prints the version, `rewardkit --install-completion` completes\n"
        "commands, options and names in your shell. Exit codes: 0 for success; 1 for findings, or if\n"
        "data, a source or a file failed; 2 for a wrong call. Results go to stdout, all other output\n"
        "to stderr. `REWARDKIT_DEBUG=1` shows the traceback of an error.",
        *parts,
    )


def commands(name: str, command: Any, prefix: str = "rewardkit") -> Iterator[tuple[str, Any]]:
    """(name, command) of a command that is not hidden, and of those of a group after it."""
    if not command.hidden:
        yield f"{prefix} {name}", command
        for inner, below in getattr(command, "commands", {}).items():
            yield from commands(inner, below, f"{prefix} {name}")


def anchor(name: str) -> str:
    """The anchor of a heading."""
    return name.replace(" ", "-")


def summary(command: Any) -> str:
    """The first paragraph of a help text."""
    return " ".join((command.help or "").split("\n\n")[0].split())


def command_parts(name: str, command: Any) -> Iterator[str]:
    """The blocks of a command."""
    yield f"### {name}"
    for paragraph in (command.help or "").split("\n\n"):
        yield " ".join(paragraph.split())
    if hasattr(command, "commands"):
        return
    given = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
    usage = " ".join([name, *(["[OPTIONS]"] if options else []), *map(usage_of, given)])
    yield f"```text\n{usage}\n```"
    if given:
        rows = [(code(usage_of(p)), need(p), p.help or "") for p in given]
        yield table(("argument", "default", "what"), rows)
    if options:
        rows_ = [(code(*p.opts, *p.secondary_opts), values(p), need(p), p.help) for p in options]
        yield table(("option", "value", "default", "what"), rows_)
    yield (
        "```bash\n"
        + "\n".join(line.removeprefix("  ") for line in example_lines(command))
        + "\n```"
    )


def example_lines(command: Any) -> list[str]:
    """The examples at the end of a help text."""
    _, _, lines = (command.epilog or "").partition("Examples:\n")
    return [line for line in lines.splitlines() if line.strip()]


def usage_of(argument: Any) -> str:
    """An argument as the usage line has it."""
    many = "..." if argument.nargs == -1 else ""
    name = argument.metavar or f"{argument.name.upper()}{many}"
    return name if argument.required or name.startswith("[") else f"[{name}]"


def values(option: Any) -> str:
    """What may follow an option."""
    kind = option.type
    if getattr(option, "is_flag", False):
        return ""
    if option.metavar:
        return code(option.metavar)
    if hasattr(kind, "choices"):
        return code("|".join(str(getattr(one, "value", one)) for one in kind.choices))
    name = kind.name.removesuffix(" range")
    said = code(VALUES.get(name, name.upper()))
    low, high = getattr(kind, "min", None), getattr(kind, "max", None)
    if low is not None and high is not None:
        return f"{said}, {low} to {high}"
    return f"{said}, {low} or more" if low is not None else said


def need(parameter: Any) -> str:
    """The default, or that there must be a value."""
    if parameter.required:
        return "required"
    default = parameter.default
    default = getattr(default, "value", default) if hasattr(default, "name") else default
    plain = isinstance(default, (str, int, float, Path)) and not isinstance(default, bool)
    return code(default) if plain else ""


# ---------------------------------------------------------------- the row

#: What each field of the schema means. A field without an entry ends the script.
FIELDS = {
    "data_source": "verl's reward key, which selects the scorer. It names the dataset and does not "
    "depend on the source of the rows",
    "prompt": "the chat that the policy answers; verl reads `data.prompt_key`",
    "prompt[].role": "`system` or `user`",
    "prompt[].content": "the text, with one `<image>` per picture",
    "ability": "kind of task, such as `math`; verl passes it on",
    "reward_model": "the gold answer",
    "reward_model.style": "always `rule`",
    "reward_model.ground_truth": "the gold as text; verl passes it to the reward",
    "extra_info": "other fields that verl passes to the reward",
    "extra_info.index": "number of the row in its split, from 0",
    "extra_info.split": "`train`, `test`, ...",
    "extra_info.source_id": "the dataset's own id of the problem; empty if it has none",
    "extra_info.question": "the problem without template and instruction",
    "extra_info.answer": "the dataset's own worked solution; empty if it has none",
    "extra_info.scorer": "name of the scorer that reads the form that the prompt asks for; `auto` uses it",
    "extra_info.subject": "subject of the problem; empty if unknown",
    "extra_info.level": "difficulty of the problem; empty if unknown",
    "extra_info.kind": "kind of choice question: `single`, `multiple` or `true_false`; empty for an open one",
    "extra_info.options": "texts of the options of a choice question, A first",
    "images": "only in datasets with pictures; verl reads `data.image_key`",
    "images[].bytes": "content of the image file",
    "images[].path": "always null",
}


def row() -> str:
    """The schema of the verl row."""
    from rewardkit.row import IMAGES, METADATA_KEY, SCHEMA

    found = [line for field in (*SCHEMA, IMAGES) for line in described(field, field.name)]
    if left := FIELDS.keys() - {path for path, _ in found}:
        raise SystemExit(f"FIELDS has fields that the schema has not: {sorted(left)}")
    rows = [(code(path), kind, FIELDS[path]) for path, kind in found]
    return page(
        "The verl row",
        "All datasets have one Arrow schema (`rewardkit/row.py`), so that verl can load any of our\n"
        "files together in `data.train_files`: it does not accept columns with different types. The\n"
        "schema has no types null and `large_*`. `rewardkit check` checks the schema of other files.",
        table(("field", "type", "meaning"), rows),
        f"The metadata of the file has the key `{METADATA_KEY.decode()}`: JSON that says how the\n"
        "file was made (dataset, split, origin, revision, template, options and rewardkit's version,\n"
        "or the parts and the seed of a mix).",
        "[../data.md](../data.md) says how to make and check files with this schema.",
    )


def described(field: Any, path: str) -> Iterator[tuple[str, str]]:
    """(path, type) of an Arrow field and of those in it, in words that no pyarrow changes."""
    import pyarrow as pa

    kind = field.type
    items = pa.types.is_list(kind)
    inner = kind.value_type if items else kind
    if pa.types.is_struct(inner):
        yield path, "list of struct" if items else "struct"
        for i in range(inner.num_fields):
            below = inner.field(i)
            yield from described(below, f"{path}{'[]' if items else ''}.{below.name}")
    else:
        yield path, f"list of {inner}" if items else str(inner)


# ---------------------------------------------------------------- the score

STATUSES = {
    "correct": "the answer is right",
    "wrong": "an answer was read, and it is not the gold",
    "no_answer": "nothing in the response is an answer in the form that the scorer reads",
    "unparsed_answer": "an answer is there, and it cannot be read as one of the gold's kind",
    "ambiguous_answer": "it says several things at once (`18 or 20`): wrong",
    "bad_ground_truth": "the gold cannot be scored: the data is at fault, not the policy",
    "timeout": "the helper process ran out of its time (`math_verify`)",
    "too_long": "the helper process died or outgrew its memory (`math_verify`)",
    "failed": "the scorer raised, crashed or returned something that is not a score",
    "unknown_data_source": "no scorer is registered for the row (reward server)",
}
KEYS = {
    "score": "the reward",
    "acc": "1.0 if the answer is right, else 0.0, whatever it is paid",
    "pred": "the answer that was read; text, so that verl computes maj@k",
    "no_answer": "1.0 if the status is `no_answer`",
    "timeout": "1.0 if the status is `timeout`",
    "error": "1.0 if the status is `bad_ground_truth`, `failed` or `unknown_data_source`: look at the "
    "data and the configuration",
}


def score() -> str:
    """What a scorer returns, what verl gets of it, and the scorers."""
    from rewardkit.registry import DATA_SOURCES, SCORERS
    from rewardkit.scorers.base import VERL_KWARGS, Score, Status, to_verl
    from rewardkit.scorers.gold import MISSING

    said = attributes(Score)
    fields = [(code(n), getattr(t, "__name__", t), said[n]) for n, t in hints(Score).items()]
    keys = to_verl(Score.wrong("", Status.NO_ANSWER))
    kinds = {name: "text" if isinstance(value, str) else "number" for name, value in keys.items()}
    names = {target: name for name, target in SCORERS.items()}
    return page(
        "Scores and scorers",
        "A scorer is a function `score(response, ground_truth, extra_info=None, **options)`. It\n"
        "returns a `Score` and raises on no text. `rewardkit.scorers.base` has all of this.",
        "## Score",
        table(("field", "type", "what"), fields),
        "## Status",
        table(("status", "meaning"), [(code(s.value), STATUSES[s.value]) for s in Status]),
        "## What verl gets",
        "`compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs)` returns\n"
        "the same keys for every sample. verl charts the numbers (`val-aux/DATA_SOURCE/KEY/mean@N`).",
        table(("key", "type", "what"), [(code(k), kinds[k], KEYS[k]) for k in keys]),
        "What goes wrong in a scorer counts as a wrong answer, sets `error` and is logged once for\n"
        "each cause. Keyword arguments that verl adds of its own are no options of a scorer:\n"
        f"{code(*sorted(VERL_KWARGS))}.",
        "## Scorers",
        table(("scorer", "wrong answer", "options"), [*map(scorer_row, SCORERS)]),
        "`wrong answer` is what a wrong one gets where no option says otherwise. Options are set with\n"
        "`--set NAME=VALUE`, in a recipe under `reward.options`, or for verl in `reward_kwargs`. A\n"
        "value that does not fit is refused wherever a scorer is loaded; in verl it sets `error`. The\n"
        "options of a scorer of yours are validated in the same way if they have annotations:\n"
        '`Literal["a", "b"]`, `bool`, `int`, `float`, `str`, a union of these, or\n'
        "`Annotated[float, Range(0, 1)]` with `Range` of `rewardkit.scorers.options`.",
        "## Golds",
        "A gold is text or a number. A list, a NumPy array or a JSON text with one item counts as that\n"
        "item. These cannot be golds, set `error` in verl and are reported by `check` and `prep`: a\n"
        "missing value (None, NaN, an empty text or list, and the words "
        f"{code(*sorted(filter(str.isalpha, MISSING)))}, spelled so),\n"
        "an object, and a list of several texts, unless it is the letters of a choice. A response that\n"
        "repeats a missing value is never paid.",
        "## Which scorer judges which data_source",
        "`auto` goes by `extra_info.scorer`, else by this table, to which packages of yours may add\n"
        "(entry points `rewardkit.data_sources` and `rewardkit.scorers`).",
        table(
            ("data_source", "scorer"),
            [(code(source), code(names[target])) for source, target in DATA_SOURCES.items()],
        ),
        *(part for name in SCORERS for part in scorer_parts(name)),
    )


def hints(named: type) -> dict[str, Any]:
    """The annotations of a class, looked up."""
    from typing import get_type_hints

    return get_type_hints(named)


def scorer_module(name: str) -> Any:
    """The module of a scorer."""
    from rewardkit.registry import SCORERS

    return import_module(SCORERS[name].partition(":")[0])


def scorer_row(name: str) -> tuple[str, str, str]:
    """A scorer's name, what it gives a wrong answer, and its options."""
    from rewardkit.scorers.options import describe_option

    module = scorer_module(name)
    options = [
        f"`{p.name}={p.default!r}` ({describe_option(module.score, p.name)})"
        for p in signature(module.score).parameters.values()
        if p.kind is Parameter.KEYWORD_ONLY
    ]
    any_ = "those of the row's scorer" if name == "auto" else ""
    wrong = "as the row's scorer" if name == "auto" else code(getattr(module, "WRONG_SCORE", 0.0))
    return f"[`{name}`](#{name})", wrong, "; ".join(options) or any_


def scorer_parts(name: str) -> Iterator[str]:
    """What a scorer's file says of it."""
    yield f"### {name}"
    yield cleandoc(scorer_module(name).__doc__ or "").replace(
        "docs/answers.md", "[../answers.md](../answers.md)"
    )


# ---------------------------------------------------------------- the answer policy


def policy() -> str:
    """An index of docs/answers.md, whose tables the tests hold to the code."""
    text = (ROOT / "docs/answers.md").read_text(encoding="utf-8")
    rows = []
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title = section.partition("\n")[0]
        pairs = re.findall(
            r"^\| (`.+?`) \| (`.+?`) \| (equal|different) \| (.+) \|$", section, re.MULTILINE
        )
        if pairs:
            link = f"[{title}](../answers.md#{slug(title)})"
            rows.append((link, len(pairs), example(pairs, "equal"), example(pairs, "different")))
    total = sum(row[1] for row in rows)
    lines = "".join(f"| {' | '.join(map(str, row))} |\n" for row in rows)
    return page(
        "The answer policy",
        f"What counts as equal is written down in [../answers.md](../answers.md), in {total} rows.\n"
        "Each is a test (`tests/answers/test_policy.py`). This page is the index: the first row of\n"
        "each section that is equal, and the first that is not, as answer and gold.",
        "| section | rows | equal | different |\n| --- | --- | --- | --- |\n" + lines,
        "Where an answer is read, and the limits of what is compared, stand on that page too. The\n"
        "policy is that of the scorers `math`, `geometry3k` and `math_dapo` with `mode=robust`;\n"
        "`mcq` has the rows on choice letters. What each of the others compares is in\n"
        "[score.md](score.md#scorers).",
    )


def example(pairs: Sequence[tuple[str, ...]], verdict: str) -> str:
    """The first pair of a verdict."""
    return next(f"{answer} and {gold}" for answer, gold, said, _ in pairs if said == verdict)


def slug(title: str) -> str:
    """The anchor that Markdown gives a title."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


# ---------------------------------------------------------------- rules


def rules() -> str:
    """The rules before a launch, those on logs, and the attacks of the audit."""
    from rewardkit.audit.attacks import ATTACKS
    from rewardkit.launch.rules import CHECKED_ELSEWHERE, RULES
    from rewardkit.trainlog.rules import rules as log_rules

    before = [(code(r.id), r.severity, code(r.key), r.about, r.source) for r in RULES]
    after = [(code(r.id), r.severity, r.title["en"], r.when, r.source) for r in log_rules()]
    attacks = [(code(a.name), a.kind, a.severity, a.about) for a in ATTACKS.values()]
    return page(
        "Rules",
        "## Before the launch",
        f"`rewardkit check RECIPE` and `rewardkit train` check a plan with these {len(RULES)} rules.\n"
        "Keys are those of verl 0.9.1. A single finding may have another severity or key than its\n"
        "rule. The other checks (verl's own validation, files, the reward, the machines) are in\n"
        "[../train.md](../train.md#before-the-launch); their findings have names such as `verl`,\n"
        "`packages`, `devices` and `cpus`.",
        table(("rule", "severity", "key", "what", "source"), before),
        "These rules need more than a plan:",
        table(("rule", "checked by"), [(code(k), v) for k, v in CHECKED_ELSEWHERE.items()]),
        "## On a log",
        f"`rewardkit logs` looks for these {len(log_rules())}. `error` means that the run is broken,\n"
        "`warning` that it may be fine. `rewardkit logs` itself says what a finding means and which\n"
        "key to change.",
        table(("rule", "severity", "title", "when", "source"), after),
        "## Attacks on a reward",
        f"`rewardkit audit` tries these {len(attacks)}; see [../audit.md](../audit.md).",
        table(("attack", "kind", "severity", "what it tries"), attacks),
    )


# ---------------------------------------------------------------- metrics


def metrics() -> str:
    """Where the metrics are explained, and which rule looks at which."""
    from rewardkit.glossary.lookup import keys, metrics
    from rewardkit.trainlog.rules import rules as log_rules

    looked_at: dict[str, list[str]] = {}
    for rule in log_rules():
        for name in rule.metrics:
            looked_at.setdefault(name, []).append(rule.id)
    return page(
        "Metrics",
        f"The meaning, the healthy range and the keys of verl's metrics ({len(metrics())} entries),\n"
        f"and what {len(keys())} configuration keys do, are in [../glossary.md](../glossary.md) and,\n"
        "in Chinese, [../glossary.zh-CN.md](../glossary.zh-CN.md). `rewardkit glossary NAME`\n"
        "prints one entry.",
        "## What our scorers add",
        "verl averages the numbers that a reward returns. In the validation they are charts of their\n"
        "own; what each is stands in [score.md](score.md#what-verl-gets).",
        table(
            ("chart", "what"),
            [
                ("`val-core/DATA_SOURCE/acc/mean@N`", "accuracy: the first curve to look at"),
                ("`val-aux/DATA_SOURCE/score/mean@N`", "what was paid"),
                ("`val-aux/DATA_SOURCE/no_answer/mean@N`", "share of responses without an answer"),
                ("`val-aux/DATA_SOURCE/error/mean@N`", "not 0: the data or the scorer is broken"),
                ("`val-aux/DATA_SOURCE/timeout/mean@N`", "share of verdicts that ran out of time"),
            ],
        ),
        "A reward of several parts (`rewardkit compose`) adds one for each part.",
        "## Which rule looks at which metric",
        table(
            ("metric", "rules"),
            [(code(name), code(*found)) for name, found in sorted(looked_at.items())],
        ),
        "The rules are in [rules.md](rules.md#on-a-log).",
    )


# ---------------------------------------------------------------- recipes


def recipes() -> str:
    """The recipes that come with rewardkit, and the fields of one."""
    from rewardkit.launch.recipe import Recipe, built_in, load_tree, read_recipe

    found = [read_recipe(load_tree(name), name) for name in built_in()]
    heads = ("recipe", "algorithm", "strategy", "hardware", "about")
    rows = [(f"[`{r.name}`](#{slug(r.name)})", r.algorithm, r.strategy, r.hardware, r.about)
            for r in found]  # fmt: skip
    return page(
        "Recipes",
        "`rewardkit recipes cp NAME my.yaml` makes one yours; [../train.md](../train.md) says what\n"
        "becomes of it.",
        table(heads, rows),
        *(part for recipe in found for part in recipe_parts(recipe)),
        "## Fields",
        "All else is verl's own and stands under `verl:`.",
        table(("field", "value", "default", "what"), list(fields_of(Recipe, ""))),
    )


def recipe_parts(recipe: Any) -> Iterator[str]:
    """The blocks of a recipe."""
    yield f"## {recipe.name}"
    yield recipe.about + "."
    where = f"{recipe.nodes} x {recipe.devices_per_node} {recipe.devices.upper()}"
    options = "".join(f" {name}={value}" for name, value in recipe.reward.options.items())
    facts = {
        "asks for": f"{where}; made for {recipe.hardware}",
        "algorithm": f"{recipe.algorithm}, {recipe.strategy}",
        "model": code(recipe.model),
        "train": code(*recipe.data.train),
        "validation": code(*recipe.data.val) or "none",
        "made by": code(*recipe.data.prepare),
        "reward": code(f"{recipe.reward.scorer}{options}"),
        "target": code(recipe.cluster.target),
        "verl's keys": f"{len(recipe.verl)} under `verl:`",
        "sweep": code(*recipe.sweep),
        "expect": recipe.expect,
        "source": recipe.source,
    }
    yield table(("what", "value"), [(k, v) for k, v in facts.items() if v])


def fields_of(model: Any, prefix: str) -> Iterator[tuple[str, str, str, str]]:
    """The fields of a recipe, and of its parts."""
    said = attributes(model)
    for name, field in model.model_fields.items():
        inner = [one for one in (field.annotation, *get_args(field.annotation))
                 if hasattr(one, "model_fields")]  # fmt: skip
        if inner:
            yield from fields_of(inner[0], f"{prefix}{name}.")
        else:
            default = "required" if field.is_required() else shown(field.get_default())
            yield code(f"{prefix}{name}"), kind_of(field.annotation), default, said.get(name, "")


def shown(default: Any) -> str:
    """A default as YAML has it."""
    if default in (None, "", [], {}):
        return ""
    return code(str(default).lower() if isinstance(default, bool) else default)


def kind_of(annotation: Any) -> str:
    """A type in words."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return code("|".join(map(str, inside)))
    if origin in {Union, UnionType}:
        return kind_of(next(one for one in inside if one is not NoneType))
    if origin is list:
        return f"list of {kind_of(inside[0])}"
    if origin is dict or isinstance(annotation, Mapping):
        return "mapping"
    if hasattr(annotation, "__metadata__"):
        return kind_of(inside[0])
    return {"str": "text", "int": "integer", "float": "number", "bool": "true|false"}[
        annotation.__name__
    ]


# ---------------------------------------------------------------- cards


def cards() -> str:
    """The datasets, from the front matter of their cards."""
    from rewardkit.preprocess.card import read_card
    from rewardkit.registry import DATASETS

    found = [read_card(name) for name in DATASETS]
    heads = ("name", "rows", "licence", "default template", "scorer", "splits")
    rows = [
        (
            f"[`{card.name}`](#{slug(card.name)})",
            " + ".join(f"{split.rows:,}" for split in card.splits.values()),
            card.licence,
            code(card.template),
            code(card.scorer),
            code(*card.splits),
        )
        for card in found
    ]
    return page(
        "Datasets",
        "This page shows the front matter of each data card, which the code reads, too. The card\n"
        "itself (`rewardkit card NAME`) has the schema, the rule for the gold, the known defects with\n"
        "counts, and the citation. The numbers of rows are those of the published files;\n"
        "[../data.md](../data.md) says which of them `prep` writes.",
        table(heads, rows),
        *(part for card in found for part in card_parts(card)),
    )


def card_parts(card: Any) -> Iterator[str]:
    """The blocks of a dataset."""
    yield f"## {card.name}"
    yield f"{card.title}. [Its card](../../data_cards/{card.name}.md)."
    columns = " or ".join(code(*layout) for layout in card.columns)
    yield table(("what", "value"), [("ability", code(card.ability)), ("columns", columns)])
    rows = [
        (
            code(name),
            f"{split.rows:,}",
            code(card.reward_key(name)),
            code(*split.files),
            code(card.hub_copy(name).huggingface),
            code(card.hub_copy(name).modelscope),
        )
        for name, split in card.splits.items()
    ]
    yield table(("split", "rows", "data_source", "files", "Hugging Face", "ModelScope"), rows)


PAGES = (cli, row, score, policy, rules, metrics, recipes, cards)


def pages() -> dict[Path, str]:
    """Every page of the reference and its text."""
    return {FOLDER / f"{make.__name__}.md": make() for make in PAGES}


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path, text in pages().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
