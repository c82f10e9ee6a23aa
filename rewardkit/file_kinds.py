"""What a file really is, by its first and last bytes: for messages about a file of the wrong kind.

Users bring JSON Lines where a parquet is expected, text that Excel wrote in GBK, archives, and pages
of a download that failed.
"""

from __future__ import annotations

import codecs
import re
import stat
from itertools import islice
from pathlib import Path
from shlex import quote

from rewardkit.errors import SourceError

#: Bytes at the start of a file that decide what it is.
PREFIX_BYTES = 1 << 16
#: Most names of a folder that are compared with that of a missing file.
MAX_NAMES = 1000

#: Suffixes of compressed text that is read as it is.
COMPRESSIONS = (".gz", ".zst")

#: The first bytes of archives of one file, their kind, suffix, and the command that unpacks them.
_ARCHIVES = (
    (b"\x1f\x8b", "a gzip archive", ".gz", "gunzip"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive", ".zst", "zstd -d"),
    (b"BZh", "a bzip2 archive", ".bz2", "bunzip2"),
    (b"\xfd7zXZ", "an xz archive", ".xz", "unxz"),
)

_WORKBOOK = "an Excel workbook. Save it as CSV UTF-8 first."
_POINTER = (
    "a pointer of Git LFS, not the file itself. Run git lfs pull in its repository, or download the "
    "file again."
)

#: What the first bytes of other files say, and what to do.
_SIGNATURES = (
    (
        re.compile(rb"\s*<(?:!doctype|html|head|\?xml)", re.IGNORECASE),
        "a web page: its download failed. Download the file again.",
    ),
    (re.compile(rb"\xd0\xcf\x11\xe0"), _WORKBOOK),
    (re.compile(rb"PK\x03\x04"), "a zip archive. Unpack it with `unzip {file}`."),
    (re.compile(b"version https://git-lfs"), _POINTER),
)
_JSON_LINE = re.compile(rb"\s*\{[^\n]*\}\s*(?:\n\s*\{|\Z)")

#: Characters of GB2312, which nearly all Chinese text consists of, as pairs of bytes.
_GB2312_PAIR = re.compile(rb"[\xa1-\xf7][\xa1-\xfe]")
_NOT_ASCII = re.compile(rb"[\x80-\xff]")

#: The byte order marks of encodings other than UTF-8; those of UTF-32 begin like those of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


def stem_and_suffix(path: Path) -> tuple[str, str]:
    """Return the name of a file without suffixes, and what it holds: `x` and `.jsonl` for x.jsonl.gz."""
    inner = path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path
    return inner.stem, inner.suffix.lower()


def row_suffix(path: Path) -> str:
    """Return the suffix of a file, without that of a compression: `.jsonl` for x.jsonl.gz."""
    return stem_and_suffix(path)[1]


def missing_file(path: Path, kind: str = "file") -> str:
    """Return the message that a file does not exist, with files of similar names beside it.

    Args:
        path: the path that was given.
        kind: what it may be: `file`, or `file or folder`.
    """
    from difflib import get_close_matches

    from rewardkit.registry import did_you_mean

    try:
        files = list(islice(path.parent.iterdir(), MAX_NAMES))
    except OSError:
        return f"{path}: no such {kind}, and no folder {path.parent}."
    # with their suffixes, which are often the same, all names would be similar
    stems = get_close_matches(path.stem.lower(), {file.stem.lower() for file in files}, cutoff=0.5)
    names = [file.name for file in files if file.stem.lower() in stems]
    return f"{path}: no such {kind}.{did_you_mean(path.name, names)}"


def require_regular_file(path: Path) -> None:
    """Require that a path, if it exists, is a file or a folder.

    Opening a pipe may wait for ever, and its content can be read only once.

    Raises:
        SourceError: it is a pipe or a device.
    """
    try:
        mode = path.stat().st_mode
    except OSError:  # what opens it says why
        return
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise SourceError(f"{path} is not a regular file. Save its content to one first.")


def read_prefix(path: Path) -> bytes:
    """Return the first `PREFIX_BYTES` of a file; b"" if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(PREFIX_BYTES)
    except OSError:
        return b""


def content_fault(path: Path, prefix: bytes) -> str:
    """Return what a file is that nothing can read as it stands, and what to do; "" if it may be fine."""
    for start, kind, suffix, unpack in _ARCHIVES:
        if prefix.startswith(start):
            archive = path if path.suffix.lower() == suffix else Path(f"{path}{suffix}")
            # the commands want the suffix
            rename = "" if archive == path else f"mv {quote(str(path))} {quote(str(archive))} && "
            return f"this is {kind}. Unpack it with `{rename}{unpack} {quote(str(archive))}`."
    for pattern, advice in _SIGNATURES:
        if pattern.match(prefix):
            is_workbook = prefix.startswith(b"PK") and path.suffix.lower() == ".xlsx"
            advice = _WORKBOOK if is_workbook else advice  # noqa: PLW2901
            return f"this is {advice.format(file=quote(str(path)))}"
    return ""


def parquet_fault(path: Path) -> str:
    """Return why a file cannot be a parquet and what to do, as a sentence; "" if nothing is known."""
    if path.is_dir():
        return "this is a folder. Name a parquet in it."
    prefix = read_prefix(path)
    if path.is_file() and path.stat().st_size == 0:
        return "the file is empty. Copy or download it again."
    if prefix.startswith(b"PAR1"):
        with path.open("rb") as file:
            file.seek(-4, 2)
            is_whole = file.read() == b"PAR1"
        return "" if is_whole else "the end of the parquet is missing. Copy or download it again."
    kind = table_kind(path, prefix)
    if (fault := content_fault(path, prefix)) or not kind:
        return fault
    out, source, rename = path.with_suffix(".parquet"), path, ""
    if path == out:  # prep reads a file as its name says
        source = path.with_suffix({"JSON Lines": ".jsonl"}.get(kind, ".json"))
        rename = f"mv {quote(str(path))} {quote(str(source))} && "
    command = f"rewardkit prep {quote(str(source))} --out {quote(str(out))}"
    return f"this is {kind}, not parquet. Run `{rename}{command}` first."


def table_kind(path: Path, prefix: bytes) -> str:
    """Return which format of rows other than parquet a file has, in words; "" if none is known."""
    text = prefix.removeprefix(codecs.BOM_UTF8)
    if row_suffix(path) in (".jsonl", ".ndjson") or _JSON_LINE.match(text):
        return "JSON Lines"
    if row_suffix(path) == ".json" or text.lstrip()[:1] in (b"[", b"{"):
        return "JSON"
    return {".csv": "CSV", ".tsv": "TSV", ".arrow": "Arrow"}.get(row_suffix(path), "")


def text_fault(path: Path) -> str:
    """Return why a file cannot be read as UTF-8 text and what to do; "" if its start is UTF-8."""
    prefix = read_prefix(path)
    return content_fault(path, prefix) or encoding_fault(path, prefix)


def encoding_fault(path: Path, prefix: bytes) -> str:
    """Return in which encoding other than UTF-8 a text is and what to do; "" for UTF-8."""
    encoding = text_encoding(prefix)
    if encoding is None:
        return (
            "the text is not UTF-8. Convert it: iconv -f ENCODING -t UTF-8, with the encoding of the "
            "program that wrote it."
        )
    if encoding == "UTF-8":
        return ""
    out = path.with_name(f"{path.stem}-utf8{path.suffix}")
    command = f"iconv -f {encoding} -t UTF-8 {quote(str(path))} > {quote(str(out))}"
    return f"the text is {encoding}, not UTF-8. Run `{command}` and use the new file."


def lines_fault(path: Path) -> str:
    """Return why a file has no line that is a JSON object and what to do; "" if nothing is known."""
    if fault := text_fault(path):
        return fault
    kind = table_kind(path, prefix := read_prefix(path))
    if prefix.removeprefix(codecs.BOM_UTF8).lstrip()[:1] == b"[":
        out = path.with_name(f"{path.stem}-lines.jsonl")
        command = f"jq -c '.[]' {quote(str(path))} > {quote(str(out))}"
        return f"this is a JSON array. Run `{command}` and use the new file."
    if kind in ("CSV", "TSV"):
        return f"this is {kind}. Write one JSON object per line, or parquet."
    return ""


def json_fault(path: Path) -> str:
    """Return what to do about a .json file that is neither an array nor lines of objects."""
    if path.suffix.lower() != ".json":
        return ""
    out = path.with_suffix(".jsonl").name
    return (
        "an array of rows, or one object per line, is expected. If a key of one object holds the "
        f"rows, run `jq -c '.KEY[]' {quote(str(path))} > {quote(out)}` with its name."
    )


def text_encoding(prefix: bytes) -> str | None:
    """Return the encoding of text as iconv names it: UTF-8, UTF-16, UTF-32 or GBK; None if unknown.

    Args:
        prefix: the first bytes of a text; a character at its end may be cut off.
    """
    if encoding := next((name for mark, name in _MARKS if prefix.startswith(mark)), ""):
        return encoding
    if prefix and prefix.count(0) > len(prefix) // 4:  # ASCII in two bytes: every second one is 0
        return "UTF-16LE" if prefix[1::2].count(0) > prefix[::2].count(0) else "UTF-16BE"
    other = len(_NOT_ASCII.findall(prefix))
    # or UTF-8 with some bytes that are broken
    repaired = prefix.decode("utf-8", "ignore").encode()
    if _decodes(prefix, "utf-8") or len(_NOT_ASCII.findall(repaired)) > 0.8 * other:
        return "UTF-8"
    is_chinese = 2 * len(_GB2312_PAIR.findall(prefix)) >= 0.8 * other
    names = (name for name in ("gbk", "gb18030") if is_chinese and _decodes(prefix, name))
    return next(map(str.upper, names), None)


def _decodes(data: bytes, encoding: str) -> bool:
    """Whether bytes are text of an encoding, perhaps with a character cut off at the end."""
    try:
        codecs.getincrementaldecoder(encoding)().decode(data)
    except UnicodeDecodeError:
        return False
    return True
