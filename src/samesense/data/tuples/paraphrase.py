"""Further positives written by a sequence-to-sequence model, such as a T5 that was trained to paraphrase."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from samesense.data.tuples.augment import Augment, Variant, deletion, random_of, synonyms
from samesense.data.tuples.completion import same
from samesense.errors import ConfigError
from samesense.execution.progress import without_bars
from samesense.execution.unread import Unread, note
from samesense.failures import opening
from samesense.hub import hub_access

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

BEAMS = 4
"""Beams searched for one variant; for more variants of one text, as many as these."""

AugmentName = Literal["none", "deletion", "synonym", "paraphrase"]

SHARES = {"deletion": 0.1, "synonym": 0.2, "paraphrase": 0.5}
"""Share of the words, or of the texts, that each changes unless told otherwise."""

PARAPHRASER = "prithivida/parrot_paraphraser_on_T5"
"""The model that the paper paraphrased with."""


def paraphrase(
    model: str,
    share: float = 0.5,
    *,
    seed: int = 0,
    prompt: str = "paraphrase: ",
    longest: int = 64,
    batch_size: int = 32,
) -> Augment:
    """Return what has a share of the texts, above 0 and at most 1, rewritten by a sequence-to-sequence model.

    The variants of a text are the beams found for it, the likeliest first, so they depend on the text only; which texts
    are rewritten depends on the seed, too. A rewriting equal to its text but for case and spaces is no change.
    ``longest`` counts the tokens of a text and of its rewriting, ``batch_size`` the texts rewritten at once.
    """
    if not 0 < share <= 1:
        raise ConfigError(f"The share of texts to rewrite must be above 0 and at most 1; received {share}.")
    tokenizer, writer = _opened(model)

    def rewrite(variants: Sequence[Variant]) -> list[str | None]:
        chosen = [variant for variant in variants if random_of(seed, variant).random() < share]
        most: dict[str, int] = {}
        for text, number in chosen:
            most[text] = max(most.get(text, 0), number)
        written: dict[str, list[str]] = {}
        for number in sorted(set(most.values())):
            texts = sorted((text for text in most if most[text] == number), key=len, reverse=True)
            for start in range(0, len(texts), batch_size):
                part = texts[start : start + batch_size]
                written |= zip(part, _written(tokenizer, writer, part, number + 1, prompt, longest), strict=True)
        wanted = set(chosen)
        found = [written[variant[0]][variant[1]] if variant in wanted else None for variant in variants]
        return [
            None if new is None or not new.strip() or same(new) == same(variant[0]) else new
            for variant, new in zip(variants, found, strict=True)
        ]

    return rewrite


@without_bars()
def _opened(model: str) -> tuple[PreTrainedTokenizerBase, PreTrainedModel]:
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    from samesense.execution.weights import checked_weights

    fix = "Paraphrases need a sequence-to-sequence model with a tokenizer, as a folder or hub name."
    with opening(f"{model!r} to write paraphrases", fix), hub_access(model), checked_weights():
        tokenizer: Any = AutoTokenizer.from_pretrained(model)
        writer: Any = AutoModelForSeq2SeqLM.from_pretrained(model)
    writer.to("cuda" if torch.cuda.is_available() else "cpu").eval()
    return tokenizer, writer


def _written(
    tokenizer: Any, writer: Any, texts: Sequence[str], count: int, prompt: str, longest: int
) -> list[list[str]]:
    """Return for each text its ``count`` likeliest rewritings."""
    import torch

    asked = [prompt + text for text in texts]
    inputs = tokenizer(asked, return_tensors="pt", padding=True, truncation=True, max_length=longest)
    inputs = inputs.to(writer.device)
    unread = Unread()
    unread.see(texts)
    unread.longest = longest
    for text, one in zip(texts, tokenizer(asked, verbose=False)["input_ids"], strict=True):
        if len(one) > longest:
            unread.cut.add(text)
    note(unread, writer)
    with torch.inference_mode():
        found = writer.generate(
            input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], do_sample=False,
            num_beams=max(BEAMS, count), num_return_sequences=count, max_new_tokens=longest,
        )  # fmt: skip
    decoded = tokenizer.batch_decode(found, skip_special_tokens=True)
    return [decoded[start : start + count] for start in range(0, len(decoded), count)]


def augment_named(
    name: AugmentName, *, share: float | None = None, seed: int = 0, paraphraser: str = PARAPHRASER
) -> Augment | None:
    """Return an augmentation, nothing for ``"none"``; ``share`` is of the words, or of the texts."""
    chosen = SHARES.get(name, 0.0) if share is None else share
    match name:
        case "deletion":
            return deletion(chosen, seed=seed)
        case "synonym":
            return synonyms(chosen, seed=seed)
        case "paraphrase":
            return paraphrase(paraphraser, chosen, seed=seed)
        case "none":
            return None
