import pytest

from rewardkit.errors import DataError
from rewardkit.strict_yaml import read_yaml
from tests.tables import every


@every(
    ("text", "value"),
    [
        ("1e-6", 1e-6),
        ("5e6", 5e6),
        ("1.", 1.0),
        ("-.5", -0.5),
        ("10", 10),
        ("no", "no"),
        ("on", "on"),
        ("True", True),
        ("~", None),
        ("", None),
        ("1.2.3", "1.2.3"),
        ("0x10", "0x10"),
        ("global_step_10", "global_step_10"),
    ],
)
def test_a_scalar_has_the_value_and_type_that_a_reader_expects(text, value):
    parsed = read_yaml(f"x: {text}", "f")["x"]
    assert parsed == value
    assert type(parsed) is type(value)


def test_quoted_text_stays_text():
    assert read_yaml("x: '1e-6'", "f") == {"x": "1e-6"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "f.yaml:3: the key 'a' is set twice"),
        ("verl:\n  a: 1\n  a: 1\n", "f.yaml:3: the key 'a' is set twice"),
        ("a: [1\n", "f.yaml:2: "),
        ("a:\n\t- 1\n", "f.yaml:2: "),
        ("!!python/object/apply:os.system ['x']", "f.yaml:1: could not determine a constructor"),
    ],
)
def test_the_error_for_invalid_yaml_starts_with_file_and_line(text, message):
    with pytest.raises(DataError) as error:
        read_yaml(text, "f.yaml")
    assert str(error.value).startswith(message)
