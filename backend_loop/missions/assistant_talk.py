"""What the assistant decides: whom an utterance answers, which wish begins when, what became of all. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from pydantic import ValidationError

from backend_loop.child_missions import ChildMission
from backend_loop.language.meaning import Meaning, Wish
from backend_loop.missions.ends import NOT_BEGUN, row, seen_by, why
from backend_loop.outcomes import Fail, Go, Stop
from shared.home import Inventory
from shared.status import ErrorCode, Reason

Kind = Literal["which_area", "ambiguous", "how_much", "confirm"]
"""Of a question: where, which one, how much, or whether really."""

ASKED_BACK: Final[Mapping[str | None, Kind]] = {
    "which_area": "which_area",
    "ambiguous": "ambiguous",
    "how_much": "how_much",
}
"""Problems that a question can help with."""

COMMANDS: Final = frozenset({"which_area", "ambiguous", "how_much", "no_such_device"})
"""Problems of what is a command all the same, and no answer to a question."""

PLAIN: Final = frozenset(
    {
        *(ErrorCode.DEVICE_UNREACHABLE, ErrorCode.DEVICE_REFUSED, ErrorCode.CONTRADICTED, ErrorCode.UNCONFIRMED),
        *(ErrorCode.DEADLINE, ErrorCode.TIMEOUT),
    }
)
"""Ends of a child that are answers about the home: the command ends alike. What else went wrong is `child_failed`."""

IT_S: Final = 180.0
"""How long what a command was about may be called "it": one has it before one's eyes, and no other thing; later it may
well be somebody else who speaks in that room."""

MOST_SPOKEN_OF: Final = 16
"""Wishes of a command that are remembered: nobody has more in mind."""

Bearing = Literal["answers", "withdraws", "leaves"]
"""What an utterance is to an open question: its answer, another command in its place, or no sense at all."""


def language_of(said: str | None, text: str, known: Sequence[str]) -> str:
    """The language of an utterance: the one that was said, if it is known here, else as the text looks."""
    if said is not None:
        tag = said.replace("_", "-").lower()
        same = [one for one in known if one.lower() == tag]
        family = [one for one in known if one.lower().split("-")[0] == tag.split("-")[0]]
        if same or family:
            return (same or family)[0]
    return "zh" if any("\u3400" <= one <= "\u9fff" for one in text) else "en"


def area_of(said: str | None, inventory: Inventory) -> str | None:
    """The id of an area that is named by its id, or as people call it; None: there is none such."""
    if said is None:
        return None
    folded = said.strip().casefold()
    for area in inventory.areas:
        names = (name for tongue in area.names.values() for name in tongue)
        if folded == area.id.casefold() or any(folded == name.casefold() for name in names):
            return area.id
    return None


def before(commands: Sequence[str], task_id: str) -> str | None:
    """The last command before this one, of those that are known, the newest first; None: there is none."""
    said = list(commands)
    return next(iter(said[said.index(task_id) + 1 :] if task_id in said else said), None)


def about(meaning: Meaning, at_ms: int) -> dict[str, Any]:
    """What is kept of a command for what is said after it; of a scene, a question or a crowd there is no "it"."""
    plain = len(meaning.wishes) <= MOST_SPOKEN_OF and all(wish.entity is not None for wish in meaning.wishes)
    told = [wish.model_dump(mode="json", exclude_defaults=True) for wish in meaning.wishes] if plain else []
    return {"at": at_ms, "wishes": told}


def spoken_of(last: Any, at_ms: int, home: Inventory) -> list[Wish]:
    """What "it" may be, for who speaks at that time: of the last command, if that was only just.

    It may have been written by an older or a newer version, and the home may be another one since.
    """
    if not isinstance(last, Mapping) or not isinstance(said := last.get("at"), int) or abs(at_ms - said) > IT_S * 1000:
        return []
    try:
        wishes = [Wish.model_validate(one) for one in last.get("wishes") or ()]
    except (ValidationError, TypeError):
        return []
    known = {entry.entity for entry in home.devices}
    return wishes if all(wish.entity in known for wish in wishes) else []


def is_command(meaning: Meaning) -> bool:
    """Whether it can be done, or asked back."""
    return meaning.problem is None or meaning.problem in ASKED_BACK


def unclear(meaning: Meaning) -> dict[str, Any]:
    """What a result says of a command that was not clear."""
    if meaning.problem is None:
        return {}
    return {"problem": meaning.problem, "candidates": meaning.candidates}


def bears(kind: Kind, meaning: Meaning, filled: Meaning | None) -> Bearing:
    """What an utterance is to the question of another command.

    Args:
        kind: of the question.
        meaning: the utterance by itself.
        filled: what the other command means with it as the answer; None: the question was not for that.
    """
    if meaning.control == "no" or (meaning.control == "yes" and kind == "confirm"):
        return "answers"
    if kind == "how_much" and filled is not None and filled.wishes:
        return "answers"  # "26 degrees" is a command too, where it is said in a room
    if meaning.wishes or meaning.problem == "how_much":
        return "withdraws"
    if kind != "confirm" and filled is not None and filled.helps(kind):
        return "answers"
    return "withdraws" if meaning.problem in COMMANDS else "leaves"


def due(meaning: Meaning, ends: Sequence[ChildMission | None]) -> list[int]:
    """Which wishes begin now, given what became of each so far; none: nothing is left to begin.

    Ordered ones go one by one. What failed keeps what comes later from the same device, and nothing else.
    """
    failed = {_about(meaning.wishes[n]) for n, end in enumerate(ends) if end is not None and not end.succeeded}
    left = [n for n, end in enumerate(ends) if end is None and (not meaning.ordered or not _kept(meaning, n, failed))]
    return left[:1] if meaning.ordered else left


def _kept(meaning: Meaning, n: int, failed: set[str | None]) -> bool:
    about = _about(meaning.wishes[n])
    return about is not None and about in failed


def _about(wish: Wish) -> str | None:
    return wish.entity if wish.mission == "device.control" else None


def rows(meaning: Meaning, ends: Sequence[ChildMission | None]) -> list[dict[str, Any]]:
    """A row for each device: what was to be done, and what became of it."""
    return [one for wish, end in zip(meaning.wishes, ends, strict=True) for one in _rows(wish, end)]


def _rows(wish: Wish, end: ChildMission | None) -> list[dict[str, Any]]:
    result = (end.result or {}) if end is not None else {}
    if wish.mission == "scene.run" and isinstance(result.get("actions"), list):
        return [{**one, "scene": wish.scene} for one in result["actions"]]
    if wish.mission == "device.query":
        if isinstance(result.get("devices"), list):
            return [
                {
                    "entity": one["entity"],
                    "action": None,
                    "value": one["value"],
                    "outcome": "observed" if one["error"] is None else ErrorCode.DEVICE_UNREACHABLE,
                    "error": one["error"],
                    "task_id": end.task_id if end is not None else None,
                    "freshness": one["freshness"],
                }
                for one in result["devices"]
            ]
        entity = wish.payload.get("entity")
        entities = entity if isinstance(entity, list) else [entity]
        return [_row(wish, one, None, end) for one in entities]
    if wish.mission == "scene.run":
        return [_row(wish, one["entity"], one["action"], end) for one in wish.payload.get("actions", [])]
    return [_row(wish, wish.entity, wish.payload.get("action"), end)]


def _row(wish: Wish, entity: Any, action: Any, end: ChildMission | None) -> dict[str, Any]:
    told = row({"entity": entity, "action": action}, end)
    more = {} if wish.scene is None else {"scene": wish.scene}
    return {**told, **more, "freshness": end.freshness if end is not None else None}


def ended(
    meaning: Meaning, ends: Sequence[ChildMission | None], result: Mapping[str, Any], now: int
) -> Go | Fail | Stop:
    """The command's end: as what was wished for ended, the first that failed before those that were overruled."""
    freshness = seen_by(ends, now)
    over = [end for end in ends if end is not None and not end.succeeded]
    failed = next((end for end in over if end.error is not None), None)
    if failed is not None and failed.error is not None:
        return Fail(why(failed), _code(failed), result, freshness)
    if over:
        reason = over[0].reason
        known = Reason(reason) if reason in list(Reason) else Reason.REQUESTED
        return Stop(known, result, freshness)
    if None in ends:
        return Fail(f"{NOT_BEGUN}: {meaning.understood}", ErrorCode.CHILD_FAILED, result, freshness)
    return Go("answered", result, freshness)


def _code(failed: ChildMission) -> ErrorCode:
    """Its own, if that is plain; of a scene, that of its first action that failed plainly."""
    actions = (failed.result or {}).get("actions", ()) if failed.type == "scene.run" else ()
    codes = [(failed.error or {}).get("code"), *(one["outcome"] for one in actions)]
    return next((ErrorCode(code) for code in codes if code in PLAIN), ErrorCode.CHILD_FAILED)
