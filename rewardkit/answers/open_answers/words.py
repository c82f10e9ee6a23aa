"""The words of a short text in the form in which answers are compared.

Case, accents, punctuation and articles do not count. Numbers in words, ordinals and Roman numerals
become numbers; units, months and common abbreviations become one form.
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
    " about during around over under between within because 是"
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

#: Numbers in words.
NUMBERS = _count(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth"
    " fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth", 1
) | _count("thirtieth fortieth fiftieth sixtieth seventieth eightieth ninetieth", 3, 10) | _count(
    "twenty thirty forty fifty sixty seventy eighty ninety", 2, 10
) | _count(
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

#: Words with which a sentence only guesses.
HEDGES = split_words(
    "might maybe possibly perhaps likely probably possible guess option candidate alternatively could"
    " 可能 也许"
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


#: Chinese words that state, deny or join: the others of a row of characters are not told apart.
_CHINESE_WORD = "不是|并非|不为|没有|或者|还是|可能|也许|是错|不对|错误|[是或和]"
_TOKEN = re.compile(
    r"\d{1,2}(?=\.\d{1,2}\.\d{4}\b)|(?<=\d\.)\d{1,2}(?=\.\d{4}\b)"  # 4.7.1776
    r"|\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?"
    rf"|{_CHINESE_WORD}|(?:(?!{_CHINESE_WORD})[⺀-⿿\u3040-鿿가-힯])+"
    r"|[^\W\d_⺀-鿿가-힯]+(?:'[^\W\d_]+)*(?:[+#]{1,2}(?!\w)|(?<=\b[A-Z])-(?![\w-]))?|[%$€£°&]"
)
_CHINESE_DATE = re.compile(r"(\d{4})年(\d{1,2})月(\d{1,2})[日号]?")
_DOTTED_LETTERS = re.compile(r"\b[A-Za-z]\.(?: ?[A-Za-z]\b\.?)+")
#: Where a blank is missing: `inNew York`, `astronomerAnders`.
_GLUED = re.compile(r"\b(The|[a-z]{2,20})(?=[A-Z][a-z])")
_RAISED_DIGITS = re.compile("[\u00b9\u00b2\u00b3\u2070-\u209f]+")
#: `$94m`, `£3bn`
_MONEY = re.compile(r"([$£€] ?\d[\d.,]{0,20}) ?(m|mn|bn|b|k)\b", re.IGNORECASE)
_SCALES = {"m": "million", "mn": "million", "bn": "billion", "b": "billion", "k": "thousand"}
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
    text = _RAISED_DIGITS.sub(" ", text[:MAX_CHARS]).translate(_FOLDED)
    if text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def words(text: str) -> tuple[Word, ...]:
    """Return the words of a text, without articles."""
    text = _DOTTED_LETTERS.sub(lambda m: re.sub("[. ]", "", m[0]) + " ", fold(text))
    text = _GLUED.sub(r"\1 ", text.replace("per cent", "percent"))
    text = _MONEY.sub(lambda m: f"{m[1]} {_SCALES[m[2].lower()]}", text)
    text = _CHINESE_DATE.sub(r"\1-\2-\3", text)
    text = _PLACE.sub(lambda m: PLACE_NAMES[re.sub(r"[\s,]+", " ", m[0].lower())].title(), text)
    return tuple(_without_articles(_join_numbers(_raw_words(text))))


def _raw_words(text: str) -> list[Word]:
    result: list[Word] = []
    end = 0
    for token in _TOKEN.finditer(text):
        raw, gap = token[0], text[end : token.start()]
        is_negative = gap == "-" if not result else gap[-2:] in (" -", "(-")
        is_dash = gap.strip() == "-" and gap[0] == gap[-1] == " "
        end = token.end()
        previous = result[-1] if result else None
        ending = raw.lower() if not gap and previous and previous.is_number else ""
        mark = "|" if is_dash else gap.replace(" ", "")
        if raw[0].isdecimal():
            form = _plain(Decimal(raw.replace(",", "")))
            if previous and gap in ("", "-") and re.fullmatch("[A-Za-z]", previous.text):
                # one word, as `A5` and `F-16`: neither `a` nor `5`
                result[-1] = Word(
                    previous.form + form, False, False, False, previous.gap, previous.text + raw
                )
            else:
                result.append(Word("-" * is_negative + form, False, True, False, mark, raw))
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
    low = text.lower()
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
        if previous and (number := _number_of_both(previous, word, has_and)):
            del result[-1 - has_and :]
            text = f"{previous.text} {word.text}"
            result.append(previous._replace(form=str(number), text=text))
        else:
            result.append(word)
    return result


def _number_of_both(previous: Word, word: Word, has_and: bool) -> int:
    """Return the number of `twenty one`, `two hundred and six`, `nineteen forty`; 0 for two numbers."""
    last = previous.text.lower().rpartition(" ")[2]
    in_words = word.is_number and word.text[0].isalpha()
    is_close = not word.gap.strip("-" if last in NUMBERS else ",-")
    both = previous.form.isdecimal() and word.form.isdecimal() and len(word.form) < 16
    if not (in_words and is_close and both):
        return 0
    a, b = int(previous.form), int(word.form)
    if last in MULTIPLIERS:
        return a + b if b < MULTIPLIERS[last] else 0
    if has_and or last not in NUMBERS:
        return 0
    if NUMBERS[last] >= 20 and b < 10:
        return a + b
    return 100 * a + b if 15 <= a <= 20 and 10 <= b < 100 else 0


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
#: Least words of a sentence in which a number that touches a word is a mark, not a part of a name.
MIN_MARKED_WORDS = 4


class Sentence(NamedTuple):
    """A sentence: its text and its words."""

    text: str
    words: tuple[Word, ...]


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
    parts = [
        _without_marks(part)
        for part in parts
        if len(parts) == 1 or not _ITEM_NUMBER.fullmatch(part)
    ]
    return tuple(Sentence(part, content) for part in parts if (content := words(part)))


def _without_marks(part: str) -> str:
    if part.count(" ") + 1 < MIN_MARKED_WORDS:
        return part
    return _MARK_AFTER_YEAR.sub(r"\1", _MARK_AFTER_WORD.sub("", part))
