"""Pretrained language models of transformers as generators, without training: causal ones, and the T5 family."""

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
from samesense.context.generator.tokens import parts
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

    A causal model reads forwards only, so what it is asked for is turned round by Bayes' rule, in which every factor is
    one that it gives. With L, s and R for left, sentence and right, and all probabilities those of this model::

        log p(R | L, s)                                                  as it stands
        log p(s | L, R) = log p(s | L) + log p(R | L, s) - log p(R | L)
        log p(L | s, R) = log p(L) + log p(s, R | L) - log p(s, R)
        log p(R | s)                                                     as it stands, of a text that begins with s

    Source: Sun et al. 2022 (TACL), section 3.2.2, for what is asked for.
    Differs: the paper trains a model for each direction. The factors p(R | L) and p(s, R) are those of a text in which
        R follows L at once, and of one that begins with s: the model's own stand-ins for sums over all texts between
        and before. The first does not depend on s, the second does not depend on L. Lengths are those of the generated
        text; the end of a text is not a token, since running text goes on. p(R | s) is not in the paper.

    States of the left context are formed once for all sentences that stand in it, and those of a sentence once for all
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
        factors |= self._alone(cells) if {"left", "continuation"} & set(kinds) else {}
        for at, kind in enumerate(kinds):
            terms[at] = _bayes(kind, factors)
        tokens = np.array([[self._length(kind, cells, at) for at in range(len(cells))] for kind in kinds])
        return checked(LogProbs(terms, tokens.reshape(terms.shape).astype(np.int64)), cells, kinds)

    @torch.inference_mode()
    def _in_context(self, cells: Cells) -> dict[str, Floats]:
        """Return log p(L), p(R | L), p(s | L) and p(R | L, s) of every cell, each ``(n,)``."""
        found = {name: np.empty(len(cells)) for name in ("L", "R|L", "s|L", "R|Ls")}
        for members in groups_of(cells.columns):
            left, right = self._sides(cells, int(members[0]))
            cache, outcome, own = self._read([self.start, *left])
            found["L"][members] = own
            found["R|L"][members] = self._go_on(cache, outcome, [right], [len(right)])[0].sum()
            tails = [self._sentence(cells, int(at)) for at in members]
            parts = self._go_on(cache, outcome, [tail + right for tail in tails], [len(tail) for tail in tails])
            found["s|L"][members], found["R|Ls"][members] = parts.T
        return found

    @torch.inference_mode()
    def _alone(self, cells: Cells) -> dict[str, Floats]:
        """Return log p(s) and p(R | s) of every cell, each ``(n,)``: the text begins with the sentence."""
        found = {name: np.empty(len(cells)) for name in ("s", "R|s")}
        for members in groups_of(cells.rows):
            sentence = self._sentence(cells, int(members[0]))
            cache, outcome, own = self._read([self.start, *sentence])
            rights = [self._sides(cells, int(at))[1] for at in members]
            found["s"][members] = own
            found["R|s"][members] = self._go_on(cache, outcome, rights, [len(right) for right in rights])[:, 0]
        return found

    def _read(self, ids: TokenIds) -> tuple[Any, Tensor, float]:
        """Return the state after ``ids``, the log probabilities of what comes next, and that of ``ids`` itself."""
        whole = torch.tensor([ids], device=self.model.device)
        output = self.model(input_ids=whole, use_cache=True)
        logs = output.logits[0].float().log_softmax(-1)
        own = logs[:-1].gather(1, whole[0, 1:, None]).sum()
        return output.past_key_values, logs[-1], float(own)

    def _go_on(self, cache: Any, outcome: Tensor, tails: Sequence[TokenIds], cuts: Sequence[int]) -> Floats:
        """Return the log probability of each tail up to its cut, and from there on, ``(tails, 2)``.

        ``outcome`` holds the log probabilities of their first token, ``cache`` the state of what all of them follow.
        """
        found = np.empty((len(tails), 2))
        lengths = [len(tail) for tail in tails]
        for batch in batches_of(lengths, self._budget):
            ids, _ = self._padded([tails[at] for at in batch])
            own = copy.deepcopy(cache)  # a forward adds to it
            own.batch_repeat_interleave(len(batch))
            logits = self.model(input_ids=ids, past_key_values=own, use_cache=True).logits[:, :-1]
            wanted = ids[:, 1:, None]
            rest = logits.gather(2, wanted)[..., 0].float() - logits.float().logsumexp(-1)
            each = torch.cat([outcome[ids[:, :1]], rest], dim=1).double().cpu().numpy()
            for row, at in enumerate(batch):
                found[at] = each[row, : cuts[at]].sum(), each[row, cuts[at] : lengths[at]].sum()
        return found

    def _sides(self, cells: Cells, at: int) -> tuple[TokenIds, TokenIds]:
        window = cells.windows[cells.columns[at]]
        if not window.left or not window.right:
            raise DataError(
                f"A context must have both sides; context {window.id} has {len(window.left)} sentences before its "
                f"centre and {len(window.right)} after. Leave such windows out."
            )
        left = [token for place, text in enumerate(window.left) for token in self.ids(text, inside=place > 0)]
        return left, [token for text in window.right for token in self.ids(text, inside=True)]

    def _sentence(self, cells: Cells, at: int) -> TokenIds:
        return self.ids(cells.sentences[cells.rows[at]], inside=True)

    def _length(self, kind: Kind, cells: Cells, at: int) -> int:
        if kind == "sentence":
            return len(self._sentence(cells, at))
        return len(self._sides(cells, at)[kind != "left"])


def _bayes(kind: Kind, factors: dict[str, Floats]) -> Floats:
    """Return the log probability of what is asked for, from those that the model gives."""
    if kind in ("right", "continuation"):
        return factors["R|Ls" if kind == "right" else "R|s"]
    together: Floats = factors["s|L"] + factors["R|Ls"]
    if kind == "sentence":
        return together - factors["R|L"]
    return factors["L"] + together - (factors["s"] + factors["R|s"])


class InfillGenerator(PretrainedGenerator):
    """Scores what is missing as the model was pretrained to fill it in: a gap in what is read, its content written.

    Source: Raffel et al. 2020, "Exploring the Limits of Transfer Learning", section 3.1.4, for gaps; Sun et al. 2022
        (TACL), section 3.2.2, for what is asked for.
    Differs: the paper trains a model for each direction. The mark that ends the gap is no token of the text.

    What is read is encoded once for all texts that are scored after it.

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
        for at, kind in enumerate(kinds):
            sources: dict[TokenTuple, list[int]] = {}
            targets: list[TokenTuple] = []
            for cell, (row, column) in enumerate(zip(cells.rows, cells.columns, strict=True)):
                source, target = self._texts(kind, cells.sentences[row], cells.windows[column])
                sources.setdefault(source, []).append(cell)
                targets.append(target)
            tokens[at] = [len(target) for target in targets]
            distinct = list(sources)
            for batch in batches_of([len(source) for source in distinct], self._budget):
                read = [distinct[place] for place in batch]
                self._fill(read, [sources[source] for source in read], targets, totals[at])
        return checked(LogProbs(totals, tokens), cells, kinds)

    def _fill(
        self, read: list[TokenTuple], groups: list[list[int]], targets: list[TokenTuple], totals: np.ndarray
    ) -> None:
        """Encode these sources, and write into ``totals`` those of the cells of each group."""
        ids, present = self._padded(read)
        states = self.model.get_encoder()(input_ids=ids, attention_mask=present).last_hidden_state
        cells = [(source, cell) for source, group in enumerate(groups) for cell in group]
        for batch in batches_of([len(targets[cell]) for _, cell in cells], self._budget):
            members = [cells[place] for place in batch]
            chosen = torch.tensor([source for source, _ in members], device=ids.device)
            wanted, real = self._padded([targets[cell] for _, cell in members])
            begin = torch.tensor([[self._begin, self._gap]] * len(members), device=ids.device)
            logits = self.model(
                encoder_outputs=(states[chosen],),
                attention_mask=present[chosen],
                decoder_input_ids=torch.cat([begin, wanted[:, :-1]], dim=1),
            ).logits[:, 1:]
            logs = logits.gather(2, wanted[..., None])[..., 0].float() - logits.float().logsumexp(-1)
            summed = torch.where(real.bool(), logs, 0).double().sum(dim=1).cpu().numpy()
            totals[[cell for _, cell in members]] = summed

    def _texts(self, kind: Kind, sentence: str, window: Any) -> tuple[TokenTuple, TokenTuple]:
        """Return the tokens that are read, a gap in the place of what is missing, and those that are missing."""
        read, target = parts(kind, sentence, window)
        missing = {part.place for part in target}
        source: list[int] = []
        for part in sorted([*read, target[0]], key=lambda part: part.place):
            source += [self._gap] if part.place in missing else self.ids(part.text, inside=bool(source))
        written = [token for part in target for token in self.ids(part.text, inside=part is not target[0])]
        return (*source, *self._end), tuple(written)


MARGIN = 32
"""Positions of a model that are left for what is read behind a text."""


@without_bars()
def open_language_model(
    name: str, *, precision: Literal["float32", "bfloat16"] = "float32", max_tokens: int = 128, device: str = "cpu"
) -> Generator:
    """Open a language model by folder or hub name; what it is, its configuration says.

    Raises:
        ModelError: if it cannot be opened, has no output head, or is neither causal nor sequence-to-sequence.
    """
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
        together = AutoConfig.from_pretrained(name).is_encoder_decoder
        kind: Any = AutoModelForSeq2SeqLM if together else AutoModelForCausalLM
        model = kind.from_pretrained(name, dtype=dtype)
        new = [weight for weight in weights.allow_head() if not weight.startswith(f"{model.base_model_prefix}.")]
        model.to(device)
        tokenizer = AutoTokenizer.from_pretrained(name)
    if new:
        raise ModelError(
            f"{name!r} has no output head ({', '.join(new[:3])}), so that it cannot say which word comes next. Name a "
            "language model with its head."
        )
    if not together and not _is_causal(model):
        raise ModelError(
            f"{name!r} reads in both directions, and is no causal language model: a token changes what it says before "
            "it. Name one that is causal."
        )
    limit = None if together else _positions(model)
    if limit is not None:
        model.register_forward_pre_hook(partial(_check_length, limit), with_kwargs=True)
        max_tokens = max(1, min(max_tokens, limit - MARGIN))
    return (InfillGenerator if together else CausalGenerator)(model, tokenizer, max_tokens=max_tokens)


def _positions(model: Any) -> int | None:
    """Return how many tokens a model with a table of positions reads together; ``None`` without one."""
    ids = torch.tensor([[1, 2, 1, 2]], device=model.device) % model.config.get_text_config().vocab_size
    return table_limit(lambda: model.eval()(input_ids=ids), ids.shape[1])


def _check_length(limit: int, model: Any, args: Any, named: dict[str, Any]) -> None:
    """Raise ModelError where a model would read more tokens than it has positions for."""
    cache, ids = named.get("past_key_values"), named.get("input_ids")
    tokens = (0 if ids is None else ids.shape[1]) + (0 if cache is None else int(cache.get_seq_length()))
    if tokens > limit:
        raise ModelError(
            f"The language model has positions for {limit} tokens, and {tokens} are to be read together. Give shorter "
            "sentences, or another language model."
        )


@torch.no_grad()
def _is_causal(model: Any) -> bool:
    """Return whether a token changes nothing that is said before it."""
    ids = torch.arange(1, 4, device=model.device)[None] % model.config.get_text_config().vocab_size
    alone, followed = (model.eval()(input_ids=part).logits[:, 0].float() for part in (ids[:, :1], ids))
    off = 1e-3 if model.dtype == torch.float32 else 0.1
    return bool((alone - followed).abs().max() < off * alone.std())
