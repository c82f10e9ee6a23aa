"""Print the sizes of the pictures in files of rows, as verl's Python reads them.

`python measure_pictures.py COLUMN FILE...` prints JSON: for each row of the files, a list of width and
height of each picture; or an object with `error`, a message that names the file and the row.
"""

import json
import sys
from importlib import import_module
from io import BytesIO
from typing import Any


def main() -> None:
    """Print the sizes, or the first error."""
    column, *files = sys.argv[1:]
    try:
        answer: Any = [row for file in files for row in _rows(file, column)]
    except ValueError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer))  # noqa: T201 - the answer to the parent process


def _rows(file: str, column: str) -> list[list[tuple[int, int]]]:
    table = import_module("pyarrow.parquet").read_table(file)
    if column not in table.column_names:
        return [[] for _ in range(table.num_rows)]
    rows = []
    for number, pictures in enumerate(table.column(column).to_pylist()):
        try:
            rows.append([_size(picture) for picture in pictures or ()])
        except (OSError, TypeError, ValueError, KeyError) as error:
            raise ValueError(f"row {number} of {file}: {error}") from error
    return rows


def _size(picture: Any) -> tuple[int, int]:
    if isinstance(picture, dict):
        data = picture.get("bytes")
        source = BytesIO(data) if data else picture.get("image") or picture["path"]
    else:
        source = picture
    with import_module("PIL.Image").open(source) as image:
        image.load()
        width, height = image.size
    return width, height


if __name__ == "__main__":
    main()
