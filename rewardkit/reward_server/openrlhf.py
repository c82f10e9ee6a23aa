"""`POST /get_reward` as OpenRLHF's `--reward.remote_url` asks: `{query, prompts, labels}`.

Three lists of one length, of one item each since 0.10 (openrlhf 0.11.2, `utils/agent.py`; 0.8.11,
`utils/remote_rm_utils.py`); the answer is that of its own `cli/serve_rm.py`. OpenRLHF asks five
times, a second apart, and then goes on without a reward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unicodedata import normalize

from rewardkit.adapters.common import text_of
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
        response = response_of(as_text(query, f"query[{i}]"), as_text(prompt, f"prompts[{i}]"))
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

#: The prompt's last characters: by them its end is found where it was cut, or decoded otherwise.
TAIL = 64

#: Places where the prompt's end is looked for, if it was decoded otherwise: composed, it is shorter.
LOOKED_AT = 2_000

#: The response's last characters, where special tokens are taken off: a body full of them took 5 s.
ENDING = 1024


def response_of(query: str, prompt: str) -> str | None:
    """The response in a query: without the prompt before it, and without special tokens after it.

    OpenRLHF decodes prompt and response with special tokens kept, cuts a long prompt at its start,
    and its tokenizer may compose characters (NFC) or clean up spaces. None where the prompt's end
    is not found: examples in the prompt must not be judged as the response.
    """
    end = _prompt_end(query, prompt)
    if end is None:
        return None
    rest = query[end:]
    return rest[:-ENDING] + text_of(rest[-ENDING:])


def _prompt_end(query: str, prompt: str) -> int | None:
    """Where the prompt ends in a query."""
    if query.startswith(prompt):
        return len(prompt)
    tail = prompt[-TAIL:]
    if (at := query.rfind(tail, 0, len(prompt) + TAIL)) >= 0:
        return at + len(tail)
    wanted, last = _bare(tail), min(len(query), len(prompt) + TAIL)
    for end in range(last, max(0, last - LOOKED_AT), -1):
        if wanted and _bare(query[max(0, end - 2 * TAIL) : end]).endswith(wanted):
            return end
    return None


def _bare(text: str) -> str:
    """A text as tokenizers that normalise it see it: composed, without spaces."""
    return "".join(normalize("NFC", text).split())
