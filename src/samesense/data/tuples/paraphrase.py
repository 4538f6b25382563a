"""Augments positives with paraphrases by a sequence-to-sequence model, such as a T5 trained to paraphrase."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from samesense.data.tuples.augment import Augment, Variant, random_of
from samesense.data.tuples.completion import normalize_text
from samesense.errors import ConfigError
from samesense.execution.progress import without_bars
from samesense.execution.unread import Unread, note
from samesense.failures import opening
from samesense.hub import hub_access

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

PROMPT = "paraphrase: "
"""What T5 models that paraphrase were trained to see before a text."""

BEAMS = 4
"""Least number of beams; a text with more variants gets one beam for each."""


def paraphrase(
    model: str,
    fraction: float = 0.5,
    *,
    seed: int = 0,
    longest: int = 64,
    batch_size: int = 32,
) -> Augment:
    """Return an augmentation that rewrites a fraction of the texts with a sequence-to-sequence model.

    The variants of a text are its beams, the likeliest first, so they depend on the text only; which texts are
    rewritten also depends on the seed. A paraphrase that differs from its text only in case and whitespace is not a
    change. ``fraction`` is above 0 and at most 1; ``longest`` is the most tokens of a text and of its paraphrase;
    ``batch_size`` is the number of texts rewritten at once.
    """
    if not 0 < fraction <= 1:
        raise ConfigError(f"The share of texts to rewrite must be above 0 and at most 1; received {fraction}.")
    tokenizer, writer = _load_model(model)

    def rewrite(variants: Sequence[Variant]) -> list[str | None]:
        chosen = [variant for variant in variants if random_of(seed, variant).random() < fraction]
        highest: dict[str, int] = {}  # highest variant number of each text
        for text, number in chosen:
            highest[text] = max(highest.get(text, 0), number)
        written: dict[str, list[str]] = {}
        # Texts that need the same number of paraphrases are generated together.
        for number in sorted(set(highest.values())):
            # Longest first, so that the texts of a batch need little padding.
            texts = sorted((text for text in highest if highest[text] == number), key=len, reverse=True)
            for start in range(0, len(texts), batch_size):
                batch = texts[start : start + batch_size]
                written |= zip(batch, _generate(tokenizer, writer, batch, number + 1, longest), strict=True)
        rewritten: list[str | None] = []
        chosen_set = set(chosen)
        for variant in variants:
            text, number = variant
            candidate = written[text][number] if variant in chosen_set else ""
            rewritten.append(candidate if _differs(candidate, text) else None)
        return rewritten

    return rewrite


def _differs(paraphrase: str, text: str) -> bool:
    """Return whether a paraphrase is a text, and another one than that which was paraphrased."""
    return bool(paraphrase.strip()) and normalize_text(paraphrase) != normalize_text(text)


@without_bars()
def _load_model(model: str) -> tuple[PreTrainedTokenizerBase, PreTrainedModel]:
    # Loaded for paraphrases alone, as torch and transformers take seconds.
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    from samesense.execution.weights import checked_weights

    fix = "Paraphrases need a sequence-to-sequence model with a tokenizer, as a folder or hub name."
    with opening(f"{model!r} to write paraphrases", fix), hub_access(model, "paraphraser"), checked_weights():
        tokenizer: Any = AutoTokenizer.from_pretrained(model)
        writer: Any = AutoModelForSeq2SeqLM.from_pretrained(model)
    writer.to("cuda" if torch.cuda.is_available() else "cpu").eval()
    return tokenizer, writer


def _generate(tokenizer: Any, writer: Any, texts: Sequence[str], count: int, longest: int) -> list[list[str]]:
    """Return the ``count`` likeliest paraphrases of each text."""
    import torch

    prompts = [PROMPT + text for text in texts]
    inputs = tokenizer(prompts, return_tensors="pt", padding=True, truncation=True, max_length=longest)
    inputs = inputs.to(writer.device)
    unread = Unread()
    unread.see(texts)
    unread.longest = longest
    # Tokenized once more without truncation, to report the texts that were cut off.
    for text, token_ids in zip(texts, tokenizer(prompts, verbose=False)["input_ids"], strict=True):
        if len(token_ids) > longest:
            unread.cut.add(text)
    note(unread, writer)
    with torch.inference_mode():
        sequences = writer.generate(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            do_sample=False,
            # A beam for each variant, so that they are different.
            num_beams=max(BEAMS, count),
            num_return_sequences=count,
            max_new_tokens=longest,
        )
    decoded = tokenizer.batch_decode(sequences, skip_special_tokens=True)
    return [decoded[start : start + count] for start in range(0, len(decoded), count)]
