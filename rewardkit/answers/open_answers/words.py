"""The words of a short text in the form in which answers are compared.

Case, accents, punctuation, possessives and articles do not count. Numbers in words, ordinals, Roman
numerals and thousands separators become numbers; units, months and common abbreviations become one
form. `Word` keeps what a comparison needs besides: whether the word is written as a name, whether
it is a number, and what punctuation precedes it.
"""

import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from rewardkit.answers.parsing.vocabulary import pairs, split_words

# --- words with a fixed meaning. Every table is field knowledge; none is a list of answers.

ARTICLES = split_words("a an the")

#: Words without content of their own: they may be missing or differ.
FUNCTION_WORDS = ARTICLES | split_words(
    "of in on at to for by with from into as and or is are was were be been being it its this that"
    " these those there their his her he she they them him who whom which what when where why how"
    " do does did has have had will would can could may i you we my your our s t than then so also"
    " about during around over under between within"
)

#: Words of a question that asks for a person: pronouns, and persons by what they do.
PERSON_WORDS = split_words(
    "who whom whose surname actor actress author singer president king queen person man woman"
    " scientist physicist chemist philosopher economist artist painter sculptor composer writer"
    " novelist poet playwright dramatist director comedian star dancer leader explorer inventor"
    " engineer astronaut player footballer golfer boxer cricketer athlete coach pope monarch emperor"
    " empress prince princess general admiral senator philanthropist"
)


def _count(text: str, start: int = 0, step: int = 1) -> dict[str, int]:
    return {word: step * value for value, word in enumerate(text.split(), start)}


MONTHS = {
    name: month
    for names, month in _count(
        "january,jan february,feb march,mar april,apr may june,jun july,jul august,aug"
        " september,sep,sept october,oct november,nov december,dec",
        1,
    ).items()
    for name in names.split(",")
}

#: Numbers in words: ordinals, and these with the cardinal numbers below one hundred.
ORDINALS = _count(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth"
    " fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth", 1
) | _count("thirtieth fortieth fiftieth sixtieth seventieth eightieth ninetieth", 3, 10)  # fmt: skip
NUMBERS = ORDINALS | _count("twenty thirty forty fifty sixty seventy eighty ninety", 2, 10) | _count(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen"
)  # fmt: skip
MULTIPLIERS = {
    "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12
}  # fmt: skip


def _forms(table: str) -> dict[str, str]:
    """Return the first word of each group of a table, by every word of the group."""
    groups = [group.split() for group in table.split(";")]
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
PLACE_NAMES = {
    words: name
    for name, forms in (
        ("usa", "us|usa|united states|united states of america"),
        ("uk", "uk|united kingdom|great britain|britain"),
        ("ussr", "ussr|soviet union"),
        ("uae", "uae|united arab emirates"),
        ("eu", "eu|european union"),
        ("un", "un|united nations"),
        ("la", "los angeles"),
        ("dc", "dc|washington dc|district of columbia"),
    )
    for words in forms.split("|")
}

#: Titles, ranks and honorifics before a name, and prefixes of ships.
TITLES = split_words(
    "gen col lt capt sgt rep sen gov rms hms uss ss madame mme chairman comrade mr mrs ms miss dr doctor prof professor sir dame lord lady king queen prince princess emperor"
    " empress president vice chancellor minister senator governor mayor judge justice general colonel"
    " major captain lieutenant sergeant admiral marshal archduke duke duchess count countess baron"
    " baroness earl pope bishop archbishop cardinal saint father reverend rev rabbi tsar czar sultan"
    " chief prime secretary congressman congresswoman representative ambassador coach comedian"
)
#: Parts after a name.
NAME_SUFFIXES = split_words("junior senior phd md esq")

#: Words that make another name of the name that they precede.
PLACE_MODIFIERS = split_words(
    "new north south east west northern southern eastern western northeast northwest southeast"
    " southwest upper lower central great little old inner outer"
)

#: Kinds of things that a name may be given with or without.
GENERIC_NOUNS = split_words(
    "city town village state county province region country republic kingdom empire island islands"
    " river lake sea ocean bay mount mountain mountains valley desert peninsula district area"
    " continent language languages family people nation project company corporation incorporated band group"
    " team club party university college school museum theatre theater stadium airport station"
    " street road avenue building tower bridge castle palace church cathedral park film movie novel"
    " book song album series show play game magazine newspaper beer wine dish sauce cheese bird"
    " plant tree flower animal fish disease syndrome system process method theory law act treaty"
    " war battle army navy day year season number type kind part name word term period raid award"
    " records"
)

#: Words of a question that asks for several things.
SEVERAL_WORDS = split_words(
    "list cast all some several two three four five six seven eight nine ten both members names"
    " order types kinds examples countries states cities people actors players"
)
#: Words after `or` that widen a number instead of replacing it: `18 or older`.
COMPARATIVES = split_words(
    "older younger more less fewer later earlier above below over under higher lower greater so"
)
#: Words between alternatives, also in other languages.
JOINTS = split_words(
    "and or versus plus then else alternatively otherwise oder und ou et o y e x или и か と as well"
)
#: Words with which a sentence only guesses.
HEDGES = split_words(
    "might maybe possibly perhaps likely probably possible guess option candidate alternatively could"
)
#: Words that make another number of the number beside them: `half of 206`, `206 dozen`.
NUMBER_CHANGERS_BEFORE = split_words("half twice double triple minus plus times third quarter")
NUMBER_CHANGERS_AFTER = split_words(
    "percent dozen dozens pair pairs plus minus times squared cubed bc bce ago thousandth millionth"
)
#: Words in lower case inside the name of a person.
NAME_PARTICLES = split_words("of de del della di da dos du la le van von der den bin ibn al el y")

#: Words that bound the number after them.
BOUNDS = split_words("before after than until pre post under below above beyond nearly almost")
#: Words for somebody or something related, as in `the wife of X`.
RELATIVES = split_words(
    "wife husband son daughter father mother brother sister widow widower friend uncle aunt cousin"
    " nephew niece grandson granddaughter grandfather grandmother opposite rival successor"
    " predecessor student pupil teacher contemporary imitator parent parents suburb outskirts colleague"
    " assistant biographer admirer"
)
#: Kinds of places whose name follows `of`: `City of London`.
KINDS_OF_PLACES = split_words(
    "city town village state republic kingdom island isle county province region district territory"
    " commonwealth sultanate emirate duchy principality gulf bay strait cape lake"
)

# --- reading

#: Most characters of a text that is split into words.
MAX_CHARS = 4000


class Word(NamedTuple):
    """A word of a text.

    Attributes:
        form: the form in which it is compared; a number is in digits.
        is_name: whether it is written with a capital letter.
        is_number: whether it is a number.
        is_ordinal: whether it is an ordinal number.
        gap: the punctuation before it, without blanks.
        text: the word as it is written, without accents.
    """

    form: str
    is_name: bool
    is_number: bool
    is_ordinal: bool
    gap: str
    text: str


_TOKEN = re.compile(
    r"\d+(?:,\d{3}(?!\d))*(?:\.\d+)?|[⺀-⿿\u3040-鿿가-힯]+|[^\W\d_⺀-鿿가-힯]+(?:'[^\W\d_]+)*(?:[+#]{1,2}(?!\w)|(?<=\b[A-Z])-(?![\w-]))?|[%$€£°&]"
)
_DOTTED_LETTERS = re.compile(r"\b[A-Za-z]\.(?: ?[A-Za-z]\b\.?)+")
#: Where a blank is missing: `inNew York`.
_GLUED = re.compile(
    r"(?<=\b(?:in|on|by|is|to|of|at))(?=[A-Z][a-z])|(?<=\b(?:was|the|and|for))(?=[A-Z][a-z])|(?<=\bfrom)(?=[A-Z][a-z])"
)
_SUPERSCRIPTS = re.compile("[\u00b9\u00b2\u00b3\u2070-\u209f\U0001f000-\U0001ffff]+")
_PER_CENT = re.compile(r"\bper cent\b", re.IGNORECASE)
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_ORDINAL_ENDINGS = frozenset({"st", "nd", "rd", "th"})
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
    """Return a text without accents, superscripts and typographic quotes; case stays."""
    text = _SUPERSCRIPTS.sub(" ", text[:MAX_CHARS]).translate(_FOLDED)
    if text.isascii():
        return text
    parts = unicodedata.normalize("NFKD", text)
    return "".join(char for char in parts if not unicodedata.combining(char))


def words(text: str) -> tuple[Word, ...]:
    """Return the words of a text, without articles."""
    text = _DOTTED_LETTERS.sub(lambda m: re.sub("[. ]", "", m[0]) + " ", fold(text))
    text = _PER_CENT.sub("percent", _GLUED.sub(" ", text))
    text = _PLACE.sub(lambda m: PLACE_NAMES[re.sub(r"[\s,]+", " ", m[0].lower())].title(), text)
    return tuple(_without_articles(_join_numbers(_raw_words(text))))


def _raw_words(text: str) -> list[Word]:
    result: list[Word] = []
    end = 0
    for token in _TOKEN.finditer(text):
        raw, gap = token[0], text[end : token.start()]
        is_code = gap in ("", "-")
        glued = not gap and bool(result)
        is_negative = gap == "-" if not result else gap[-2:] in (" -", "(-")
        is_dash = gap.strip() == "-" and gap[0] == gap[-1] == " "
        gap = "|" if is_dash else gap.replace(" ", "")
        end = token.end()
        previous = result[-1] if result else None
        if raw[0].isdigit() and is_code and previous and re.fullmatch("[A-Za-z]", previous.text):
            code = _number_word(raw, gap).form  # one word, as `A5` and `F-16`: neither `a` nor `5`
            form, text = previous.form + code, previous.text + raw
            result[-1] = previous._replace(form=form, is_name=False, text=text)
        elif raw[0].isdigit():
            number = _number_word(raw, gap)
            result.append(number._replace(form=f"-{number.form}") if is_negative else number)
        elif glued and previous and previous.is_number and raw.lower() in _ORDINAL_ENDINGS:
            result[-1] = previous._replace(is_ordinal=True)
        elif glued and previous and previous.is_number and raw.lower() == "s":  # 1920s
            result[-1] = previous._replace(form=f"{previous.form}s", is_number=False)
        else:
            result.append(_plain_word(raw, gap, previous))
    return result


def _number_word(raw: str, gap: str) -> Word:
    digits = raw.replace(",", "") if _THOUSANDS.fullmatch(raw) else raw.partition(",")[0]
    return Word(_plain(Decimal(digits)), False, True, False, gap, raw)


def _plain(value: Decimal) -> str:
    digits = f"{value:f}"
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def _plain_word(raw: str, gap: str, previous: Word | None) -> Word:
    text = raw
    if raw[-2:] in ("'s", "'S"):
        text = raw[:-2]
    text = text.replace("'", "")
    low = text.lower()
    is_name = raw[0].isupper()
    if low in NUMBERS:
        return Word(str(NUMBERS[low]), is_name, True, low in ORDINALS, gap, text)
    if previous and previous.is_number and low in UNITS_AFTER_NUMBER and not gap.strip("-"):
        return Word(UNITS_AFTER_NUMBER[low], False, False, False, gap, text)
    if text in _ROMANS and previous and previous.is_name and len(previous.form) > 2 and not gap:
        return Word(str(_ROMANS[text]), True, True, True, gap, text)
    if low in UNITS and (low not in ABBREVIATIONS or (previous and previous.is_number)):
        return Word(UNITS[low], is_name, False, False, gap, text)
    return Word(ABBREVIATIONS.get(low, low), is_name, False, False, gap, text)


def _join_numbers(parts: list[Word]) -> list[Word]:
    result: list[Word] = []
    for word in _join_remainders(parts):
        previous = result[-1] if result else None
        if word.form in MULTIPLIERS and previous and previous.is_number and not word.gap.strip("-"):
            value = _plain(Decimal(previous.form) * MULTIPLIERS[word.form])
            result[-1] = previous._replace(form=value, text=f"{previous.text} {word.text}")
        elif word.form in MULTIPLIERS and previous and previous.form in ("a", "an"):
            result[-1] = word._replace(form=str(MULTIPLIERS[word.form]), is_number=True)
        else:
            result.append(word)
    return _join_remainders(result)


def _join_remainders(parts: list[Word]) -> list[Word]:
    result: list[Word] = []
    for word in parts:
        has_and = len(result) > 1 and result[-1].form == "and"
        previous = result[-2] if has_and else result[-1] if result else None
        if previous and _is_remainder(previous, word, has_and):
            if has_and:
                result.pop()
            total = str(int(previous.form) + int(word.form))
            text = f"{previous.text} {word.text}"
            result[-1] = previous._replace(form=total, text=text, is_ordinal=word.is_ordinal)
        else:
            result.append(word)
    return result


def _is_remainder(previous: Word, word: Word, has_and: bool) -> bool:
    text = previous.text.lower()
    is_tens = text in NUMBERS and previous.form in "20 30 40 50 60 70 80 90".split() and not has_and
    scale = 10 if is_tens else MULTIPLIERS.get(text.rpartition(" ")[2], 0)
    in_words = (
        word.is_number and word.text[0].isalpha() and not word.gap.strip("-" if is_tens else ",-")
    )
    both = previous.is_number and previous.form.isdecimal() and word.form.isdecimal()
    return in_words and both and len(word.form) < 16 and int(word.form) < scale


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
    if len(form) > 4 and form.endswith("ies"):
        return f"{form[:-3]}i"  # as the stem of the word that ends in y
    for ending in ("ing", "ed", "es", "s", "e"):
        if form.endswith(ending) and len(form) - len(ending) >= 3 and not form.endswith("ss"):
            root = form[: -len(ending)]
            if len(root) > 3 and root[-1] == root[-2] and ending in ("ing", "ed"):
                root = root[:-1]
            return root.rstrip("e") if len(root) > 3 else root
    is_plural_ies = len(form) > 2 and form[-1] == "y" and form[-2] not in "aeiou"
    return f"{form[:-1]}i" if is_plural_ies else form


def month(word: Word) -> int:
    """Return the number of a month, 0 for another word."""
    return 0 if word.form == "may" and not word.is_name else MONTHS.get(word.form, 0)


# --- sentences

#: Most sentences of an answer that are read.
MAX_SENTENCES = 40

_DOTTED = re.compile(r"\b([A-Za-z])\. ?(?=[A-Za-z]\.)")
_STOP = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[^\W_])|[\n;]+")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\"'.])(?:[A-Za-z]|mr|mrs|ms|dr|st|mt|vs|v|jr|sr|prof|gen|col|lt|capt|rev|no|vol|approx|ca"
    r"|inc|co|corp|ltd|dept|gov|sen|rep|pres|ft|e\.g|i\.e|etc|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\.$",
    re.IGNORECASE,
)


#: Marks of sources that lost their raised form: `Jonathan Harris1.`, `in 19041.`, `on May 5, 20181.`
_MARK_AFTER_WORD = re.compile(r"(?<=[a-z]{2})[1-9][0-9]?(?=[\s.,;)]|$)")
_MARK_AFTER_YEAR = re.compile(
    r"(\b(?:in|since|until|during|to|and|from|of|[0-9]{1,2},) ?(?:1[0-9]{3}|20[0-9]{2}))[1-9][0-9]?"
    r"(?=[.,;)]|\s*$)",
    re.MULTILINE,
)
#: Least words of a sentence in which a number that touches a word is a mark, not a part of a name.
MIN_MARKED_WORDS = 4


class Sentence(NamedTuple):
    """A sentence: its text and its words."""

    text: str
    words: tuple[Word, ...]


def sentences(text: str) -> tuple[Sentence, ...]:
    """Return the sentences of an answer."""
    text = _DOTTED.sub(r"\1.", fold(text))
    parts: list[str] = []
    begin = 0
    for stop in _STOP.finditer(text):
        part = text[begin : stop.start()]
        is_stop = "\n" in stop[0] or ";" in stop[0]
        if not is_stop and _ABBREVIATION.search(part[-8:]):
            continue
        parts.append(part)
        begin = stop.end()
        if len(parts) >= MAX_SENTENCES:
            break
    parts.append(text[begin:])
    parts = list(map(_without_marks, parts))
    return tuple(Sentence(part, content) for part in parts if (content := words(part)))


def _without_marks(part: str) -> str:
    if part.count(" ") + 1 < MIN_MARKED_WORDS:
        return part
    return _MARK_AFTER_YEAR.sub(r"\1", _MARK_AFTER_WORD.sub("", part))
