"""Templates: a prompt with a place for the text, whose last token speaks for it.

    This sentence : "{text}" means in one word:"

The template becomes a part of the tokenizer, as what stands around every text. So every reader of the folder applies
it, and a text that is too long loses its own end and not that of the template.

Source: Jiang et al. 2023 (PromptEOL, arXiv 2307.16645) for the template above.
Differs: the parts of the template are tokenized apart from the text.
"""

from __future__ import annotations

from typing import Any

from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Transformer
from tokenizers.processors import TemplateProcessing

from samesense.encoder.forward.batching import tokenize_texts
from samesense.encoder.names import PLACE
from samesense.errors import ConfigError, ModelError

_BEFORE = "[before]"
_BEHIND = "[behind]"


def set_template(model: SentenceTransformer | CrossEncoder, template: str) -> Any:
    """Put every text into a template from now on, in place, and return the tokenizer; it is saved with the model.

    Raises:
        ConfigError: if the template holds ``{text}`` more than once, or the model has one already or is a
            cross-encoder.
        ModelError: if the model has no fast tokenizer.
    """
    if template.count(PLACE) != 1:
        raise ConfigError(f"A template holds {PLACE} once, where the text goes; received {template!r}.")
    if isinstance(model, CrossEncoder):
        raise ConfigError("A template is for a model that embeds texts; a cross-encoder reads both together.")
    trunk = model[0]
    tokenizer: Any = getattr(trunk, "tokenizer", None)
    if not isinstance(trunk, Transformer) or not getattr(tokenizer, "is_fast", False):
        raise ModelError(
            "A template needs a transformer with a fast tokenizer; this model begins with "
            f"{type(trunk).__name__}. Give a prompt without {PLACE}."
        )
    existing = str(tokenizer.backend_tokenizer.post_processor)
    if _BEFORE in existing or _BEHIND in existing:
        raise ConfigError("The model has a template already, which would stand within the new one. Leave prompt out.")
    marks_before, marks_behind = _marks(tokenizer)
    first, last = template.split(PLACE)
    pieces = {_BEFORE: [*marks_before, *_ids(tokenizer, first)], _BEHIND: [*_ids(tokenizer, last), *marks_behind]}
    used = {name: ids for name, ids in pieces.items() if ids}
    single = " ".join(name for name in (_BEFORE, "$A", _BEHIND) if name == "$A" or name in used)
    tokens = [{"id": name, "ids": ids, "tokens": tokenizer.convert_ids_to_tokens(ids)} for name, ids in used.items()]
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single=single, special_tokens=tokens)
    return tokenizer


def _ids(tokenizer: Any, text: str) -> list[int]:
    if text:
        ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    else:
        ids = []
    return ids


def _marks(tokenizer: Any) -> tuple[list[int], list[int]]:
    """Return the special tokens that stand before a text, and those behind it."""
    ids = tokenizer("a", return_special_tokens_mask=True)
    positions = [index for index, is_special in enumerate(ids["special_tokens_mask"]) if not is_special]
    return ids["input_ids"][: positions[0]], ids["input_ids"][positions[-1] + 1 :]


def chat_length(model: SentenceTransformer) -> int:
    """Return how many tokens of a chat template stand around each text; 0 for a model that reads texts by themselves.

    sentence-transformers wraps texts in the template of the tokenizer where the folder of a model says nothing else.
    """
    tokenizer: Any = getattr(model[0], "tokenizer", None)
    if not getattr(tokenizer, "chat_template", None):
        return 0
    lengths = [len(ids) for ids in (tokenize_texts(model, ["a"])["input_ids"][0], tokenizer("a")["input_ids"])]
    return max(0, lengths[0] - lengths[1])
