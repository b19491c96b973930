"""What is said back: at once, when something is unclear, and when it is known what became of it. Pure.

Only what was seen is said: a command that was sent and not confirmed is another sentence than one that was.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from backend_loop.child_missions import ChildMission
from backend_loop.language import naming
from backend_loop.language.look_answers import looked
from backend_loop.language.meaning import Meaning, Wish
from backend_loop.language.wording import Saying, Wording, wording
from shared.actions import CHANGES

GOOD: Final = frozenset({"confirmed", "already_done"})
_OF_THE_DEVICE: Final = frozenset({"device_unreachable", "device_refused", "overridden", "superseded"})
"""Ends that are the same whatever the device was told; so one sentence tells of all that it was told."""

_SCENE: Final = "scene.run"


def ack(meaning: Meaning, language: str) -> str:
    """What is said as soon as it is understood: what is under way now, not what is done."""
    words = wording(language)
    if meaning.control is not None:
        return words.phrases[meaning.control]
    if meaning.problem is not None:
        return question(meaning, language)
    if all(wish.mission == "device.query" for wish in meaning.wishes):
        return words.phrases["look"]
    scenes = [wish for wish in meaning.wishes if wish.mission == _SCENE]
    acts = [wish for wish in meaning.wishes if wish.mission == "device.control"]
    told = [words.phrases["scene"].format(name=_scene(wish, meaning)) for wish in scenes]
    if acts:
        told.append(words.phrases["ok"].format(what=_plan(acts, meaning, words, "doing")))
    return words.gap.join(told)


def question(meaning: Meaning, language: str) -> str:
    """What is asked back: where, which one, whether really; or that it was not understood."""
    words = wording(language)
    phrases = words.phrases
    if meaning.problem == "which_area":
        return _asked("which_area", [meaning.names.get(area, area) for area in meaning.candidates], words)
    if meaning.problem == "ambiguous":
        return _asked("ambiguous", [naming.device(one, meaning.names, words) for one in meaning.candidates], words)
    if meaning.problem == "no_such_device":
        named = meaning.unknown
        told = phrases["no_such_device"].format(name=named) if named else phrases["no_such_device_else"]
        near = [naming.device(one, meaning.names, words) for one in meaning.candidates[:3]]
        perhaps = phrases["perhaps"].format(them=naming.listed(near, words, either=True)) if near else ""
        return f"{told}{words.gap}{perhaps}".strip()
    if meaning.problem is not None or not meaning.wishes:
        return phrases["relative"] if meaning.problem == "how_much" else _not_understood(meaning, words)
    acts = [act for wish in meaning.wishes for act in _acts(wish)]  # to look harms nobody
    what = _plan(acts, meaning, words, "do")
    if meaning.wishes[0].mission == _SCENE and len(meaning.wishes) == 1:
        return phrases["confirm_scene"].format(name=_scene(meaning.wishes[0], meaning), what=what)
    return phrases["confirm"].format(what=what)


def answer(meaning: Meaning, ends: Sequence[ChildMission | None], language: str) -> str:
    """What became of it, by what was seen.

    Args:
        meaning: what was wished for.
        ends: of the missions that the wishes became, in their order; None: one that never began.
        language: of the speaker.
    """
    words = wording(language)
    pairs = list(zip(meaning.wishes, ends, strict=True))
    told = list(_done([(wish, end) for wish, end in pairs if wish.mission == "device.control"], meaning, words))
    for wish, end in pairs:
        if wish.mission == _SCENE:
            told += _scened(wish, end, meaning, words)
    told += looked([(wish, end) for wish, end in pairs if wish.mission == "device.query"], meaning, words)
    return words.gap.join(told) or words.phrases["nothing"]


def _not_understood(meaning: Meaning, words: Wording) -> str:
    """That it was not, or why it cannot be done, where that is known."""
    if meaning.limits is not None:
        action, low, high = meaning.limits
        return words.phrases["out_of_range"].format(
            what=words.values[action], low=naming.value(low, words), high=naming.value(high, words)
        )
    return words.phrases[meaning.reason or "not_understood"]


def _asked(which: str, names: Sequence[str], words: Wording) -> str:
    if not names or len(names) > 2 * naming.MOST_NAMED:
        return words.phrases[f"{which}_open"]
    return words.phrases[which].format(them=naming.listed(names, words, either=True))


def _plan(acts: Sequence[Wish], meaning: Meaning, words: Wording, form: str) -> str:
    """All that is to be done, the same of several devices together."""
    groups = dict[tuple[str, str], list[str]]()
    for wish in acts:
        groups.setdefault((wish.payload["action"], str(wish.payload.get("value"))), []).append(str(wish.entity))
    values = {(wish.payload["action"], str(wish.payload.get("value"))): wish.payload.get("value") for wish in acts}
    parts = [
        getattr(_saying(action, values[action, said], words), form).format(
            x=naming.devices(entities, meaning.names, words), v=naming.value(_amount(values[action, said]), words)
        )
        for (action, said), entities in groups.items()
    ]
    return words.phrases["then"].join(parts) if meaning.ordered else naming.listed(parts, words)


def _done(pairs: Sequence[tuple[Wish, ChildMission | None]], meaning: Meaning, words: Wording) -> Iterator[str]:
    """A sentence for each kind of end of each act, the same ends together; a device told twice is told of once."""
    ends = [(_settled(wish, end), outcome(end)) for wish, end in pairs]
    told_of = {wish.entity: n for n, (wish, said) in enumerate(ends) if said in GOOD}
    groups = dict[tuple[str, str, str], list[Wish]]()
    for n, (wish, said) in enumerate(ends):
        turned_on = wish.payload["action"] == "turn_on" and said in GOOD and told_of.get(wish.entity, n) > n
        if not turned_on:  # "set to 26 degrees" says that it is on
            whole = said in _OF_THE_DEVICE
            key = ("", "", said) if whole else (wish.payload["action"], str(wish.payload.get("value")), said)
            groups.setdefault(key, []).append(wish)
    for (_, _, said), wishes in groups.items():
        entities = dict.fromkeys(str(wish.entity) for wish in wishes)
        yield became(said, wishes[0].payload, list(entities), meaning, words)


def became(said: str, act: dict[str, Any], entities: Sequence[str], meaning: Meaning, words: Wording) -> str:
    """One outcome of one action, of the devices that share it."""
    saying, amount = _saying(act["action"], act.get("value"), words), naming.value(_amount(act.get("value")), words)
    them, many = naming.devices(entities, meaning.names, words), len(entities) > 1 or _plural(entities, meaning)
    return words.outcomes.get(said, words.outcomes["else"]).format(
        x=naming.capital(them),
        them=them,
        it="them" if many and said != "unconfirmed" else "they" if many else "it",
        so=saying.is_so.format(v=amount),
        do=saying.do.format(x=them, v=amount),
        all=words.all if len(entities) > 1 else "",
        **{"is": "are" if many else "is", "was": "were" if many else "was"},
    )


def _settled(wish: Wish, end: ChildMission | None) -> Wish:
    """The wish for more or less of something as what it came to, where that is known."""
    result = (end.result or {}) if end is not None else {}
    if wish.payload["action"] not in CHANGES or "set" not in result:
        return wish
    came = {"action": result["action"]} | ({} if result["set"] is None else {"value": result["set"]})
    return wish.model_copy(update={"payload": {"entity": wish.entity, **came}})


def _saying(action: str, value: Any, words: Wording) -> Saying:
    """How an action is put; one that is by how much as more or as less."""
    return words.changes[action][value < 0] if action in CHANGES else words.actions[action]


def _amount(value: Any) -> Any:
    return abs(value) if isinstance(value, int | float) else value


def outcome(end: ChildMission | None) -> str:
    """What became of one mission, in the word that the contract has for it."""
    if end is None or not end.ended:
        return "not_begun"
    if end.succeeded:
        return str((end.result or {}).get("outcome", "observed"))
    return str(end.error["code"] if end.error else end.reason)


def _scened(wish: Wish, end: ChildMission | None, meaning: Meaning, words: Wording) -> Iterator[str]:
    name = naming.capital(_scene(wish, meaning))
    result = (end.result or {}) if end is not None else {}
    rows = [row for row in result.get("actions", ()) if row["outcome"] not in GOOD]
    how = "scene_failed" if end is None or not end.succeeded else "scene_partly" if rows else "scene_done"
    yield words.phrases[how].format(name=name)
    values = {act["entity"]: act for act in wish.payload["actions"]}
    groups = dict[tuple[str, str], list[dict[str, Any]]]()
    for row in rows:
        groups.setdefault((row["outcome"], row["action"]), []).append(row)
    for (said, _), alike in groups.items():
        act = values.get(alike[0]["entity"], alike[0])
        yield became(said, {**act, "action": alike[0]["action"]}, [row["entity"] for row in alike], meaning, words)


def _scene(wish: Wish, meaning: Meaning) -> str:
    return meaning.names.get(f"scene:{wish.scene}", str(wish.scene))


def _acts(wish: Wish) -> list[Wish]:
    """What of it may be dangerous, of a scene its actions as acts of their own."""
    if wish.mission == _SCENE:
        return [Wish(mission="device.control", payload=act, entity=act["entity"]) for act in wish.payload["actions"]]
    return [wish] if wish.mission == "device.control" else []


def _plural(entities: Sequence[str], meaning: Meaning) -> bool:
    """Blinds are, a lamp is."""
    return meaning.names.get(entities[0], "").endswith("s") if entities else False
