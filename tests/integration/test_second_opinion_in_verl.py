"""A composed reward of rules and a judge in a real verl, with a server that fails on some samples."""

import pytest

from rewardkit.scorers.compose import write_reward_file
from tests.integration.test_guard_in_verl import write_parquet
from tests.integration.test_verl import rows_of
from tests.judging.faulty_server import response_in, serving

YES, NO = {"reason": "x", "verdict": "yes"}, {"reason": "x", "verdict": "no"}

#: By the index of a row: what its response says, and what becomes of it.
KINDS = ("right", "in words", "wrong", "429", "500", "prose", "cut body", "never", "nothing")
CORRECT = {"right", "in words", "429", "cut body"}
FAILED = {"500", "prose", "never"}


def kind_of(row):
    return KINDS[row["extra_info"]["index"] % len(KINDS)]


def respond(row):
    kind, index = kind_of(row), row["extra_info"]["index"]
    if kind == "nothing":
        return ""
    gold = row["reward_model"]["ground_truth"]
    return rf"\boxed{{{gold}}}" if kind == "right" else rf"\boxed{{\text{{about {kind} {index}}}}}"


@pytest.mark.parametrize("manager", ["naive", pytest.param("dapo", marks=pytest.mark.nightly)])
def test_every_sample_is_scored_whatever_the_server_does(score_batch, tmp_path, manager):
    """Rules decide what they can, the judge decides the rest, and its failures are errors."""
    parquet = write_parquet(tmp_path / "rows.parquet", len(KINDS))
    kinds = [kind_of(row) for row in rows_of(parquet)]
    seen = set()

    def fault(_number, body):
        text = response_in(body)
        kind = next((kind for kind in KINDS if kind in text), "")
        is_first = text not in seen
        seen.add(text)
        passes = kind in ("429", "cut body")
        return kind if kind in FAILED or (passes and is_first) else None

    with serving(lambda body: NO if "wrong" in response_in(body) else YES) as server:
        server.faults = fault
        (tmp_path / "r.yaml").write_text(
            f"scorer: math\nsecond: judge\nask: wrong\nparts: {{correct: 1.0, base: 0.5}}\n"
            f"second_options: {{base_url: '{server.url}', timeout_seconds: 6, retries: 2,"
            " request_seconds: 3}\n"
        )
        out = write_reward_file(tmp_path / "r.yaml", tmp_path / "reward.py")
        rewards, extras = score_batch(manager, str(out), [parquet], respond)
    assert set(kinds) == set(KINDS)
    assert rewards == [1.5 if kind in CORRECT else 0.0 for kind in kinds]
    assert [e["error"] + e["timeout"] for e in extras] == [float(k in FAILED) for k in kinds]
    assert [e["second_asked"] for e in extras] == [
        float(kind not in ("right", "nothing")) for kind in kinds
    ]
    assert [e["second_changed"] for e in extras] == [
        float(kind in CORRECT and kind != "right") for kind in kinds
    ]
    assert [e["rule_decided"] for e in extras] == [1.0 - e["second_asked"] for e in extras]
    assert len({frozenset(e) for e in extras}) == 1
