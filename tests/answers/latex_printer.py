"""Random expressions, their values by Python's own arithmetic, and a printer to LaTeX."""

import cmath

from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st

from rewardkit.answers.parsing.grammar import parse
from rewardkit.answers.parsing.tokens import tokenize

STYLES = st.randoms(use_true_random=False)
POINT = {"x": 0.71, "y": 1.37, "z": 2.23, r"\alpha": 0.53, "a_1": 1.9}
BINARY = ("add", "sub", "mul", "div")
CONSTANTS = {"pi": cmath.pi, "e": cmath.e}
FUNCTIONS = {
    "sin": cmath.sin, "cos": cmath.cos, "tan": cmath.tan, "exp": cmath.exp, "ln": cmath.log,
    "arctan": cmath.atan, "sinh": cmath.sinh, "sqrt": cmath.sqrt, "abs": abs,
    "cube": lambda v: v ** (1 / 3),
}  # fmt: skip
lenient = settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])


def numbers():
    whole = st.integers(0, 999).map(lambda n: ("num", str(n)))
    decimal = st.decimals(0, 99, places=2).map(lambda d: ("num", f"{d:f}"))
    return whole | decimal


def trees(*, leaves, functions=(), max_leaves=10):
    def over(inner):
        kinds = [
            st.tuples(st.sampled_from(BINARY), inner, inner),
            st.tuples(st.just("neg"), inner),
            st.tuples(st.just("pow"), inner, st.integers(-3, 3)),
        ]
        if functions:
            kinds.append(st.tuples(st.just("fn"), st.sampled_from(sorted(functions)), inner))
        return st.one_of(kinds)

    return st.recursive(leaves, over, max_leaves=max_leaves)


rationals = trees(leaves=numbers())
expressions = trees(
    leaves=numbers()
    | st.sampled_from([("sym", name) for name in POINT])
    | st.sampled_from([("const", name) for name in CONSTANTS]),
    functions=FUNCTIONS,
)


def value(tree, enter):
    """Return the value of a tree by Python's own arithmetic, the reference for the parser."""
    kind, *parts = tree
    if kind == "num":
        return enter(parts[0])
    if kind in ("sym", "const"):
        return complex({**POINT, **CONSTANTS}[parts[0]])
    if kind == "neg":
        return -value(parts[0], enter)
    if kind == "pow":
        base = value(parts[0], enter)
        assume(abs(base) > 1e-3)
        return base ** parts[1]
    if kind == "fn":
        inside = value(parts[1], enter)
        assume(abs(inside) < 50)
        if parts[0] in ("ln", "sqrt", "cube"):  # off the cut, where the sign of 0j decides
            assume(abs(inside.imag) < 1e-12 and inside.real > 1e-3)
        return complex(FUNCTIONS[parts[0]](inside))
    left, right = value(parts[0], enter), value(parts[1], enter)
    if kind == "div":
        assume(abs(right) > 1e-3)
        return left / right
    return {"add": left + right, "sub": left - right, "mul": left * right}[kind]


# --- the printer: `level` is 0 for a sum, 1 for a product, 2 for a factor, 3 for a base


def latex(tree, style, level=0):
    text, own = PRINTERS[tree[0]](tree, style)
    return bracketed(text, style) if own < level else text


def bracketed(text, style):
    return style.choice(["({})", r"\left({}\right)", "( {} )", r"\bigl({}\bigr)"]).format(text)


def print_sum(tree, style):
    sign = style.choice(["{}", " {} ", " {}"]).format({"add": "+", "sub": "-"}[tree[0]])
    return latex(tree[1], style, 0) + sign + latex(tree[2], style, 1), 0


def print_product(tree, style):
    left, right = latex(tree[1], style, 1), latex(tree[2], style, 2)
    beside = right[0].isalpha() or right.startswith((r"\pi", r"\sqrt", r"\sin", r"\alpha", "("))
    signs = [r" \cdot ", r"\times ", "*", r" \, \cdot \, "] + [" "] * 3 * beside
    return left + style.choice(signs) + right, 1


def print_quotient(tree, style):
    form = style.choice(["/", r" \div ", "frac", "dfrac", "tfrac"])
    if not form.endswith("frac"):
        return latex(tree[1], style, 1) + form + latex(tree[2], style, 2), 1
    top, bottom = latex(tree[1], style), latex(tree[2], style)
    return rf"\{form}{style.choice(['', ' '])}{{{top}}}{{{bottom}}}", 2


def print_power(tree, style):
    exponent = str(tree[2])
    bare = len(exponent) == 1 and style.random() < 0.5
    return latex(tree[1], style, 3) + "^" + (exponent if bare else f"{{{exponent}}}"), 2


def print_function(tree, style):
    name, inside = tree[1], latex(tree[2], style)
    if name == "sqrt":
        return rf"\sqrt{{{inside}}}", 2
    if name == "cube":
        return rf"\sqrt[3]{{{inside}}}", 2
    if name == "abs":
        return style.choice(["|{}|", r"\left|{}\right|", r"\lvert {} \rvert"]).format(inside), 2
    return rf"\{name}" + style.choice(["({})", r"\left({}\right)", "{{{}}}"]).format(inside), 2


PRINTERS = {
    "num": lambda tree, style: (tree[1], 3),
    "sym": lambda tree, style: (style.choice([tree[1], tree[1].replace("_1", "_{1}")]), 3),
    "const": lambda tree, style: ({"pi": r"\pi", "e": "e"}[tree[1]] + " ", 3),
    "neg": lambda tree, style: ("-" + style.choice(["", " "]) + latex(tree[1], style, 1), 0),
    "add": print_sum, "sub": print_sum, "mul": print_product, "div": print_quotient,
    "pow": print_power, "fn": print_function,
}  # fmt: skip


def read(text):
    return parse(tokenize(text))


def close(a, b):
    return abs(a - b) <= 1e-7 * max(1, abs(a), abs(b))
