r"""Characters of LaTeX commands, and the MathML elements that a formula is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: Kind of a node -> its MathML element and attributes. No attribute depends on a text.
KINDS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "row": ("mrow", {}),
    "name": ("mi", {}),
    "upright": ("mi", {"mathvariant": "normal"}),
    "bold": ("mi", {"mathvariant": "normal", "class": "bold"}),
    "number": ("mn", {}),
    "words": ("mtext", {}),
    "function": ("mi", {}),
    "sign": ("mo", {}),
    "relation": ("mo", {"form": "infix"}),
    "prefix": ("mo", {"form": "prefix"}),
    "ordinary": ("mo", {"lspace": "0", "rspace": "0", "stretchy": "false"}),
    "opening": ("mo", {"form": "prefix", "stretchy": "false"}),
    "closing": ("mo", {"form": "postfix", "stretchy": "false"}),
    "left": ("mo", {"form": "prefix", "stretchy": "true", "fence": "true"}),
    "middle": ("mo", {"form": "infix", "stretchy": "true", "fence": "true"}),
    "right": ("mo", {"form": "postfix", "stretchy": "true", "fence": "true"}),
    "large": ("mo", {"form": "prefix"}),
    "large-limits": ("mo", {"form": "prefix", "movablelimits": "true"}),
    "limit": ("mo", {"form": "prefix", "movablelimits": "true", "rspace": ".1667em"}),
    "accent": ("mo", {"stretchy": "false"}),
    "wide": ("mo", {"stretchy": "true"}),
    "fraction": ("mfrac", {}),
    "display-fraction": ("mfrac", {"displaystyle": "true"}),
    "stack": ("mfrac", {"linethickness": "0"}),
    "square-root": ("msqrt", {}),
    "root": ("mroot", {}),
    "sub": ("msub", {}),
    "sup": ("msup", {}),
    "subsup": ("msubsup", {}),
    "under": ("munder", {}),
    "over": ("mover", {}),
    "underover": ("munderover", {}),
    "accented": ("mover", {"accent": "true"}),
    "underlined": ("munder", {"accentunder": "true"}),
    "braced": ("munder", {}),
    "boxed": ("mrow", {"class": "boxed"}),
    "table": ("mtable", {}),
    "cases": ("mtable", {"class": "cases"}),
    "aligned": ("mtable", {"class": "aligned", "displaystyle": "true"}),
    "line": ("mtr", {}),
    "cell": ("mtd", {}),
    "thin": ("mspace", {"width": ".1667em"}),
    "medium": ("mspace", {"width": ".2778em"}),
    "quad": ("mspace", {"width": "1em"}),
}


def _table(text: str) -> dict[str, str]:
    """Read `name character name character ...`."""
    parts = text.split()
    return dict(zip(parts[::2], parts[1::2], strict=True))


#: Commands of letters, which look like the letter.
LETTERS: Final = _table(
    "alpha α beta β gamma γ delta δ epsilon ϵ varepsilon ε zeta ζ eta η theta θ vartheta ϑ iota ι "
    "kappa κ lambda λ mu μ nu ν xi ξ omicron ο pi π varpi ϖ rho ρ varrho ϱ sigma σ varsigma ς "
    "tau τ upsilon υ phi ϕ varphi φ chi χ psi ψ omega ω ell ℓ hbar ℏ imath ı jmath ȷ wp ℘"
)
#: Commands of signs that are upright and take the place of a name.
UPRIGHT: Final = _table(
    "Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ Upsilon Υ Phi Φ Psi Ψ Omega Ω "
    "infty ∞ infin ∞ emptyset ∅ varnothing ∅ aleph ℵ Re ℜ Im ℑ partial ∂ nabla ∇ degree ° "
    "textdegree ° angle ∠ measuredangle ∡ triangle △ square □ blacksquare ■ bot ⊥ top ⊤ "
    "dagger † star ⋆ checkmark ✓ pounds £ textdollar $ euro € yen ¥ dots … ldots … dotsc … "
    "cdots ⋯ dotsb ⋯ dotsm ⋯ vdots ⋮ ddots ⋱ forall ∀ exists ∃ nexists ∄"
)
#: Commands of operators, relations and arrows.
SIGNS: Final = _table(
    "times × cdot ⋅ centerdot ⋅ div ÷ pm ± mp ∓ ast ∗ bullet ∙ circ ∘ oplus ⊕ otimes ⊗ odot ⊙ "
    "le ≤ leq ≤ leqslant ⩽ leqq ≦ ge ≥ geq ≥ geqslant ⩾ geqq ≧ ne ≠ neq ≠ lt < gt > ll ≪ gg ≫ "
    "approx ≈ simeq ≃ cong ≅ equiv ≡ sim ∼ propto ∝ doteq ≐ prec ≺ succ ≻ "
    "in ∈ notin ∉ ni ∋ subset ⊂ subseteq ⊆ subsetneq ⊊ supset ⊃ supseteq ⊇ cup ∪ cap ∩ "
    "setminus ∖ backslash ∖ smallsetminus ∖ mid ∣ nmid ∤ parallel ∥ perp ⊥ land ∧ wedge ∧ lor ∨ "
    "vee ∨ neg ¬ lnot ¬ to → rightarrow → longrightarrow ⟶ gets ← leftarrow ← leftrightarrow ↔ "
    "Rightarrow ⇒ Longrightarrow ⟹ implies ⟹ Leftarrow ⇐ Leftrightarrow ⇔ iff ⟺ mapsto ↦ "
    "uparrow ↑ downarrow ↓ nearrow ↗ searrow ↘ rightleftharpoons ⇌ therefore ∴ because ∵ "
    "diamond ⋄ bigcirc ◯ oslash ⊘ ominus ⊖ colon : prime ′"
)
#: Relations among them: a long formula may break after one.
RELATIONS: Final = frozenset(
    (
        "le leq leqslant leqq ge geq geqslant geqq ne neq lt gt ll gg approx simeq cong equiv sim "
        "propto doteq in notin subset subseteq to rightarrow longrightarrow Rightarrow implies "
        "Leftrightarrow iff Longrightarrow"
    ).split()
)
#: Commands of delimiters, which may follow `\left` and `\right`.
DELIMITERS: Final = _table(
    "{ { } } | ‖ Vert ‖ lVert ‖ rVert ‖ vert | lvert | rvert | lbrace { rbrace } lbrack [ rbrack ] "
    "langle ⟨ rangle ⟩ lfloor ⌊ rfloor ⌋ lceil ⌈ rceil ⌉"
)
OPENING: Final = frozenset("([{⟨⌊⌈")
CLOSING: Final = frozenset(")]}⟩⌋⌉")

#: Commands of functions, which are upright and stand off from what follows.
FUNCTIONS: Final = frozenset(
    (
        "sin cos tan cot sec csc sinh cosh tanh coth arcsin arccos arctan arccot arcsec arccsc ln log "
        "lg exp deg dim ker arg det hom Pr tg ctg arctg arcctg sh ch th"
    ).split()
)
#: Functions whose script stands below them in a display.
LIMIT_FUNCTIONS: Final = frozenset("lim max min sup inf gcd lcm argmax argmin".split())
#: Large operators, and whether their limits stand above and below them.
LARGE_OPERATORS: Final[Mapping[str, tuple[str, bool]]] = {
    "sum": ("∑", True),
    "prod": ("∏", True),
    "coprod": ("∐", True),
    "bigcup": ("⋃", True),
    "bigcap": ("⋂", True),
    "bigoplus": ("⨁", True),
    "int": ("∫", False),
    "iint": ("∬", False),
    "iiint": ("∭", False),
    "oint": ("∮", False),
}
#: Accents: the sign, and whether it is as wide as what it is above or below.
ACCENTS: Final[Mapping[str, tuple[str, bool]]] = {
    "overline": ("¯", True),
    "bar": ("¯", False),
    "hat": ("^", False),
    "widehat": ("^", True),
    "tilde": ("~", False),
    "widetilde": ("~", True),
    "vec": ("→", False),
    "overrightarrow": ("→", True),
    "overleftarrow": ("←", True),
    "dot": ("˙", False),
    "ddot": ("¨", False),
    "overbrace": ("⏞", True),
    "overarc": ("⏜", True),
    "wideparen": ("⏜", True),
}
LOWER_ACCENTS: Final = {"underline": "_", "underbrace": "⏟"}

#: Width of a space, as a kind; "" for a space that shows as nothing.
SPACES: Final = {
    ",": "thin",
    "thinspace": "thin",
    ":": "medium",
    ">": "medium",
    ";": "medium",
    " ": "medium",
    "enspace": "medium",
    "quad": "quad",
    "!": "",
}
#: Commands that change the size or style but no character.
IGNORED: Final = frozenset(
    (
        "displaystyle textstyle scriptstyle limits nolimits big Big bigg Bigg bigl bigr bigm Bigl Bigr "
        "Bigm biggl biggr Biggl Biggr rm it bf nonumber notag mathstrut"
    ).split()
)

#: Environments: opening fence, closing fence, and the kind of the table.
ENVIRONMENTS: Final[Mapping[str, tuple[str, str, str]]] = {
    "matrix": ("", "", "table"),
    "smallmatrix": ("", "", "table"),
    "pmatrix": ("(", ")", "table"),
    "bmatrix": ("[", "]", "table"),
    "Bmatrix": ("{", "}", "table"),
    "vmatrix": ("|", "|", "table"),
    "Vmatrix": ("‖", "‖", "table"),
    "array": ("", "", "table"),
    "cases": ("{", "", "cases"),
    "dcases": ("{", "", "cases"),
    "rcases": ("", "}", "cases"),
    "gathered": ("", "", "table"),
    "gather": ("", "", "table"),
    "gather*": ("", "", "table"),
    "equation": ("", "", "table"),
    "equation*": ("", "", "table"),
    **dict.fromkeys(("align", "align*", "aligned", "split", "eqnarray*"), ("", "", "aligned")),
}

_DOUBLE_STRUCK = {"C": "ℂ", "H": "ℍ", "N": "ℕ", "P": "ℙ", "Q": "ℚ", "R": "ℝ", "Z": "ℤ"}
_SCRIPT = {"B": "ℬ", "E": "ℰ", "F": "ℱ", "H": "ℋ", "I": "ℐ", "L": "ℒ", "M": "ℳ", "R": "ℛ"}


def styled_letter(letter: str, font: str) -> str:
    r"""Return a capital letter as `\mathbb` or `\mathcal` show it."""
    table, first = (_DOUBLE_STRUCK, 0x1D538) if font == "mathbb" else (_SCRIPT, 0x1D49C)
    return table.get(letter) or chr(first + ord(letter) - ord("A"))
