"""Every spelling that the parser knows, listed a second time, so that a lost table entry shows."""

from rewardkit.answers.parsing.tree import INF, add, fn, num
from tests.answers.latex_printer import read
from tests.tables import every

X, Y, ONE, TWO = ("sym", "x"), ("sym", "y"), num(1), num(2)
ROWS = ("matrix", ("row", num(1), num(2)), ("row", num(3), num(4)))
LETTERS = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi rho sigma tau upsilon phi"
    " chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega ell hbar"
).split()
WRAPPERS = (
    "boxed fbox underline mathbf boldsymbol mathrm text mathcal mathfrak textcolor{red}".split()
)
MATRICES = dict.fromkeys("matrix pmatrix bmatrix Bmatrix smallmatrix array".split(), ROWS)
MATRICES |= dict.fromkeys(["vmatrix", "Vmatrix"], fn("det", ROWS))


@every(
    ("texts", "tree"),
    [
        *((rf"\{name}+1", add(("sym", name), ONE)) for name in LETTERS),
        *((rf"\var{name}", ("sym", name)) for name in ("epsilon", "theta", "phi")),
        (r"1, 2, \dots;;1, 2, \ldots;;1, 2, \cdots", ("list", ONE, TWO, ("sym", "..."))),
        *((rf"\{name}{{x}}+y", add(X, Y)) for name in WRAPPERS),
        (r"\vec{x};;\overrightarrow{x};;\vec x", ("sym", "vec x")),
        (r"\hat{x};;\widehat{x};;\hat x", fn("widehat", X)),
        (r"\bar{x};;\overline{x};;\bar x", fn("overline", X)),
        (r"\tilde{x};;\widetilde{x};;\tilde x", fn("widetilde", X)),
        (r"x = y;;x == y;;x \equiv y", ("rel", "=", X, Y)),
        (r"x \approx y;;x \simeq y;;x ≈ y", ("rel", "~", X, Y)),
        (r"x < y;;x \lt y", ("rel", "<", X, Y)),
        (r"x > y;;x \gt y", ("rel", ">", X, Y)),
        (r"x <= y;;x \le y;;x \leq y;;x \leqslant y;;x \leqq y;;x ≤ y;;x ⩽ y", ("rel", "<=", X, Y)),
        (r"x >= y;;x \ge y;;x \geq y;;x \geqslant y;;x \geqq y;;x ≥ y;;x ⩾ y", ("rel", ">=", X, Y)),
        (r"x != y;;x \ne y;;x \neq y;;x ≠ y", ("rel", "!=", X, Y)),
        (r"x \in y;;x ∈ y", ("rel", "in", X, Y)),
        *((rf"\begin{{{kind}}}1&2\\3&4\end{{{kind}}}", tree) for kind, tree in MATRICES.items()),
        (r"\begin{array}{c|c}1&2\\\hline 3&4\end{array}", ROWS),
        (r"\lfloor x\rfloor", fn("floor", X)), (r"\lceil x\rceil", fn("ceil", X)),
        (r"\lvert x\rvert;;\vert x\vert;;|x|;;\left|x\right|", fn("abs", X)),
        (r"infty;;infinity;;Infinity;;oo;;\infty;;∞;;\text{infinitely many};;无穷大", INF),
        (r"\emptyset;;\varnothing;;∅;;\{\}", ("set",)),
        (r"\R;;\mathbb{R};;\mathbb R", ("sym", "R")),
        *((rf"1\text{{ {word} }}2", ("and", ONE, TWO)) for word in "and und 和 与 及 以及 & AND".split()),
        *((rf"1\text{{ {word} }}2", ("or", ONE, TWO)) for word in "or oder 或 或者 Or".split()),
        (r"1 \land 2;;1 \wedge 2", ("and", ONE, TWO)), (r"1 \lor 2;;1 \vee 2", ("or", ONE, TWO)),
        ("1 , 2;;1 ; 2", ("list", ONE, TWO)), (r"1 \cup 2;;1 \bigcup 2;;1 ∪ 2", ("union", ONE, TWO)),
        (r"1 \cap 2;;1 ∩ 2", ("meet", ONE, TWO)), ("xy", ("mul", X, Y)),
        *((word, ("text", word)) for word in "no on up go do it us me".split()),
        (r"\sin x \times 2;;\sin x \cdot 2;;\sin x * 2", ("mul", fn("sin", X), TWO)),
        *((f"{sign}5;;5{sign}", ("quantity", num(5), read(f"{sign}5")[2])) for sign in "€£¥"),
    ],
)  # fmt: skip
def test_every_spelling_is_parsed_into_its_tree(texts, tree):
    for text in texts.split(";;"):
        assert read(text) == tree, text


@every(
    "scope", [r"\text{for all }n", r"\text{where }n<9", "for n", "where n < 9", r"\forall n", "其中 n", "∀n"]
)  # fmt: skip
def test_a_clause_that_says_where_an_answer_holds_is_separate_from_it(scope):
    where, value, clause, restricts, names, _ = read(f"2^n {scope}")
    assert (where, value) == ("where", read("2^n"))
    assert clause
    assert restricts is ("<" in scope)
    assert names == "n"
