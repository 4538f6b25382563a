"""Parts of a small Origin by next words."""

import gzip
import json

from samesense.recipes.origin import recipe
from samesense.recipes.origin.settings import choose_origin
from tests.context.worlds import some_documents
from tests.messages import listen

SMALL = {"reference": 60, "kept_words": 20, "dimensions": 8, "score_precision": "float32"}


def write_documents(folder):
    """Write documents into a folder, and return the file."""
    path = folder / "documents.jsonl.gz"
    lines = [json.dumps({"sentences": sections[0]}) for sections in some_documents(12)]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    return str(path)


def make(documents, model, folder, *, overwrite=False, **changes):
    """Make an Origin; return whether it is complete, and the messages."""
    lines = listen()
    settings = choose_origin("words", {**SMALL, "language_model": model, **changes})
    return recipe.run([documents], settings, folder, overwrite=overwrite), lines
