"""Code that the targets share: files and launches, templates, ports, the scorer's file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import indent
from typing import Any

from rewardkit.devices import RAY_RESOURCES
from rewardkit.errors import SourceError, UsageError, unreadable_file
from rewardkit.launch.plan import Plan, expand_home
from rewardkit.launch.recipe import Recipe
from rewardkit.launch.scorer_location import node_path
from rewardkit.launch.secret_values import MARK, secret_variables, shell_word
from rewardkit.redact import Redactor, is_secret_name
from rewardkit.strict_yaml import dump

#: Ray gives these ports to its workers and refuses other components on them.
WORKER_PORTS = range(10002, 20000)


@dataclass(frozen=True)
class File:
    """A generated file; its name is its path below the run's folder, as in `working_dir/launch.sh`."""

    name: str
    text: str
    executable: bool = False


@dataclass(frozen=True, kw_only=True)
class Launch:
    """The files and the command of a plan for its target; without `argv`, `train` only writes files."""

    files: tuple[File, ...] = ()
    argv: tuple[str, ...] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    next_steps: tuple[str, ...] = ()
    cwd: str = "."


def require_no_secrets(plan: Plan) -> None:
    """Refuse a plan that contains a secret, although `conceal_secrets` has replaced all of them."""
    for name, value in plan.env.items():
        if is_secret_name(name) or Redactor().text(value) != value:
            raise UsageError(
                f"env.{name}: a secret would be written into files. Leave it out of the recipe, and "
                "export it where verl runs."
            )
    for argument in plan.arguments:
        key, _, value = argument.partition("=")
        if not MARK.search(value) and Redactor().text(argument) != argument:
            raise UsageError(
                f"{key}: a secret would be written into files. Pass it to rewardkit train, which "
                "puts a variable of the environment in its place."
            )


def require_free_ports(recipe: Recipe, users: Mapping[int, str] | None = None) -> None:
    """Refuse ports of Ray's head that Ray's workers (Ray 2.60) or another program on the node use."""
    users = {10001: "Ray's client server", 52365: "Ray's dashboard agent", **(users or {})}
    cluster = recipe.cluster
    for key, port in (("port", cluster.port), ("dashboard_port", cluster.dashboard_port)):
        if port in WORKER_PORTS:
            raise UsageError(
                f"cluster.{key}: {port} is among Ray's worker ports (10002-19999), which Ray refuses. "
                "Set a port below 10000, or one of 20000-32000."
            )
        if user := users.get(port):
            raise UsageError(f"cluster.{key}: {user} uses {port}. Set another port.")
        users[port] = f"cluster.{key}"


def require_absolute_data(recipe: Recipe, reason: str) -> None:
    """Refuse parquet files whose path depends on the folder in which verl starts."""
    for name in (*recipe.data.train, *recipe.data.val):
        if not name.startswith(("/", "~")) and "://" not in name:
            raise UsageError(
                f"data: {comment_text(name)} is relative, and {reason}. Write the path that all nodes share."
            )


def comment_text(text: str) -> str:
    """Return a text for a comment, without line ends and characters that YAML refuses."""
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))


def slug(text: str) -> str:
    """Return a name for files, Slurm and Kubernetes: `Qwen3 8B` -> `qwen3-8b`."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower())[:40].strip("-")
    return plain if plain[:1].isalpha() else f"run-{plain}".strip("-")


def ray_start_arguments(recipe: Recipe) -> list[str]:
    """Return the arguments of `ray start` that state a node's devices."""
    count = recipe.devices_per_node
    if recipe.devices == "npu":
        return [f'--resources={{"NPU": {count}}}']
    return [f"--num-gpus={count}"] if recipe.devices == "gpu" else []


def required_files(plan: Plan) -> list[str]:
    """Return the paths that verl reads on every node: parquet files, model and scorer's file."""
    recipe = plan.recipe
    scorer = str(plan.get("reward.custom_reward_function.path", ""))
    paths = [path for path in (recipe.model, scorer) if path.startswith(("/", "~/"))]
    data = [name for name in (*recipe.data.train, *recipe.data.val) if "://" not in name]
    return list(map(expand_home, [*data, *paths]))


def render_template(template: str, plan: Plan, **values: Any) -> str:
    """Render a template of this folder for a plan.

    Every value that a template prints becomes one word for the shell, quoted by `shell_word`, or a value
    of YAML where the template is YAML. Filters make exceptions: `line` prints a text in one line of a
    comment, `code` prints our own code, `yaml(N)` prints a tree as YAML, N blanks to the right.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def quote(value: Any) -> Markup:
        """Quote a value, unless a macro or a filter rendered it."""
        if isinstance(value, Markup):
            return value
        if template.endswith(".yaml.j2"):
            return Markup(dump(value, in_line=True))  # noqa: S704 - no HTML
        return Markup(shell_word("" if value is None else str(value)))  # noqa: S704 - no HTML

    def block(tree: Any, blanks: int = 0) -> Markup:
        text = indent(dump(tree), " " * blanks, lambda _: True)
        return Markup(text)  # noqa: S704 - no HTML

    environment = Environment(
        loader=PackageLoader("rewardkit.launch.targets", ""),
        autoescape=True,  # so that macros return Markup, which `quote` leaves alone
        finalize=quote,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "line": lambda text: Markup(comment_text(text or "")),  # noqa: S704 - no HTML
        "code": lambda text: Markup(text or ""),  # noqa: S704 - no HTML
        "yaml": block,
    }
    recipe = plan.recipe
    return environment.get_template(template).render(
        plan=plan,
        recipe=recipe,
        cluster=recipe.cluster,
        name=slug(recipe.name),
        device=RAY_RESOURCES[recipe.devices],
        ray_arguments=ray_start_arguments(recipe),
        needed=required_files(plan),
        secrets=secret_variables(plan.arguments),
        **values,
    )


def scorer_files(plan: Plan) -> dict[str, str]:
    """Return the content of the scorer's files on the nodes by name; none if the target copies none.

    There are two for a guarded reward: the guard looks for the reward beside itself.
    """
    reward, where = plan.recipe.reward, node_path(plan.recipe)
    if where is None or plan.get("reward.custom_reward_function.path") != where:
        return {}
    name, file = Path(where).name, Path(reward.scorer.partition(":")[0]).expanduser()
    files = {name: Path(reward.guard_file), file.name: file} if reward.guard_file else {name: file}
    try:
        return {name: path.read_text(encoding="utf-8") for name, path in files.items()}
    except OSError as error:
        raise SourceError(f"reward.scorer: {unreadable_file(file, error)}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"reward.scorer: {file}: not UTF-8 text; save it as UTF-8.") from error
