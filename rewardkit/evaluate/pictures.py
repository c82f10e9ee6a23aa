"""The pictures of a row as parts of a message: data URLs, which vLLM, SGLang and vendors accept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rewardkit.errors import DataError
from rewardkit.pages.pictures import data_address, media_type

#: The mark of a picture's place in a prompt, as verl's datasets split it.
MARK = "<image>"

#: The most bytes of a row's pictures together; base64 adds a third.
MAX_ROW_BYTES = 32 << 20


def require_pictures(
    prompt: Sequence[Mapping[str, str]], pictures: Sequence[bytes], where: str
) -> None:
    """Check that the pictures of a row can be sent, each at its mark in the prompt.

    Raises:
        DataError: a picture is not in the row or has an unknown format, all together are too large,
            or the prompt does not have a mark for each. The message begins with `where`.
    """
    for number, content in enumerate(pictures):
        if not content:
            raise DataError(
                f"{where}: picture {number} is not in the file. Write its bytes into 'images'; eval "
                "opens no path that a file names."
            )
        if not media_type(content):
            raise DataError(
                f"{where}: picture {number} is not PNG, JPEG, GIF, WebP or BMP. Convert it."
            )
    if (size := sum(map(len, pictures))) > MAX_ROW_BYTES:
        raise DataError(
            f"{where}: its pictures have {size:,} bytes together, and a request may have "
            f"{MAX_ROW_BYTES:,}. Make them smaller."
        )
    n_marks = sum(message["content"].count(MARK) for message in prompt)
    if n_marks != len(pictures):
        raise DataError(
            f"{where}: its prompt has {MARK} {n_marks} times, and the column 'images' has "
            f"{len(pictures)} pictures. Each picture needs its mark in the prompt."
        )


def messages_with_pictures(
    prompt: Sequence[Mapping[str, str]], pictures: Sequence[bytes]
) -> list[dict[str, Any]]:
    """Return chat messages in which each mark is replaced by its picture, in order."""
    if not pictures:
        return [dict(message) for message in prompt]
    rest = iter(pictures)
    return [
        {**message, "content": _parts(message["content"].split(MARK), rest)}
        if MARK in message["content"]
        else dict(message)
        for message in prompt
    ]


def _parts(texts: Sequence[str], pictures: Iterator[bytes]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for place, text in enumerate(texts):
        if place:
            content = next(pictures)
            parts.append({"type": "image_url", "image_url": {"url": data_address(content)}})
        if text:
            parts.append({"type": "text", "text": text})
    return parts
