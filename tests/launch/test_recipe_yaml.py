import pytest

from rewardkit.errors import DataError
from rewardkit.launch.recipe_yaml import read_yaml
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
def test_a_scalar_is_what_a_person_means(text, value):
    found = read_yaml(f"x: {text}", "f")["x"]
    assert found == value
    assert type(found) is type(value)


def test_quoted_text_stays_text():
    assert read_yaml("x: '1e-6'", "f") == {"x": "1e-6"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: 2\na: 3\n", "f.yaml:3: the key 'a' stands twice"),
        ("verl:\n  a: 1\n  a: 1\n", "f.yaml:3: the key 'a' stands twice"),
        ("a: [1\n", "f.yaml:2: "),
        ("a:\n\t- 1\n", "f.yaml:2: "),
        ("!!python/object/apply:os.system ['x']", "f.yaml:1: could not determine a constructor"),
    ],
)
def test_what_is_no_recipe_s_yaml_is_named_with_its_line(text, said):
    with pytest.raises(DataError) as error:
        read_yaml(text, "f.yaml")
    assert str(error.value).startswith(said)
