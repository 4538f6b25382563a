"""One data set of a sweep: its sources, how they are read, and what is taken of them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from samesense.data.rows.table_options import OPTIONS, Header, Quoting, TableOptions
from samesense.recipes.planning.dev_split import parse_share
from samesense.recipes.settings import check_known


class Table(BaseModel):
    """A table of the file of a sweep: unknown keys are refused with the nearest known one."""

    model_config = ConfigDict(frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, table: Any) -> Any:
        # What is no table is refused by pydantic itself.
        check_known(table if isinstance(table, dict) else (), cls.model_fields)
        return table


class ReadingKeys(Table):
    """How the files of a data set are read, by the names of the flags; ``None`` leaves it to the rules."""

    columns: str | None = None
    quoting: Quoting | None = None
    delimiter: str | None = None
    header: Header | bool | None = None
    encoding: str | None = None

    @model_validator(mode="after")
    def _checked(self) -> ReadingKeys:
        # Called only to raise for a wrong option.
        self.table_options()
        return self

    def table_options(self) -> TableOptions:
        """Return how text files and tables are read; ConfigError if an option is none."""
        return TableOptions(**{name: getattr(self, name) for name in OPTIONS})


class TestSource(ReadingKeys):
    """A test set that is read otherwise than the data set it belongs to; what it does not say is as there."""

    source: str


class DataEntry(ReadingKeys):
    """One data set: a model is trained on ``train``, selected on ``dev`` and evaluated on each test set.

    ``dev`` is a source of its own, ``"hold 0.1"`` (a tenth of the training pairs, no sentence on both sides) or
    ``"none"``. ``test`` is one source, or several by name. A number of rows takes a fixed random part of that size.
    """

    name: str = Field(min_length=1)
    train: str
    dev: str = "hold 0.1"
    test: str | dict[str, str | TestSource]
    train_rows: int | None = Field(None, ge=2)
    dev_rows: int | None = Field(None, ge=2)
    test_rows: int | None = Field(None, ge=2)
    label_order: str | None = None
    label_range: tuple[float, float] | None = None
    drop_bad_rows: bool = False
    settings: dict[str, Any] = {}

    @field_validator("dev")
    @classmethod
    def _share(cls, dev: str) -> str:
        # Called only to raise for a malformed share.
        parse_share(dev, "dev")
        return dev

    def tests(self) -> dict[str, str | TestSource]:
        """Return the test sources by the name that tables give them."""
        if isinstance(self.test, str):
            return {self.name: self.test}
        return {f"{self.name}/{name}": source for name, source in self.test.items()}

    def sources(self) -> list[str]:
        """Return the sources of training, of selection if there is one, and of the tests."""
        tests = [test if isinstance(test, str) else test.source for test in self.tests().values()]
        dev = []
        if self.held_out() is None and self.dev != "none":
            dev = [self.dev]
        return [self.train, *dev, *tests]

    def options_of(self, test: str | TestSource) -> TableOptions:
        """Return how a test set is read: as it says, else as the data set says."""
        options = vars(self.table_options())
        stated = {} if isinstance(test, str) else vars(test.table_options())
        return TableOptions(**{**options, **{name: value for name, value in stated.items() if value is not None}})

    def reading(self) -> dict[str, Any]:
        """Return what is said of how the data are read, as options of ``samesense train``."""
        names = (*ReadingKeys.model_fields, "label_order", "label_range")
        stated = {name: value for name in names if (value := getattr(self, name)) is not None}
        if self.header is not None:
            stated["header"] = self.table_options().header
        return {**stated, **({"drop_bad_rows": True} if self.drop_bad_rows else {})}

    def held_out(self) -> float | None:
        """Return the share of the training pairs that selects, or ``None`` if none is held out."""
        return parse_share(self.dev, "dev")
