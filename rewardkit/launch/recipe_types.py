"""The types of a recipe's fields."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError


def _pattern_validator(pattern: str, rule: str) -> AfterValidator:
    """Return a validator for text that matches a pattern as a whole; `rule` is its message."""

    def validate(text: str) -> str:
        if not re.fullmatch(pattern, text, re.ASCII):
            raise PydanticCustomError("word", rule)
        return text

    return AfterValidator(validate)


#: Text that is not empty.
Text = Annotated[str, Field(min_length=1)]
#: Text for a Slurm option in a comment, or the name of a device.
Word = Annotated[
    str,
    _pattern_validator(
        r"[\w.:,+=/@%\[\]-]+", "may have letters, digits and . _ : , + = / @ % [ ] -"
    ),
]
#: The name of an object of Kubernetes.
KubernetesName = Annotated[
    str,
    _pattern_validator(
        r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?",
        "may have lower-case letters, digits and -, up to 63, and no - at either end",
    ),
]
#: The name of an environment variable.
Variable = Annotated[str, _pattern_validator(r"[A-Za-z_]\w*", "is not the name of a variable")]
#: A number of things, at least one.
Count = Annotated[int, Field(gt=0, strict=True)]
#: A port that needs no privileges.
Port = Annotated[int, Field(ge=1024, le=65535, strict=True)]


class Section(BaseModel):
    """A mapping of a recipe; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)
