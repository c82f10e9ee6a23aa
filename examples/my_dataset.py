"""A dataset of your own: `rewardkit prep examples/my_dataset.py --source examples/my_rows.csv ...`.

A raw row is a dictionary with the columns in the card. In a CSV file all values are text.
"""

from collections.abc import Mapping

from rewardkit.preprocess.base import Dataset, Dropped, Problem
from rewardkit.preprocess.card import Card, Split


def to_problem(raw: Mapping[str, str]) -> Problem | Dropped:
    """Return the problem in a raw row, or the reason for dropping the row."""
    if raw["reviewed"] != "yes":
        return Dropped("not reviewed", f"id {raw['id']}")
    question = f"{raw['question']} Give the answer in {raw['unit']}, as a number."
    return Problem(question, raw["result"], source_id=raw["id"])


CARD = Card(
    name="my-dataset",
    title="My physics problems",
    data_source="me/physics",  # selects the scorer in verl
    ability="physics",
    template="boxed",
    scorer="math",
    licence="CC0-1.0",
    columns=(("id", "question", "unit", "result", "reviewed"),),  # one tuple for each layout
    splits={"train": Split(rows=6, files=("my_rows.csv",))},
)
DATASET = Dataset("my-dataset", to_problem, card=CARD)
