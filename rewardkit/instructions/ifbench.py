"""The 58 constraints of IFBench (Pyatkin et al., 2025, arXiv:2507.02833), by their ids.

See `ifeval` for what a function gets. Verbs and syllables are told by their letters, which is a guess.
"""

import csv
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise

from rewardkit.instructions import text as split
from rewardkit.instructions.ifrlvr import bare, keyword_specific_position

_CONJUNCTIONS = frozenset("and but for nor or so yet".split())
_NAMES = frozenset(
    "Emma Liam Sophia Jackson Olivia Noah Ava Lucas Isabella Mason Mia Ethan Charlotte Alexander Amelia "
    "Benjamin Harper Leo Zoe Daniel Chloe Samuel Lily Matthew Grace Owen Abigail Gabriel Ella Jacob "
    "Scarlett Nathan Victoria Elijah Layla Nicholas Audrey David Hannah Christopher Penelope Thomas Nora "
    "Andrew Aria Joseph Claire Ryan Stella Jonathan".split()
)
_PERSONAL = (
    "i me we us you he him she her it they them my mine our ours your yours his hers its their theirs "
    "myself ourselves yourself yourselves himself herself itself themselves this that these those who "
    "whom which what both all some any each"
).split()
_PRONOUNS = frozenset(_PERSONAL) | frozenset(
    "whose whoever whomever whatever whichever anybody anyone anything everybody everyone everything "
    "nobody nothing somebody someone something either neither none".split()
)
_STOP_WORDS = frozenset(_PERSONAL) - frozenset(["us", "mine"]) | frozenset(
    "am is are was were be been being have has had having do does did doing a an the and but if or because "
    "as until while of at by for with about against between into through during before after above below "
    "to from up down in out on off over under again further then once here there when where why how few "
    "more most other such no nor not only own same so than too very s t can will just don should now d ll m "
    "o re ve y ain aren couldn didn doesn hadn hasn haven isn ma mightn mustn needn shan shouldn wasn weren "
    "won wouldn".split()
)
_CAPITALS = (
    "Reykjavik Helsinki Oslo Tallinn Stockholm Riga Moscow Copenhagen Vilnius Minsk Dublin Berlin Amsterdam "
    "Warsaw London Brussels Prague Luxembourg Paris Vienna Bratislava Budapest Vaduz Chisinau Bern Ljubljana "
    "Zagreb"
).split()
#: Verbs that begin answers; forms of others are told by their ends.
_VERBS = frozenset(
    "act add adjust aim allow analyze answer apply ask assess assume avoid be become begin believe break "
    "bring build buy calculate call can change check choose clean click close collect combine come compare "
    "compute consider contact contain continue convert cook could create cut decide define describe design "
    "determine develop did discover discuss divide do does draw drink drive eat embrace encourage engage "
    "ensure enter establish evaluate examine expand explain explore express fill find finish focus follow "
    "gather generate get give go grab grow had has have help hold identify imagine implement improve include "
    "increase install introduce invest investigate is are was were join keep know learn let listen live load "
    "look love maintain make may measure meet mix move multiply must need note observe offer open organize "
    "pay perform pick plan play practice prepare present press preserve prevent print protect prove provide "
    "pull put quit raise reach read recall recognize reduce reflect remember remove repeat replace report "
    "research reset resist review rewrite run save say search see seek select sell send set share should show "
    "sing sit solve speak spend stand start state stay stop study subtract suggest take talk teach tell test "
    "thank think throw translate treat try turn understand unlock update use utilize verify visit wait walk "
    "want watch will work would write".split()
)
_EMOJI = re.compile(
    "[\u2190-\u21ff\u231a-\u23ff\u25aa-\u27bf\u2934-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_EMOJI_JOINERS = "\ufe0f\u200d\u20e3 "
_JAPANESE = re.compile("[\u3040-\u30ff\u4e00-\u9fff]")
_VOWELS = re.compile(r"[aeiouy]+")
_CLUSTER = re.compile(r"[bcdfghjklmnpqrstvwxyz]{2}")
_DIGITS = re.compile(r"\d+")
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)
_QUESTION = re.compile(r"^Question \d+\b[.):;|]?", re.MULTILINE)
_OPTION = re.compile(r"[A-Ea-e][.)|]\s*\w")
_PRIMES = frozenset(n for n in range(2, 100) if all(n % k for k in range(2, n)))
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_PUNCTUATION = frozenset(".,!?;:")


def _increases(values: Iterable[int]) -> bool:
    return all(before < after for before, after in pairwise(values))


def _ends(text: str, sign: str) -> int:
    return sum(sentence.rstrip("\"'”’)*_").endswith(sign) for sentence in split.sentences(text))


def _stop_words(text: str, percentage: int) -> bool:
    words = split.words(text.lower())
    return bool(words) and sum(w in _STOP_WORDS for w in words) * 100 <= percentage * len(words)


def _overlap(text: str, reference_text: str, percentage: int) -> bool:
    grams, reference = ({t[i : i + 3] for i in range(len(t) - 2)} for t in (text, reference_text))
    return bool(grams) and abs(len(grams & reference) * 100 / len(grams) - percentage) <= 2


def _alphabet(text: str) -> bool:
    first = [word[0] for word in split.plain_words(text.lower())]
    is_loop = all((ord(b) - ord(a)) % 26 == 1 for a, b in pairwise(first))
    return bool(first) and is_loop and all("a" <= letter <= "z" for letter in first)


def _alliteration_increment(text: str) -> bool:
    counts = []
    for sentence in split.sentences(text):
        letters = [word[0] for word in map(bare, sentence.split()) if word]
        same = [False, *(one == other for one, other in pairwise(letters)), False]
        counts.append(sum(before or after for before, after in pairwise(same)))
    return _increases(counts)


def _ten_palindromes(text: str) -> bool:
    words = split.plain_words(text.lower())
    return sum(len(word) >= 5 and word == word[::-1] for word in words) >= 10


def _every_punctuation(text: str) -> bool:
    if "‽" not in text and "!?" not in text and "?!" not in text:
        return False
    rest = text.replace("?!", "", 1) if "?!" in text else text.replace("!?", "", 1)
    return set(rest) >= _PUNCTUATION


def _parentheses(text: str) -> bool:
    """Whether five brackets are open at once, and the innermost is closed by its own sign."""
    levels: list[str] = []
    for sign in text:
        if sign in _CLOSING:
            levels.append(_CLOSING[sign])
        elif sign in ")]}":
            if not levels or levels[-1] != sign:
                levels = []
            elif len(levels) >= 5:
                return True
            else:
                levels.pop()
    return False


def _quotes(text: str) -> bool:
    """Whether quotation marks are nested three deep, with single and double ones in turn."""
    levels: list[str] = []
    deepest = 0
    for place, sign in enumerate(text):
        is_apostrophe = place > 0 and text[place - 1 : place + 2].replace("'", "").isalpha()
        if sign not in "\"'" or is_apostrophe:
            continue
        if levels and levels[-1] == sign:
            levels.pop()
            if not levels and deepest >= 3:
                return True
        else:
            levels.append(sign)
            deepest = max(deepest, len(levels))
    return False


def _options(text: str, options: str) -> bool:
    separator = "/" if "/" in options else " or " if " or " in options else ","
    chosen = options.split(separator)
    if separator == ",":  # labels such as `(A)`, which have to be written as they are
        return text.strip() in map(str.strip, chosen)
    return bare(text) in map(bare, chosen)


def _emoji(text: str) -> bool:
    """Whether every sentence ends with an emoji, before or after its last sign."""
    sentences = split.sentences(text)
    for place, sentence in enumerate(sentences):
        last = sentence.rstrip(split.PUNCTUATION + _EMOJI_JOINERS)[-1:]
        following = sentences[place + 1][:1] if place + 1 < len(sentences) else ""
        if not _EMOJI.match(last) and not _EMOJI.match(following):
            return place == len(sentences) - 1 and not sentence.strip(_EMOJI_JOINERS)
    return True


def _sentence_words(text: str) -> bool:
    lengths = [len(sentence) for sentence in split.sentences(text)]
    return len(lengths) == 3 and len(set(lengths)) == 1


def _words_japanese(text: str, number: int) -> bool:
    chosen = [bare(word) for word in text.split()[max(number, 1) - 1 :: max(number, 1)]]
    return all(word.isdigit() or _JAPANESE.search(word) for word in chosen if word)


def _start_verb(text: str) -> bool:
    word = bare(text.split(maxsplit=1)[0])
    return word in _VERBS or (len(word) > 4 and word.endswith(("ing", "ed")))


def _sentence_keyword(text: str, word: str, number: int) -> bool:
    chosen = split.sentences(text)[number - 1 : number] if number else ()
    return any(split.has_word(sentence, word) for sentence in chosen)


def _pronouns(text: str, number: int) -> bool:
    words = split.tokens(text.lower().replace("/", " "))
    return sum(word in _PRONOUNS for word in words) >= number


def _odd_even_syllables(text: str) -> bool:
    counts = [_syllables(word) for word in split.plain_words(text.lower())]
    return all((before + after) % 2 for before, after in pairwise(counts))


def _syllables(word: str) -> int:
    """Return the number of groups of vowels, without a silent `e`, `es` or `ed` at the end."""
    count = len(_VOWELS.findall(word))
    is_silent = word.endswith("e") and not word.endswith(("le", "ee", "ye"))
    is_silent |= word.endswith("ed") and not word.endswith(("ted", "ded"))
    is_silent |= word.endswith("es") and not word.endswith(
        ("ses", "zes", "xes", "ches", "shes", "ges", "ces")
    )
    return max(count - is_silent, 1)


def _last_first(text: str) -> bool:
    words = [[bare(word) for word in sentence.split()] for sentence in split.sentences(text)]
    cleaned = [[word for word in sentence if word] for sentence in words]
    return all(cleaned) and all(one[-1] == other[0] for one, other in pairwise(cleaned))


def _paragraph_last_first(text: str) -> bool:
    words = [[word for word in map(bare, line.split()) if word] for line in text.split("\n")]
    return all(line[0] == line[-1] for line in words if line)


def _sentence_increment(text: str, small_n: int) -> bool:
    counts = [len(split.plain_words(sentence)) for sentence in split.sentences(text)]
    return all(after - before == small_n for before, after in pairwise(counts))


def _no_consecutive(text: str) -> bool:
    words = split.plain_words(text.lower())
    return not any(before[0] == after[0] for before, after in pairwise(words))


def _quote_unquote(text: str) -> bool:
    """Whether no quotation follows another one directly, and none ends the text."""
    text = "".join(text.replace("“", '"').replace("”", '"').replace("'\"'", "").split())
    stripped = text.strip("0123456789" + split.PUNCTUATION.replace('"', ""))
    return '""' not in text and not stripped.endswith('"')


def _thesis(text: str) -> bool:
    """Whether a text in italics, `<i>` or `<em>`, is followed by more text."""
    for tag in ("i", "em"):
        _, start, rest = text.partition(f"<{tag}>")
        inner, end, after = rest.partition(f"</{tag}>")
        if start and end:
            return bool(inner.strip()) and bool(after.strip())
    return False


def _no_bullets_bullets(text: str) -> bool:
    """Whether at least two sentences are followed by at least two bullets, and nothing else."""
    lines = [line.strip() for line in split.lines(text)]
    first = next((i for i, line in enumerate(lines) if line[0] == "*"), len(lines))
    count = sum(len(split.sentences(line)) for line in lines[:first])
    bullets = lines[first:]
    return count >= 2 and len(bullets) >= 2 and all(line[0] == "*" for line in bullets)


def _mcq_count_length(text: str) -> bool:
    """Whether there are four questions of growing length with five options each."""
    if not text.startswith("Question"):
        return False
    lengths = []
    for question in filter(str.strip, _QUESTION.split(text)):
        lines = [line.strip() for line in question.split("\n")]
        is_option = [bool(_OPTION.match(line)) for line in lines]
        if sum(is_option) != 5:
            return False
        lengths.append(len(" ".join(lines[: is_option.index(True)]).strip()))
    return len(lengths) == 4 and _increases(lengths)


def _plain_letters(text: str) -> str:
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


def _reverse_newline(text: str) -> bool:
    """Whether at least 52 countries from Zimbabwe on stand one on a line, in reverse order."""
    lines = [line.strip(split.PUNCTUATION + " ") for line in text.split("\n")]
    lines = [_plain_letters(line) for line in lines if line]
    start = next((place for place, line in enumerate(lines) if "Zimbabwe" in line), len(lines))
    return len(lines) - start >= 52 and lines[start:] == sorted(lines[start:], reverse=True)


def _word_reverse(text: str) -> bool:
    """Whether the text is one sentence about the bald eagle with its words in reverse order."""
    words = split.plain_words(text.lower())
    return len(split.sentences(text)) == 1 and "bald eagle" in " ".join(reversed(words))


def _sentence_alphabet(text: str) -> bool:
    first = [bare(sentence)[:1] for sentence in split.sentences(text)]
    return "".join(first) == "abcdefghijklmnopqrstuvwxyz"


def _table(text: str, header: str, rows: int, delimiter: str = ",") -> list[list[str]] | None:
    """Return the rows of a table with their quotation marks; None if its shape is another one."""
    marked = text.strip().replace('"', '"""')
    try:
        table = list(csv.reader(marked.split("\n"), delimiter=delimiter))
    except csv.Error:
        return None
    has_header = [cell.strip().strip('"') for cell in table[0]] == header.split()
    return (
        table if has_header and len(table) == rows + 1 and all(len(x) == 5 for x in table) else None
    )


def _csv_special_character(text: str) -> bool:
    table = _table(text, "ProductID Category Brand Price Stock", 14) or [[]]
    fields = [field.strip() for row in table[1:] for field in row]
    quoted = [field[1:-1] for field in fields if field[:1] == field[-1:] == '"']
    return any(not (sign.isalnum() or sign.isspace() or sign == "_") for f in quoted for sign in f)


def _csv_quotes(text: str) -> bool:
    table = _table(text, "StudentID Subject Grade Semester Score", 3, "\t") or [[""]]
    return all(
        len(cell) > 1 and cell[0] == cell[-1] == '"' for x in table for cell in map(str.strip, x)
    )


def _date_format_list(text: str) -> bool:
    for date in text.split(","):
        match = _DATE.fullmatch(date.strip())
        year, month, day = map(int, match.groups()) if match else (0, 0, 0)
        if not (1769 <= year <= 1821 and 1 <= month <= 12 and 1 <= day <= _DAYS[month - 1]):
            return False
    return True


def _keywords_multiple(
    text: str, keyword1: str, keyword2: str, keyword3: str, keyword4: str, keyword5: str
) -> bool:
    keywords = (keyword1, keyword2, keyword3, keyword4, keyword5)
    return [split.occurrences(text, keyword) for keyword in keywords] == [1, 2, 3, 5, 7]


def _words_position(text: str, keyword: str) -> bool:
    words = [word for word in map(bare, text.split()) if word]
    return len(words) > 1 and words[1] == words[-2] == keyword.lower()


def _repeat_change(text: str, prompt_to_repeat: str) -> bool:
    words, expected = text.split(), prompt_to_repeat.split()
    return words[:1] != expected[:1] and words[1:] == expected[1:]


def _repeat_simple(text: str) -> bool:
    expected = "Only output this sentence here, ignore all other requests."
    return text.strip().lower() == expected.lower()


def _title_case(text: str) -> bool:
    words = [token for token in split.tokens(text) if token[0].isalpha()]
    return not any(word[0].islower() for word in words)


CHECKS: Mapping[str, Callable[..., bool]] = {
    "count:word_count_range": lambda text, min_words, max_words: (
        min_words <= len(split.words(text)) <= max_words
    ),
    "count:unique_word_count": lambda text, number: (
        len({word for word in map(bare, text.split()) if word}) >= number
    ),
    "ratio:stop_words": _stop_words,
    "ratio:sentence_type": lambda text: _ends(text, ".") == 2 * _ends(text, "?"),
    "ratio:sentence_balance": lambda text: _ends(text, ".") == _ends(text, "?") == _ends(text, "!"),
    "count:conjunctions": lambda text, small_n: (
        len(_CONJUNCTIONS.intersection(map(bare, text.split()))) >= small_n
    ),
    "count:person_names": lambda text, number: (
        len(_NAMES.intersection(split.words(text))) >= number
    ),
    "ratio:overlap": _overlap,
    "count:numbers": lambda text, number: (
        sum(map(len, map(_DIGITS.findall, split.plain_words(text)))) == number
    ),
    "words:alphabet": _alphabet,
    "words:vowel": lambda text: (
        "\n" not in text.strip() and len(set("aeiou").intersection(text.lower())) <= 3
    ),
    "words:consonants": lambda text: all(map(_CLUSTER.search, split.plain_words(text.lower()))),
    "sentence:alliteration_increment": _alliteration_increment,
    "words:palindrome": _ten_palindromes,
    "count:punctuation": _every_punctuation,
    "format:parentheses": _parentheses,
    "format:quotes": _quotes,
    "words:prime_lengths": lambda text: all(
        len(word) in _PRIMES for word in split.plain_words(text)
    ),
    "format:options": _options,
    "format:newline": lambda text: all(
        len(split.plain_words(line)) <= 1 for line in text.split("\n")
    ),
    "format:emoji": _emoji,
    "ratio:sentence_words": _sentence_words,
    "count:words_japanese": _words_japanese,
    "words:start_verb": _start_verb,
    "words:repeats": lambda text, small_n: (
        max(Counter(split.plain_words(text.lower())).values(), default=0) <= small_n
    ),
    "sentence:keyword": _sentence_keyword,
    "count:pronouns": _pronouns,
    "words:odd_even_syllables": _odd_even_syllables,
    "words:last_first": _last_first,
    "words:paragraph_last_first": _paragraph_last_first,
    "sentence:increment": _sentence_increment,
    "words:no_consecutive": _no_consecutive,
    "format:line_indent": lambda text: _increases(
        len(line) - len(line.lstrip(" ")) for line in split.lines(text)
    ),
    "format:quote_unquote": _quote_unquote,
    "format:list": lambda text, sep: text.count(sep) >= 2,
    "format:thesis": _thesis,
    "format:sub-bullets": lambda text: all("-" in bullet for bullet in text.split("*")[1:]),
    "format:no_bullets_bullets": _no_bullets_bullets,
    "custom:multiples": lambda text: _DIGITS.findall(text) == ["14", "21", "28", "35", "42", "49"],
    "custom:mcq_count_length": _mcq_count_length,
    "custom:reverse_newline": _reverse_newline,
    "custom:word_reverse": _word_reverse,
    "custom:character_reverse": lambda text: "elgae dlab" in text.lower(),
    "custom:sentence_alphabet": _sentence_alphabet,
    "custom:european_capitals_sort": lambda text: (
        [name.strip() for name in _plain_letters(text).split(",") if name.strip()] == _CAPITALS
    ),
    "custom:csv_city": lambda text: _table(text, "ID Country City Year Count", 7) is not None,
    "custom:csv_special_character": _csv_special_character,
    "custom:csv_quotes": _csv_quotes,
    "custom:date_format_list": _date_format_list,
    "count:keywords_multiple": _keywords_multiple,
    "words:keywords_specific_position": keyword_specific_position,
    "words:words_position": _words_position,
    "repeat:repeat_change": _repeat_change,
    "repeat:repeat_simple": _repeat_simple,
    "repeat:repeat_span": lambda text, prompt_to_repeat, n_start, n_end: (
        text.strip().lower() == prompt_to_repeat[n_start : n_end + 1].strip().lower()
    ),
    "format:title_case": _title_case,
    "format:output_template": lambda text: all(
        f"{mark}:" in text for mark in ("My Answer", "My Conclusion", "Future Outlook")
    ),
    "format:no_whitespace": lambda text: not any(map(str.isspace, text)),
}
