"""`POST /get_reward` as OpenRLHF's `--reward.remote_url` asks: `{query, prompts, labels}`.

Three lists of one length, of one item each since 0.10 (openrlhf 0.11.2, `utils/agent.py`; 0.8.11,
`utils/remote_rm_utils.py`); the answer is that of its own `cli/serve_rm.py`. OpenRLHF asks five
times, a second apart, and then goes on without a reward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewardkit.adapters.response_text import response_after_prompt
from rewardkit.reward_server.payload import Asked, Verdict, item_of
from rewardkit.reward_server.strict_json import as_list, as_object, as_text, read_json, refuse
from rewardkit.scorers.base import to_verl


def read_openrlhf(body: bytes, limit: int) -> Asked:
    """The items of `POST /get_reward`, `limit` at most.

    A query is prompt and response; the prompt, and special tokens at the end, are taken off. A
    label is the gold, verl's `reward_model`, or an object `{ground_truth, data_source, extra_info}`
    for a server that judges each item by its data source (`auto`), which OpenRLHF does not send.

    Raises:
        RefusedError: the body is none; the message names the place.
    """
    value = as_object(read_json(body), "the body")
    for name in ("query", "prompts", "labels"):
        if name not in value:
            hint = " Set --data.label_key in OpenRLHF." if name == "labels" else ""
            refuse(f"{name}: is missing.{hint}")
    queries, prompts, labels = (
        as_list(value[name], name, limit) for name in ("query", "prompts", "labels")
    )
    if not len(queries) == len(prompts) == len(labels):
        sizes = f"{len(queries)}, {len(prompts)} and {len(labels)}"
        refuse(f"query, prompts and labels have {sizes} items: give as many of each.")
    items = []
    for i, (query, prompt, label) in enumerate(zip(queries, prompts, labels, strict=True)):
        response = response_after_prompt(
            as_text(query, f"query[{i}]"), as_text(prompt, f"prompts[{i}]")
        )
        if response is None:
            refuse(f"query[{i}]: does not begin with prompts[{i}]: what is the response?")
        gold = "" if label is None else label
        told = gold if isinstance(gold, dict) else {"ground_truth": gold}
        told = {name: told[name] for name in LABEL if name in told}  # verl's has a style, too
        items.append(item_of({**told, "response": response}, f"labels[{i}]."))
    return Asked(items, single=len(items) == 1)


def openrlhf_reply(verdicts: Sequence[Verdict], *, single: bool) -> dict[str, Any]:
    """The answer to `POST /get_reward`: `rewards`, and `scores` (1.0 or 0.0) for its filter.

    OpenRLHF makes charts of `extra_logs`. It gets them where it asked about one response, as it
    does since 0.10; 0.8, which asks about a batch, fails on lists there.
    """
    reply: dict[str, Any] = {
        "rewards": [verdict.score.score for verdict in verdicts],
        "scores": [float(verdict.score.correct) for verdict in verdicts],
    }
    if single:
        logs = to_verl(verdicts[0].score)
        logs["error"] = max(float(logs["error"]), float(bool(verdicts[0].error)))
        reply["extra_logs"] = {k: [logs[k]] for k in ("acc", "no_answer", "timeout", "error")}
    return reply


#: What is read of a label that is an object.
LABEL = ("ground_truth", "data_source", "extra_info")
