"""The questions of a verl parquet, read one at a time, with their images as data URLs."""

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from rewardkit.errors import DataError, RewardkitError, call_catching
from rewardkit.pages.images import data_address, media_type
from rewardkit.responses.matching import messages_of
from rewardkit.row import IMAGE_ROWS, image_contents, read_rows
from rewardkit.scorers.base import as_text
from rewardkit.scorers.gold import unwrap_gold
from rewardkit.scorers.load import scorer_for

#: The mark of an image in a prompt, as verl's datasets split it.
MARK = "<image>"

#: The most bytes of a row's images together; base64 adds a third.
MAX_ROW_BYTES = 32 << 20


class Question(NamedTuple):
    """A row of the parquet: the prompt for the model and the values for the scorer.

    `digest` is the SHA-256 of the prompt and its images, in hex; `images` are contents of image files, in
    the order of the marks in the prompt.
    """

    row: int
    prompt: list[dict[str, str]]
    digest: str
    data_source: str
    ground_truth: str
    extra_info: dict[str, Any]
    images: tuple[bytes, ...] = ()

    def fields(self) -> dict[str, Any]:
        """Return the fields that a result has of its row."""
        names = ("data_source", "prompt", "ground_truth", "extra_info")
        return {name: getattr(self, name) for name in names}

    def require_images(self, where: str) -> None:
        """Check that the images of the row can be sent, each at its mark in the prompt."""
        for number, content in enumerate(self.images):
            if not content:
                raise DataError(
                    f"{where}: image {number} is not in the file. Write its bytes into 'images'; "
                    "eval opens no path that a file names."
                )
            if not media_type(content):
                raise DataError(
                    f"{where}: image {number} is not PNG, JPEG, GIF, WebP or BMP. Convert it."
                )
        if (size := sum(map(len, self.images))) > MAX_ROW_BYTES:
            raise DataError(
                f"{where}: its images have {size:,} bytes together, and a request may have "
                f"{MAX_ROW_BYTES:,}. Make them smaller."
            )
        n_marks = sum(message["content"].count(MARK) for message in self.prompt)
        if n_marks != len(self.images):
            raise DataError(
                f"{where}: its prompt has {MARK} {n_marks} times, and the column 'images' has "
                f"{len(self.images)} images. Each image needs its mark in the prompt."
            )

    def messages(self) -> list[dict[str, Any]]:
        """Return chat messages in which each mark is replaced by its image, in order."""
        rest = iter(self.images)
        messages: list[dict[str, Any]] = []
        for message in self.prompt:
            pieces = message["content"].split(MARK) if self.images else [message["content"]]
            parts: list[dict[str, Any]] = []
            for number, text in enumerate(pieces):
                if number:
                    address = data_address(next(rest))
                    parts.append({"type": "image_url", "image_url": {"url": address}})
                if text:
                    parts.append({"type": "text", "text": text})
            messages.append({**message, "content": parts} if len(pieces) > 1 else dict(message))
        return messages


def read_questions(parquet: Path) -> Iterator[Question]:
    """Yield the rows of a verl parquet in order, in bounded memory."""
    for number, row in enumerate(read_rows(parquet, IMAGE_ROWS)):
        messages, where = messages_of(row.get("prompt") or []), f"{parquet} row {number}"
        prompt = [{"role": role, "content": text} for role, text in messages]
        gold = (row.get("reward_model") or {}).get("ground_truth")
        if not prompt:
            raise DataError(
                f"{where}: the prompt is missing. Name a verl parquet, such as "
                "'rewardkit prep' writes."
            )
        if gold is None:
            raise DataError(f"{where}: reward_model.ground_truth is missing; the scorer needs it.")
        if row.get("videos"):
            raise DataError(f"{where}: it has videos; eval sends text and images.")
        images = image_contents(row)
        text = json.dumps(prompt, sort_keys=True)
        hashes = [text, *(sha256(image).hexdigest() for image in images)]
        digest = sha256("".join(hashes).encode()).hexdigest()
        source, info = as_text(row.get("data_source")), dict(row.get("extra_info") or {})
        yield Question(number, prompt, digest, source, unwrap_gold(gold), info, images)


def require_questions(parquet: Path, *, api: str = "", scorers: bool) -> list[str]:
    """Check every row, before hours of generation and not after them, and return their digests.

    `api` is "" if nothing is sent; `completions` has no images. `scorers` says whether each row needs a
    scorer of its own.
    """
    checked: set[tuple[str, str]] = set()
    digests = []
    for question in read_questions(parquet):
        digests.append(question.digest)
        where = f"{parquet} row {question.row}"
        if api:
            question.require_images(where)
            if question.images and api != "chat":
                raise DataError(f"{where}: it has images, which need --api chat.")
        key = question.data_source, as_text(question.extra_info.get("scorer"))
        if scorers and key not in checked:
            checked.add(key)
            scorer = call_catching(scorer_for, question.data_source, question.extra_info)
            if isinstance(scorer, RewardkitError):
                raise DataError(f"{where}: {scorer} Or choose one with --scorer.")
    if not digests:
        raise DataError(f"{parquet}: the file has no rows.")
    return digests
