"""Load the tools of a plan with verl 0.5's own loader; its rollout on a CPU does not use them.

REWARDKIT_REHEARSAL_TOOLS is JSON: `config`, verl's file of tools, and `out`, the file for the result.
"""

import json
import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rewardkit.errors import call_catching

VARIABLE = "REWARDKIT_REHEARSAL_TOOLS"


def load_tools() -> None:
    """Write the names of the tools that load, and why the others do not, if a plan has tools.

    Tools are not created: many of them start services in a cluster.
    """
    if VARIABLE not in os.environ:
        return
    settings = json.loads(os.environ[VARIABLE])
    names: list[str] = []
    errors: list[str] = []
    tools = call_catching(_read, settings["config"])
    if isinstance(tools, Exception):
        errors.append(f"{settings['config']}: {_describe(tools)}")
    for tool in () if isinstance(tools, Exception) else tools:
        name = call_catching(_name, tool)
        if isinstance(name, Exception):
            errors.append(f"{tool.get('class_name')}: {_describe(name)}")
        else:
            names.append(name)
    text = json.dumps({"names": names, "errors": errors})
    Path(settings["out"]).write_text(text, encoding="utf-8")


def _read(config: str) -> list[Any]:
    return list(import_module("omegaconf").OmegaConf.load(config).tools)


def _name(tool: Any) -> str:
    """Return the name of a tool whose class and schema load; "" for one without a schema."""
    module = tool.class_name.rpartition(".")[0]
    if find_spec(module) is None:  # verl does not check, and fails on None
        raise ModuleNotFoundError(f"No module named {module!r}")
    import_module("verl.tools.utils.tool_registry").get_tool_class(tool.class_name)
    schema = tool.get("tool_schema")
    if schema is None:
        return ""
    fields = import_module("omegaconf").OmegaConf.to_container(schema, resolve=True)
    model = import_module("verl.tools.schemas").OpenAIFunctionToolSchema
    return str(model.model_validate(fields).function.name)


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
