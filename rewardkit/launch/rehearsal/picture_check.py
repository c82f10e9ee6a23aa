"""The check whether the pictures of the rows reached the model."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from rewardkit.launch.rehearsal.pictures import PictureSample


def check_pictures(pictures: PictureSample, file: Path) -> tuple[bool, str]:
    """Return whether the model got pictures, and whether they fit the plan, with the numbers.

    Args:
        pictures: the pictures of the sample.
        file: the record of `picture_counter.py`: a line for each forward pass.
    """
    seen = Counter[str]()
    for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
        record = json.loads(line)
        seen[record["part"]] += len(record["tokens"])
    if not seen["actor"]:
        return False, "no picture reached the model: verl trained on the text alone"
    most = max(pictures.planned)
    if pictures.max_prompt and most >= pictures.max_prompt:
        return False, (
            f"the pictures of a row have {most:,} tokens, and data.max_prompt_length is "
            f"{pictures.max_prompt:,}: raise it, or scale the pictures down"
        )
    of = f" of data.max_prompt_length {pictures.max_prompt:,}" if pictures.max_prompt else ""
    parts = ", ".join(f"the {part} got {count:,}" for part, count in sorted(seen.items()))
    rows = sum(bool(row) for row in pictures.rows)
    have = f"{rows:,} of {len(pictures.rows):,} rows have pictures"
    return True, f"{have}, with up to {most:,} tokens{of}; {parts}"
