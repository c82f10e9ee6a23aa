"""Different answers of every type."""

SAMPLES = {
    "value": ["18", "-18", "0.5", r"\frac{1}{3}", r"\sqrt{2}", r"\pi", "x", "x+1", r"30^\circ", r"51\%", r"\sin x", "1010_2", "1+2i", r"\infty", "f(x)"],
    "quantity": ["5 cm", "6 cm", "5 kg", r"\$5", "5 apples", r"20^\circ C", "3 hours"],
    "compound": ["5 feet 6 inches", "5 feet 7 inches", "2 hours 30 minutes"],
    "ratio": ["2:3", "3:2", "1:2:3"],
    "clock": ["2:30 PM", "2:30 AM", "14:45"],
    "equation": ["x = 5", "x = 6", "y = 5", "y = 2x + 1", "x^2 + y^2 = 1", "f(x) = x^2"],
    "relation": ["x > 5", r"x \ge 5", "y > 5", "a < b", r"x \ne 5", "1 < x < 2", r"x \in S"],
    "list": ["1, 2", "1, 2, 3", "x = 3, y = 4", r"2 \text{ or } 3", "Sam and Evelyn"],
    "set": [r"\{1, 2\}", r"\{1, 2, 3\}", r"\emptyset", r"\{(1, 2)\}"],
    "tuple": ["(1, 2)", "(2, 1)", "(1, 2, 3)", "(x, y)"],
    "region": ["(1, 2]", "[1, 2)", "[1, 2]", r"(1, 2] \cup (3, 4]", r"\{x \mid x > 7\}", r"A \cup B"],
    "matrix": [r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{pmatrix}1&3\\2&4\end{pmatrix}", r"\begin{pmatrix}1&2\end{pmatrix}", r"\begin{pmatrix}1\\2\end{pmatrix}"],
    "cases": [r"\begin{cases}x & x > 0\\0 & x \le 0\end{cases}", r"\begin{cases}x & x \ge 0\\0 & x < 0\end{cases}"],
    "congruence": [r"x \equiv 3 \pmod 7", r"x \equiv 4 \pmod 7", r"x \equiv 3 \pmod 8", r"y \equiv 3 \pmod 7"],
    "where": [r"2k, k \in \mathbb{Z}", r"3k, k \in \mathbb{Z}", r"2k \text{ for } k > 5"],
    "text": ["Monday", "Tuesday", "new york", "苹果", "no change", "2020-01-02"],
}  # fmt: skip


def texts():
    """Return the samples of all types."""
    return [text for group in SAMPLES.values() for text in group]
