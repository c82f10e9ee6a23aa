"""Build a release of the committed tree and prove it, as a user would meet it.

    python tools/release.py                                     # into dist/, tried on this Python
    python tools/release.py --python python3.10 --python python3.13 --tests full

Writes an sdist, the wheel and a CycloneDX SBOM of what `pip install` brings; publishes nothing.
Fails at the first thing that is wrong: a file that is missing or too much, metadata that an index
refuses, an sdist that builds another wheel, a licence in conflict, a failing demo or test. Every
environment is new and outside the checkout, and the tests import what was installed. Needs git and
a package index.
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
PACKAGED = ("rewardkit", "data_cards")  # what of the tree is packaged
BESIDE = {".gitignore", "CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "README.zh-CN.md"}
#: The tests of what an installation may break: its files, its commands, its scorers by path.
QUICK = ["tests/test_package.py", "tests/test_registry.py", "tests/test_docs.py", "tests/scorers"]
QUICK += [
    "tests/cli",
    "tests/page",
    "tests/preprocess/test_datasets.py",
    "tests/launch/test_plan.py",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder of the artefacts")
    parser.add_argument("--python", action="append", help="try it on this one; may be repeated")
    parser.add_argument("--tests", choices=["quick", "full"], default="quick")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rewardkit-release-") as name:
        folder = Path(name)
        tree = folder / "tree"
        run("git", "clone", "--quiet", ROOT, tree)
        tools = new_venv(sys.executable, folder / "tools", *TOOLS)
        sdist, wheel = build(tools, tree, folder / "dist")
        run(tools, "-m", "twine", "check", "--strict", sdist, wheel)
        files_are_complete(sdist, wheel, tree)
        sbom = describe(tools, wheel, tree, folder)
        for python in options.python or [sys.executable]:
            try_out(python, wheel, tree, folder / "tried", options.tests)
        options.out.mkdir(parents=True, exist_ok=True)
        for file in (sdist, wheel, sbom):
            print("wrote", shutil.copy(file, options.out))


def run(*command: str | Path, cwd: Path | None = None, **environ: str) -> None:
    """Run a command, its output to the terminal; an exit code that is not 0 ends all of it."""
    print("$", *command, flush=True)
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, cwd=cwd, env={**env, **environ}, check=False)
    if done.returncode:
        sys.exit(f"release: exit code {done.returncode} of: {' '.join(map(str, command))}")


def new_venv(python: str, folder: Path, *packages: str | Path) -> Path:
    """The Python of a new environment that holds these packages."""
    run(python, "-m", "venv", folder)
    inside = folder / "bin/python"
    run(inside, "-m", "pip", "install", "-qq", "--upgrade", *packages)
    return inside


def build(tools: Path, tree: Path, out: Path) -> tuple[Path, Path]:
    """The sdist and its wheel; byte for byte the wheel that the tree itself makes."""
    when = subprocess.check_output(
        ["git", "log", "-1", "--format=%ct"], cwd=tree, text=True
    ).strip()
    run(tools, "-m", "build", "--outdir", out, tree, SOURCE_DATE_EPOCH=when)
    run(tools, "-m", "build", "--wheel", "--outdir", out / "direct", tree, SOURCE_DATE_EPOCH=when)
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    if wheel.read_bytes() != (out / "direct" / wheel.name).read_bytes():
        sys.exit("release: the sdist builds another wheel than the tree")
    return sdist, wheel


def files_are_complete(sdist: Path, wheel: Path, tree: Path) -> None:
    """Both hold exactly the committed files of `PACKAGED`, and their metadata."""
    said = subprocess.check_output(["git", "ls-files", "-z", *PACKAGED], cwd=tree, text=True)
    files = set(said.strip("\0").split("\0"))
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    compare("sdist", packed, files | BESIDE | {"pyproject.toml"})
    names = zipfile.ZipFile(wheel).namelist()
    installed = {f"rewardkit/{f}" if f.startswith("data_cards") else f for f in files}
    compare("wheel", {n for n in names if ".dist-info/" not in n}, installed)
    print(f"{len(files)} files of the tree are in the sdist and in the wheel")


def compare(what: str, found: set[str], expected: set[str]) -> None:
    if found != expected:
        missing, surplus = sorted(expected - found), sorted(found - expected)
        sys.exit(f"release: the {what} lacks {missing} and should not hold {surplus}")


def describe(tools: Path, wheel: Path, tree: Path, folder: Path) -> Path:
    """The SBOM of an environment that holds the wheel and what it requires; licences looked at."""
    bare = folder / "bare"
    venv.create(bare, symlinks=True)  # without pip, which is no dependency
    python = bare / "bin/python"
    run(tools, "-m", "pip", "--python", python, "install", "-qq", wheel)
    run(python, Path(__file__).with_name("licences.py"))
    sbom = wheel.parent / f"{'-'.join(wheel.name.split('-')[:2])}.cdx.json"
    options = ["--pyproject", tree / "pyproject.toml", "--output-reproducible"]
    run(tools, "-m", "cyclonedx_py", "environment", *options, "--output-file", sbom, python)
    return sbom


def try_out(python: str, wheel: Path, tree: Path, folder: Path, tests: str) -> None:
    """The README's main job with nothing but the wheel, then the tests, both without the source."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(tree, folder / "beside", ignore=shutil.ignore_patterns(".git", *PACKAGED))
    inside = new_venv(python, folder / "venv", wheel)
    run("sh", "examples/demo.sh", cwd=folder / "beside", BIN=str(inside.parent))
    where_is = [inside, "-c", "import rewardkit; print(*rewardkit.__path__)"]
    installed = subprocess.check_output(where_is, cwd=folder, text=True).strip()
    if not installed.startswith(str(folder / "venv")):
        sys.exit(f"release: the tests would import {installed}")
    # Where tests look at the package's files, and pages link to.
    (folder / "beside/rewardkit").symlink_to(installed)
    (folder / "beside/data_cards").symlink_to(Path(installed) / "data_cards")
    run(inside, "-m", "pip", "install", "-qq", f"{wheel}[test]")
    where = [] if tests == "full" else QUICK
    run(inside.parent / "pytest", "-q", "-n", "auto", *where, cwd=folder / "beside")
    print(f"{python}: demo and {tests} tests passed on the installed wheel")


if __name__ == "__main__":
    main()
