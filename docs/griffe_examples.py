"""Examples in docstrings, as code: griffe reads the section ``Examples:`` as code, and ``Example:`` as prose."""

from typing import Any

import griffe


class Examples(griffe.Extension):
    """Give the section of one example the name that griffe knows."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rename the section in the docstring of an object."""
        if obj.docstring:
            obj.docstring.value = obj.docstring.value.replace("\nExample:\n", "\nExamples:\n")
