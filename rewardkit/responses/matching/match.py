"""Find the row of a training file that a response answers.

A response identifies its row by place (data_source, split and index), by its prompt, or by the
source's id. Everything else that both have (prompt, question, id, gold) must agree: after the
file was prepared again, a place may belong to another row.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import NamedTuple

from rewardkit.errors import DataError
from rewardkit.responses.matching.evidence import (
    gold_agrees,
    gold_keys,
    prompt_agrees,
    question_agrees,
    squeeze,
)
from rewardkit.responses.matching.train_index import (
    QUOTED_CHARACTERS,
    ContainedPrompts,
    Match,
    Mismatch,
    TrainIndex,
    TrainPrompt,
    digest,
    find_contained,
    input_of,
    place_of,
    source_id_of,
    squeeze_without_media,
    text_of,
)
from rewardkit.responses.samples import Sample

#: The ways to match, in the order they are tried.
PLACE, PROMPT, SOURCE_ID = "data_source, split and index", "prompt", "source_id"

#: A match by place that no other value confirms.
PLACE_ALONE = f"{PLACE} alone"


class _RowEvidence(NamedTuple):
    """The values in a response that identify its row; texts are squeezed."""

    place: tuple[str, ...]
    source_id: tuple[str, ...]
    input: str
    question: str
    question_head: str
    gold: str


def match_row(index: TrainIndex, sample: Sample) -> Match | None:
    """Match a response to a row; None if it matches none.

    Raises:
        DataError: it contradicts the row that it matches, or matches several rows.
    """
    match = try_match_row(index, sample)
    if isinstance(match, Mismatch):
        raise DataError(f"{sample.where} {match.reason}")
    return match


def try_match_row(index: TrainIndex, sample: Sample) -> Match | Mismatch | None:
    """Match a response to a row as `match_row` does, but return an error as a `Mismatch`."""
    evidence = _row_evidence(sample)
    key = digest(repr(evidence))
    if key not in index.outcomes:
        index.outcomes[key] = _find_match(index, evidence)
    return index.outcomes[key]


def _find_match(index: TrainIndex, evidence: _RowEvidence) -> Match | Mismatch | None:
    hits = find_contained(index, evidence.input)
    ways: dict[str, Mapping[int, None]] = {
        PLACE: index.places.get(evidence.place, {}),
        PROMPT: hits.places,
        SOURCE_ID: index.sources.get(evidence.source_id, {}),
    }
    way = next((way for way, places in ways.items() if places), None)
    if way is None:
        return None
    places: AbstractSet[int] = ways[way].keys()
    for others in ways.values():
        places = others.keys() & places or places
    if len(places) > 1:
        places = _with_gold(index, evidence.gold) & places or places
    if len(places) > 1:
        rows = " and ".join(f"row {index.prompts[i].row}" for i in sorted(islice(places, 3)))
        reason = (
            f"matches {rows} of {index.name}, which differ, by {way}. Score responses that keep "
            "the extra_info of their row, with an index of its own for each."
        )
        return Mismatch(reason, contradicts=False)
    (place,) = places
    return _confirm(index, evidence, hits, Match(way, place))


def _with_gold(index: TrainIndex, gold: str) -> AbstractSet[int]:
    """Return the prompts with that gold."""
    places = [index.golds[key] for key in gold_keys(gold) if key in index.golds]
    # As a rule one spelling has prompts: its keys are not copied.
    return places[0].keys() if len(places) == 1 else {place for one in places for place in one}


def _confirm(
    index: TrainIndex, evidence: _RowEvidence, hits: ContainedPrompts, match: Match
) -> Match | Mismatch:
    """Return the match, unless the response contradicts the row."""
    prompt = index.prompts[match.place]
    others = (prompt.question, prompt.message)
    agrees = {
        "prompt": match.place in hits.places
        or prompt_agrees(evidence.input, prompt.main, others, hits.mains),
        "question": question_agrees(evidence.question, prompt.question, prompt.main),
        "gold": gold_agrees(evidence.gold, prompt.gold),
    }
    same_text = True in (agrees["prompt"], agrees["question"])
    agrees["source_id"] = _source_id_agrees(index, evidence, match.place, same_text=same_text)
    if False in agrees.values():
        differences = "; ".join(
            _difference(index, evidence, prompt, hits, name)
            for name, same in agrees.items()
            if same is False
        )
        other_way = (
            ", or remove index from their extra_info to match them by prompt"
            if match.way == PLACE and hits.places
            else ""
        )
        reason = (
            f"matches row {prompt.row} of {index.name} by {match.way}, but contradicts it: {differences}. "
            f"Give the parquet that the responses were made from{other_way}."
        )
        return Mismatch(reason, contradicts=True)
    is_unconfirmed = match.way == PLACE and True not in agrees.values()
    return match._replace(way=PLACE_ALONE) if is_unconfirmed else match


def _source_id_agrees(
    index: TrainIndex, evidence: _RowEvidence, place: int, *, same_text: bool
) -> bool | None:
    """Whether the ids agree.

    Copies of a dataset have different ids for the same problem: where the text is the same, only
    the id of another row is a contradiction.
    """
    if not evidence.source_id:
        return None
    places = index.sources.get(evidence.source_id, {})
    if place in places:
        return True
    return False if places or (index.prompts[place].source_id and not same_text) else None


def _difference(
    index: TrainIndex,
    evidence: _RowEvidence,
    prompt: TrainPrompt,
    hits: ContainedPrompts,
    name: str,
) -> str:
    if name == "prompt":
        other = next(iter(hits.places), None)
        if other is not None:
            return f"its prompt is that of row {index.prompts[other].row}"
        return f"its prompt does not contain {_quoted(prompt.head)}"
    value, row_value = {
        "question": (evidence.question_head, prompt.head),
        "gold": (evidence.gold, prompt.gold),
        "source_id": (evidence.source_id[-1:], prompt.source_id),
    }[name]
    return f"its {name} is {_quoted(''.join(value))}, the row's {_quoted(row_value)}"


def _quoted(text: str) -> str:
    text = " ".join(text.split())
    return repr(text if len(text) <= QUOTED_CHARACTERS else text[: QUOTED_CHARACTERS - 3] + "...")


def _row_evidence(sample: Sample) -> _RowEvidence:
    info, fields = sample.extra_info, sample.fields
    row = {**fields, "extra_info": info}
    source = text_of(info.get("data_source"))
    questions = (info.get("question"), fields.get("question"), fields.get("problem"))
    question = next(filter(None, map(text_of, questions)), "")
    return _RowEvidence(
        place_of(row, source),
        source_id_of(row, source),
        squeeze(input_of(fields)),
        squeeze_without_media(question),
        question[: QUOTED_CHARACTERS + 1],
        sample.ground_truth,
    )
