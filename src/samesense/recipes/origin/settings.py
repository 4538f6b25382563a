"""Settings of an Origin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, field_validator, model_validator

from samesense.choices import ExecutorName
from samesense.context.corpus.corpus import HELD_OUT_WINDOWS, Shape
from samesense.context.generator.base import Reading, RightGiven, Size
from samesense.context.origin.context_set import Selection, Strategy
from samesense.context.origin.prompt import LAYERS_ABOVE_STATE, OWN_LAYER, PROMPT
from samesense.context.origin.scheme import Scheme
from samesense.context.origin.similarity import Normalisation, Weights
from samesense.data.documents import Paragraphs
from samesense.data.sentence_splitting import Language
from samesense.errors import ConfigError
from samesense.execution.settings import Settings, comma_separated
from samesense.execution.shards.executors import choose_executor
from samesense.execution.shards.tasks import RETRIES, Executor
from samesense.hub import check_model
from samesense.recipes.settings import bind, read_settings
from samesense.types import Precision

if TYPE_CHECKING:
    from samesense.context.discriminator.training import DiscriminatorTraining
    from samesense.context.generator.training import GeneratorTraining


LANGUAGE_MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"
"""What gives next words unless another is named."""


Arithmetic = Literal["float32", "bfloat16"]

_OF_WORDS = (
    "prompt",
    "own_layer",
    "state_layer",
    "weight_own",
    "weight_state",
    "weight_words",
    "kept_words",
    "dimensions",
    "texts",
    "workers",
    "executor",
    "address",
    "retries",
)
_OF_RETRIEVED = (
    "windows",
    "left",
    "right",
    "chunk",
    "unigrams",
    "interaction",
    "word_vectors",
    "discriminator_epochs",
    "discriminator_batch_size",
    "discriminator_learning_rate",
    "negatives",
    "models",
    "size",
    "reading",
    "vocabulary",
    "max_tokens",
    "dropout",
    "generator_epochs",
    "generator_max_steps",
    "generator_batch_size",
    "generator_learning_rate",
    "held_out_windows",
    "weight_discriminative",
    "weight_sentence",
    "weight_left",
    "weight_right",
    "right_given",
    "normalisation",
    "twice",
    "random_sentences",
    "screened",
    "rescored",
    "jaccard",
    "strategy",
    "by",
    "precision",
)
"""Settings that have an effect with next words, and with retrieved contexts; others have with both."""


class OriginSettings(Settings):
    """Settings of an Origin; the defaults are for any corpus from some thousand sentences on, and a CPU."""

    contexts: Literal["words", "retrieved"] = Field(
        "words", description="words: next words of a pretrained model; retrieved: those of each sentence, as published"
    )
    language_model: str | None = Field(
        None,
        description=f"pretrained model, by folder or hub name [words: {LANGUAGE_MODEL}; retrieved: trained here]",
    )
    prompt: str = Field(PROMPT, description="words: text around a sentence, which stands at {text}")
    own_layer: int = Field(OWN_LAYER, ge=0, description="words: layer of the own hidden states, 0 for the embeddings")
    state_layer: int | None = Field(
        None,
        ge=0,
        description=f"words: layer of the state at the end of the prompt [the last but {LAYERS_ABOVE_STATE}]",
    )
    weight_own: float = Field(1.0, ge=0, description="words: weight of the own hidden states")
    weight_state: float = Field(0.5, ge=0, description="words: weight of the state at the end of the prompt")
    weight_words: float = Field(1.0, ge=0, description="words: weight of the next words")
    kept_words: int = Field(2000, ge=1, description="words: likeliest words that are kept of a sentence")
    dimensions: int = Field(256, ge=1, description="words: dimensions of the next words in a vector")
    texts: tuple[str, ...] = Field(
        (), description="words: files of unlabelled texts like those to be compared, to fit on [the corpus]"
    )

    language: Language = Field("auto", description="corpus: language, for the splitting of texts into sentences")
    paragraphs: Paragraphs = Field("sections", description="corpus: what a paragraph of a text file is")
    corpus_words: int | None = Field(
        None,
        ge=1,
        description="corpus: stop after the document that reaches this number of words [all]",
    )
    held_out_documents: float = Field(
        0.0, ge=0, lt=1, description="corpus: share of the documents that is left out, to evaluate on"
    )
    windows: int = Field(100, ge=1, description="context set: contexts of a sentence")
    left: int = Field(2, ge=1, description="corpus: most sentences of a context before the sentence")
    right: int = Field(2, ge=1, description="corpus: most sentences after it")
    chunk: int = Field(5, ge=1, description="corpus: sentences of a chunk; at most one context is chosen from it")
    unigrams: bool = Field(True, description="screening: single words count as well as pairs of words")

    interaction: Literal["none", "product", "bilinear"] = Field(
        "bilinear", description="discriminator: none is Eq. 1 as printed, by which every sentence ranks contexts alike"
    )
    word_vectors: str | None = Field(
        None, description="discriminator: file or folder of word vectors to start from [random ones]"
    )
    discriminator_epochs: int = Field(3, ge=1, description="discriminator: passes over the windows")
    discriminator_batch_size: int = Field(64, ge=1, description="discriminator: windows in a step")
    discriminator_learning_rate: float = Field(1e-3, gt=0, description="discriminator: peak of AdamW")
    negatives: int = Field(1, ge=1, description="discriminator: replacements of each centre, drawn again in each epoch")

    models: Literal["one", "three"] = Field(
        "one", description="generator: one model for all directions, or one per direction"
    )
    size: Size = Field("tiny", description="generator: tiny, small, base or large, the paper's")
    reading: Reading = Field(
        "apart", description="generator: sentences are encoded apart, and shared between cells, or together as in print"
    )
    vocabulary: int = Field(8000, ge=259, description="generator: tokens, the 256 bytes and three marks among them")
    max_tokens: int = Field(64, ge=2, description="generator: longest sentence in tokens; longer ones are cut")
    dropout: float = Field(0.1, ge=0, lt=1, description="generator: share of values dropped in training")
    generator_epochs: float = Field(3.0, gt=0, description="generator: passes over the windows in each direction")
    generator_max_steps: int | None = Field(None, ge=1, description="generator: stop there; overrides epochs")
    generator_batch_size: int = Field(64, ge=1, description="generator: texts to be generated in a step")
    generator_learning_rate: float = Field(1e-3, gt=0, description="generator: peak of AdamW")
    held_out_windows: int = Field(
        HELD_OUT_WINDOWS, ge=1, description="windows of whole documents that are not trained on and select"
    )

    weight_discriminative: float = Field(1.0, ge=0, description="score: λ1 of Eq. 3")
    weight_sentence: float = Field(1.0, ge=0, description="score: λ2 of Eq. 3")
    weight_left: float = Field(1.0, ge=0, description="score: λ3 of Eq. 3")
    weight_right: float = Field(1.0, ge=0, description="score: λ4 of Eq. 3")
    right_given: RightGiven = Field(
        "both", description="score: the right side's probability after left side and sentence, or the sentence alone"
    )
    normalisation: Normalisation = Field(
        "standardised", description="score: of terms in their contexts, or centred (Pearson), both, or raw as printed"
    )
    twice: bool = Field(True, description="score: a context of both sentences counts twice, as in Eq. 4")
    reference: int = Field(500, ge=2, description="reference sentences, which show what is usual")
    random_sentences: int = Field(
        8, ge=0, description="sentences whose pairs are scored by each normalisation, to see their means; 0: none"
    )
    screened: int = Field(20000, ge=1, description="context set: text chunks found by TF-IDF")
    rescored: int = Field(2000, ge=1, description="context set: contexts scored by Eq. 3, the discriminator's best")
    jaccard: float = Field(
        0.5, gt=0, le=1, description="context set: overlap from which on previous sentences are alike"
    )
    strategy: Strategy = Field("diverse", description="context set: diverse, no-diversity or random")
    by: Literal["raw", "standardised"] = Field("raw", description="context set: the Eq. 3 by which contexts are chosen")

    precision: Precision = Field("auto", description="for training; auto is bfloat16 where the processor supports it")
    score_precision: Precision = Field(
        "auto", description="for scores of the language model; bfloat16 is faster and loses small differences"
    )
    seed: int = Field(42, ge=0, description="seed of weights, order, dropout and all that is drawn")

    workers: int | None = Field(
        None, ge=1, description="words: processes of one thread each [one a processor, 4 at most]"
    )
    executor: ExecutorName = Field("embedded", description="words: processes on this machine, or a Ray cluster")
    address: str | None = Field(None, description="ray: a running cluster, auto or HOST:PORT [started on this machine]")
    retries: int = Field(RETRIES, ge=0, description="how often a shard whose worker failed or died is tried again")

    _from_one_word = field_validator("texts", mode="before")(comma_separated)

    @model_validator(mode="after")
    def _belongs(self) -> OriginSettings:
        # Called only to raise for a setting of another executor.
        self.choose_executor(gpus=0)
        if not self.weight_own + self.weight_state + self.weight_words:
            raise ConfigError(
                "A vector needs a part that counts; weight_own, weight_state and weight_words are 0. Give one a weight."
            )
        self.refuse(_OF_RETRIEVED if self.contexts == "words" else _OF_WORDS, f"contexts is {self.contexts}")
        return self

    def choose_executor(self, gpus: float, default_workers: int = 1) -> Executor:
        """Return where sentences are to be read."""
        return choose_executor(
            self.executor,
            workers=self.workers,
            address=self.address,
            retries=self.retries,
            gpus=gpus,
            default_workers=default_workers,
        )

    def shape(self) -> Shape:
        """Return the windows and chunks."""
        return Shape(left=self.left, right=self.right, chunk=self.chunk)

    def scheme(self) -> Scheme:
        """Return how similarity is computed; ConfigError if settings contradict each other."""
        return Scheme(
            weights=Weights(**{term: getattr(self, f"weight_{term}") for term in Weights().__dict__}),
            right_given=self.right_given,
            normalisation=self.normalisation,
            twice=self.twice,
            reference=self.reference,
            seed=self.seed,
            selection=Selection(
                size=self.windows,
                screened=self.screened,
                rescored=self.rescored,
                jaccard=self.jaccard,
                strategy=self.strategy,
                by=self.by,
                seed=self.seed,
            ),
        )

    def discriminator(self, precision: Literal["float32", "bfloat16"]) -> DiscriminatorTraining:
        """Return how the discriminator is trained."""
        # Loads torch, which the command line checks settings without.
        from samesense.context.discriminator.training import DiscriminatorTraining

        return DiscriminatorTraining(
            interaction=self.interaction,
            negatives=self.negatives,
            epochs=self.discriminator_epochs,
            batch_size=self.discriminator_batch_size,
            learning_rate=self.discriminator_learning_rate,
            held_out_windows=self.held_out_windows,
            precision=precision,
            seed=self.seed,
        )

    def generator(self, precision: Literal["float32", "bfloat16"]) -> GeneratorTraining:
        """Return how the generators are trained."""
        # As above.
        from samesense.context.generator.training import GeneratorTraining

        return GeneratorTraining(
            size=self.size,
            reading=self.reading,
            max_tokens=self.max_tokens,
            dropout=self.dropout,
            learning_rate=self.generator_learning_rate,
            batch_size=self.generator_batch_size,
            epochs=self.generator_epochs,
            max_steps=self.generator_max_steps,
            held_out_windows=self.held_out_windows,
            precision=precision,
            seed=self.seed,
        )

    def check_language_model(self) -> None:
        """Raise ModelError if the language model is to come from a hub that cannot be reached; opens nothing."""
        name = self.language_model or (LANGUAGE_MODEL if self.contexts == "words" else None)
        if name is not None:
            check_model(name, "language model")


def choose_origin(config: str, overrides: Mapping[str, Any]) -> OriginSettings:
    """Return the settings of a shipped file (by name) or the user's own (by path), and then those that were given."""
    return bind(OriginSettings, read_settings(config, "origin"), overrides)
