"""A pretrained causal language model as a generator, without training."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from samesense.context.generator.base import KINDS, Cells, Kind, LogProbs, batches_of, checked, groups_of
from samesense.context.generator.pretrained import PretrainedGenerator
from samesense.errors import DataError, ModelError
from samesense.types import Floats

TokenIds = list[int]


class CausalGenerator(PretrainedGenerator):
    """Scores by the chain rule over the running text: left, sentence, right.

    A causal model reads forwards only, so what it is asked for is turned round by Bayes' rule, in which every factor is
    one that it gives. With L, s and R for left, sentence and right, and all probabilities those of this model::

        log p(R | L, s)                                                  as it stands
        log p(s | L, R) = log p(s | L) + log p(R | L, s) - log p(R | L)
        log p(L | s, R) = log p(L) + log p(s, R | L) - log p(s, R)

    Source: Sun et al. 2022 (TACL), section 3.2.2, for what is asked for.
    Differs: the paper trains a model for each direction. The factors p(R | L) and p(s, R) are those of a text in which
        R follows L at once, and of one that begins with s: the model's own stand-ins for sums over all texts between
        and before. The first does not depend on s, the second does not depend on L. Lengths are those of the generated
        text; the end of a text is not a token, since running text goes on.

    States of the left context are formed once for all sentences that stand in it, and those of a sentence once for all
    texts that follow it.

    """

    form = "causal"

    def __init__(self, model: Any, tokenizer: Any, *, max_tokens: int = 128) -> None:
        super().__init__(model, tokenizer, max_tokens=max_tokens)
        start = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
        if start is None:
            raise ModelError("A text begins with a mark, and this model's tokenizer has neither bos nor eos token.")
        self._start = int(start)
        self.protocol = f"causal language model by Bayes' rule, {str(model.dtype).removeprefix('torch.')}"

    def measure(self, cells: Cells, kinds: Sequence[Kind] = KINDS) -> LogProbs:
        """Return the log probabilities of all cells; see the base class."""
        self._known = {}
        terms = np.zeros((len(kinds), len(cells)))
        forward = self._in_context(cells)
        backward = self._alone(cells) if "left" in kinds else None
        for at, kind in enumerate(kinds):
            terms[at] = _bayes(kind, forward, backward if kind == "left" else None)
        tokens = np.array([[self._length(kind, cells, at) for at in range(len(cells))] for kind in kinds])
        return checked(LogProbs(terms, tokens.reshape(terms.shape).astype(np.int64)), cells, kinds)

    @torch.inference_mode()
    def _in_context(self, cells: Cells) -> dict[str, Floats]:
        """Return log p(L), p(R | L), p(s | L) and p(R | L, s) of every cell, each ``(n,)``."""
        found = {name: np.empty(len(cells)) for name in ("L", "R|L", "s|L", "R|Ls")}
        for members in groups_of(cells.columns):
            left, right = self._sides(cells, int(members[0]))
            cache, outcome, own = self._read([self._start, *left])
            found["L"][members] = own
            found["R|L"][members] = self._go_on(cache, outcome, [right], [len(right)])[0].sum()
            tails = [self._sentence(cells, int(at)) for at in members]
            parts = self._go_on(cache, outcome, [tail + right for tail in tails], [len(tail) for tail in tails])
            found["s|L"][members], found["R|Ls"][members] = parts.T
        return found

    @torch.inference_mode()
    def _alone(self, cells: Cells) -> Floats:
        """Return log p(s, R) of every cell ``(n,)``: the text begins with the sentence."""
        found = np.empty(len(cells))
        for members in groups_of(cells.rows):
            sentence = self._sentence(cells, int(members[0]))
            cache, outcome, own = self._read([self._start, *sentence])
            rights = [self._sides(cells, int(at))[1] for at in members]
            found[members] = own + self._go_on(cache, outcome, rights, [len(right) for right in rights]).sum(axis=1)
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
        left = [token for place, text in enumerate(window.left) for token in self._ids(text, inside=place > 0)]
        return left, [token for text in window.right for token in self._ids(text, inside=True)]

    def _sentence(self, cells: Cells, at: int) -> TokenIds:
        return self._ids(cells.sentences[cells.rows[at]], inside=True)

    def _length(self, kind: Kind, cells: Cells, at: int) -> int:
        if kind == "sentence":
            return len(self._sentence(cells, at))
        return len(self._sides(cells, at)[kind == "right"])


def _bayes(kind: Kind, forward: dict[str, Floats], alone: Floats | None) -> Floats:
    """Return the log probability of what is asked for, from those that the model gives."""
    if kind == "right":
        return forward["R|Ls"]
    together: Floats = forward["s|L"] + forward["R|Ls"]
    return together - forward["R|L"] if alone is None else forward["L"] + together - alone
