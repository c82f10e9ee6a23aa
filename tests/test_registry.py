import pytest

from rewardkit import registry
from rewardkit.errors import UnknownNameError, UsageError


@pytest.fixture
def plugins(monkeypatch):
    """Entry points of other packages, as given."""
    from importlib import metadata

    def install(*points):
        monkeypatch.delenv("REWARDKIT_PLUGINS", raising=False)
        registry._plugins.cache_clear()
        monkeypatch.setattr(
            metadata,
            "entry_points",
            lambda group: [metadata.EntryPoint(n, v, g) for n, v, g in points if g == group],
        )

    yield install
    registry._plugins.cache_clear()


@pytest.mark.parametrize("group", ["datasets", "scorers", "data_sources"])
def test_every_built_in_name_loads(group):
    for name in registry.known(group):
        assert registry.load(group, name) is not None


def test_an_unknown_name_suggests_the_nearest_and_lists_the_known():
    with pytest.raises(UnknownNameError, match="Did you mean 'gsm8k'.*Known: gsm8k"):
        registry.target("datasets", "gms8k")


def test_another_package_adds_names_by_entry_points(plugins):
    plugins(("acme", "rewardkit.scorers.math:score", "rewardkit.scorers"))
    from rewardkit.scorers.math import score

    assert registry.load("scorers", "acme") is score
    assert "acme" not in registry.known("datasets")


def test_another_package_adds_the_reward_of_its_data_source(plugins):
    plugins(("acme/sums", "rewardkit.scorers.math:score", "rewardkit.data_sources"))
    from rewardkit.scorers import auto

    assert auto.compute_score("acme/sums", r"\boxed{5}", "5")["score"] == 1.0


def test_another_package_cannot_replace_a_built_in(plugins):
    plugins(("gsm8k", "evil:score", "rewardkit.scorers"))
    assert registry.target("scorers", "gsm8k") == registry.SCORERS["gsm8k"]


def test_plugins_can_be_left_out(plugins, monkeypatch):
    plugins(("acme", "rewardkit.scorers.math:score", "rewardkit.scorers"))
    monkeypatch.setenv("REWARDKIT_PLUGINS", "0")
    assert "acme" not in registry.known("scorers")


def test_a_plugin_that_does_not_import_is_one_clear_error(plugins):
    plugins(("acme", "no_such_module:score", "rewardkit.scorers"))
    with pytest.raises(UsageError, match="no_such_module does not import"):
        registry.load("scorers", "acme")
