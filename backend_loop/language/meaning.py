"""What a sentence means: missions to begin, or the question that it leaves open."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Problem = Literal["not_understood", "no_such_device", "ambiguous", "which_area", "how_much"]
Reason = Literal["out_of_range", "later", "relative"]
Control = Literal["cancel", "yes", "no"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Wish(_Part):
    """One mission that is wished for."""

    mission: Literal["device.control", "device.query", "scene.run"]
    payload: dict[str, Any]
    entity: str | None = Field(None, description="the device, unless it is a scene")
    scene: str | None = Field(None, description="id of the scene, if it is one")
    area: str | None = Field(None, description="id of the area that the device is in")
    of_device: bool = Field(False, description="of a look: the device itself was asked about, not the air around it")
    asks: str | None = Field(None, description="of a look: the value that was asked for")
    expects: Any = Field(None, description="of a look: the value of a yes-or-no question")


class Meaning(_Part):
    """What was understood of one utterance; exactly one of wishes, a problem and a control word."""

    wishes: list[Wish] = Field(default_factory=list)
    ordered: bool = Field(False, description="one after another, each once the one before was seen to be done")
    intents: list[str] = Field(default_factory=list, description="for people and tests, in the words of Home Assistant")
    problem: Problem | None = None
    candidates: list[str] = Field(default_factory=list, description="what may have been meant: entities, or area ids")
    unknown: str | None = Field(None, description="what was named, and is not known here")
    reason: Reason | None = Field(
        None, description="of what is not understood: why it cannot be done, where that is known"
    )
    limits: tuple[str, float, float] | None = Field(
        None, description="of a value out of range: the action, the smallest and the largest value"
    )
    control: Control | None = None
    heard: str = ""
    understood: str = Field("", description="what was heard, as it was read: numbers as digits, without courtesies")
    confidence: float = Field(0.0, ge=0, le=1, description="1: read word by word; 0: not understood")
    repaired: bool = Field(False, description="what was heard has been changed to fit the home's names")
    confirm: bool = Field(False, description="something dangerous is wished for")
    language: str = "en"
    area: str | None = Field(None, description="where it was said")
    names: dict[str, str] = Field(
        default_factory=dict, description="what is spoken for each entity, area and scene that is spoken of"
    )

    def helps(self, kind: str) -> bool:
        """Whether, with the answer to a question of this kind, it can be done, or leaves another question: how much."""
        return bool(self.wishes) or self.problem == "how_much" != kind
