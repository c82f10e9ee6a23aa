"""The program in a response.

| the response has | the program is |
|---|---|
| `<answer>...</answer>` | in the last one, by the rules below |
| fenced blocks that name the language | the last of them; of several, the last that defines the function asked for |
| fenced blocks without a language | the last of them, by the same rule |
| a fence that is never closed | what follows it |
| no fence | the whole text |

A thought (`<think>...</think>`) is left out first. Nothing is compiled here: text that is not a program
fails when it runs.
"""

import re

from rewardkit.answers.extract import text_after_thought, texts_between
from rewardkit.programs.problem import LANGUAGES

#: Characters of a program.
MAX_CHARACTERS = 200_000

#: The names of fences.
_FENCES = {**LANGUAGES, "sql": ("sql", "sqlite", "sqlite3")}
_NAMES = frozenset(name for names in _FENCES.values() for name in names)
_MARK = re.compile(r"`{3,}|~{3,}")


def program_of(response: str, language: str = "python", entry_point: str = "") -> str:
    """Return the program in a response; "" if there is none."""
    text = text_after_thought(response)
    if (answers := texts_between(text, "<answer>", "</answer>")) and answers[-1].strip():
        text = answers[-1]
    blocks = _blocks(text)
    if not blocks:
        return text.strip("\n") if text.strip() and len(text) <= MAX_CHARACTERS else ""
    names = _FENCES.get(language, (language,))
    labelled = [block for name, block in blocks if name in names]
    candidates = labelled or [block for name, block in blocks if not name]
    if entry_point and len(candidates) > 1:
        candidates = [each for each in candidates if defines(each, entry_point)] or candidates
    return candidates[-1] if candidates and len(candidates[-1]) <= MAX_CHARACTERS else ""


def defines(program: str, entry_point: str) -> bool:
    """Whether a program has the function `f`, or one named as the method `Solution().f`."""
    name = re.escape(entry_point.rpartition(".")[2])
    return bool(re.search(rf"^[ \t]*(?:async[ \t]+)?def[ \t]+{name}\b", program, re.MULTILINE))


def _blocks(text: str) -> list[tuple[str, str]]:
    """Return the language and the content of each fenced block."""
    blocks: list[tuple[str, str]] = []
    lines, start, fence, language = text.split("\n"), 0, "", ""
    for number, line in enumerate(lines):
        mark, label = _fence(line)
        if mark and not fence:
            fence, language, start = mark, label.strip("{}.").partition("{")[0], number + 1
        elif mark and mark[0] == fence[0] and len(mark) >= len(fence) and not label:
            blocks.append((language, "\n".join([*lines[start:number], ""])))
            fence = ""
    if fence:
        blocks.append((language, "\n".join(lines[start:])))
    return [(name, block) for name, block in blocks if block.strip()]


def _fence(line: str) -> tuple[str, str]:
    """Return the marks and the label of a fence; ("", "") for another line.

    Text may stand before a fence that only names a known language.
    """
    match = _MARK.search(line)
    words = line[match.end() :].lower().split() if match else []
    if not match or "`" in line[match.end() :]:
        return "", ""
    if line[: match.start()].strip() and (len(words) != 1 or words[0] not in _NAMES):
        return "", ""
    return match[0], words[0] if words else ""
