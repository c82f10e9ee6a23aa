"""What a file really is, by its first and last bytes: for messages about a file of the wrong kind."""

import codecs
import re
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from shlex import quote

from rewardkit.errors import SourceError
from rewardkit.registry import did_you_mean

#: Bytes at the start of a file that decide what it is; names that a missing file is compared with.
PREFIX_BYTES, MAX_NAMES = 1 << 16, 1000

#: Suffixes of compressed text that is read as it is.
COMPRESSIONS = (".gz", ".zst")

#: The suffixes of files of rows.
ROW_SUFFIXES = (".parquet", ".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".arrow")

#: What the first bytes of a file say, and what to do.
_SIGNATURES = (
    (rb"\x1f\x8b", "a gzip archive. Run `gunzip < {file} > {out}` and use the new file."),
    (rb"\x28\xb5\x2f\xfd", "a zstd archive. Run `zstd -d < {file} > {out}` and use the new file."),
    (rb"BZh", "a bzip2 archive. Run `bunzip2 < {file} > {out}` and use the new file."),
    (rb"\xfd7zXZ", "an xz archive. Run `unxz < {file} > {out}` and use the new file."),
    (rb"\s*<(?i:!doctype|html|head|\?xml)", "a web page: its download failed. Download the file again."),
    (rb"\xd0\xcf\x11\xe0", "an Excel workbook. Save it as CSV UTF-8 first."),
    (rb"PK\x03\x04", "a zip archive. Unpack it with `unzip {file}`."),
    (rb"version https://git-lfs", "a pointer of Git LFS, not the file itself. Run git lfs pull in its repository, or download the file again."),
)  # fmt: skip
_JSON_LINE = re.compile(rb"\s*\{[^\n]*\}\s*(?:\n\s*\{|\Z)")
_NOT_ASCII = re.compile(rb"[\x80-\xff]")

#: Characters of GB2312, which nearly all Chinese text consists of, as pairs of bytes.
_GB2312_PAIR = re.compile(rb"[\xa1-\xf7][\xa1-\xfe]")

#: The byte order marks of encodings other than UTF-8; those of UTF-32 begin like those of UTF-16.
_MARKS = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32"}
_MARKS |= {codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}


def stem_and_suffix(path: Path) -> tuple[str, str]:
    """Return the name of a file without suffixes, and what it holds: `x` and `.jsonl` for x.jsonl.gz."""
    inner = path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path
    return inner.stem, inner.suffix.lower()


def row_suffix(path: Path) -> str:
    """Return the suffix of a file, without that of a compression: `.jsonl` for x.jsonl.gz."""
    return stem_and_suffix(path)[1]


def is_row_file(path: Path) -> bool:
    """Return whether a path has the name of a file of rows; only text may be compressed."""
    suffix, is_compressed = row_suffix(path), path.suffix.lower() in COMPRESSIONS
    return suffix in ROW_SUFFIXES and not (is_compressed and suffix in (".parquet", ".arrow"))


def row_files_below(folder: Path) -> list[Path]:
    """Return the files of rows in a folder and its folders, by name, but hidden and dropped rows."""
    return [
        file
        for file in sorted(folder.rglob("*"))
        if is_row_file(file) and file.is_file() and not file.name.endswith(".dropped.jsonl")
        if not any(part.startswith(".") for part in file.relative_to(folder).parts)
    ]


def missing_file(path: Path, kind: str = "file") -> str:
    """Return the message that a `kind` does not exist, with files of similar names beside it."""
    try:
        files = list(islice(path.parent.iterdir(), MAX_NAMES))
    except OSError:
        return f"{path}: no such {kind}, and no folder {path.parent}."
    # with their suffixes, which are often the same, all names would be similar
    stems = get_close_matches(path.stem.lower(), {file.stem.lower() for file in files}, cutoff=0.5)
    names = [file.name for file in files if file.stem.lower() in stems]
    return f"{path}: no such {kind}.{did_you_mean(path.name, names)}"


def require_regular_file(path: Path) -> None:
    """Raise `SourceError` for a pipe or a device: opening one may wait for ever."""
    is_odd = False
    with suppress(OSError):  # what opens it says why
        is_odd = path.exists() and not (path.is_file() or path.is_dir())
    if is_odd:
        raise SourceError(f"{path} is not a regular file. Save its content to one first.")


def read_prefix(path: Path) -> bytes:
    """Return the first `PREFIX_BYTES` of a file; b"" if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(PREFIX_BYTES)
    except OSError:
        return b""


def content_fault(path: Path) -> str:
    """Return what a file is that nothing can read as it stands, and what to do; "" if it may be fine."""
    prefix = read_prefix(path)
    if path.suffix.lower() == ".xlsx" and prefix.startswith(b"PK"):
        return "this is an Excel workbook. Save it as CSV UTF-8 first."
    advice = next((advice for start, advice in _SIGNATURES if re.match(start, prefix)), "")
    stem, suffix = stem_and_suffix(path)
    out = path.with_name(f"{stem}-unpacked{suffix}")
    return advice and f"this is {advice.format(file=quote(str(path)), out=quote(str(out)))}"


def parquet_fault(path: Path) -> str:
    """Return why a file cannot be a parquet and what to do, as a sentence; "" if nothing is known."""
    if path.is_dir():
        return "this is a folder. Name a parquet in it."
    if path.is_file() and path.stat().st_size == 0:
        return "the file is empty. Copy or download it again."
    if read_prefix(path).startswith(b"PAR1"):
        with path.open("rb") as file:
            file.seek(-4, 2)
            is_whole = file.read() == b"PAR1"
        return "" if is_whole else "the end of the parquet is missing. Copy or download it again."
    kind = table_kind(path)
    if (fault := content_fault(path)) or not kind:
        return fault
    out, source, rename = path.with_suffix(".parquet"), path, ""
    if path == out:  # prep reads a file as its name says
        source = path.with_suffix(".jsonl" if kind == "JSON Lines" else ".json")
        rename = f"mv {quote(str(path))} {quote(str(source))} && "
    command = f"rewardkit prep {quote(str(source))} --out {quote(str(out))}"
    return f"this is {kind}, not parquet. Run `{rename}{command}` first."


def table_kind(path: Path) -> str:
    """Return which format of rows other than parquet a file has, in words; "" if none is known."""
    text, suffix = read_prefix(path).removeprefix(codecs.BOM_UTF8), row_suffix(path)
    if suffix in (".jsonl", ".ndjson") or _JSON_LINE.match(text):
        return "JSON Lines"
    if suffix == ".json" or text.lstrip()[:1] in (b"[", b"{"):
        return "JSON"
    return {".csv": "CSV", ".tsv": "TSV", ".arrow": "Arrow"}.get(suffix, "")


def text_fault(path: Path) -> str:
    """Return why a file cannot be read as UTF-8 text and what to do; "" if its start is UTF-8."""
    return content_fault(path) or encoding_fault(path)


def encoding_fault(path: Path) -> str:
    """Return in which encoding other than UTF-8 a text is and what to do; "" for UTF-8."""
    encoding = text_encoding(read_prefix(path))
    if encoding == "UTF-8":
        return ""
    if encoding is None:
        return (
            "the text is not UTF-8. Convert it: iconv -f ENCODING -t UTF-8, with the encoding of the "
            "program that wrote it."
        )
    out = path.with_name(f"{path.stem}-utf8{path.suffix}")
    command = f"iconv -f {encoding} -t UTF-8 {quote(str(path))} > {quote(str(out))}"
    return f"the text is {encoding}, not UTF-8. Run `{command}` and use the new file."


def lines_fault(path: Path) -> str:
    """Return why a file has no line that is a JSON object and what to do; "" if nothing is known."""
    fault = text_fault(path)
    if not fault and read_prefix(path).removeprefix(codecs.BOM_UTF8).lstrip()[:1] == b"[":
        out = path.with_name(f"{path.stem}-lines.jsonl")
        command = f"jq -c '.[]' {quote(str(path))} > {quote(str(out))}"
        return f"this is a JSON array. Run `{command}` and use the new file."
    if not fault and (kind := table_kind(path)) in ("CSV", "TSV"):
        return f"this is {kind}. Write one JSON object per line, or parquet."
    return fault


def text_encoding(prefix: bytes) -> str | None:
    """Return the encoding of the start of a text as iconv names it; None if unknown."""
    if encoding := next((name for mark, name in _MARKS.items() if prefix.startswith(mark)), ""):
        return encoding
    if prefix and prefix.count(0) > len(prefix) // 4:  # ASCII in two bytes: every second one is 0
        return "UTF-16LE" if prefix[1::2].count(0) > prefix[::2].count(0) else "UTF-16BE"
    most = 0.8 * len(_NOT_ASCII.findall(prefix))
    # some bytes of UTF-8 may be broken
    if len(_NOT_ASCII.findall(prefix.decode("utf-8", "ignore").encode())) >= most:
        return "UTF-8"
    for name in ("gbk", "gb18030") if 2 * len(_GB2312_PAIR.findall(prefix)) >= most else ():
        with suppress(UnicodeDecodeError):
            codecs.getincrementaldecoder(name)().decode(prefix)
            return name.upper()
    return None
