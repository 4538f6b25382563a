"""Settings that several losses share, each declared once."""

from __future__ import annotations

from pydantic import BaseModel, Field


class Temperature(BaseModel):
    """Settings of losses with a softmax over cosines."""

    temperature: float = Field(0.05, gt=0, description="divides the cosines; the papers' scale of 20")


class InfoNCESettings(Temperature):
    """Settings of InfoNCE, with one positive or several per anchor."""

    symmetric: bool = Field(
        False, description="average with the opposite direction: a positive picks its anchor among the anchors"
    )
    hardness: float = Field(
        0.0, ge=0, description="a negative counts exp(hardness * its cosine) times; 0: all alike; LLaVE 9"
    )


class PositiveAbove(BaseModel):
    """Setting of losses that need positive pairs."""

    positive_above: float | None = Field(None, description="scores above this are positive [the middle of the scale]")
