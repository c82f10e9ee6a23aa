"""The words with a fixed meaning in short answers: numbers, months, titles, units, places, denials.

Every table is field knowledge that is complete in itself. None is a list of answers.
"""

from rewardkit.answers.parsing.vocabulary import split_words

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
