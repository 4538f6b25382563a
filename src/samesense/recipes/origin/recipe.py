"""Origin: from running documents to a similarity, without labels.

    samesense origin documents.jsonl.gz --output origins/mine
    samesense similarity origin:origins/mine "A man is eating." "Someone has a meal."

The folder holds ``corpus/``, ``cache/``, ``manifest.json`` and, once all stages are done, ``origin.json``; by next
words ``reference/`` and ``parts.npz``, otherwise ``index/``, ``discriminator/`` and ``generator/`` (unless a pretrained
language model takes its place, or its terms have no weight).

Source: Sun et al. 2022 (TACL), "Sentence Similarity Based on Contexts"; settings in ``configs/origin/``.
Differs: see :class:`~samesense.context.origin.word_origin.WordOrigin`, :class:`~samesense.context.origin.origin.Origin`
    and the classes that they are made of.
    The paper has no public code.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path

import torch

from samesense.context.corpus.corpus import Corpus
from samesense.context.origin.load import open_origin
from samesense.context.origin.origin import FILE, Origin
from samesense.data.documents import Document, drop_held_out, first_words, read_documents
from samesense.execution.progress import progress_bar, stage
from samesense.execution.unread import counted
from samesense.files import write_json
from samesense.hashes import source_hash
from samesense.locks import only_writer
from samesense.places import check_outside
from samesense.recipes.origin import paper, random_pairs, words
from samesense.recipes.origin.settings import OriginSettings
from samesense.recipes.stages import Interrupted, Stages, read_stages
from samesense.training import manifest

logger = logging.getLogger(__name__)

BLOCK = 4096
"""Sentences of a corpus that are looked at together."""

OF_OTHERS = {"words": {**paper.OUTPUTS, random_pairs.STAGE: []}, "retrieved": words.OUTPUTS}
"""Stages, with their outputs, that have no part in an Origin with these contexts."""


def run(sources: Sequence[str], settings: OriginSettings, output: Path, *, overwrite: bool = False) -> bool:
    """Make an Origin, or go on making it; what is there with the same inputs is not made again.

    For sources see :func:`~samesense.data.documents.read_documents`. Returned is False if it was
    interrupted; the same call goes on.
    """
    check_outside(sources, output)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    prints = {source: source_hash(source) for source in sources}
    record = manifest.describe("origin", settings.model_dump(), prints)
    read_stages(output, record["method"])  # raises where nothing may be written, before there is a lock
    with stage(f"loading {settings.language_model or 'torch'}"):
        by_words = settings.contexts == "words"
        if by_words:
            maker: words.WordMaker | paper.PaperMaker = words.WordMaker(settings, str(device))
        else:
            maker = paper.PaperMaker(settings, device)
    with only_writer(output):
        # Only now, as another process may have made some of them meanwhile.
        stages = Stages(output, record, overwrite=overwrite)
        stages.leave(OF_OTHERS[settings.contexts], "an Origin with other contexts")
        try:
            corpus = _corpus(stages, sources, prints, settings)
            recorded = maker.make(stages, corpus)
            # Only once all stages are done: whoever finds this file finds a whole Origin.
            write_json(output / FILE, {"contexts": settings.contexts, "shape": asdict(corpus.shape), **recorded})
            with stage("opening the Origin"):
                origin = open_origin(output, device=str(device))
            logger.info(origin.protocol)
            if isinstance(origin, Origin):
                _note_unread(origin)
                with counted(apart=True):  # of the same corpus
                    random_pairs.score_random_pairs(stages, settings, recorded, str(device))
        except Interrupted:
            return False
        stages.finish()
        return True


def _note_unread(origin: Origin) -> None:
    """Count sentences of the corpus that the models which were trained on it read in part."""
    with progress_bar("look for long sentences", "sentence", len(origin.corpus), leave=False) as bar:
        for start in range(0, len(origin.corpus), BLOCK):
            sentences = origin.corpus.sentences(range(start, min(len(origin.corpus), start + BLOCK)))
            origin.terms.note_unread(sentences)
            bar.update(len(sentences))


def documents_of(sources: Sequence[str], settings: OriginSettings) -> Iterator[Document]:
    """Yield all documents of the sources, in order."""
    return chain.from_iterable(
        read_documents(source, language=settings.language, paragraphs=settings.paragraphs) for source in sources
    )


def learnt_from(sources: Sequence[str], settings: OriginSettings) -> Iterator[Document]:
    """Yield the documents of the corpus: those not held out, up to ``corpus_words`` words."""
    documents = drop_held_out(documents_of(sources, settings), settings.held_out_documents)
    return first_words(documents, settings.corpus_words)


def _corpus(stages: Stages, sources: Sequence[str], prints: dict[str, str], settings: OriginSettings) -> Corpus:
    folder = stages.folder / "corpus"
    shape = settings.shape()
    options = {"language": settings.language, "paragraphs": settings.paragraphs}

    def documents() -> Iterator[Document]:
        with progress_bar("corpus", "document") as bar:
            for document in learnt_from(sources, settings):
                yield document
                bar.update()

    def make() -> list[str]:
        # Written under another name and renamed, so that a corpus which exists is complete.
        if folder.exists():
            corpus = Corpus(folder, shape)
        else:
            corpus = Corpus.build(folder, documents(), shape)
        sizes = f"{corpus.documents} documents, {len(corpus)} sentences"
        return [f"{sizes}, {len(corpus.windows)} contexts in {corpus.chunks} chunks"]

    limits = {"corpus_words": settings.corpus_words, "held_out_documents": settings.held_out_documents}
    inputs = {"sources": [prints[source] for source in sources], **limits, **options}
    stages.run("corpus", inputs, ["corpus", ".corpus-building", FILE], make)
    return Corpus(folder, shape)
