"""The footer of a page names the version, the date and the command without its secrets."""

import time

import pytest

from rewardkit import redact
from rewardkit.pages.html import MAX_COMMAND_CHARACTERS, provenance, to_html
from rewardkit.pages.model import Page
from rewardkit.versions import VERSION


@pytest.fixture
def command(monkeypatch):
    """Return a function that sets the command line of this process."""

    def set_command(*arguments, program="/usr/bin/rewardkit"):
        monkeypatch.setattr("sys.argv", [program, *arguments])
        redact.process_redactor.cache_clear()
        return provenance().command

    yield set_command
    redact.process_redactor.cache_clear()


def test_a_page_names_the_command_as_a_shell_takes_it(command):
    assert command("check", "my file.parquet") == "rewardkit check 'my file.parquet'"
    program = "/x/rewardkit/__main__.py"
    assert command("list", program=program) == "rewardkit list"


def test_a_page_of_another_program_names_no_command(command):
    assert command("tests", program="/usr/bin/pytest") == ""
    assert command(program="") == ""


@pytest.mark.parametrize(
    "secret", ["sk-1234567890abcdefghij", "it's my pass", "-starts-with-a-dash"]
)
def test_a_secret_is_hidden_to_its_end_whatever_signs_it_has(command, secret):
    assert command("audit", "--api-key", secret) == "rewardkit audit --api-key '***'"
    assert command("audit", "--set", f"api_key={secret}") == "rewardkit audit --set 'api_key=***'"


def test_a_long_command_is_shortened(command):
    line = command("eval", *(f"runs/step_{i}" for i in range(1000)))
    assert len(line) <= MAX_COMMAND_CHARACTERS + 1
    assert line.endswith("…")


def test_the_date_is_that_of_source_date_epoch(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert provenance().date == "2023-11-14 22:13 UTC"
    assert f"rewardkit {VERSION} · 2023-11-14 22:13 UTC" in to_html(Page("t", (), ()))


@pytest.mark.parametrize("value", ["", "soon", "-1", "9" * 30, "٣"])
def test_the_date_is_today_without_a_valid_epoch(monkeypatch, value):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", value)
    assert provenance().date[:4] == time.strftime("%Y", time.gmtime())


def test_the_command_is_escaped(command):
    command("check", "<script>alert(1)</script>")
    assert "<script>" not in to_html(Page("t", (), ()))
