"""Build a release of the committed tree, and test it as a user would install it.

    python tools/release.py                                     # into dist/, tested with this Python
    python tools/release.py --python python3.10 --python python3.13 --tests full

The script writes an sdist, the wheel and a CycloneDX SBOM of the packages that `pip install` installs; it
publishes nothing. It stops at the first problem: a missing or superfluous file, metadata that an index
would refuse, an sdist that builds another wheel, a conflicting licence, a failing demo or test. Every
environment is new and outside the checkout, and the tests import the installed package. It needs git
and a package index.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOOLS = ["build", "cyclonedx-bom", "pip", "twine"]
PACKAGED = ("rewardkit", "data_cards")  # folders of the tree that are packaged
OTHER_SDIST_FILES = {
    ".gitignore",
    "AGENTS.md",
    "CHANGELOG.md",
    "LICENSE",
    "PKG-INFO",
    "README.md",
    "README.zh-CN.md",
    "skills/rewardkit/SKILL.md",
}
#: Tests of what an installation may break: its files, its commands, its scorers by path.
QUICK = ["tests/test_package.py", "tests/test_registry.py", "tests/test_docs.py", "tests/scorers"]
QUICK += [
    "tests/cli",
    "tests/pages",
    "tests/preprocess/test_datasets.py",
    "tests/launch/test_plan.py",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="output folder")
    parser.add_argument(
        "--python", action="append", help="interpreter to test with; may be repeated"
    )
    parser.add_argument(
        "--tests",
        choices=["quick", "full"],
        default="quick",
        help="tests to run on the installed wheel",
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rewardkit-release-") as name:
        folder = Path(name)
        tree = folder / "tree"
        run("git", "clone", "--quiet", ROOT, tree)
        tools = new_venv(sys.executable, folder / "tools", *TOOLS)
        sdist, wheel = build(tools, tree, folder / "dist")
        run(tools, "-m", "twine", "check", "--strict", sdist, wheel)
        check_files(sdist, wheel, tree)
        sbom = write_sbom(tools, wheel, tree, folder)
        for python in options.python or [sys.executable]:
            test_wheel(python, wheel, tree, folder / "test", options.tests)
        options.out.mkdir(parents=True, exist_ok=True)
        for file in (sdist, wheel, sbom):
            print("wrote", shutil.copy(file, options.out))


def run(*command: str | Path, cwd: Path | None = None, **environ: str) -> None:
    """Run a command with its output on the terminal; exit if its exit code is not 0."""
    print("$", *command, flush=True)
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, cwd=cwd, env={**env, **environ}, check=False)
    if done.returncode:
        sys.exit(f"release: exit code {done.returncode} of: {' '.join(map(str, command))}")


def new_venv(python: str, folder: Path, *packages: str | Path) -> Path:
    """Create an environment with these packages and return its Python."""
    run(python, "-m", "venv", folder)
    python_of_venv = folder / "bin/python"
    run(python_of_venv, "-m", "pip", "install", "-qq", "--upgrade", *packages)
    return python_of_venv


def build(tools: Path, tree: Path, out: Path) -> tuple[Path, Path]:
    """Build the sdist and its wheel, and check that the tree builds the same wheel."""
    timestamp = subprocess.check_output(
        ["git", "log", "-1", "--format=%ct"], cwd=tree, text=True
    ).strip()
    run(tools, "-m", "build", "--outdir", out, tree, SOURCE_DATE_EPOCH=timestamp)
    run(
        tools,
        "-m",
        "build",
        "--wheel",
        "--outdir",
        out / "direct",
        tree,
        SOURCE_DATE_EPOCH=timestamp,
    )
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    if wheel.read_bytes() != (out / "direct" / wheel.name).read_bytes():
        sys.exit("release: the sdist builds another wheel than the tree")
    return sdist, wheel


def check_files(sdist: Path, wheel: Path, tree: Path) -> None:
    """Check that both have exactly the committed files of `PACKAGED`, and their metadata."""
    output = subprocess.check_output(["git", "ls-files", "-z", *PACKAGED], cwd=tree, text=True)
    files = set(output.strip("\0").split("\0"))
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    compare("sdist", packed, files | OTHER_SDIST_FILES | {"pyproject.toml"})
    names = zipfile.ZipFile(wheel).namelist()
    installed = {f"rewardkit/{f}" if f.startswith("data_cards") else f for f in files}
    compare("wheel", {n for n in names if not n.split("/")[0].endswith(".dist-info")}, installed)
    print(f"{len(files)} files of the tree are in the sdist and in the wheel")


def compare(what: str, files: set[str], expected: set[str]) -> None:
    if files != expected:
        missing, surplus = sorted(expected - files), sorted(files - expected)
        sys.exit(f"release: the {what} lacks {missing} and should not have {surplus}")


def write_sbom(tools: Path, wheel: Path, tree: Path, folder: Path) -> Path:
    """Write the SBOM of an environment with the wheel and its requirements, and check licences."""
    bare = folder / "bare"
    venv.create(bare, symlinks=True)  # without pip, which is not a dependency
    python = bare / "bin/python"
    run(tools, "-m", "pip", "--python", python, "install", "-qq", wheel)
    run(python, Path(__file__).with_name("licences.py"))
    sbom = wheel.parent / f"{'-'.join(wheel.name.split('-')[:2])}.cdx.json"
    options = ["--pyproject", tree / "pyproject.toml", "--output-reproducible"]
    run(tools, "-m", "cyclonedx_py", "environment", *options, "--output-file", sbom, python)
    return sbom


def test_wheel(python: str, wheel: Path, tree: Path, folder: Path, tests: str) -> None:
    """Run the demo with nothing but the wheel installed, then the tests, both without the source."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(tree, folder / "tree")
    for name in (".git", *PACKAGED):
        shutil.rmtree(folder / "tree" / name)
    venv_python = new_venv(python, folder / "venv", wheel)
    run("sh", "examples/demo.sh", cwd=folder / "tree", BIN=str(venv_python.parent))
    path_command = [venv_python, "-c", "import rewardkit; print(*rewardkit.__path__)"]
    installed = subprocess.check_output(path_command, cwd=folder, text=True).strip()
    if not installed.startswith(str(folder / "venv")):
        sys.exit(f"release: the tests would import {installed}")
    # Tests read files of the package in the tree, and pages link to them.
    (folder / "tree/rewardkit").symlink_to(installed)
    (folder / "tree/data_cards").symlink_to(Path(installed) / "data_cards")
    run(venv_python, "-m", "pip", "install", "-qq", f"{wheel}[test]")
    paths = [] if tests == "full" else QUICK
    run(venv_python.parent / "pytest", "-q", "-n", "auto", *paths, cwd=folder / "tree")
    print(f"{python}: demo and {tests} tests passed on the installed wheel")


if __name__ == "__main__":
    main()
