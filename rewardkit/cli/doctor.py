"""`rewardkit doctor`."""

import os
from typing import Annotated

from rewardkit.cli.shared import options as opt
from rewardkit.cli.shared.console import print_json, print_table
from rewardkit.cli.shared.options import examples, option
from rewardkit.devices import describe_devices
from rewardkit.errors import UsageError
from rewardkit.launch.verl.releases import describe_reward_keys, installed_verl, release_notice
from rewardkit.redact import Redactor
from rewardkit.table import Table
from rewardkit.versions import package_versions

EXAMPLES = examples("rewardkit doctor", "rewardkit doctor --offline --json")

#: Timeout of a request to a hub, in seconds.
HUB_TIMEOUT_SECONDS = 5.0


def command(
    offline: Annotated[bool, option("Do not try to reach the hubs.", "--offline")] = False,
    as_json: opt.JsonFlag = False,
) -> None:
    """Report versions, verl's config keys, the sandbox for programs, hubs and devices."""
    facts = examine(offline=offline)
    if as_json:
        print_json(facts)
        return
    for section, values in facts.items():
        print_table(Table((section, ""), list(values.items()), wrap={""}))


def examine(*, offline: bool = False) -> dict[str, dict[str, str]]:
    """Return sections of facts: `versions`, `verl`, `sandbox`, `hubs` (unless offline) and `devices`."""
    facts = {"versions": package_versions(), "verl": _verl(), "sandbox": _sandbox()}
    if not offline:
        facts["hubs"] = _hubs()
    facts["devices"] = describe_devices()
    return facts


def _verl() -> dict[str, str]:
    verl = installed_verl()
    if verl is None:
        return {
            "custom reward": f"verl is not installed; 0.9 and later read {describe_reward_keys('0.9.1')}",
            "up to 0.7.0": describe_reward_keys("0.7.0"),
        }
    facts = {
        "custom reward": f"verl {verl} reads {describe_reward_keys(verl)}",
        "set it with": "rewardkit path NAME --verl",
    }
    try:
        notice = release_notice(verl)
    except UsageError as error:
        return facts | {"plans": str(error)}
    return facts | {"plans": f"verl {verl} {notice}"} if notice else facts


def _sandbox() -> dict[str, str]:
    """Return how the scorer `code` can confine programs on this machine."""
    from rewardkit.programs.local import SandboxError, local_sandbox

    try:
        sandbox = local_sandbox()
    except SandboxError as error:
        return {"code": str(error)}
    missing = [name for name in ("seccomp", "landlock", "bubblewrap") if name not in sandbox.level]
    facts = {"code": sandbox.failure or f"programs run with {sandbox.level}"}
    return facts | ({"missing": ", ".join(missing)} if missing else {})


def _hubs() -> dict[str, str]:
    endpoint = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    urls = (endpoint, "https://www.modelscope.cn")
    return {Redactor().text(url): _reachability(url) for url in urls}


def _reachability(url: str) -> str:
    import httpx

    try:
        reply = httpx.head(url, timeout=HUB_TIMEOUT_SECONDS, follow_redirects=True)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        return f"not reachable ({error})"
    return f"reachable ({reply.status_code})"
