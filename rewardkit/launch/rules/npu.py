"""Rules of Ascend NPU."""

from __future__ import annotations

from rewardkit.launch.findings import Severity
from rewardkit.launch.plan import Plan
from rewardkit.launch.rules.facts import Facts
from rewardkit.launch.rules.rule import ASCEND, MODELARTS, Case, Rule
from rewardkit.launch.rules.values import ACTOR, REF, ROLLOUT, flag, is_megatron, since, word

DEVICE = "trainer.device"
EAGER = f"{ROLLOUT}.enforce_eager"
QUEUE = "TASK_QUEUE_ENABLE"


def device(plan: Plan, _: Facts) -> Case | None:
    """The device is named; before 0.7 verl does not find out."""
    given, devices = word(plan, DEVICE), plan.recipe.devices
    if given is None or (given == "npu") == (devices == "npu"):
        return None
    wanted = {"gpu": "cuda"}.get(devices, devices)
    kind: Severity = "warning" if since(plan, 0, 7, 0) else "error"
    text = f"{given}, and the recipe's devices are {devices}."
    return Case(text, f"Set {DEVICE}={wanted}.", severity=kind)


def compiled(plan: Plan, _: Facts) -> Case | None:
    """torch.compile does not work there."""
    for part in (ACTOR, REF):
        switch = "use_torch_compile" if is_megatron(plan) else "fsdp_config.use_torch_compile"
        key = f"{part}.{switch}"
        if plan.recipe.devices == "npu" and flag(plan, key, f"{ACTOR}.{switch}"):
            return Case("True; NPU needs False.", f"Set {key}=False.", key)
    return None


def task_queue(plan: Plan, _: Facts) -> Case | None:
    """The task queue's mode follows from graphs."""
    eager = flag(plan, EAGER)
    if plan.recipe.devices != "npu" or eager is None:
        return None
    wanted, given = "2" if eager else "1", plan.env.get(QUEUE)
    if given == wanted:
        return None
    text = f"{given or 'not set'}, and {EAGER} is {eager}."
    return Case(text, f"Set env.{QUEUE}={wanted}.")


def home(plan: Plan, _: Facts) -> Case | None:
    """The image has its own /home."""
    if plan.recipe.devices == "npu" and f"{plan.recipe.cluster.workdir}/".startswith("/home/"):
        text = (
            f"{plan.recipe.cluster.workdir}: vLLM does not start below /home of the Ascend image."
        )
        return Case(text, "Set cluster.workdir to another folder.")
    return None


RULES = (
    Rule("L-53", "warning", DEVICE, "NPU: trainer.device npu", ASCEND, device),
    Rule(
        "L-54",
        "warning",
        f"{ACTOR}.use_torch_compile",
        "NPU: use_torch_compile False, of actor and ref",
        f"{ASCEND}; {MODELARTS}",
        compiled,
    ),
    Rule("L-55", "warning", f"env.{QUEUE}", "NPU: 1 with graphs, 2 if eager", ASCEND, task_queue),
    Rule("L-77", "info", "cluster.workdir", "not below /home of the Ascend image", ASCEND, home),
)
