"""Write docs/reference from the code.

    python tools/reference.py

Run it after a change of a command, a rule, a recipe, a card or a schema; tests/test_reference.py fails
otherwise. The pages depend only on the code, not on the terminal, the Python version or typer.
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
#: The rows of the answer policy, which are also the cases of tests/answers/test_policy.py.
POLICY = ROOT / "tests/answers/policy.yaml"
NOTE = "<!-- Made by `python tools/reference.py`; do not edit. -->"

#: Names of click's types where releases differ.
VALUES = {"text": "TEXT", "str": "TEXT", "integer": "INT", "int": "INT", "float": "FLOAT"}


# ---------------------------------------------------------------- Markdown


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Format a table in Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(map(cell, line))} |\n" for line in lines)


def cell(value: object) -> str:
    """Format a value as a cell: one line, with bars escaped."""
    return " ".join(str(value).split()).replace("|", r"\|")


def code(*names: object) -> str:
    """Format names as code, separated by commas."""
    return ", ".join(f"`{name}`" for name in names if str(name))


def page(title: str, *parts: str) -> str:
    """Join blocks to a page, with blank lines between them."""
    blocks = [f"# {title}", NOTE, *(part.strip("\n") for part in parts)]
    return "\n\n".join(block for block in blocks if block) + "\n"


def attributes(documented: type) -> dict[str, str]:
    """Return the text of each field under `Attributes:` in a docstring."""
    _, _, part = cleandoc(documented.__doc__ or "").partition("Attributes:\n")
    fields = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", part, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in fields}


# ---------------------------------------------------------------- commands


def cli() -> str:
    """List every command under the heading of its panel in `rewardkit --help`."""
    import typer

    from rewardkit.cli.main import PANELS, app
    from rewardkit.errors import EXIT_CODES

    root = typer.main.get_command(app)
    parts = []
    for panel, modules in PANELS.items():
        of_panel = [one for name in modules for one in commands(name, root.get_command(None, name))]
        about = [(f"[`{name}`](#{anchor(name)})", summary(command)) for name, command in of_panel]
        parts += [f"## {panel}", table(("command", "what it does"), about)]
        parts += [part for name, command in of_panel for part in command_parts(name, command)]
    return page(
        "Commands",
        "This page has the text of `rewardkit COMMAND --help`. Every command has `-h` and `--help`.\n"
        "`rewardkit --version` prints the version, `rewardkit --install-completion` completes\n"
        "commands, options and names in your shell. Results go to stdout, all other output\n"
        "to stderr. `REWARDKIT_DEBUG=1` shows the traceback of an error.",
        "## Exit codes",
        table(("code", "meaning"), EXIT_CODES.items()),
        *parts,
    )


def commands(name: str, command: Any, prefix: str = "rewardkit") -> Iterator[tuple[str, Any]]:
    """Yield (name, command) of a visible command, then of the commands of its group."""
    if not command.hidden:
        yield f"{prefix} {name}", command
        for subname, subcommand in getattr(command, "commands", {}).items():
            yield from commands(subname, subcommand, f"{prefix} {name}")


def anchor(name: str) -> str:
    """Return the anchor of a heading."""
    return name.replace(" ", "-")


def summary(command: Any) -> str:
    """Return the first paragraph of a help text."""
    return " ".join((command.help or "").split("\n\n")[0].split())


def command_parts(name: str, command: Any) -> Iterator[str]:
    """Yield the blocks of a command."""
    yield f"### {name}"
    for paragraph in (command.help or "").split("\n\n"):
        yield " ".join(paragraph.split())
    if hasattr(command, "commands"):
        return
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
    usage = " ".join([name, *(["[OPTIONS]"] if options else []), *map(usage_of, arguments)])
    yield f"```text\n{usage}\n```"
    if arguments:
        rows = [(code(usage_of(p)), need(p), p.help or "") for p in arguments]
        yield table(("argument", "default", "what"), rows)
    if options:
        option_rows = [
            (code(*p.opts, *p.secondary_opts), values(p), need(p), p.help) for p in options
        ]
        yield table(("option", "value", "default", "what"), option_rows)
    yield (
        "```bash\n"
        + "\n".join(line.removeprefix("  ") for line in example_lines(command))
        + "\n```"
    )


def example_lines(command: Any) -> list[str]:
    """Return the lines of the examples at the end of a help text."""
    _, _, lines = (command.epilog or "").partition("Examples:\n")
    return [line for line in lines.splitlines() if line.strip()]


def usage_of(argument: Any) -> str:
    """Format an argument as in the usage line."""
    many = "..." if argument.nargs == -1 else ""
    name = argument.metavar or f"{argument.name.upper()}{many}"
    return name if argument.required or name.startswith("[") else f"[{name}]"


def values(option: Any) -> str:
    """Describe the value of an option."""
    kind = option.type
    if getattr(option, "is_flag", False):
        return ""
    if option.metavar:
        return code(option.metavar)
    if hasattr(kind, "choices"):
        return code("|".join(str(getattr(one, "value", one)) for one in kind.choices))
    name = kind.name.removesuffix(" range")
    type_name = code(VALUES.get(name, name.upper()))
    low, high = getattr(kind, "min", None), getattr(kind, "max", None)
    if low is not None and high is not None:
        return f"{type_name}, {low} to {high}"
    return f"{type_name}, {low} or more" if low is not None else type_name


def need(parameter: Any) -> str:
    """Return the default, or `required`."""
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
    "extra_info.columns": "JSON text with further columns of the raw row (`prep --keep`), or empty",
    "images": "only in datasets with pictures; verl reads `data.image_key`",
    "images[].bytes": "content of the image file",
    "images[].path": "always null",
}

#: What the further fields of rows of more than one turn mean.
TURNS = {
    "agent_name": ("string", "verl's agent loop for the row: `tool_agent` or `single_turn_agent`"),
    "extra_info.need_tools_kwargs": (
        "bool",
        "verl warns about a row without `tools_kwargs` if true",
    ),
    "extra_info.tools_kwargs": (
        "struct",
        (
            "the tools by name; in each, `create_kwargs` is what verl passes to the tool's `create`. "
            "`calc_*` and `code_interpreter` get the gold as `ground_truth`; `search` gets `question`, "
            "`data_source` and `ground_truth.target`, the list of golden answers"
        ),
    ),
    "extra_info.interaction_kwargs": (
        "struct",
        "`name` of the interaction, and what verl passes to it: `query` and `ground_truth`",
    ),
    "extra_info.tool_selection": (
        "list of string",
        "the tools of the row, if not all (verl 0.9); only a mix of files that have it",
    ),
}


def row() -> str:
    """Describe the schema of the verl row."""
    from rewardkit.row import AGENT_NAME, IMAGES, METADATA_KEY, SCHEMA, TURN_FIELDS

    if list(TURNS) != [AGENT_NAME.name, *(f"extra_info.{name}" for name in TURN_FIELDS)]:
        raise SystemExit("TURNS has other fields than rewardkit/row.py.")

    fields = [line for field in (*SCHEMA, IMAGES) for line in describe_field(field, field.name)]
    if unknown := FIELDS.keys() - {path for path, _ in fields}:
        raise SystemExit(f"FIELDS has fields that are not in the schema: {sorted(unknown)}")
    rows = [(code(path), kind, FIELDS[path]) for path, kind in fields]
    return page(
        "The verl row",
        "All datasets have one Arrow schema (`rewardkit/row.py`), so that verl can load any of our\n"
        "files together in `data.train_files`: it does not accept columns with different types. The\n"
        "schema has no types null and `large_*`. `rewardkit check` checks the schema of other files.",
        table(("field", "type", "meaning"), rows),
        "Files with rows of more than one turn (`prep --tools`, `prep --interaction`, and a mix with\n"
        "such files) also have those of these fields that their rows have, `agent_name` as a column and\n"
        "the others at the end of `extra_info`. Their types are those of the tools.",
        table(("field", "type", "meaning"), [(code(p), *texts) for p, texts in TURNS.items()]),
        f"The metadata of the file has the key `{METADATA_KEY.decode()}`: JSON that says how the\n"
        "file was made (dataset, split, origin, revision, template, options and rewardkit's version,\n"
        "or the parts and the seed of a mix). A file with pictures also has the key `huggingface`: by it\n"
        "the library `datasets`, and so verl, decodes the pictures.",
        "[../data.md](../data.md) says how to make and check files with this schema.",
    )


def describe_field(field: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield (path, type) of an Arrow field and its fields, in words that do not depend on pyarrow."""
    import pyarrow as pa

    kind = field.type
    items = pa.types.is_list(kind)
    inner = kind.value_type if items else kind
    if pa.types.is_struct(inner):
        yield path, "list of struct" if items else "struct"
        for i in range(inner.num_fields):
            child = inner.field(i)
            yield from describe_field(child, f"{path}{'[]' if items else ''}.{child.name}")
    else:
        yield path, f"list of {inner}" if items else str(inner)


# ---------------------------------------------------------------- the score

STATUSES = {
    "correct": "the answer is right",
    "wrong": "the response has an answer, which differs from the gold",
    "no_answer": "the response has no answer in the form that the scorer reads",
    "unparsed_answer": "the response has an answer that cannot be read as one of the gold's kind",
    "ambiguous_answer": "the answer names several values (`18 or 20`): wrong",
    "bad_ground_truth": "the gold cannot be scored: the data is at fault, not the policy",
    "timeout": "the helper process reached its time limit (`math_verify`)",
    "too_long": "the helper process died or reached its memory limit (`math_verify`)",
    "failed": "the scorer raised, crashed or returned something that is not a score",
    "scored": "a reward of your own gave a score, and which of its scores is right is not known "
    "(see [your own reward](../how-to/own-reward.md#what-counts-as-right))",
    "unknown_data_source": "no scorer is registered for the row (reward server)",
}
KEYS = {
    "score": "the reward",
    "acc": "1.0 if the answer is right, else 0.0, independent of the score",
    "pred": "the extracted answer, as text, so that verl computes maj@k",
    "no_answer": "1.0 if the status is `no_answer`",
    "timeout": "1.0 if the status is `timeout`",
    "error": "1.0 if the status is `bad_ground_truth`, `failed` or `unknown_data_source`: look at the "
    "data and the configuration",
}

#: Keys of a composed reward; the defaults come from its models.
COMPOSE = {
    "scorer": "a scorer's name, or `my_reward.py:function` beside the YAML",
    "options": "options of the scorer",
    "right_score": "lowest right score of a scorer of your own",
    "parts": "one part or more",
    "parts.correct": "1 if the answer is correct, else 0",
    "parts.correct.min_chars": "characters without blanks after the thought, with fewer of which it is 0",
    "parts.base": "the scorer's own score",
    "parts.format": "1 if each tag is opened and closed once, in order, around some text; else 0",
    "parts.format.tags": "names of the tags",
    "parts.format.outside": "whether text may stand outside the tags",
    "parts.repetition": "from -`max_penalty` to 0: the share of repeated runs of `n` characters",
    "parts.repetition.n": "characters of a run, 1 to 1000",
    "parts.repetition.max_penalty": "penalty of a response that only repeats",
    "parts.length": "the cosine between the value of length 0 and that of `max_chars` and more",
    "parts.length.max_chars": "characters from which the value stays the same",
    "parts.length.short_correct": "value of an empty correct response",
    "parts.length.long_correct": "value of a long correct response",
    "parts.length.short_wrong": "value of an empty wrong response",
    "parts.length.long_wrong": "value of a long wrong response, not above `short_wrong`; `null` for that of `short_wrong`",
    "parts.called": "1 if each of the tools ran, whatever it returned ([conversations](../how-to/conversations.md))",
    "parts.called.tool": "a tool's name, or several",
    "parts.calls_at_most": "1 if the model wrote at most `n` calls, also such as failed",
    "parts.calls_at_most.n": "number of calls",
    "parts.calls_at_most.tool": "tools whose calls count; `null` for all",
    "parts.result_contains": "1 if a result that the model read contains an answer of the ground truth",
    "parts.result_contains.text": "a text to look for in place of the ground truth",
    "parts.result_contains.tool": "tools whose results count; `null` for all",
    "parts.result_contains.only_correct": "whether it counts for correct answers only",
    "parts.answer_after_tools": "1 if the last message is correct and a tool's result was read before it",
    "parts.turns": "1 if the model took at most `at_most` turns",
    "parts.turns.at_most": "number of turns",
    "second": "a second scorer, such as [`judge`](../how-to/judge.md#2-rules-first), for what the first does not call correct",
    "second_options": "its options",
    "second_right_score": "as `right_score`, of the second scorer",
    "ask": "about what the rules cannot read; `wrong`: also about what they call wrong; `correct`: about what they call correct, which its no makes wrong; `never`: nothing",
    "confirm": "whether its yes must agree with the opposite question; or options for that question",
}


def score() -> str:
    """Describe what a scorer returns, what verl gets of it, and the scorers."""
    from rewardkit.registry import DATA_SOURCES, SCORERS
    from rewardkit.scorers.base import VERL_KWARGS, Score, Status, to_verl
    from rewardkit.scorers.gold import MISSING

    texts = attributes(Score)
    fields = [(code(n), getattr(t, "__name__", t), texts[n]) for n, t in hints(Score).items()]
    keys = to_verl(Score.wrong("", Status.NO_ANSWER))
    kinds = {name: "text" if isinstance(value, str) else "number" for name, value in keys.items()}
    names = {target: name for name, target in SCORERS.items()}
    return page(
        "Scores and scorers",
        "A scorer is a function `score(response, ground_truth, extra_info=None, **options)`. It\n"
        "returns a `Score` and never raises. `rewardkit.scorers.base` defines these types.",
        "## Score",
        table(("field", "type", "what"), fields),
        "## Status",
        table(("status", "meaning"), [(code(s.value), STATUSES[s.value]) for s in Status]),
        "## What verl gets",
        "`compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs)` returns\n"
        "the same keys for every sample. verl charts the numbers (`val-aux/DATA_SOURCE/KEY/mean@N`).",
        table(("key", "type", "what"), [(code(k), kinds[k], KEYS[k]) for k in keys]),
        "A failed call scores as wrong, sets `error`, and is logged once for each cause. These keyword\n"
        "arguments come from verl and are not options of a scorer:\n"
        f"{code(*sorted(VERL_KWARGS))}.",
        "## Scorers",
        table(("scorer", "wrong answer", "options"), [*map(scorer_row, SCORERS)]),
        "The column `wrong answer` has the default score of a wrong answer. Set options with\n"
        "`--set NAME=VALUE`, in a recipe under `reward.options`, or for verl in `reward_kwargs`. An\n"
        "invalid value is refused wherever a scorer is loaded; in verl it sets `error`. The options of\n"
        "your own scorers are validated in the same way if they have annotations:\n"
        '`Literal["a", "b"]`, `bool`, `int`, `float`, `str`, a union of these, or\n'
        "`Annotated[float, Range(0, 1)]` with `Range` of `rewardkit.scorers.options`.",
        "## A composed reward",
        "`rewardkit compose FILE.yaml` reads these keys ([example](../how-to/own-reward.md#parts)).",
        table(("key", "default", "meaning"), compose_rows()),
        "## Golds",
        "A gold is text or a number. A list, a NumPy array or a JSON text with one item counts as that\n"
        "item. These values cannot be golds; they set `error` in verl, and `check` and `prep` report\n"
        "them: a missing value (None, NaN, an empty text or list, and the words "
        f"{code(*sorted(filter(str.isalpha, MISSING)))} in this spelling),\n"
        "an object, and a list of several texts unless they are the letters of a choice. A response\n"
        "that repeats a missing value is never rewarded.",
        "## Which scorer judges which data_source",
        "`auto` uses `extra_info.scorer`, else this table. Your packages can add to the table with the\n"
        "entry points `rewardkit.data_sources` and `rewardkit.scorers`.",
        table(
            ("data_source", "scorer"),
            [(code(source), code(names[target])) for source, target in DATA_SOURCES.items()],
        ),
        *(part for name in SCORERS for part in scorer_parts(name)),
    )


def compose_rows() -> Iterator[tuple[str, str, str]]:
    """Yield key, default and meaning of every key of a composed reward."""
    from rewardkit.scorers.compose import RewardYaml
    from rewardkit.scorers.shaping import PARTS

    fields: dict[str, Any] = dict(RewardYaml.model_fields)
    for name, model in PARTS.items():
        settings = {key: field for key, field in model.model_fields.items() if key != "weight"}
        fields |= {f"parts.{name}": None}
        fields |= {f"parts.{name}.{key}": field for key, field in settings.items()}
    for key, field in fields.items():
        default = field and field.get_default(call_default_factory=True)
        is_required = field is not None and (field.is_required() or key == "parts")
        shown = "required" if is_required else "" if default is None else f"`{default}`"
        yield code(key), shown, COMPOSE[key]


def hints(named: type) -> dict[str, Any]:
    """Return the evaluated annotations of a class."""
    from typing import get_type_hints

    return get_type_hints(named)


def scorer_module(name: str) -> Any:
    """Import the module of a scorer."""
    from rewardkit.registry import SCORERS

    return import_module(SCORERS[name].partition(":")[0])


def scorer_row(name: str) -> tuple[str, str, str]:
    """Return a scorer's name, its score for a wrong answer, and its options."""
    from rewardkit.scorers.options import describe_option

    module = scorer_module(name)
    options = [
        f"`{p.name}={p.default!r}` ({describe_option(module.score, p.name)})"
        for p in signature(module.score).parameters.values()
        if p.kind is Parameter.KEYWORD_ONLY
    ]
    default = "those of the row's scorer" if name == "auto" else ""
    wrong = "as the row's scorer" if name == "auto" else code(module.SPEC.wrong_score)
    return f"[`{name}`](#{name})", wrong, "; ".join(options) or default


def scorer_parts(name: str) -> Iterator[str]:
    """Yield the heading and the module docstring of a scorer."""
    yield f"### {name}"
    yield cleandoc(scorer_module(name).__doc__ or "").replace(
        "docs/answers.md", "[../answers.md](../answers.md)"
    )


# ---------------------------------------------------------------- the answer policy


#: Columns of the policy's tables whose cells are code.
CODE_COLUMNS = {"answer", "gold", "question", "response", "type", "example"}


def policy() -> list[dict[str, Any]]:
    """Read the policy of answers: sections, each with its title and its parts, text or a table."""
    import yaml

    sections: list[dict[str, Any]] = yaml.safe_load(POLICY.read_text(encoding="utf-8"))
    return sections


def answers() -> str:
    """Show every row of the policy of answers."""
    parts = []
    count = 0
    for section in policy():
        parts.append(f"## {section['title']}")
        for part in section["parts"]:
            if isinstance(part, str):
                parts.append(part)
            else:
                count += len(part["rows"]) if "verdict" in part["head"] else 0
                parts.append(policy_table(**part))
    return page(
        "The answer policy",
        f"These are the {count} rows by which the scorer `math` decides what is equal. Each is a test of\n"
        "`rewardkit.answers.equal` and of the scorer, which reads `\\boxed{answer}`.\n"
        "[../answers.md](../answers.md) has the rules in short. `geometry3k` and `math_dapo` with\n"
        "`mode=robust` follow this policy, too; `mcq` follows the rows on choices.",
        *parts,
    )


def policy_table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Format a table of the policy."""
    return table(
        head,
        [
            [
                code(*value)
                if isinstance(value, list)
                else "none"
                if value is None
                else f"`{value}`"
                if name in CODE_COLUMNS
                else value
                for name, value in zip(head, row, strict=True)
            ]
            for row in rows
        ],
    )


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
    after = [
        (code(r.id), r.severity, r.title["en"], r.when["en"], r.source["en"]) for r in log_rules()
    ]
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
    """List where metrics are explained, and which rules read them."""
    from rewardkit.glossary.lookup import keys, metrics
    from rewardkit.trainlog.rules import rules as log_rules

    rules_by_metric: dict[str, list[str]] = {}
    for rule in log_rules():
        for name in rule.metrics:
            rules_by_metric.setdefault(name, []).append(rule.id)
    return page(
        "Metrics",
        f"The meaning, the healthy range and the keys of verl's metrics ({len(metrics())} entries),\n"
        f"and what {len(keys())} configuration keys do, are in [glossary.md](glossary.md) and,\n"
        "in Chinese, [glossary.zh-CN.md](glossary.zh-CN.md). `rewardkit glossary NAME`\n"
        "prints one entry.",
        "## What our scorers add",
        "verl averages the numbers that a reward returns. In validation each has a chart;\n"
        "[score.md](score.md#what-verl-gets) explains them.",
        table(
            ("chart", "what"),
            [
                ("`val-core/DATA_SOURCE/acc/mean@N`", "accuracy: look at this curve first"),
                ("`val-aux/DATA_SOURCE/score/mean@N`", "mean reward"),
                ("`val-aux/DATA_SOURCE/no_answer/mean@N`", "share of responses without an answer"),
                ("`val-aux/DATA_SOURCE/error/mean@N`", "not 0: the data or the scorer is broken"),
                (
                    "`val-aux/DATA_SOURCE/timeout/mean@N`",
                    "share of calls that reached the time limit",
                ),
            ],
        ),
        "A reward with several parts (`rewardkit compose`) adds a chart for each part.",
        "## Which rule looks at which metric",
        table(
            ("metric", "rules"),
            [(code(name), code(*ids)) for name, ids in sorted(rules_by_metric.items())],
        ),
        "The rules are in [rules.md](rules.md#on-a-log).",
    )


# ---------------------------------------------------------------- glossary


def glossary() -> str:
    """Show the output of `rewardkit glossary --all`."""
    from rewardkit.glossary.lookup import markdown

    return page(
        "Glossary: verl's metrics and configuration keys",
        "This page is the output of `rewardkit glossary --all`. `rewardkit glossary NAME` prints one\n"
        "entry. [中文](glossary.zh-CN.md)",
        markdown("en"),
    )


def glossary_zh() -> str:
    """Show the output of `rewardkit glossary --all --lang zh`."""
    from rewardkit.glossary.lookup import markdown

    return page(
        "术语表：verl 的指标与参数",
        "本页是 `rewardkit glossary --all --lang zh` 的输出；`rewardkit glossary 名称 --lang zh` 只显示一个条目。\n"
        "[English](glossary.md)",
        markdown("zh"),
    )


# ---------------------------------------------------------------- recipes


def recipes() -> str:
    """List the built-in recipes, and the fields of a recipe."""
    from rewardkit.launch.recipe import Recipe, built_in, load_tree, read_recipe

    built_ins = [read_recipe(load_tree(name), name) for name in built_in()]
    heads = ("recipe", "algorithm", "strategy", "hardware", "about")
    rows = [(f"[`{r.name}`](#{slug(r.name)})", r.algorithm, r.strategy, r.hardware, r.about)
            for r in built_ins]  # fmt: skip
    return page(
        "Recipes",
        "`rewardkit recipes cp NAME my.yaml` copies a recipe; [../train.md](../train.md) explains how\n"
        "to train with it.",
        table(heads, rows),
        *(part for recipe in built_ins for part in recipe_parts(recipe)),
        "## Fields",
        "All other settings are verl's own, under `verl:`.",
        table(("field", "value", "default", "what"), list(fields_of(Recipe, ""))),
    )


def recipe_parts(recipe: Any) -> Iterator[str]:
    """Yield the blocks of a recipe."""
    yield f"## {recipe.name}"
    yield recipe.about + "."
    where = f"{recipe.nodes} x {recipe.devices_per_node} {recipe.devices.upper()}"
    options = "".join(f" {name}={value}" for name, value in recipe.reward.options.items())
    facts = {
        "resources": f"{where}; made for {recipe.hardware}",
        "algorithm": f"{recipe.algorithm}, {recipe.strategy}",
        "model": code(recipe.model),
        "train": code(*recipe.data.train),
        "validation": code(*recipe.data.val) or "none",
        "prepared by": code(*recipe.data.prepare),
        "reward": code(f"{recipe.reward.scorer}{options}"),
        "target": code(recipe.cluster.target),
        "verl's keys": f"{len(recipe.verl)} under `verl:`",
        "sweep": code(*recipe.sweep),
        "expect": recipe.expect,
        "source": recipe.source,
    }
    yield table(("what", "value"), [(k, v) for k, v in facts.items() if v])


def fields_of(model: Any, prefix: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield the fields of a recipe and of its parts."""
    texts = attributes(model)
    for name, field in model.model_fields.items():
        inner = [one for one in (field.annotation, *get_args(field.annotation))
                 if hasattr(one, "model_fields")]  # fmt: skip
        if inner:
            yield from fields_of(inner[0], f"{prefix}{name}.")
        else:
            default = (
                "required"
                if field.is_required()
                else yaml_default(field.get_default(call_default_factory=True))
            )
            yield code(f"{prefix}{name}"), kind_of(field.annotation), default, texts.get(name, "")


def yaml_default(default: Any) -> str:
    """Format a default as in YAML."""
    if default in (None, "", [], {}):
        return ""
    return code(str(default).lower() if isinstance(default, bool) else default)


def kind_of(annotation: Any) -> str:
    """Describe a type in words."""
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
    """List the datasets from the front matter of their cards."""
    from rewardkit.preprocess.card import read_card
    from rewardkit.registry import DATASETS

    dataset_cards = [read_card(name) for name in DATASETS]
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
        for card in dataset_cards
    ]
    return page(
        "Datasets",
        "This page shows the front matter of each data card, which the code reads, too. The card\n"
        "itself (`rewardkit list NAME`) has the schema, the rule for the gold, the known defects with\n"
        "counts, and the citation. The numbers of rows are those of the published files;\n"
        "[../data.md](../data.md) says which of them `prep` writes.",
        table(heads, rows),
        *(part for card in dataset_cards for part in card_parts(card)),
    )


def card_parts(card: Any) -> Iterator[str]:
    """Yield the blocks of a dataset."""
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
            code(card.repository(name)),
            code(card.repository(name, "modelscope")),
        )
        for name, split in card.splits.items()
    ]
    yield table(("split", "rows", "data_source", "files", "Hugging Face", "ModelScope"), rows)


PAGES = (cli, row, score, answers, rules, metrics, glossary, glossary_zh, recipes, cards)


def pages() -> dict[Path, str]:
    """Return every page of the reference with its text."""
    names = {make: make.__name__.replace("_zh", ".zh-CN") for make in PAGES}
    return {FOLDER / f"{name}.md": make() for make, name in names.items()}


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path, text in pages().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
