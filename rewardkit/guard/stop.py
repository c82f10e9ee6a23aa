"""Stop a training from inside its reward.

verl up to 0.8 ends when a reward raises. The default trainer of 0.9 swallows the exception and
trains on the rest (`trainer/ppo/v1/agent_loop_tq.py`), and the manager `rate_limited` scores 0. Ray
has no call that ends a job from inside. What works in all of them (tried with Ray 2.49 and 2.60): the
reward raises from now on, and the topmost actor above it, verl's TaskRunner, gets SIGTERM. Ray turns
that into SystemExit there, so that loggers finish; the driver ends with exit code 1 and the message
in its output. Other jobs of the cluster are not touched.
"""

import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from time import sleep
from typing import Any, NoReturn

from rewardkit.errors import call_catching

#: Seconds for the message to reach the driver, and for the exception to end the job by itself.
GRACE_SECONDS = 3.0

#: Seconds after SIGTERM before SIGKILL, for a TaskRunner whose main thread is in C code.
TERM_SECONDS = 20.0

#: Actors between a reward and the driver, at most.
MAX_OWNERS = 16


class TrainingStoppedError(RuntimeError):
    """The guard has stopped the training. Its one argument is text, so that Ray can pickle it."""


def stop_training(message: str) -> NoReturn:
    """End the training that calls this process's reward, without waiting; print the message once.

    Raises:
        TrainingStoppedError: always, also for later calls, so that no score is used any more.
    """
    with _lock:
        is_first = not _messages
        _messages.append(message)
    if is_first:
        sys.stderr.write(f"rewardkit guard: {message}\n")
        sys.stderr.flush()
        threading.Thread(target=_end_job, name="rewardkit-stop", daemon=True).start()
    raise TrainingStoppedError(_messages[0])


def raise_if_stopped() -> None:
    """Raise `TrainingStoppedError` with the message that was printed, if the training was stopped."""
    if _messages:
        raise TrainingStoppedError(_messages[0])


def _end_job() -> None:
    """End the job of this actor; nothing to do outside of Ray, where the exception arrives."""
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return
    sleep(GRACE_SECONDS)
    error = call_catching(_end_topmost_actor, ray)
    if isinstance(error, Exception):
        sys.stderr.write(
            f"rewardkit guard: the training cannot be ended from here ({type(error).__name__}: "
            f"{error}); end it yourself.\n"
        )
        sys.stderr.flush()


def _end_topmost_actor(ray: Any) -> None:
    actor = _topmost_actor(ray)
    if actor is None:
        return  # a Ray task or the driver itself, which the exception reaches
    _send_signal(ray, actor, signal.SIGTERM)
    sleep(TERM_SECONDS)  # this process ends with its owner
    _send_signal(ray, actor, signal.SIGKILL)


def _topmost_actor(ray: Any) -> Mapping[str, Any] | None:
    from ray._private.state import actors  # the public list needs the dashboard and has no owners

    context = ray.get_runtime_context()
    own_id, job = context.get_actor_id(), context.get_job_id()
    if own_id is None:
        return None
    table = {each["ActorID"]: each for each in actors().values() if each["JobID"] == job}

    def endpoint(address: Mapping[str, Any]) -> tuple[Any, ...]:
        return address["NodeID"], address["IPAddress"], address["Port"]

    alive = [each for each in table.values() if each["State"] == "ALIVE"]
    by_endpoint = {endpoint(each["Address"]): each for each in alive}
    actor: Mapping[str, Any] = table[own_id]
    for _ in range(MAX_OWNERS):
        owner = by_endpoint.get(endpoint(actor["OwnerAddress"]))
        if owner is None or owner is actor:
            break
        actor = owner
    return actor


def _send_signal(ray: Any, actor: Mapping[str, Any], number: int) -> None:
    pid, node = actor["Pid"], actor["Address"]["NodeID"]

    def send() -> None:  # nested, so that Ray sends its code to a node without rewardkit
        import os

        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        if command.startswith(b"ray::"):  # else the pid belongs to another process by now
            os.kill(pid, number)

    if node == ray.get_runtime_context().get_node_id():
        send()
        return
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    strategy = NodeAffinitySchedulingStrategy(node, soft=False)
    task = ray.remote(num_cpus=0, max_retries=0)(send).options(scheduling_strategy=strategy)
    ray.get(task.remote(), timeout=60)


_lock = threading.Lock()
_messages: list[str] = []
