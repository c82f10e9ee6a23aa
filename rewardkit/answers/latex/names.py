r"""The names the grammar knows, as tables: commands, functions, joints between items, units."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rewardkit.answers.latex.tree import INF, PI, Node

CONSTANTS: Mapping[str, Node] = {
    r"\pi": PI,
    r"\infty": INF,
    r"\emptyset": ("set",),
    r"\varnothing": ("set",),
    r"\R": ("sym", "R"),
}

#: Commands of functions of one argument, by the name the evaluator uses.
FUNCTIONS: Mapping[str, str] = {
    rf"\{name}": target
    for name, target in {
        **{n: n for n in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh")},
        **{n: n for n in ("arcsin", "arccos", "arctan", "ln", "exp", "max", "min", "gcd", "lcm")},
        "log": "log",
        "lg": "lg",
        "tg": "tan",
        "arctg": "arctan",
        "arccot": "arccot",
        "arcctg": "arccot",
        "det": "det",
        "Re": "re",
        "Im": "im",
        "deg": "deg",
    }.items()
}

INVERSE: Mapping[str, str] = {
    "sin": "arcsin",
    "cos": "arccos",
    "tan": "arctan",
    "cot": "arccot",
}
SEVERAL_ARGUMENTS = frozenset({"gcd", "lcm", "max", "min"})

#: Words of plain text that are commands.
PLAIN: Mapping[str, str] = {
    **{
        name[1:]: name
        for name in FUNCTIONS
        if name not in (r"\deg", r"\Re", r"\Im", r"\max", r"\min")
    },
    "sqrt": r"\sqrt",
    "pi": r"\pi",
    "infinity": r"\infty",
    "infty": r"\infty",
    "inf": r"\infty",
    "oo": r"\infty",
    "infinitely many": r"\infty",
    "binom": r"\binom",
    "frac": r"\frac",
    "asin": r"\arcsin",
    "acos": r"\arccos",
    "atan": r"\arctan",
}

#: Operators that stand for a value nobody has worked out.
NOT_EVALUATED = frozenset(
    {r"\sum", r"\prod", r"\int", r"\iint", r"\oint", r"\lim", r"\limsup", r"\liminf"}
)

LETTERS = frozenset(
    rf"\{name}"
    for name in [
        "alpha",
        "beta",
        "gamma",
        "delta",
        "epsilon",
        "varepsilon",
        "zeta",
        "eta",
        "theta",
        "vartheta",
        "iota",
        "kappa",
        "lambda",
        "mu",
        "nu",
        "xi",
        "rho",
        "sigma",
        "tau",
        "upsilon",
        "phi",
        "varphi",
        "chi",
        "psi",
        "omega",
        "Gamma",
        "Delta",
        "Theta",
        "Lambda",
        "Xi",
        "Pi",
        "Sigma",
        "Phi",
        "Psi",
        "Omega",
        "ell",
        "hbar",
        "cdots",
        "ldots",
        "dots",
    ]
)

WRAPPERS = frozenset(
    {
        r"\boxed",
        r"\fbox",
        r"\vec",
        r"\overrightarrow",
        r"\hat",
        r"\bar",
        r"\underline",
        r"\overline",
    }
    | {r"\mathbb", r"\mathcal", r"\mathscr", r"\mathfrak", r"\tilde", r"\textcolor"}
)

FENCES: Mapping[str, tuple[str, str]] = {
    r"\lfloor": ("floor", r"\rfloor"),
    r"\lceil": ("ceil", r"\rceil"),
    r"\lvert": ("abs", r"\rvert"),
    r"\vert": ("abs", r"\vert"),
    r"\|": ("norm", r"\|"),
}

MATRICES = frozenset(
    {"matrix", "pmatrix", "bmatrix", "Bmatrix", "vmatrix", "Vmatrix", "smallmatrix", "array"}
)

RELATIONS: Mapping[str, str] = {
    "=": "=",
    r"\equiv": "=",
    r"\approx": "~",
    r"\simeq": "~",
    "<": "<",
    r"\lt": "<",
    ">": ">",
    r"\gt": ">",
    r"\le": "<=",
    r"\leq": "<=",
    r"\leqslant": "<=",
    r"\leqq": "<=",
    r"\ge": ">=",
    r"\geq": ">=",
    r"\geqslant": ">=",
    r"\geqq": ">=",
    r"\ne": "!=",
    r"\neq": "!=",
    r"\in": "in",
}

CLOSING = frozenset({")", "]", "}", r"\}", "|", r"\rfloor", r"\rceil", r"\rvert", r"\end"})

NOT_A_FACTOR = frozenset(
    CLOSING
    | RELATIONS.keys()
    | {
        r"\cup",
        r"\bigcup",
        r"\cap",
        r"\setminus",
        r"\backslash",
        r"\pm",
        r"\mp",
        r"\cdot",
        r"\times",
    }
    | {r"\div", r"\%", r"\mid", r"\vert", r"\circ", r"\to", r"\rightarrow", r"\forall", r"\bmod"}
    | {r"\pmod", r"\mod", r"\hline", r"\degree", "%", r"\Rightarrow"}
)

AND = frozenset({"and", "und", "和", "与", "及", "以及", r"\land", r"\wedge", "&"})
OR = frozenset({"or", "或", "或者", r"\lor", r"\vee"})
_SCOPE = frozenset({"for", "where", r"\forall", "其中"})

#: Words of two letters that are no product of two names.
SHORT_WORDS = frozenset({"no", "on", "up", "so", "go", "do", "it", "us", "me"})

#: Single letters that are a function where a bracket with one name or number follows; `f` and `g`
#: where any bracket does. Others multiply.
FUNCTION_LETTERS = frozenset("fghFGHPQTSWpqu")

#: Chinese multipliers behind a number.
MYRIADS: Mapping[str, int] = {"十": 10, "百": 100, "千": 1000, "万": 10_000, "亿": 100_000_000}

#: Currencies that stand before their number.
CURRENCIES = frozenset({"usd", "€", "£", "元"})

#: Words behind a number that multiply it, and words that change it in a way that is not read.
MULTIPLIERS: Mapping[str, int] = {
    "dozen": 12,
    "hundred": 100,
    "thousand": 1000,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
}
CHANGING = frozenset(
    {
        "squared",
        "cubed",
        "choose",
        "half",
        "not",
        "no",
        "is",
        "isn't",
        "wrong",
        "or",
        "less",
        "more",
    }
)

#: Characters that deny what stands before them: 不是, 错的, 并非.
DENYING = frozenset("不错误非")

#: One spelling for the units that have several.
UNITS: Mapping[str, str] = {
    spelling: unit
    for unit, spellings in {
        "cm": "cm centimeter centimeters centimetre centimetres 厘米",
        "mm": "mm millimeter millimeters millimetre millimetres 毫米",
        "m": "meter meters metre metres 米",
        "km": "km kilometer kilometers kilometre kilometres 千米 公里",
        "in": "inch inches",
        "ft": "foot feet ft",
        "mi": "mile miles",
        "g": "gram grams 克",
        "kg": "kg kilogram kilograms 千克 公斤",
        "s": "sec second seconds 秒",
        "min": "min minute minutes 分钟",
        "h": "hr hrs hour hours 小时",
        "d": "day days 天",
        "$": "$ dollar dollars usd",
        "元": "元 人民币 yuan rmb",
        "cent": "cent cents",
        "€": "€ euro euros eur",
        "£": "£ gbp",
        "mi/h": "mph",
        "km/h": "kph kmh",
        "l": "liter liters litre litres 升",
        "ml": "ml milliliter milliliters 毫升",
        "unit": "unit units",
        "°": "degree degrees 度",
        "pct": "percent percentage pct 百分之",
    }.items()
    for spelling in spellings.split()
}


def is_joint(text: str) -> bool:
    """Whether a word or command joins items: and, or."""
    return text.casefold().strip(" ,") in AND | OR


def is_scope(text: str) -> bool:
    """Whether what follows only says where the answer holds: `for all n`."""
    return text.casefold().strip(" ,(").partition(" ")[0] in _SCOPE


def is_plain_text(text: str) -> bool:
    """Whether letters in a row are a word or a unit, not a product of names or a function."""
    return (
        is_unit(text)
        or is_joint(text)
        or is_scope(text)
        or ((len(text) >= 3 or not text.isascii()) and text.lower() not in PLAIN)
    )


def is_unit(text: str) -> bool:
    """Whether a word of plain text is a unit."""
    return text in UNITS


_PER = re.compile(r"(?<![a-z])per(?![a-z])")


def unit_name(text: str) -> str:
    """One spelling of a unit's text: lower case, its plural and its synonyms folded."""
    plain = _PER.sub("/", text.casefold().replace("{", "").replace("}", ""))
    found = [UNITS.get(word, word) for word in plain.split()]
    return "".join(UNITS.get(word.rstrip("s"), word) for word in found)
