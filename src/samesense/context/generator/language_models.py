"""Pretrained language models of transformers as generators, without training: causal models and the T5 family."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from samesense.context.generator.base import KINDS, Cells, Generator, Kind, LogProbs, batches_of, checked, groups_of
from samesense.context.generator.pretrained import PretrainedGenerator, start_mark
from samesense.context.generator.tokens import split_window
from samesense.errors import DataError, ModelError
from samesense.execution.positions import table_limit
from samesense.execution.progress import without_bars
from samesense.execution.weights import checked_weights
from samesense.failures import opening
from samesense.hub import hub_access
from samesense.types import Floats

TokenIds = list[int]

TokenTuple = tuple[int, ...]


class CausalGenerator(PretrainedGenerator):
    """Scores by the chain rule over the running text: left, sentence, right.

    A causal model only reads forwards, so the other probabilities follow by Bayes' rule from factors that it computes.
    With L, s and R for left, sentence and right, and all probabilities those of this model::

        log p(R | L, s)                                                  directly
        log p(s | L, R) = log p(s | L) + log p(R | L, s) - log p(R | L)
        log p(L | s, R) = log p(L) + log p(s, R | L) - log p(s, R)
        log p(R | s)                                                     directly, for a text that begins with s

    Source: Sun et al. 2022 (TACL), section 3.2.2, for the probabilities.
    Differs: the paper trains a model for each direction. The factors p(R | L) and p(s, R) are those of a text in which
        R follows L directly, and of one that begins with s: they stand in for sums over all texts between and before.
        The first does not depend on s, the second does not depend on L. Lengths are those of the generated text; no
        end-of-text token is scored, since running text continues. p(R | s) is not in the paper.

    The key-value cache of a left context is computed once for all sentences in it, and that of a sentence once for all
    texts that follow it.

    """

    form = "causal"

    def __init__(self, model: Any, tokenizer: Any, *, max_tokens: int = 128) -> None:
        super().__init__(model, tokenizer, max_tokens=max_tokens)
        self.start = start_mark(tokenizer)
        self.protocol = f"causal language model by Bayes' rule, {self.precision}"

    def measure(self, cells: Cells, kinds: Sequence[Kind] = KINDS) -> LogProbs:
        """Return the log probabilities of all cells; see the base class."""
        terms = np.zeros((len(kinds), len(cells)))
        factors = self._in_context(cells) if set(kinds) & set(KINDS) else {}
        if {"left", "continuation"} & set(kinds):
            factors |= self._alone(cells)
        for index, kind in enumerate(kinds):
            terms[index] = _bayes(kind, factors)
        tokens = np.array([[self._length(kind, cells, cell) for cell in range(len(cells))] for kind in kinds])
        return checked(LogProbs(terms, tokens.reshape(terms.shape).astype(np.int64)), cells, kinds)

    @torch.inference_mode()
    def _in_context(self, cells: Cells) -> dict[str, Floats]:
        """Return log p(L), p(R | L), p(s | L) and p(R | L, s) of every cell, each ``(n,)``."""
        factors = {name: np.empty(len(cells)) for name in ("L", "R|L", "s|L", "R|Ls")}
        for members in groups_of(cells.columns):
            left, right = self._sides(cells, int(members[0]))
            cache, next_log_probs, log_prob = self._read([self.start, *left])
            factors["L"][members] = log_prob
            factors["R|L"][members] = self._score_tails(cache, next_log_probs, [right], [len(right)])[0].sum()
            sentences = [self._sentence(cells, int(cell)) for cell in members]
            tails = [sentence + right for sentence in sentences]
            scores = self._score_tails(cache, next_log_probs, tails, [len(sentence) for sentence in sentences])
            factors["s|L"][members], factors["R|Ls"][members] = scores.T
        return factors

    @torch.inference_mode()
    def _alone(self, cells: Cells) -> dict[str, Floats]:
        """Return log p(s) and p(R | s) of every cell, each ``(n,)``: the text begins with the sentence."""
        factors = {name: np.empty(len(cells)) for name in ("s", "R|s")}
        for members in groups_of(cells.rows):
            sentence = self._sentence(cells, int(members[0]))
            cache, next_log_probs, log_prob = self._read([self.start, *sentence])
            rights = [self._sides(cells, int(cell))[1] for cell in members]
            lengths = [len(right) for right in rights]
            factors["s"][members] = log_prob
            factors["R|s"][members] = self._score_tails(cache, next_log_probs, rights, lengths)[:, 0]
        return factors

    def _read(self, ids: TokenIds) -> tuple[Any, Tensor, float]:
        """Return the cache after ``ids``, the log probabilities of the next token, and that of ``ids`` itself."""
        inputs = torch.tensor([ids], device=self.model.device)
        output = self.model(input_ids=inputs, use_cache=True)
        # In float32, as bfloat16 has too few digits for a sum of logarithms.
        log_probs = output.logits[0].float().log_softmax(-1)
        total = log_probs[:-1].gather(1, inputs[0, 1:, None]).sum()
        return output.past_key_values, log_probs[-1], float(total)

    def _score_tails(
        self, cache: Any, next_log_probs: Tensor, tails: Sequence[TokenIds], splits: Sequence[int]
    ) -> Floats:
        """Return the log probability of each tail before its split and after it, ``(tails, 2)``.

        ``cache`` is that of the text before the tails, ``next_log_probs`` are the log probabilities of the next token.
        """
        sums = np.empty((len(tails), 2))
        lengths = [len(tail) for tail in tails]
        for batch in batches_of(lengths, self._budget):
            ids, _ = self._padded([tails[index] for index in batch])
            batch_cache = copy.deepcopy(cache)  # a forward appends to it
            batch_cache.batch_repeat_interleave(len(batch))
            # Tails are padded on the right, where a causal model does not look, so no mask is needed.
            logits = self.model(input_ids=ids, past_key_values=batch_cache, use_cache=True).logits[:, :-1]
            targets = ids[:, 1:, None]
            later = logits.gather(2, targets)[..., 0].float() - logits.float().logsumexp(-1)
            log_probs = torch.cat([next_log_probs[ids[:, :1]], later], dim=1).double().cpu().numpy()
            for row, index in enumerate(batch):
                split = splits[index]
                sums[index] = log_probs[row, :split].sum(), log_probs[row, split : lengths[index]].sum()
        return sums

    def _sides(self, cells: Cells, cell: int) -> tuple[TokenIds, TokenIds]:
        window = cells.windows[cells.columns[cell]]
        if not window.left or not window.right:
            raise DataError(
                f"A context must have both sides; context {window.id} has {len(window.left)} sentences before its "
                f"centre and {len(window.right)} after. Leave such windows out."
            )
        left = [token for index, text in enumerate(window.left) for token in self.ids(text, inside=index > 0)]
        return left, [token for text in window.right for token in self.ids(text, inside=True)]

    def _sentence(self, cells: Cells, cell: int) -> TokenIds:
        return self.ids(cells.sentences[cells.rows[cell]], inside=True)

    def _length(self, kind: Kind, cells: Cells, cell: int) -> int:
        if kind == "sentence":
            return len(self._sentence(cells, cell))
        return len(self._sides(cells, cell)[kind != "left"])


def _bayes(kind: Kind, factors: dict[str, Floats]) -> Floats:
    """Return the log probability of a kind from the factors that the model computes."""
    if kind == "right":
        return factors["R|Ls"]
    if kind == "continuation":
        return factors["R|s"]
    joint: Floats = factors["s|L"] + factors["R|Ls"]
    if kind == "sentence":
        return joint - factors["R|L"]
    return factors["L"] + joint - (factors["s"] + factors["R|s"])


class InfillGenerator(PretrainedGenerator):
    """Scores the missing text as span infilling, the pretraining task of T5: the source has a gap, the target fills it.

    Source: Raffel et al. 2020, "Exploring the Limits of Transfer Learning", section 3.1.4, for gaps; Sun et al. 2022
        (TACL), section 3.2.2, for the probabilities.
    Differs: the paper trains a model for each direction. The mark that ends the gap is not scored.

    A source is encoded once for all of its targets.

    """

    form = "infill"

    def __init__(self, model: Any, tokenizer: Any, *, max_tokens: int = 128) -> None:
        super().__init__(model, tokenizer, max_tokens=max_tokens)
        gap = tokenizer.convert_tokens_to_ids("<extra_id_0>")
        if gap is None or gap == tokenizer.unk_token_id:
            raise ModelError(
                "A sequence-to-sequence model fills in the gap <extra_id_0>, and this tokenizer does not know it. Take "
                "a model of the T5 family, or a causal language model."
            )
        self._gap = int(gap)
        self._begin = int(model.config.decoder_start_token_id)
        self._end = [] if tokenizer.eos_token_id is None else [int(tokenizer.eos_token_id)]
        self.protocol = f"sequence-to-sequence language model filling gaps, {self.precision}"

    @torch.inference_mode()
    def measure(self, cells: Cells, kinds: Sequence[Kind] = KINDS) -> LogProbs:
        """Return the log probabilities of all cells; see the base class."""
        totals = np.empty((len(kinds), len(cells)))
        tokens = np.empty((len(kinds), len(cells)), dtype=np.int64)
        for index, kind in enumerate(kinds):
            sources: dict[TokenTuple, list[int]] = {}
            targets: list[TokenTuple] = []
            for cell, (row, column) in enumerate(zip(cells.rows, cells.columns, strict=True)):
                source, target = self._texts(kind, cells.sentences[row], cells.windows[column])
                sources.setdefault(source, []).append(cell)
                targets.append(target)
            tokens[index] = [len(target) for target in targets]
            distinct = list(sources)
            for batch in batches_of([len(source) for source in distinct], self._budget):
                batch_sources = [distinct[position] for position in batch]
                groups = [sources[source] for source in batch_sources]
                self._fill(batch_sources, groups, targets, totals[index])
        return checked(LogProbs(totals, tokens), cells, kinds)

    def _fill(
        self, read: list[TokenTuple], groups: list[list[int]], targets: list[TokenTuple], totals: np.ndarray
    ) -> None:
        """Encode these sources, and write the log probabilities of each group's cells into ``totals``."""
        ids, present = self._padded(read)
        states = self.model.get_encoder()(input_ids=ids, attention_mask=present).last_hidden_state
        cells = [(source, cell) for source, group in enumerate(groups) for cell in group]
        for batch in batches_of([len(targets[cell]) for _, cell in cells], self._budget):
            members = [cells[position] for position in batch]
            chosen = torch.tensor([source for source, _ in members], device=ids.device)
            target_ids, real = self._padded([targets[cell] for _, cell in members])
            # A target of T5 begins with the mark of its gap, which is given here and not scored.
            begin = torch.tensor([[self._begin, self._gap]] * len(members), device=ids.device)
            logits = self.model(
                encoder_outputs=(states[chosen],),
                attention_mask=present[chosen],
                decoder_input_ids=torch.cat([begin, target_ids[:, :-1]], dim=1),
            ).logits[:, 1:]
            logs = logits.gather(2, target_ids[..., None])[..., 0].float() - logits.float().logsumexp(-1)
            summed = torch.where(real.bool(), logs, 0).double().sum(dim=1).cpu().numpy()
            totals[[cell for _, cell in members]] = summed

    def _texts(self, kind: Kind, centre: str, window: Any) -> tuple[TokenTuple, TokenTuple]:
        """Return the tokens of the source, with a gap for the missing text, and those of the missing text."""
        read, missing = split_window(kind, centre, window)
        offsets = {sentence.offset for sentence in missing}
        source: list[int] = []
        for sentence in sorted([*read, missing[0]], key=lambda sentence: sentence.offset):
            if sentence.offset in offsets:
                source.append(self._gap)
            else:
                source += self.ids(sentence.text, inside=bool(source))
        target = [token for sentence in missing for token in self.ids(sentence.text, inside=sentence is not missing[0])]
        return (*source, *self._end), tuple(target)


MARGIN = 32
"""Positions of a model that are reserved for the text after a sentence."""


@without_bars()
def open_language_model(
    name: str, *, precision: Literal["float32", "bfloat16"] = "float32", max_tokens: int = 128, device: str = "cpu"
) -> Generator:
    """Load a language model by folder or hub name; its configuration says whether it is causal.

    Raises:
        ModelError: if it cannot be loaded, has no output head, or is neither causal nor sequence-to-sequence.
    """
    # The classes of models load the whole of transformers, which takes seconds.
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

    dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[precision]
    with (
        opening(
            f"{name!r} as a causal or sequence-to-sequence language model",
            "Name a folder, or a model of the hub, that is one.",
        ),
        hub_access(name, "language model"),
        checked_weights() as weights,
    ):
        is_encoder_decoder = AutoConfig.from_pretrained(name).is_encoder_decoder
        model_class: Any = AutoModelForSeq2SeqLM if is_encoder_decoder else AutoModelForCausalLM
        model = model_class.from_pretrained(name, dtype=dtype)
        # Weights of the base model that are left, such as a pooler's, do not reach the hidden states.
        new = [weight for weight in weights.allow_head() if not weight.startswith(f"{model.base_model_prefix}.")]
        model.to(device)
        tokenizer = AutoTokenizer.from_pretrained(name)
    if new:
        raise ModelError(
            f"{name!r} has no output head ({', '.join(new[:3])}), so that it cannot say which word comes next. Name a "
            "language model with its head."
        )
    if not is_encoder_decoder and not _is_causal(model):
        raise ModelError(
            f"{name!r} reads in both directions, and is no causal language model: a token changes what it says before "
            "it. Name one that is causal."
        )
    if is_encoder_decoder:
        return InfillGenerator(model, tokenizer, max_tokens=max_tokens)
    limit = _count_positions(model)
    if limit is not None:
        model.register_forward_pre_hook(partial(_check_length, limit), with_kwargs=True)
        max_tokens = max(1, min(max_tokens, limit - MARGIN))
    generator = CausalGenerator(model, tokenizer, max_tokens=max_tokens)
    generator.positions = limit
    return generator


def _count_positions(model: Any) -> int | None:
    """Return the maximum length of a model with a position table; ``None`` without one."""
    # Not in ascending order, which would be taken for a look-up of positions.
    ids = torch.tensor([[1, 2, 1, 2]], device=model.device) % model.config.get_text_config().vocab_size
    return table_limit(lambda: model.eval()(input_ids=ids), ids.shape[1])


def _check_length(limit: int, model: Any, args: Any, kwargs: dict[str, Any]) -> None:
    """Raise ModelError if a model would read more tokens than it has positions for."""
    cache = kwargs.get("past_key_values")
    ids = kwargs.get("input_ids")
    tokens = 0
    if ids is not None:
        tokens += ids.shape[1]
    if cache is not None:
        tokens += int(cache.get_seq_length())
    if tokens > limit:
        raise ModelError(
            f"The language model has positions for {limit} tokens, and {tokens} are to be read together. Give shorter "
            "sentences, or another language model."
        )


@torch.no_grad()
def _is_causal(model: Any) -> bool:
    """Return whether the logits of a token do not depend on the tokens after it."""
    ids = torch.arange(1, 4, device=model.device)[None] % model.config.get_text_config().vocab_size
    alone = model.eval()(input_ids=ids[:, :1]).logits[:, 0].float()
    followed = model.eval()(input_ids=ids).logits[:, 0].float()
    # Batches of other shapes round differently.
    tolerance = 1e-3 if model.dtype == torch.float32 else 0.1
    return bool((alone - followed).abs().max() < tolerance * alone.std())
