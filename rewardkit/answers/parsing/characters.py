r"""Meaning of single characters outside ASCII, as tokens.

Full-width forms become ASCII one for one (`HALF_WIDTH`). Every other sign stands for a TeX command,
an operator or a number (`SIGNS`). Superscripts and subscripts come in runs. Source: the Unicode
blocks Superscripts and Subscripts, Number Forms, Mathematical Operators, Letterlike Symbols.
"""

from __future__ import annotations

from collections.abc import Mapping

#: Full-width ASCII, spaces, dashes and quotes, one character for one character.
HALF_WIDTH: Mapping[int, str] = str.maketrans(
    {
        **{chr(0xFF01 + i): chr(0x21 + i) for i in range(94)},
        **dict.fromkeys("\u3000\xa0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f", " "),
        **dict.fromkeys("\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u2061\u2062\u2063\ufe0f", " "),
        **dict.fromkeys("−–—‐‑‒―﹣˗", "-"),
        **dict.fromkeys("′’‘ʹ＇", "'"),
        **dict.fromkeys("“”″", '"'),
        **dict.fromkeys("、﹐，", ","),
        **dict.fromkeys("。．", "."),
        **dict.fromkeys("∣｜", "|"),
        "∶": ":", "﹕": ":", "∗": "*", "∕": "/", "∼": "~", "〜": "~", "【": "[", "】": "]",
        "〔": "(", "〕": ")", "º": "°", "˚": "°", "○": "°", "ª": "a", "µ": "μ", "Ω": "Ω",
    }
)  # fmt: skip

SUPERSCRIPTS: Mapping[str, str] = dict(
    zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱˣʸᵏᵐᵃᵇᶜᵈᵗ", "0123456789+-=()nixykmabcdt", strict=True)
)
SUBSCRIPTS: Mapping[str, str] = dict(
    zip("₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑᵢⱼₖₘₙₚₓ", "0123456789+-=()aeijkmnpx", strict=True)
)

#: Numerator and denominator of the fractions that are one character.
FRACTIONS: Mapping[str, tuple[str, str]] = {
    "½": ("1", "2"), "⅓": ("1", "3"), "⅔": ("2", "3"), "¼": ("1", "4"), "¾": ("3", "4"),
    "⅕": ("1", "5"), "⅖": ("2", "5"), "⅗": ("3", "5"), "⅘": ("4", "5"), "⅙": ("1", "6"),
    "⅚": ("5", "6"), "⅐": ("1", "7"), "⅛": ("1", "8"), "⅜": ("3", "8"), "⅝": ("5", "8"),
    "⅞": ("7", "8"), "⅑": ("1", "9"), "⅒": ("1", "10"),
}  # fmt: skip

_GREEK = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho"
_GREEK_CAPITALS = {"Γ": "Gamma", "Δ": "Delta", "Θ": "Theta", "Λ": "Lambda", "Ξ": "Xi", "Π": "Pi",
                   "Σ": "Sigma", "Φ": "Phi", "Ψ": "Psi", "Ω": "Omega"}  # fmt: skip

#: Command or operator that a sign stands for.
SIGNS: Mapping[str, str] = {
    **{char: f"\\{name}" for char, name in zip("αβγδεζηθικλμνξοπρ", _GREEK.split(), strict=True)},
    **{char: f"\\{name}" for char, name in _GREEK_CAPITALS.items()},
    "σ": r"\sigma", "ς": r"\sigma", "τ": r"\tau", "υ": r"\upsilon", "φ": r"\phi", "ϕ": r"\phi",
    "χ": r"\chi", "ψ": r"\psi", "ω": r"\omega", "ϵ": r"\epsilon", "ϑ": r"\theta", "ℓ": r"\ell",
    "×": r"\times", "✕": r"\times", "✖": r"\times", "⨯": r"\times", "·": r"\cdot", "⋅": r"\cdot",
    "∙": r"\cdot", "•": r"\cdot", "∘": r"\circ", "÷": r"\div", "±": r"\pm", "∓": r"\mp",
    "≤": r"\le", "⩽": r"\le", "≦": r"\le", "≥": r"\ge", "⩾": r"\ge", "≧": r"\ge", "≠": r"\ne",
    "≈": r"\approx", "≃": r"\approx", "≅": r"\cong", "≡": r"\equiv", "∝": r"\propto",
    "√": r"\surd", "∛": r"\cbrt", "∞": r"\infty", "∅": r"\emptyset", "⌀": r"\emptyset",
    "∪": r"\cup", "⋃": r"\cup", "∩": r"\cap", "⋂": r"\cap", "∈": r"\in", "∉": r"\notin",
    "⊂": r"\subset", "⊆": r"\subseteq", "∖": r"\setminus", "∀": r"\forall", "∃": r"\exists",
    "∧": r"\land", "∨": r"\lor", "¬": r"\neg", "→": r"\to", "⟶": r"\to", "↦": r"\mapsto",
    "⇒": r"\Rightarrow", "⟹": r"\Rightarrow", "⇔": r"\Leftrightarrow", "↔": r"\leftrightarrow",
    "∑": r"\sum", "∏": r"\prod", "∫": r"\int", "∂": r"\partial", "∇": r"\nabla", "∠": r"\angle",
    "△": r"\triangle", "▲": r"\triangle", "⊥": r"\perp", "∥": r"\parallel", "⌊": r"\lfloor",
    "⌋": r"\rfloor", "⌈": r"\lceil", "⌉": r"\rceil", "⟨": r"\langle", "⟩": r"\rangle",
    "〈": r"\langle", "〉": r"\rangle", "‖": r"\|", "ℝ": r"\mathbb{R}", "ℤ": r"\mathbb{Z}",
    "ℕ": r"\mathbb{N}", "ℚ": r"\mathbb{Q}", "ℂ": r"\mathbb{C}", "…": r"\dots", "⋯": r"\dots",
    "°": r"\degree", "℃": "°C", "℉": "°F", "％": "%", "‰": r"\permille", "￥": "¥", "∎": ".",
    "⁄": "/", "ℯ": "e", "ⅈ": "i",
}  # fmt: skip
