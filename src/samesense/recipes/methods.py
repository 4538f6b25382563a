"""The methods by which a model is trained: what data each takes, which settings it has, and where its recipe is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from samesense.data import PairData, concat, read_pairs
from samesense.data.benchmarks.published import holds_arguments, read_argument_pairs
from samesense.data.examples import Examples
from samesense.data.formats.files import split_suffix
from samesense.data.pairs.read import holds_scores
from samesense.errors import ConfigError
from samesense.recipes.context.settings import ContextSettings
from samesense.recipes.holdout import hold_out
from samesense.recipes.sections.settings import SectionsSettings
from samesense.recipes.settings import CosentSettings, EncoderSettings, bind, choose, read_settings, shipped
from samesense.recipes.supmpn.settings import SupmpnSettings
from samesense.recipes.surrogate.settings import SurrogateSettings
from samesense.recipes.unsupervised.settings import RankcseSettings, SimcseSettings

_BARE = ("keep_repeated", "min_chars", "max_chars")


@dataclass(frozen=True)
class Reading:
    """How labelled pairs are read; see :func:`samesense.data.read_pairs`."""

    columns: str | None = None
    label_order: str | None = None
    label_range: tuple[float, float] | None = None
    drop_bad_rows: bool = False

    def judging(self, source: str) -> Reading:
        """Return how pairs that select or judge are read: an order of classes says nothing about scores."""
        if self.label_order is None or not holds_scores(source, self.columns):
            return self
        return replace(self, label_order=None)


@dataclass(frozen=True)
class Method:
    """One way to train; its recipe is the module of its name.

    Attributes:
        name: as in ``--method``.
        takes: the data, in words.
        settings: its settings.
        recipe: module below ``samesense.recipes`` with its ``read`` and ``run``.
        reading: the settings that decide what is read.
        selects: what its recipe selects by where no pairs are given for that, in words.
    """

    name: str
    takes: str
    settings: type[EncoderSettings]
    recipe: str
    reading: tuple[str, ...] = ()
    selects: str = "none, the last state is kept; --dev FILE of labelled pairs selects the best"

    def choose(
        self, config: str, given: Mapping[str, Any], read: Callable[[], Examples]
    ) -> tuple[str, EncoderSettings]:
        """Return the settings of a run: the shipped ones, then the user's own file, then what was given.

        Args:
            config: name of a shipped file, path of the user's own, or ``"auto"`` for the paper's.
            given: single settings.
            read: reads the data, for a method whose settings depend on their kind.

        Returns:
            Name of the settings for people, and the settings.

        Raises:
            ConfigError: for a setting that the method does not have, or a value out of range.
        """
        check_known(self, given)
        named = {} if config == "auto" else read_settings(config)
        return self.name if config == "auto" else config, bind(self.settings, read_settings(self.name), named, given)

    def read(self, sources: Sequence[str], settings: EncoderSettings, how: Reading) -> Examples:
        """Return the training data.

        Raises:
            ConfigError: if it is told how to read labels, and the method takes none.
        """
        if how != Reading():
            raise ConfigError(
                f"columns, label order, label range and drop bad rows are for labelled pairs; method {self.name} takes "
                f"{self.takes}. Leave them out."
            )
        found: Examples = self._recipe().read(sources, settings)
        return found

    def hold_out(self, train: Examples, seed: int) -> tuple[Examples, PairData | None]:
        """Return what teaches, and the pairs that select where the user has named none; ``None`` if there are none."""
        if isinstance(train, PairData):
            return hold_out(train, seed)
        return train, getattr(train, "dev", None)

    def taking(self, given: Mapping[str, Any], how: Reading) -> tuple[dict[str, Any], Reading]:
        """Return settings and reading, with what the method has as a setting of its own moved there."""
        moved = {
            name: value
            for name, value in vars(how).items()
            if name in self.settings.model_fields and value != getattr(Reading(), name)
        }
        stays = {name: value for name, value in vars(how).items() if name not in moved}
        return {**given, **moved}, Reading(**stays)

    def account(self, train: Examples, settings: EncoderSettings) -> list[str]:
        """Return, for people, what is made of the data; raises if they do not fit the settings."""
        return []

    def run(self, train: Examples, settings: EncoderSettings, output: Path, **rest: Any) -> Any:
        """Train; see :func:`samesense.recipes.runner.run` for the rest and for what is returned."""
        return self._recipe().run(train, settings, output, **rest)

    def _recipe(self) -> Any:
        return import_module(f"samesense.recipes.{self.recipe}")


class _Cosent(Method):
    """Labelled pairs, of whose kind the paper's settings depend; two recipes, one for each kind of encoder."""

    def choose(
        self, config: str, given: Mapping[str, Any], read: Callable[[], Examples]
    ) -> tuple[str, EncoderSettings]:
        check_known(self, given)
        return choose(config, given, kind=read().kind)  # type: ignore[attr-defined]  # PairData

    def read(self, sources: Sequence[str], settings: EncoderSettings, how: Reading) -> PairData:
        return concat([_pairs(source, how) for source in sources])

    def account(self, train: Any, settings: Any) -> list[str]:
        return [settings.targets(train).summary]

    def run(self, train: Examples, settings: Any, output: Path, **rest: Any) -> Any:
        recipe = "cosent.cross" if settings.encoder == "cross" else self.recipe
        return import_module(f"samesense.recipes.{recipe}").run(train, settings, output, **rest)


def _pairs(source: str, how: Reading) -> PairData:
    """Return labelled pairs; those of argument similarity come in a folder of their own form."""
    if how == Reading() and holds_arguments(source):
        return read_argument_pairs(Path(source).expanduser())
    return read_pairs(source, **vars(how))


READING = tuple(field.name for field in fields(Reading))
"""Names of what decides how labelled pairs are read."""

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        _Cosent("cosent", "labelled pairs: scored, binary or NLI", CosentSettings, "cosent.recipe"),
        Method(
            "simcse",
            "bare sentences; supervised: NLI pairs or triples",
            SimcseSettings,
            "unsupervised.simcse",
            ("supervised", *_BARE),
        ),
        Method("rankcse", "bare sentences, and teachers", RankcseSettings, "unsupervised.rankcse", _BARE),
        Method(
            "supmpn",
            "anchors with several positives and negatives, or NLI pairs, which it groups by premise",
            SupmpnSettings,
            "supmpn.recipe",
            ("merge", "label_order", "drop_bad_rows"),
        ),
        Method(
            "sections",
            "documents with sections",
            SectionsSettings,
            "sections.recipe",
            ("per_document", "triplets_seed"),
        ),
        Method(
            "surrogate",
            "a folder of samesense harvest",
            SurrogateSettings,
            "surrogate.recipe",
            ("held_out", "most_pairs"),
        ),
        Method(
            "context",
            "running documents",
            ContextSettings,
            "context.recipe",
            selects="Spearman on pairs held out of the harvest; --dev FILE of labelled pairs replaces them",
        ),
    )
}
"""Every method by its name."""


def method_named(name: str) -> Method:
    """Return a method.

    Raises:
        ConfigError: if there is none of this name.
    """
    if name not in METHODS:
        raise ConfigError(f"The methods are {', '.join(METHODS)}; received {name!r}.")
    return METHODS[name]


def fitting_method(sources: Sequence[str], config: str, given: Mapping[str, Any]) -> Method:
    """Return the method that suits what was given, for ``--method auto``.

    A shipped file of settings names its method; a teacher is for RankCSE; files of bare lines are for SimCSE; all else
    is read as labelled pairs.
    """
    if config in shipped():
        return METHODS[max((name for name in METHODS if config.startswith(name)), key=len)]
    if given.get("teacher"):
        return METHODS["rankcse"]
    if all(_bare(source) for source in sources):
        return METHODS["simcse"]
    return METHODS["cosent"]


def _bare(source: str) -> bool:
    return source.removesuffix(".gz").endswith(".txt") and not split_suffix(source)[0]


def check_known(method: Method, given: Mapping[str, Any]) -> None:
    """Raise if a setting that was given is none of the method's, but another's.

    Raises:
        ConfigError: names the methods that have it. One that no method has is left to :func:`bind`.
    """
    for name in given:
        if name not in method.settings.model_fields:
            owners = [other.name for other in METHODS.values() if name in other.settings.model_fields]
            if owners:
                raise ConfigError(
                    f"{name} is a setting of method {' and '.join(owners)}; this is method {method.name}, for "
                    f"{method.takes}. Leave it out, or give --method {owners[0]}."
                )
