"""Images as data: addresses. Their type is read from their bytes, never from a name."""

from base64 import b64encode

#: Most bytes of an image, and of all images of a page.
MAX_IMAGE_BYTES = 512 << 10
MAX_PAGE_IMAGE_BYTES = 4 << 20

#: First bytes of a file -> its type. SVG is left out: it is a document, with scripts and links.
_MEDIA_TYPES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"BM": "image/bmp",
}


def media_type(content: bytes) -> str:
    """Return the media type of an image file by its first bytes; "" if it is unknown."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _MEDIA_TYPES.items() if content.startswith(start)), "")


def data_address(content: bytes) -> str:
    """Return the data: address of an image file of a known type."""
    return f"data:{media_type(content)};base64,{b64encode(content).decode('ascii')}"


def page_address(content: bytes) -> str | None:
    """Return the address of an image for a page; None if it is too large, BMP or unknown."""
    if media_type(content) in ("", "image/bmp") or len(content) > MAX_IMAGE_BYTES:
        return None
    return data_address(content)
