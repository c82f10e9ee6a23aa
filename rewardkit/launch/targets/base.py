"""What the targets share: files and launches, shell text, ports, devices, the scorer's file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewardkit.devices import RAY_RESOURCES
from rewardkit.errors import UsageError
from rewardkit.launch.scorer_location import node_path
from rewardkit.launch.secret_values import MARK, shell_word, variables_of
from rewardkit.redact import Redactor, is_secret_name
from rewardkit.registry import is_path

if TYPE_CHECKING:
    from rewardkit.launch.plan import Plan
    from rewardkit.launch.recipe import Recipe

#: Ray gives these ports to its workers and refuses a component of its own on one of them.
WORKER_PORTS = range(10002, 20000)


@dataclass(frozen=True)
class File:
    """A generated file.

    Attributes:
        name: below the run's folder, as in `node.sh` or `working_dir/launch.sh`.
        text: all of it.
        executable: whether it is a program.
    """

    name: str
    text: str
    executable: bool = False


@dataclass(frozen=True)
class Launch:
    """A plan for its target.

    Attributes:
        files: to write below the run's folder.
        argv: what `train` executes; None where it only generates.
        env: variables for argv, on top of those there are.
        next_steps: what the person does now, a line each.
        cwd: where argv is started.
    """

    files: tuple[File, ...]
    argv: tuple[str, ...] | None
    env: Mapping[str, str]
    next_steps: tuple[str, ...]
    cwd: str = "."


def check_secrets(plan: Plan) -> None:
    """Refuse a plan with a secret in it, whoever made it; `secret_values.conceal` leaves none.

    Raises:
        UsageError: the first such variable or argument.
    """
    for name, value in plan.env.items():
        if is_secret_name(name) or Redactor().text(value) != value:
            raise UsageError(
                f"env.{name}: a secret would be written into files; leave it out of the recipe and "
                "export it where verl runs."
            )
    for argument in plan.arguments:
        key, _, value = argument.partition("=")
        if not MARK.search(value) and Redactor().text(argument) != argument:
            raise UsageError(
                f"{key}: a secret would be written into files; give it to rewardkit train, which "
                "takes it from the environment instead."
            )


def check_port(port: int, key: str, taken: Mapping[int, str] | None = None) -> None:
    """Refuse a port that Ray, or something else on the node, has already.

    Args:
        port: of the recipe.
        key: its name there.
        taken: ports with who has them.

    Raises:
        UsageError: it cannot be used. Source: Ray 2.60 refuses components on worker ports.
    """
    if port in WORKER_PORTS:
        raise UsageError(
            f"{key}: {port} lies among Ray's worker ports (10002-19999) and Ray refuses it; "
            "take one below 10000 or 20000-32000."
        )
    if holder := (taken or {}).get(port):
        raise UsageError(f"{key}: {port} is taken by {holder}; take another.")


def check_ports(recipe: Recipe, taken: Mapping[int, str] | None = None) -> None:
    """Refuse ports of Ray's head that cannot be used; see `check_port`."""
    cluster = recipe.cluster
    known = {10001: "Ray's client server", 52365: "Ray's dashboard agent", **(taken or {})}
    check_port(cluster.port, "cluster.port", known)
    known[cluster.port] = "cluster.port"
    check_port(cluster.dashboard_port, "cluster.dashboard_port", known)


def check_absolute(recipe: Recipe, why: str) -> None:
    """Refuse parquet files whose place depends on where verl is started.

    Raises:
        UsageError: the first relative path, with `why`.
    """
    for name in (*recipe.data.train, *recipe.data.val):
        if not name.startswith(("/", "~")) and "://" not in name:
            raise UsageError(
                f"data: {one_line(name)} is relative, and {why}; give the path that every node sees."
            )


def one_line(text: str) -> str:
    """A text for a comment: no character of it ends the line, or is one that YAML refuses."""
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))


def slug(text: str, *, longest: int = 40) -> str:
    """A name that may stand in file names, Slurm and Kubernetes: `Qwen3 8B` -> `qwen3-8b`."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower())[:longest].strip("-")
    return plain if plain[:1].isalpha() else f"run-{plain}".strip("-")


def ray_start_arguments(recipe: Recipe) -> list[str]:
    """What tells `ray start` of a node's devices."""
    count = recipe.devices_per_node
    if recipe.devices == "npu":
        return [f'--resources={{"NPU": {count}}}']
    return [f"--num-gpus={count}"] if recipe.devices == "gpu" else []


def needed_files(plan: Plan) -> list[str]:
    """What verl reads on every node: the parquet files, the model's folder, the scorer's file."""
    recipe = plan.recipe
    scorer = str(plan.get("reward.custom_reward_function.path", ""))
    paths = [path for path in (recipe.model, scorer) if path.startswith("/")]
    data = [*recipe.data.train, *recipe.data.val]
    return [*(name for name in data if "://" not in name and not name.startswith("~")), *paths]


def filled(template: str, plan: Plan, **values: Any) -> str:
    """A template beside this file, with what every one of them needs of the plan.

    Whatever a template prints is one word for the shell, quoted by `shell_word`. Two filters make
    exceptions: `line` is one line of a text for a comment, and `code` is shell of our own.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def word(value: Any) -> Markup:
        """A value for the shell, unless a macro or a filter has rendered it already."""
        if isinstance(value, Markup):
            return value
        return Markup(shell_word("" if value is None else str(value)))  # noqa: S704 - no HTML

    environment = Environment(
        loader=PackageLoader("rewardkit.launch.targets", ""),
        autoescape=True,  # so that macros return Markup, which `word` leaves alone
        finalize=word,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "line": lambda text: Markup(one_line(text or "")),  # noqa: S704 - no HTML
        "code": lambda text: Markup(text or ""),  # noqa: S704 - no HTML
    }
    recipe = plan.recipe
    return environment.get_template(template).render(
        plan=plan,
        recipe=recipe,
        cluster=recipe.cluster,
        name=slug(recipe.name),
        device=RAY_RESOURCES[recipe.devices],
        ray_arguments=ray_start_arguments(recipe),
        needed=needed_files(plan),
        secrets=variables_of(plan.arguments),
        **values,
    )


def reward_text(plan: Plan) -> str | None:
    """What stands in the scorer's file on the nodes; None if the plan has none of its own there.

    Raises:
        UsageError: the recipe's file cannot be read.
    """
    recipe = plan.recipe
    where = node_path(recipe, plan.verl)
    if where is None or plan.get("reward.custom_reward_function.path") != where:
        return None
    if is_path(recipe.reward.scorer):
        file = Path(recipe.reward.scorer.partition(":")[0]).expanduser()
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"reward.scorer: {file} cannot be read ({error}).") from error
    return _imported(recipe.reward.scorer)


def _imported(scorer: str) -> str:
    """A file that hands on a scorer, for releases that load a reward from a file only."""
    from rewardkit.scorers.load import location

    module = location(scorer, pkg=True).removeprefix("pkg://")
    return f'"""rewardkit\'s scorer {scorer}."""\n\nfrom {module} import compute_score as compute_score\n'


def as_yaml(tree: Any) -> str:
    """YAML that any reader takes for what it is: texts quoted where YAML 1.1 or 1.2 sees a number.

    Texts of many lines are blocks; nothing is written as a reference to another place.
    """
    import yaml

    class Dumper(yaml.SafeDumper):
        """SafeDumper with these habits."""

        def ignore_aliases(self, _: Any) -> bool:
            return True

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        unsure = value[:1] in tuple("+-.0123456789") or value.lower() in {"y", "n"}
        style = "|" if "\n" in value else "'" if unsure else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    return str(yaml.dump(tree, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=1000))


def commented(lines: str) -> str:
    """Lines as a comment of YAML or a shell."""
    return "".join(f"# {line}".rstrip() + "\n" for line in lines.strip().splitlines())
