r"""Tables of the characters, commands and words that the tokenizer and the grammar know.

Sources of the characters: the Unicode blocks Superscripts and Subscripts, Number Forms, Mathematical
Operators, Letterlike Symbols. `answers.doubt` has the words that deny, doubt or change a value.
"""

import unicodedata
from collections.abc import Mapping

from rewardkit.answers.parsing.tree import INF


def split_words(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


def pairs(text: str) -> dict[str, str]:
    """Return every second word of a text by the word before it."""
    words = text.split()
    return dict(zip(words[::2], words[1::2], strict=True))


# --- characters

#: Full-width ASCII, spaces, dashes and quotes, one character for one character.
HALF_WIDTH = str.maketrans(
    {
        **{chr(0xFF01 + i): chr(0x21 + i) for i in range(94)},
        **dict.fromkeys("\u3000\xa0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f", " "),
        **dict.fromkeys("\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u2061\u2062\u2063\ufe0f", " "),
        **dict.fromkeys("−–—‐‑‒―﹣˗", "-"),
        **dict.fromkeys("′’‘ʹ＇", "'"),
        **dict.fromkeys("“”″", '"'),
        **pairs("、 , ﹐ , ， , 。 . ． . ∣ | ｜ | ∶ : ﹕ : ∗ * ∕ / ∼ ~ 〜 ~ 【 [ 】 ] 〔 ( 〕 )"),
        **pairs("º ° ˚ ° ○ ° ª a µ μ Ω Ω"),
    }
)  # fmt: skip
SUPERSCRIPTS, SUBSCRIPTS, FRACTIONS = (
    {
        sign: unicodedata.normalize("NFKC", sign).translate({0x2044: "/", 0x2212: "-"})
        for sign in signs
    }
    for signs in ("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱˣʸᵏᵐᵃᵇᶜᵈᵗ", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑᵢⱼₖₘₙₚₓ", "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒")
)
_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau"
    " upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega"
)
_SIGN_NAMES = dict(zip("αβγδεζηθικλμνξοπρστυφχψωΓΔΘΛΞΠΣΦΨΩ", _GREEK.split(), strict=True)) | pairs(
    "ς sigma ϕ phi ϵ epsilon ϑ theta ℓ ell × times ✕ times ✖ times ⨯ times · cdot ⋅ cdot ∙ cdot • cdot"
    " ∘ circ ÷ div ± pm ∓ mp ≤ le ⩽ le ≦ le ≥ ge ⩾ ge ≧ ge ≠ ne ≈ approx ≃ approx ≅ cong ≡ equiv"
    " ∝ propto √ surd ∞ infty ∅ emptyset ⌀ emptyset ∪ cup ⋃ cup ∩ cap ⋂ cap ∈ in ∉ notin"
    " ⊂ subset ⊆ subseteq ∖ setminus ∀ forall ∃ exists ∧ land ∨ lor ¬ neg → to ⟶ to ↦ mapsto"
    " ⇒ Rightarrow ⟹ Rightarrow ⇔ Leftrightarrow ↔ leftrightarrow ∑ sum ∏ prod ∫ int ∂ partial"
    " ∇ nabla ∠ angle △ triangle ▲ triangle ⊥ perp ∥ parallel ⌊ lfloor ⌋ rfloor ⌈ lceil ⌉ rceil"
    " ⟨ langle ⟩ rangle 〈 langle 〉 rangle ‖ | ℝ mathbb{R} ℤ mathbb{Z} ℕ mathbb{N} ℚ mathbb{Q}"
    " ℂ mathbb{C} … dots ⋯ dots ° degree ‰ permille"
)
#: Command or operator that a sign stands for.
SIGNS = {sign: f"\\{name}" for sign, name in _SIGN_NAMES.items()} | pairs(
    "℃ °C ℉ °F ％ % ￥ ¥ ∎ . ✓ . ✔ . ✅ . ⁄ / ℯ e ⅈ i"
)

# --- commands

_ALIASES = (
    "frac dfrac tfrac cfrac nicefrac sfrac, binom dbinom tbinom, le leq leqslant leqq, ge geq"
    " geqslant geqq, ne neq, approx simeq thickapprox approxeq, emptyset varnothing, epsilon"
    " varepsilon, theta vartheta, phi varphi, rho varrho, sigma varsigma, pi varpi, kappa"
    " varkappa, dots ldots cdots dotsc dotsb dotso, to rightarrow longrightarrow, land wedge, lor"
    " vee, neg lnot, in isin, cup bigcup, cap bigcap, setminus backslash smallsetminus, cdot ast"
    " bullet centerdot, degree textdegree, | Vert lVert rVert, infty infin, arctan arctg, tan tg,"
    " cot ctg, arccot arcctg, sinh sh, cosh ch, tanh th, arcsinh arsinh, arccosh arcosh, arctanh"
    " artanh, bmod mod, mathcal mathscr mathfrak cal, overrightarrow vec, overline bar, widehat"
    " hat, widetilde tilde"
)
#: Alias of a command -> the name that tokens use.
COMMAND_ALIASES = {
    f"\\{other}": f"\\{name}"
    for name, *others in map(str.split, _ALIASES.split(","))
    for other in others
}
#: Command -> the operator it stands for.
OPERATOR_COMMANDS: Mapping[str, str] = pairs(
    r"\vert | \lvert | \rvert | \% % \lbrack [ \rbrack ] \colon : \prime ' \lt < \gt > \slash / \checkmark ."
    r" \blacksquare ."
)


def _commands(names: str) -> frozenset[str]:
    return frozenset(f"\\{name}" for name in names.split())


_TRIGONOMETRY = "cis sin cos tan cot sec csc sinh cosh tanh arcsin arccos arctan arccot"
_FUNCTIONS = f"{_TRIGONOMETRY} ln exp gcd lcm log lg arcsinh arccosh arctanh"
#: Command of a function -> the name that the evaluator uses.
FUNCTION_COMMANDS = {
    **{name: name[1:] for name in _commands(f"{_FUNCTIONS} max min det dim ker arg deg")},
    **pairs(r"\Re re \Im im"),
}
INVERSE_FUNCTIONS = split_words("sin cos tan cot sec csc sinh cosh tanh")
#: Word of plain text -> the command it stands for.
WORD_COMMANDS = {
    **{name[1:]: COMMAND_ALIASES.get(name, name) for name in _commands(
        f"{_FUNCTIONS} sqrt pi binom infty lim frac arsinh arcosh artanh sh ch tg ctg arctg arcctg theta"
        " alpha beta lambda"
    )},
    **dict.fromkeys("infinity Infinity oo inf".split(), r"\infty"),
    **pairs(r"asin \arcsin acos \arccos atan \arctan"),
}  # fmt: skip
#: Operators that are never evaluated.
UNEVALUATED_OPERATORS = _commands("sum prod int iint iiint oint lim limsup liminf")
LETTER_COMMANDS = _commands(f"{_GREEK} ell hbar partial nabla aleph imath jmath wp top dagger")
#: Accents above a name, which make it a different name.
ACCENTS = _commands(
    "overline widehat widetilde overrightarrow overleftarrow dot ddot dddot check breve acute grave"
    " mathring cancel sout overset underset overbrace underbrace stackrel"
)
#: Signs before the name of an angle, a triangle, an arc.
SHAPE_COMMANDS = _commands("angle measuredangle triangle odot square overarc")
#: Opening fence -> the function that it means, and the closing fence.
FENCES = {
    r"\lfloor": ("floor", r"\rfloor"),
    r"\lceil": ("ceil", r"\rceil"),
    r"\|": ("norm", r"\|"),
    r"\langle": ("mean", r"\rangle"),
}
MATRIX_ENVIRONMENTS = split_words(
    "matrix pmatrix bmatrix Bmatrix vmatrix Vmatrix smallmatrix array"
)
#: Environments of piecewise functions and of rows of formulas.
ROW_ENVIRONMENTS = split_words("cases dcases rcases aligned gathered")

#: Sign of a relation -> the operator that the tree uses.
RELATION_SIGNS: Mapping[str, str] = pairs(
    r"= = \equiv = \approx ~ \doteq ~ < < > > \le <= \ge >= \ne != \in in \notin notin \subset subset"
    r" \subseteq subset \parallel parallel \perp perp \cong cong \sim sim \propto propto"
)
FLIPPED_OPERATORS: Mapping[str, str] = pairs("< > > < <= >= >= <= = = != != ~ ~")
CLOSING_SIGNS = split_words(r") ] } \} | \rfloor \rceil \rangle \end")

# --- words

CONJUNCTIONS = split_words(r"and und et 和 与 及 以及 且 并且 \land & \&")
DISJUNCTIONS = split_words(
    r"or xor oder ou или либо lub eller 或 或者 または もしくは 또는 혹은 \lor"
)
#: Words that begin a clause, which says where an answer holds.
CLAUSE_OPENERS = split_words(
    "for where when if with whenever provided otherwise else as"
    r" \forall 其中 其他 当 对 对于 对任意 若 这里"
)
#: Words between a label and its value.
COPULAS = split_words("is are equals equal was be 为 是 等于 有 有以下")
#: Words before a rounded value.
APPROXIMATION_WORDS = split_words(
    "about approximately approx roughly around 约 大约 约为 大约为 约等于"
)
#: Words before a value that do not change it.
NEUTRAL_QUALIFIERS = (
    APPROXIMATION_WORDS
    | split_words("exactly only 共 一共 总共")
    | {whole + verb for whole in ("", "共", "一共", "总共") for verb in ("有", "是", "需", "需要")}
)
#: Words that state a value without a digit -> the value.
WORD_VALUES = {
    words: value
    for value, alternatives in (
        (INF, "infinitely many|infinite|无穷多|无穷大|无数|无数个|无穷多个"),
        (("set",), "no solution|no solutions|no real solution|no real solutions"),
        (("set",), "empty set|the empty set|无解|无实数解|空集"),
        (("sym", "R"), "all real numbers|all reals|全体实数|一切实数|任意实数"),
    )
    for words in alternatives.split("|")
}
#: Words that are a label right before a number, without a sign between.
LABELS_WITHOUT_SIGN = split_words("max min maximum minimum ph 最大值 最小值")
#: Names of functions of number theory, before one number in brackets.
ARITHMETIC_FUNCTIONS = split_words("phi sigma tau mu zeta Gamma")
#: Words of two letters that are not a product of two names.
SHORT_WORDS = split_words(
    "sq cu no on up so go do it us me is as at by be we of in he my hi ok la de le un et ou il to or an if"
    " pH am pm No If It As So In We To st nd rd th"
)
#: Word after a number -> the factor it multiplies the number by.
MULTIPLIERS = {
    word: int(factor)
    for word, factor in pairs(
        "dozen 12 hundred 100 thousand 1000 million 1000000 billion 1000000000 trillion 1000000000000"
        " 十 10 百 100 千 1000 万 10000 百万 1000000 千万 10000000 亿 100000000"
    ).items()
}
PERCENT_WORDS = split_words("percent percentage pct")
ORDINAL_SUFFIXES = split_words("st nd rd th")
#: Units that, after a number, are not read as a product of names.
LETTER_UNITS = split_words(
    "cm mm km dm nm kg mg ml mL ft mi yd lb lbs hr hrs oz kW kN Pa Hz min sec kph mph rpm"
)
