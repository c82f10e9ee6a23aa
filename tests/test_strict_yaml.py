import pytest

from rewardkit.errors import DataError
from rewardkit.strict_yaml import MAX_BYTES, read_yaml, read_yaml_file
from tests.tables import every


@every(
    ("text", "value"),
    [
        ("1e-6", 1e-6), ("1.", 1.0), ("-.5", -0.5), ("10", 10), ("no", "no"), ("True", True),
        ("", None), ("1.2.3", "1.2.3"), ("0x10", "0x10"), ("'1e-6'", "1e-6"),
    ],
)  # fmt: skip
def test_a_scalar_has_the_value_and_type_that_a_reader_expects(text, value):
    parsed = read_yaml(f"x: {text}", "f")["x"]
    assert parsed == value
    assert type(parsed) is type(value)


@every(
    ("text", "message"),
    [
        ("verl:\n  a: 1\n  a: 1\n", "f.yaml:3: the key 'a' is set twice"),
        ("a:\n\t- 1\n", "f.yaml:2: a tab; indent YAML with spaces"),
        ("? [a]\n: 1\n", "f.yaml:1: a key is a word"),
        ("!!python/object/apply:os.system ['x']", "f.yaml:1: tags are not read"),
        ("a: &a [x, x]\nb: &b [*a, *a]\n", "f.yaml:2: aliases are not read"),
        ("a: " + "[" * 1000, "f.yaml:1: nested too deep"),
        ("[" + "1," * 30_000, "f.yaml:1: more than 20,000 values"),
        ("#" * 300_000, "f.yaml: longer than 262,144 bytes"),
        ("a: !!set {b}", "f.yaml:1: tags are not read"),
        ('a: "\\UFFFFFFFF"', "f.yaml: not YAML"),
        ("%YAML 1.1\n---\na: " + ":".join("1" * 1000) + ".5", "f.yaml: not YAML"),
        (f"%YAML {'9' * 5000}.1\n---\na: 1", "f.yaml: not YAML"),
        (b"a: \xff", "f.yaml: not UTF-8"),
    ],
)
def test_invalid_yaml_and_yaml_that_would_explode_is_one_line_with_its_place(text, message):
    with pytest.raises(DataError) as error:
        read_yaml(text, "f.yaml")
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_a_number_of_any_length_is_read_in_time_or_stays_text():
    assert read_yaml("a: " + "9" * 100_000, "f")["a"] == "9" * 100_000
    assert read_yaml("a: " + "9" * 1000, "f")["a"] == 10**1000 - 1


def test_a_file_is_read_up_to_the_limit(tmp_path):
    """A device or a file of gigabytes does not fill the memory."""
    (tmp_path / "f.yaml").write_bytes(b"\xff" * (MAX_BYTES + 1))
    with pytest.raises(DataError, match="longer than 262,144 bytes"):
        read_yaml_file(tmp_path / "f.yaml")
