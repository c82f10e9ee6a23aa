"""Do `pip install -e FOLDER` without a build or network, for packages of `rewardkit new`.

    python pip_offline.py SITE install -e FOLDER

It writes the files of an editable install into SITE, a folder on PYTHONPATH: a link to the package, and
metadata with the entry points of its pyproject.toml.
"""

import sys
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10; pytest brings it there
    import tomli as tomllib


def install(site, folder):
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    about, wheel = project["project"], project["tool"]["hatch"]["build"]["targets"]["wheel"]
    name = f"{about['name'].replace('-', '_')}-{about['version']}"
    info = site / f"{name}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    metadata = f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\n"
    (info / "METADATA").write_text(metadata, encoding="utf-8")
    points = "".join(
        f"[{group}]\n" + "".join(f"{point} = {target}\n" for point, target in members.items())
        for group, members in about["entry-points"].items()
    )
    (info / "entry_points.txt").write_text(points, encoding="utf-8")
    for package in wheel["packages"]:
        link = site / package
        if not link.is_symlink():
            link.symlink_to((folder / package).resolve())
    print(f"Successfully installed {name}")


if __name__ == "__main__":
    site, command, editable, folder = sys.argv[1:]
    assert (command, editable) == ("install", "-e")
    install(Path(site), Path(folder.removesuffix("[test]")))
