"""Pictures inside a page, as data: addresses. Their type is read from their bytes, never from a name."""

from __future__ import annotations

from base64 import b64encode
from typing import Final

#: Most bytes of a picture, and of all pictures of a page.
MAX_PICTURE_BYTES: Final = 512 << 10
MAX_PAGE_PICTURE_BYTES: Final = 4 << 20

#: First bytes of a file -> its type. SVG is left out: it is a document, with scripts and links.
_SIGNATURES: Final = {
    b"\x89PNG\r\n\x1a\n": "png",
    b"\xff\xd8\xff": "jpeg",
    b"GIF87a": "gif",
    b"GIF89a": "gif",
}


def picture_type(data: bytes) -> str | None:
    """Return `png`, `jpeg`, `gif` or `webp`; None for anything else."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    return next((kind for start, kind in _SIGNATURES.items() if data.startswith(start)), None)


def picture_address(data: bytes) -> str | None:
    """Return a picture as a data: address; None if it is too large or of another type."""
    kind = picture_type(data)
    if kind is None or len(data) > MAX_PICTURE_BYTES:
        return None
    return f"data:image/{kind};base64,{b64encode(data).decode('ascii')}"
