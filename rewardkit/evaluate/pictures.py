"""The pictures of a row as parts of a message: data URLs, which vLLM, SGLang and vendors accept."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rewardkit.errors import DataError

#: The mark of a picture's place in a prompt, as verl's datasets split it.
MARK = "<image>"

#: The most bytes of a row's pictures together; base64 adds a third.
MAX_ROW_BYTES = 32 << 20

#: Media types by the first bytes of a file.
_MEDIA_TYPES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
)


def picture_contents(row: Mapping[str, Any]) -> tuple[bytes, ...]:
    """Return the contents of the picture files of a verl row, empty for one that is not in it.

    `images` has objects with `bytes`, or the bytes themselves.
    """
    images = row.get("images") or ()
    contents = [image.get("bytes") if isinstance(image, Mapping) else image for image in images]
    return tuple(content if isinstance(content, bytes) else b"" for content in contents)


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


def media_type(content: bytes) -> str:
    """Return the media type of a picture file by its first bytes; "" if it is unknown."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _MEDIA_TYPES if content.startswith(start)), "")


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
            url = f"data:{media_type(content)};base64,{base64.b64encode(content).decode()}"
            parts.append({"type": "image_url", "image_url": {"url": url}})
        if text:
            parts.append({"type": "text", "text": text})
    return parts
