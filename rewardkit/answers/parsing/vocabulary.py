r"""Tables of the words and commands that the grammar knows."""

from __future__ import annotations

from collections.abc import Mapping

from rewardkit.answers.parsing.tree import INF, Node

#: Alias of a command -> the name that tokens use.
COMMAND_ALIASES: Mapping[str, str] = {
    f"\\{other}": f"\\{name}"
    for name, others in {
        "frac": "dfrac tfrac cfrac nicefrac sfrac",
        "binom": "dbinom tbinom",
        "le": "leq leqslant leqq",
        "ge": "geq geqslant geqq",
        "ne": "neq",
        "approx": "simeq thickapprox approxeq",
        "emptyset": "varnothing",
        "epsilon": "varepsilon",
        "theta": "vartheta",
        "phi": "varphi",
        "rho": "varrho",
        "sigma": "varsigma",
        "pi": "varpi",
        "kappa": "varkappa",
        "dots": "ldots cdots dotsc dotsb dotso",
        "to": "rightarrow longrightarrow",
        "land": "wedge",
        "lor": "vee",
        "neg": "lnot",
        "in": "isin",
        "cup": "bigcup",
        "cap": "bigcap",
        "setminus": "backslash smallsetminus",
        "cdot": "ast bullet centerdot",
        "degree": "textdegree",
        "|": "Vert lVert rVert",
        "infty": "infin",
        "arctan": "arctg",
        "tan": "tg",
        "cot": "ctg",
        "arccot": "arcctg",
        "sinh": "sh",
        "cosh": "ch",
        "tanh": "th",
        "arcsinh": "arsinh",
        "arccosh": "arcosh",
        "arctanh": "artanh",
        "bmod": "mod",
        "mathcal": "mathscr mathfrak cal",
        "overrightarrow": "vec",
        "overline": "bar",
        "widehat": "hat",
        "widetilde": "tilde",
    }.items()
    for other in others.split()
}

#: Command -> the operator it stands for.
OPERATOR_COMMANDS: Mapping[str, str] = {
    r"\vert": "|",
    r"\lvert": "|",
    r"\rvert": "|",
    r"\%": "%",
    r"\lbrack": "[",
    r"\rbrack": "]",
    r"\colon": ":",
    r"\prime": "'",
    r"\lt": "<",
    r"\gt": ">",
    r"\slash": "/",
}

_TRIGONOMETRY = "sin cos tan cot sec csc sinh cosh tanh arcsin arccos arctan arccot".split()

#: Command of a function -> the name that the evaluator uses.
FUNCTION_COMMANDS: Mapping[str, str] = {
    **{f"\\{name}": name for name in _TRIGONOMETRY},
    **{f"\\{name}": name for name in ("ln", "exp", "max", "min", "gcd", "lcm", "log", "lg", "det")},
    **{
        f"\\{name}": name for name in ("arcsinh", "arccosh", "arctanh", "dim", "ker", "arg", "cbrt")
    },
    r"\Re": "re",
    r"\Im": "im",
    r"\deg": "deg",
}
INVERSE_FUNCTIONS: Mapping[str, str] = {
    name: f"arc{name}"
    for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh")
}
MULTI_ARGUMENT_FUNCTIONS = frozenset({"gcd", "lcm", "max", "min"})

#: Word of plain text -> the command it stands for.
WORD_COMMANDS: Mapping[str, str] = {
    **{name: f"\\{name}" for name in _TRIGONOMETRY},
    **{name: f"\\{name}" for name in ("ln", "log", "lg", "exp", "gcd", "lcm", "sqrt", "pi", "binom")},
    **{name: f"\\{name}" for name in ("infty", "cbrt", "lim", "frac", "arcsinh", "arccosh", "arctanh")},
    **dict.fromkeys(("infinity", "Infinity", "oo", "inf"), r"\infty"),
    **{other: COMMAND_ALIASES[f"\\{other}"] for other in ("arsinh", "arcosh", "artanh", "sh", "ch", "tg", "ctg", "arctg", "arcctg")},
    "asin": r"\arcsin",
    "acos": r"\arccos",
    "atan": r"\arctan",
    "arctg": r"\arctan",
    "theta": r"\theta",
    "alpha": r"\alpha",
    "beta": r"\beta",
    "lambda": r"\lambda",
}  # fmt: skip

#: Operators that are never evaluated.
UNEVALUATED_OPERATORS = frozenset(
    {r"\sum", r"\prod", r"\int", r"\iint", r"\iiint", r"\oint", r"\lim", r"\limsup", r"\liminf"}
)

LETTER_COMMANDS = frozenset(
    f"\\{name}"
    for name in (
        "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron rho sigma"
        " tau upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega ell hbar"
        " partial nabla aleph imath jmath wp top dagger"
    ).split()
)

#: Accents above a name, which make it a different name.
ACCENTS = frozenset(
    rf"\{name}"
    for name in (
        "overline widehat widetilde overrightarrow overleftarrow dot ddot dddot check breve acute"
        " grave mathring cancel sout overset underset overbrace underbrace stackrel"
    ).split()
)
#: Fonts that do not change a name.
FONT_COMMANDS = frozenset({r"\mathcal"})
#: Signs before the name of an angle, a triangle, an arc.
SHAPE_COMMANDS = frozenset(
    {r"\angle", r"\measuredangle", r"\triangle", r"\odot", r"\square", r"\overarc"}
)

FENCES: Mapping[str, tuple[str, str]] = {
    r"\lfloor": ("floor", r"\rfloor"),
    r"\lceil": ("ceil", r"\rceil"),
    r"\|": ("norm", r"\|"),
    r"\langle": ("mean", r"\rangle"),
}

MATRIX_ENVIRONMENTS = frozenset(
    {"matrix", "pmatrix", "bmatrix", "Bmatrix", "vmatrix", "Vmatrix", "smallmatrix", "array"}
)
#: Environments that are rows of formulas.
ROW_ENVIRONMENTS = frozenset(
    {"cases", "dcases", "rcases", "aligned", "align", "align*", "gathered", "split"}
)

#: Sign of a relation -> the operator that the tree uses.
RELATION_SIGNS: Mapping[str, str] = {
    "=": "=",
    r"\equiv": "=",
    r"\approx": "~",
    r"\doteq": "~",
    "<": "<",
    ">": ">",
    r"\le": "<=",
    r"\ge": ">=",
    r"\ne": "!=",
    r"\in": "in",
    r"\notin": "notin",
    r"\subset": "subset",
    r"\subseteq": "subset",
    r"\parallel": "parallel",
    r"\perp": "perp",
    r"\cong": "cong",
    r"\sim": "sim",
    r"\propto": "propto",
}
FLIPPED_OPERATORS: Mapping[str, str] = {
    "<": ">",
    ">": "<",
    "<=": ">=",
    ">=": "<=",
    "=": "=",
    "!=": "!=",
    "~": "~",
}

CLOSING_SIGNS = frozenset({")", "]", "}", r"\}", "|", r"\rfloor", r"\rceil", r"\rangle", r"\end"})
#: Commands with which a factor cannot begin.
NON_FACTOR_COMMANDS = frozenset(
    CLOSING_SIGNS
    | RELATION_SIGNS.keys()
    | UNEVALUATED_OPERATORS
    | {
        rf"\{n}"
        for n in "cup cap setminus pm mp cdot times div mid circ to forall exists bmod".split()
    }
    | {
        rf"\{n}"
        for n in "over pmod hline degree Rightarrow land lor neg choose permille prime dots not".split()
    }
    | {r"\$", r"\%", r"\&", r"\#", r"\_", r"\iff", r"\Leftrightarrow", r"\mapsto", r"\quad"}
) - {r"\sum", r"\prod", r"\int", r"\lim"}

CONJUNCTIONS = frozenset(
    {"and", "und", "et", "和", "与", "及", "以及", "且", "并且", r"\land", "&", r"\&"}
)
DISJUNCTIONS = frozenset({"or", "oder", "或", "或者", r"\lor"})
#: Words that begin a clause, which says where an answer holds.
CLAUSE_OPENERS = frozenset(
    {
        "for",
        "where",
        "when",
        "if",
        "with",
        "whenever",
        "provided",
        "otherwise",
        "else",
        "as",
        r"\forall",
    }
    | {"其中", "其他", "当", "对", "对于", "对任意", "若", "这里"}
)
#: Words between a label and its value.
COPULAS = frozenset(
    {"is", "are", "equals", "equal", "was", "be", "为", "是", "等于", "有", "有以下"}
)
#: Words that introduce an answer.
LEAD_INS = frozenset(
    {"therefore", "thus", "hence", "so", "then", "finally", "因此", "所以", "故", "综上"}
)
#: Words before a value that do not change it.
NEUTRAL_QUALIFIERS = frozenset(
    {"about", "approximately", "approx", "roughly", "exactly", "around", "only"}
    | {"约", "大约", "约为", "大约为"}
    | {whole + verb for whole in ("", "共", "一共", "总共") for verb in ("有", "是", "需", "需要")}
    | {"共", "一共", "总共"}
)
#: Words after a number that make it a different number.
SCALING_WORDS = frozenset(
    (
        "mil bn mn tn lakh lakhs crore crores score gross dozens grand tens hundreds thousands millions"
        " billions trillions tenths hundredths thousandths halves thirds fourths fifths sixths sevenths"
        " eighths ninths doubled halved tripled squared cubed"
    ).split()
)
#: Words after a number that retract it, at any distance.
RETRACTIONS = frozenset(
    (
        "excluded rejected removed missing impossible extraneous invalid discarded fails ruled"
        " contradicts root debt below loss upwards wrong incorrect"
    ).split()
)
#: Words beside a number that change, bound or retract it. No unit contains one of them.
NUMBER_MODIFIERS = (
    SCALING_WORDS
    | RETRACTIONS
    | frozenset(
        (
            "reciprocal inverse untrue conjectured unlikely assuming guess estimated exclusive excluding point"
            " base upper lower bound short shy complement supplement one two three four five six seven eight"
            " nine ten by squared cubed choose half not no nor neither never isn't is are was be wrong incorrect or"
            " and but if unless except than more less fewer least most over under above below between"
            " to until through up twice double triple thrice times plus minus divided multiplied mod"
            " modulo factorial negative positive maybe perhaps possibly either else instead rather"
            " other others another any different equal equals greater smaller larger at out versus vs"
            " about almost nearly approximately question unknown undefined false true also too remainder"
            " january february march april june july august september october november december may am pm"
            " choices given where when for because since so then however non without only"
        ).split()
    )
)
#: Words that state a value without a digit -> the value.
WORD_VALUES: Mapping[str, Node] = {
    **dict.fromkeys(
        ("infinitely many", "infinite", "无穷多", "无穷大", "无数", "无数个", "无穷多个"), INF
    ),
    **dict.fromkeys(
        ("no solution", "no solutions", "no real solution", "no real solutions"), ("set",)
    ),
    **dict.fromkeys(("empty set", "the empty set", "无解", "无实数解", "空集"), ("set",)),
    **dict.fromkeys(
        ("all real numbers", "all reals", "全体实数", "一切实数", "任意实数"), ("sym", "R")
    ),
}
#: Chinese after a number that denies, bounds or changes it.
CHINESE_NUMBER_MODIFIERS = tuple(
    "的 几 进制 为负 舍 增根 不 错 误 非 未 或 和 与 及 至 到 超过 以上 以下 以内 以外 少于 多 大于 小于 除 倍 折 成 半 分之 次方 的平方 左右".split()
)

#: Words of a label that leave open whether its value is the answer.
DOUBT_WORDS = frozenset(
    (
        "let suppose assume find compute determine calculate evaluate not no nor never neither nothing none nobody cannot can't couldn't isn't aren't wasn't could"
        " might may maybe perhaps possibly probably guess wrong incorrect false except unless besides"
        " instead negative minus"
    ).split()
)
#: Operations that a label applies to its value: the reciprocal of 5 is not 5.
LABEL_OPERATIONS = frozenset(
    (
        "square cube root reciprocal opposite inverse half double twice triple third quarter bound"
        " negation complement"
    ).split()
)


#: Words before a number that keep a sentence from stating the number.
STATEMENT_BLOCKERS = (DOUBT_WORDS | LABEL_OPERATIONS | NUMBER_MODIFIERS) - frozenset(
    (
        "is are was be to and for from since because so then when at out until through without also"
        " too by given over other others another about almost nearly however"
    ).split()
)


def changes_label_value(chinese: str) -> bool:
    """Whether Chinese words of a label deny, bound or change the value that follows."""
    return any(part in chinese for part in _CHINESE_LABEL_MODIFIERS)


_CHINESE_LABEL_MODIFIERS = tuple(
    "不 错 误 非 未 舍 增根 平方 立方 倒数 相反数 一半 倍 余数 最多 最少 至少 至多 可能 大约是 超过 大于 小于".split()
)

#: Words of two letters that are not a product of two names.
SHORT_WORDS = frozenset(
    set(
        "sq no on up so go do it us me is as at by be we of in he my hi ok la de le un et ou il".split()
    )
    | {"to", "or", "an", "if", "am", "pm", "No", "If", "It", "As", "So", "In", "We", "To"}
)

#: Word after a number -> the factor it multiplies the number by.
MULTIPLIERS: Mapping[str, int] = {
    "dozen": 12,
    "hundred": 100,
    "thousand": 1000,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "十": 10,
    "百": 100,
    "千": 1000,
    "万": 10**4,
    "百万": 10**6,
    "千万": 10**7,
    "亿": 10**8,
}
PERCENT_WORDS = frozenset({"percent", "percentage", "pct"})
ORDINAL_SUFFIXES = frozenset({"st", "nd", "rd", "th"})
