"""The words of a short text in the form in which answers are compared.

Case, accents, punctuation and articles do not count. Numbers in words, ordinals and Roman numerals
become numbers; units, months and common abbreviations become one form.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeAlias

from rewardkit.answers.parsing.vocabulary import pairs, split_words

# --- words with a fixed meaning. Every table is field knowledge; none is a list of answers.

ARTICLES = split_words("a an the")

#: Words without content of their own: they may be missing or differ.
FUNCTION_WORDS = ARTICLES | split_words(
    "of in on at to for by with from into as and or is are was were be been being it its this that"
    " these those there their his her he she they them him who whom which what when where why how"
    " do does did has have had will would can could may i you we my your our s t than then so also"
    " about during around over under between within because 是"
)


def _count(text: str, start: int = 0, step: int = 1) -> dict[str, int]:
    return {word: step * value for value, word in enumerate(text.split(), start)}


_MONTH_NAMES = (
    "january february march april may june july august september october november december"
)
MONTHS = _count(_MONTH_NAMES, 1) | {"sept": 9}
MONTHS |= {name[:3]: number for name, number in MONTHS.items()}

#: Numbers in words.
NUMBERS = (
    _count(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
        " sixteen seventeen eighteen nineteen"
    )
    | _count("twenty thirty forty fifty sixty seventy eighty ninety", 2, 10)
    | _count(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth"
        " fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth", 1
    )
    | _count("thirtieth fortieth fiftieth sixtieth seventieth eightieth ninetieth", 3, 10)
)  # fmt: skip
MULTIPLIERS = {
    "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12
}  # fmt: skip


def _forms(table: str, separator: str | None = None) -> dict[str, str]:
    """Return the first word of each group of a table, by every word of the group."""
    groups = [group.split(separator) for group in table.split(";")]
    return {word: group[0] for group in groups for word in group}


#: Units that are read as another word.
UNITS = _forms(
    "meter metre metres meters;kilometer km kms kilometre kilometres kilometers"
    ";centimeter cm centimetre centimetres centimeters"
    ";millimeter mm millimetre millimetres millimeters;foot ft feet;inch inches;mile mi miles"
    ";yard yd yds yards;kilogram kg kgs kilo kilos kilograms kilogramme;pound lb lbs pounds £"
    ";ounce oz ounces;hour hr hrs hours;minute min mins minutes;second sec secs seconds"
    ";year yr yrs years;day days;week weeks;month months;liter litre litres liters"
    ";percent % percentage pct;dollar $ usd dollars;euro € eur euros;degree degrees °;fahrenheit"
    ";celsius centigrade;kelvin kelvins;decade decades;century centuries;ruble rubles roubles"
    ";franc francs;rupee rupees;yen;mph;cent cents"
)
#: Letters that are a unit only after a number.
UNITS_AFTER_NUMBER = {"m": "meter", "in": "inch", "g": "gram", "l": "liter"}
UNIT_NAMES = frozenset({*UNITS.values(), *UNITS_AFTER_NUMBER.values()})

#: Abbreviations of one word.
ABBREVIATIONS = _forms(
    "saint st;mount mt;fort ft;junior jr;senior sr;department dept;university univ"
    ";corporation corp;company co;incorporated inc;avenue ave;and & 和;or 或 或者;versus vs v"
    ";television tv"
)

#: Names of states and bodies, in words, and the form that they are compared in.
PLACE_NAMES = _forms(
    "usa|us|united states|united states of america;uk|united kingdom|great britain|britain"
    ";ussr|soviet union;uae|united arab emirates;eu|european union;un|united nations"
    ";la|los angeles;dc|washington dc|district of columbia", "|"
)  # fmt: skip

#: Titles before a name, prefixes of ships, and parts after a name.
TITLES = split_words(
    "gen col lt capt sgt rep sen gov rms hms uss ss madame mme chairman comrade mr mrs ms miss dr"
    " doctor prof professor sir dame lord lady king queen prince princess emperor empress president"
    " vice chancellor minister senator governor mayor judge justice general colonel major captain"
    " lieutenant sergeant admiral marshal archduke duke duchess count countess baron baroness earl"
    " pope bishop archbishop cardinal saint father reverend rev rabbi tsar czar sultan chief prime"
    " secretary congressman congresswoman representative ambassador coach comedian"
    " junior senior phd md esq"
)
#: Nouns before `of` that only say what kind of thing follows: `the city of London`, `a total of 12`.
KINDS = split_words(
    "city town village state republic kingdom island isle county province region district territory"
    " commonwealth sultanate emirate duchy principality gulf bay strait cape lake type kind form sort"
    " species genre breed name number total size length height age sum maximum minimum part study"
)
#: Kinds of things that a name may be given with or without.
GENERIC_NOUNS = KINDS | split_words(
    "country empire islands river sea ocean mount mountain mountains valley desert peninsula area"
    " continent language languages family people nation project company corporation incorporated band"
    " group team club party university college school museum theatre theater stadium airport station"
    " street road avenue building tower bridge castle palace church cathedral park film movie novel"
    " book song album series show play game magazine newspaper beer wine dish sauce cheese bird plant"
    " tree flower animal fish disease syndrome system process method theory law act treaty war battle"
    " army navy day year season word term period raid award records"
)

#: Words in lower case inside the name of a person.
NAME_PARTICLES = split_words("of de del della di da dos du la le van von der den bin ibn al el y")

# --- reading

#: Most characters of a text that is split into words.
MAX_CHARS = 4000


class Word(NamedTuple):
    """A word of a text."""

    form: str  # in which it is compared; a number is in digits
    is_name: bool  # it is written with a capital letter
    is_number: bool
    is_owner: bool  # it ends in `'s`
    gap: str  # the punctuation before it, without blanks
    text: str  # as it is written, without accents and `'s`


Words: TypeAlias = tuple[Word, ...]


class Span(NamedTuple):
    """Words of a sentence: the indices of the first one and after the last one."""

    start: int
    end: int


def is_name(parts: Words) -> bool:
    """Whether words are written as a name: `The Who`, but not `I`."""
    return all(word.is_name and word.text != "I" for word in parts)


#: Chinese words that state, deny or join: the others of a row of characters are not told apart.
_CHINESE_WORD = "不是|并非|不为|没有|或者|还是|可能|也许|是错|不对|错误|[是或和]"
_TOKEN = re.compile(
    r"\b[A-Za-z]-?\d+\b"  # one word, as `A5` and `F-16`: neither `a` nor `5`
    r"|\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?"
    rf"|{_CHINESE_WORD}|(?:(?!{_CHINESE_WORD})[⺀-⿿\u3040-鿿가-힯])+"
    r"|[^\W\d_⺀-鿿가-힯]+(?:'[^\W\d_]+)*(?:[+#]{1,2}(?!\w)|(?<=\b[A-Z])-(?![\w-]))?|[%$€£°&]"
)
_CHINESE_DATE = re.compile(r"(\d{4})年(\d{1,2})月(\d{1,2})[日号]?")
_DOTTED_LETTERS = re.compile(r"\b[A-Za-z]\.(?: ?[A-Za-z]\b\.?)+")
#: Where a blank is missing: `inNew York`, `astronomerAnders`.
_GLUED = re.compile(r"\b(The|[a-z]{2,20})(?=[A-Z][a-z])")
_ROMANS = {
    tens + ones: 10 * ten + one
    for ten, tens in enumerate(["", *"X XX XXX XL L LX LXX LXXX".split()])
    for one, ones in enumerate(["", *"I II III IV V VI VII VIII IX".split()])
}
#: Names of states and bodies with a capital, but not the word `Us`.
_PLACE = re.compile(
    rf"\b(?=[A-Z])(?!Us\b)(?i:{'|'.join(sorted(PLACE_NAMES, key=len, reverse=True))})\b".replace(
        " ", r"[\s,]+"
    )
)
_FOLDED = str.maketrans(
    {
        **pairs("ß ss æ ae œ oe ø o ł l đ d ð d þ th ı i Æ Ae Œ Oe Ø O Ł L Đ D"),
        **pairs("’ ' ‘ ' ` ' ´ ' ʼ ' – - − - ‐ - ‑ -"),
        "—": " - ",
    }
)


def fold(text: str) -> str:
    """Return a text without accents and typographic quotes; case stays."""
    text = text[:MAX_CHARS].translate(_FOLDED)
    if text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


@lru_cache(maxsize=8192)
def words(text: str) -> tuple[Word, ...]:
    """Return the words of a text, without articles."""
    text = _DOTTED_LETTERS.sub(lambda m: re.sub("[. ]", "", m[0]) + " ", fold(text))
    text = _GLUED.sub(r"\1 ", text.replace("per cent", "percent"))
    text = _CHINESE_DATE.sub(r"\1-\2-\3", text)
    text = _PLACE.sub(lambda m: PLACE_NAMES[re.sub(r"[\s,]+", " ", m[0].lower())].title(), text)
    return tuple(_without_articles(_join_numbers(_raw_words(text))))


def _raw_words(text: str) -> list[Word]:
    result: list[Word] = []
    end = 0
    for token in _TOKEN.finditer(text):
        raw, gap = token[0], text[end : token.start()]
        end = token.end()
        previous = result[-1] if result else None
        ending = raw.lower() if not gap and previous and previous.is_number else ""
        mark = "|" if gap.strip() == "-" and gap[0] == gap[-1] == " " else gap.replace(" ", "")
        if raw[0].isdecimal():
            is_negative = gap == "-" if not result else gap[-2:] in (" -", "(-")
            form = "-" * is_negative + _plain(Decimal(raw.replace(",", "")))
            result.append(Word(form, False, True, False, mark, raw))
        elif previous and ending == "s":  # 1920s
            result[-1] = previous._replace(form=f"{previous.form}s", is_number=False)
        elif ending not in ("st", "nd", "rd", "th"):
            result.append(_plain_word(raw, mark, previous))
    return result


def _plain(value: Decimal) -> str:
    digits = f"{value:f}"
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def _plain_word(raw: str, gap: str, previous: Word | None) -> Word:
    text = raw.removesuffix("'s").removesuffix("'S").replace("'", "")
    low = text.lower().replace("-", "") if text[-1].isdigit() else text.lower()
    word = Word(low, raw[0].isupper(), False, raw.lower().endswith("'s"), gap, text)
    if low in NUMBERS:
        return word._replace(form=str(NUMBERS[low]), is_number=True)
    if previous and previous.is_number and low in UNITS_AFTER_NUMBER and not gap.strip("-"):
        return word._replace(form=UNITS_AFTER_NUMBER[low], is_name=False)
    if text in _ROMANS and previous and previous.is_name and len(previous.form) > 2 and not gap:
        return word._replace(form=str(_ROMANS[text]), is_number=True)
    if low in UNITS and (low not in ABBREVIATIONS or (previous and previous.is_number)):
        return word._replace(form=UNITS[low])
    return word._replace(form=ABBREVIATIONS.get(low, low))


def _join_numbers(parts: list[Word]) -> list[Word]:
    """Join `twenty one`, `two hundred and six`, `3.5 million`; a `hundred` alone is 100."""
    result: list[Word] = []
    for word in parts:
        has_and = len(result) > 1 and result[-1].form == "and"
        previous = result[-1 - has_and] if result else None
        if previous and (number := _number_of_both(previous, word, has_and)):
            del result[-1 - has_and :]
            result.append(previous._replace(form=number, text=f"{previous.text} {word.text}"))
        elif word.form in MULTIPLIERS:
            result.append(word._replace(form=str(MULTIPLIERS[word.form]), is_number=True))
        else:
            result.append(word)
    return result


def _number_of_both(previous: Word, word: Word, has_and: bool) -> str:
    if not previous.is_number or word.gap.strip("-") or len(previous.form) > 15:
        return ""
    last = previous.text.lower().rpartition(" ")[2]
    if word.form in MULTIPLIERS and not has_and:
        return _plain(Decimal(previous.form) * MULTIPLIERS[word.form])
    if not (word.is_number and word.text[0].isalpha() and previous.form.isdecimal()):
        return ""
    is_rest = int(word.form) < MULTIPLIERS.get(last, 0)
    is_unit = NUMBERS.get(last, 0) >= 20 and int(word.form) < 10 and not has_and
    return str(int(previous.form) + int(word.form)) if is_rest or is_unit else ""


def _without_articles(parts: list[Word]) -> Iterator[Word]:
    gap = ""
    for at, word in enumerate(parts):
        if word.form in ARTICLES and len(parts) > 1 and not (at and word.text == "A"):
            gap += word.gap
        else:
            yield word._replace(gap=gap + word.gap)
            gap = ""


@lru_cache(maxsize=8192)
def stem(form: str) -> str:
    """Return a common word without the ending of its plural or verb form."""
    for ending in ("ing", "ed", "es", "s", "e"):
        if form.endswith(ending) and len(form) - len(ending) >= 3 and not form.endswith("ss"):
            root = form[: -len(ending)]
            return root.rstrip("e") if len(root) > 3 else root
    is_plural_ies = len(form) > 2 and form[-1] == "y" and form[-2] not in "aeiou"
    return f"{form[:-1]}i" if is_plural_ies else form


def month(word: Word) -> int:
    """Return the number of a month, 0 for another word."""
    return 0 if word.form == "may" and not word.is_name else MONTHS.get(word.form, 0)


# --- sentences

#: Most words that are joined to one, and least letters of one.
MAX_JOINED, MIN_SPELLING = 6, 3
#: Most sentences of an answer that are read.
MAX_SENTENCES = 40

_STOP = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[^\W_])|[\n;]+")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\"'.])(?:[A-Za-z]|mr|mrs|ms|dr|st|mt|vs|v|jr|sr|prof|gen|col|lt|capt|rev|no|vol|approx|ca"
    r"|inc|co|corp|ltd|dept|gov|sen|rep|pres|ft|e\.g|i\.e|etc|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\.$",
    re.IGNORECASE,
)
_ITEM_NUMBER = re.compile(r"\s*\d{1,2}\.\s*")
#: Marks of sources that lost their raised form: `Jonathan Harris1.`, `in 19041.`, `on May 5, 20181.`
_MARK_AFTER_WORD = re.compile(r"(?<=[a-z]{2})[1-9][0-9]?(?=[\s.,;)]|$)")
_MARK_AFTER_YEAR = re.compile(
    r"(\b(?:in|since|until|during|to|and|from|of|[0-9]{1,2},) ?(?:1[0-9]{3}|20[0-9]{2}))[1-9][0-9]?"
    r"(?=[.,;)]|\s*$)",
    re.MULTILINE,
)
#: Least blanks of a sentence in which a number that touches a word is a mark, not a part of a name.
MIN_BLANKS = 3


@dataclass(frozen=True)
class Sentence:
    """A sentence: its text and its words."""

    text: str
    words: Words

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of all words."""
        return frozenset(stem(word.form) for word in self.words)

    @cached_property
    def content(self) -> Sequence[int]:
        """The indices of words that are no function words."""
        return [at for at, word in enumerate(self.words) if word.form not in FUNCTION_WORDS]

    @cached_property
    def spellings(self) -> dict[str, Span]:
        """Where words in a row stand as one (`bee keeper`), acronyms, and with `=` the initials of names."""
        spellings: dict[str, Span] = {}
        for rows, sign in ((range(len(self.words)), ""), (self.content, "=")):
            for first in range(len(rows)):
                text = sign
                for at in rows[first : first + MAX_JOINED]:
                    word = self.words[at]
                    text += word.text[0] if sign and word.is_name else "?" if sign else word.form
                    spellings.setdefault(text, Span(rows[first], at + 1))
        written = {word.text: Span(at, at + 1) for at, word in enumerate(self.words)}
        return spellings | {text: span for text, span in written.items() if text.isupper()}


def spellings_of(golden: Words) -> tuple[str, ...]:
    """Return the spellings of a sentence that are those of a gold: as one word, acronym, initials."""
    names = [word for word in golden if word.form not in FUNCTION_WORDS]
    initials = "".join(word.text[0] for word in names) if is_name(tuple(names)) else ""
    joined = "" if golden[0].is_number else "".join(word.form for word in golden)
    spelled = f"={golden[0].text}" if len(golden) == 1 and golden[0].text.isupper() else ""
    return tuple(
        text for text in (joined, initials, spelled) if len(text.strip("=")) >= MIN_SPELLING
    )


def sentences(text: str) -> tuple[Sentence, ...]:
    """Return the sentences of an answer."""
    text = fold(text)
    parts: list[str] = []
    begin = 0
    for stop in _STOP.finditer(text):
        part = text[begin : stop.start()]
        if {*"\n;"} & {*stop[0]} or not _ABBREVIATION.search(part[-8:]):
            parts.append(part)
            begin = stop.end()
        if len(parts) >= MAX_SENTENCES:
            break
    parts.append(text[begin:])
    if len(parts) > 1:
        parts = [part for part in parts if not _ITEM_NUMBER.fullmatch(part)]
    parts = [
        _MARK_AFTER_YEAR.sub(r"\1", _MARK_AFTER_WORD.sub("", part))
        if part.count(" ") >= MIN_BLANKS
        else part
        for part in parts
    ]
    return tuple(Sentence(part, content) for part in parts if (content := words(part)))
