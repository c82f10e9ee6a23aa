"""The wheel has all files that are read at run time, and complete metadata."""

import importlib.util
import re
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

import rewardkit

ROOT = Path(__file__).parents[1]


def build(kind, folder):
    """Return the wheel or sdist that the backend builds from this tree, without isolation or network."""
    if not (ROOT / "data_cards").is_dir():
        pytest.skip("these tests are not in a checkout (tools/release.py): nothing to build")
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed: pip install hatchling")
    code = f"import sys; from hatchling.build import build_{kind}; build_{kind}(sys.argv[1])"
    command = [sys.executable, "-c", code, folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-2000:]
    (file,) = folder.iterdir()
    return file


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The open archive of the wheel."""
    with zipfile.ZipFile(build("wheel", tmp_path_factory.mktemp("wheel"))) as archive:
        yield archive


@pytest.fixture(scope="module")
def metadata(wheel):
    (name,) = (name for name in wheel.namelist() if re.fullmatch(r"[^/]+/METADATA", name))
    return message_from_bytes(wheel.read(name))


@pytest.mark.full
def test_the_wheel_has_exactly_the_files_of_the_package(wheel):
    files = [file for file in (ROOT / "rewardkit").rglob("*") if file.is_file()]
    cards = (f"rewardkit/data_cards/{file.name}" for file in (ROOT / "data_cards").iterdir())
    expected = {str(f.relative_to(ROOT)) for f in files if "__pycache__" not in f.parts} | {*cards}
    packed = {name for name in wheel.namelist() if name.startswith("rewardkit/")}
    assert packed == expected


@pytest.mark.full
def test_the_sdist_has_the_pages_for_coding_agents(tmp_path):
    with tarfile.open(build("sdist", tmp_path)) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert {"AGENTS.md", "skills/rewardkit/SKILL.md"} <= packed


@pytest.mark.full
def test_the_command_and_the_licence_are_in_the_wheel(wheel):
    beside = {n.partition(".dist-info/")[2]: n for n in wheel.namelist() if ".dist-info/" in n}
    assert b"rewardkit = rewardkit.__main__:main" in wheel.read(beside["entry_points.txt"])
    assert wheel.read(beside["licenses/LICENSE"]) == (ROOT / "LICENSE").read_bytes()


@pytest.mark.full
def test_the_metadata_is_complete_for_pip_and_an_index(metadata):
    assert (metadata["Name"], metadata["Version"]) == ("rewardkit", rewardkit.__version__)
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.10"
    classifiers = metadata.get_all("Classifier")
    assert "Typing :: Typed" in classifiers
    minors = {c.rpartition(" ")[2] for c in classifiers if re.search(r":: 3\.\d+$", c)}
    assert minors == {"3.10", "3.11", "3.12", "3.13"}
    files = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *(ROOT / "rewardkit").rglob("*.py")]
    text = "".join(file.read_text(encoding="utf-8") for file in files)
    named = {"math-verify", "test", *re.findall(r"rewardkit\[([\w-]+)\]", text)}
    assert named <= {*metadata.get_all("Provides-Extra")}


def test_the_version_agrees_with_the_changelog():
    """A development version is above the newest release and has its changes under Unreleased."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first, *others = re.findall(r"^## +(.+)$", text, flags=re.MULTILINE)
    releases = others if first == "[Unreleased]" else [first, *others]
    dated = [re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d", head) for head in releases]
    assert all(dated), releases
    number, is_development, _ = rewardkit.__version__.partition(".dev")
    if is_development:
        newest = dated[0][1] if dated else "0.0.0"
        assert first == "[Unreleased]"
        assert [*map(int, number.split("."))] > [*map(int, newest.split("."))]
    else:
        assert dated[0][1] == number
