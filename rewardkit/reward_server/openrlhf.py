"""`POST /get_reward`, the request of OpenRLHF's `--reward.remote_url`: `{query, prompts, labels}`.

Three lists of one length, which is 1 since 0.10 (openrlhf 0.11.2, `utils/agent.py`; 0.8.11,
`utils/remote_rm_utils.py`). The answer is that of its own `cli/serve_rm.py`. OpenRLHF tries five
times, a second apart, and then continues without a reward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewardkit.adapters.response_text import response_after_prompt
from rewardkit.reward_server.payload import (
    ItemResult,
    RequestItem,
    ScoreRequest,
    read_item,
    read_json,
    refuse,
    require,
    require_list,
)
from rewardkit.scorers.base import to_verl

#: The fields of a label that is an object; others, such as verl's `style`, are ignored.
LABEL_FIELDS = ("ground_truth", "data_source", "extra_info")


def read_openrlhf(body: bytes, max_items: int) -> ScoreRequest:
    """Return the items of `POST /get_reward`.

    A query is the prompt and the response in one text; the prompt before the response and the
    special tokens after it are removed. A label is the gold, verl's `reward_model`, or an object
    `{ground_truth, data_source, extra_info}` for a server that chooses the scorer by the data
    source (`auto`), which OpenRLHF does not send.

    Raises:
        RequestError: the body is invalid; the message names the place.
    """
    value = require(dict, read_json(body), "the body")
    for name in ("query", "prompts", "labels"):
        if name not in value:
            hint = " Set --data.label_key in OpenRLHF." if name == "labels" else ""
            refuse(f"{name}: is missing.{hint}")
    queries, prompts, labels = (
        require_list(value[name], name, max_items) for name in ("query", "prompts", "labels")
    )
    if not len(queries) == len(prompts) == len(labels):
        sizes = f"{len(queries)}, {len(prompts)} and {len(labels)}"
        refuse(f"query, prompts and labels have {sizes} items; they need the same number.")
    items = [
        _item(i, *sample) for i, sample in enumerate(zip(queries, prompts, labels, strict=True))
    ]
    return ScoreRequest(items, is_single=len(items) == 1)


def _item(i: int, query: Any, prompt: Any, label: Any) -> RequestItem:
    query, prompt = require(str, query, f"query[{i}]"), require(str, prompt, f"prompts[{i}]")
    response = response_after_prompt(query, prompt)
    if response is None:
        refuse(f"query[{i}]: does not begin with prompts[{i}], so the response is unknown.")
    gold = "" if label is None else label
    fields = gold if isinstance(gold, dict) else {"ground_truth": gold}
    fields = {name: fields[name] for name in LABEL_FIELDS if name in fields}
    return read_item({**fields, "response": response}, f"labels[{i}].")


def openrlhf_reply(results: Sequence[ItemResult], *, is_single: bool) -> dict[str, Any]:
    """Return the answer to `POST /get_reward`: `rewards`, and `scores` (1.0 or 0.0) for its filter.

    OpenRLHF draws charts of `extra_logs`. The answer has them only for a single response, which
    OpenRLHF asks about since 0.10; 0.8 asks about a batch and fails on lists there.
    """
    reply: dict[str, Any] = {
        "rewards": [result.score.score for result in results],
        "scores": [to_verl(result.score)["acc"] for result in results],
    }
    if is_single:
        logs = to_verl(results[0].score)
        logs["error"] = max(float(logs["error"]), float(bool(results[0].error)))
        reply["extra_logs"] = {
            name: [logs[name]] for name in ("acc", "no_answer", "timeout", "error")
        }
    return reply
