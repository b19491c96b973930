"""What the scripted model says: rules from first to last, the first that fits speaks. Pure, and always the same.

It is no language model. It reads a goal as its rules do, looks at what its tools have answered, and is gullible: what a
tool's result tells it to call it calls, so that one can see what becomes of that.
"""

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

CONTROL, QUERY = "device-control", "device-query"
KINDS: Final = {
    "lamp": "light",
    "light": "light",
    "air conditioner": "climate",
    "blind": "cover",
    "player": "media_player",
}
_THING: Final = rf"the ({'|'.join(KINDS)}) in the ([a-z ]+?)(?= and |, | to |\.|\?| is | on\b| off\b|$)"
_CALL: Final = re.compile(r"\bcall ([\w.-]+) with (?=\{)")


class Call(NamedTuple):
    """A function and its arguments, as text: whether that is JSON is another matter."""

    name: str
    arguments: str


class Reply(NamedTuple):
    """What the model says, or which functions it wants called."""

    say: str | None = None
    calls: tuple[Call, ...] = ()


class Talk(NamedTuple):
    """A conversation, as the rules look at it.

    Attributes:
        goal: what the user said last.
        names: of the functions that may be called.
        made: calls since then. told: what they answered, a document each.
        system: what it was told first.
    """

    goal: str
    names: Sequence[str]
    made: Sequence[Call] = ()
    told: Sequence[Any] = ()
    system: str = ""


def talk(messages: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Talk:
    """Read a conversation."""
    last = max((n for n, one in enumerate(messages) if one["role"] == "user"), default=-1)
    since = messages[last + 1 :]
    calls = [call["function"] for one in since for call in one.get("tool_calls") or ()]
    made = [Call(call["name"], json.dumps(_document(call["arguments"]))) for call in calls]
    told = [_document(one["content"]) for one in since if one["role"] == "tool"]
    system = "".join(str(one["content"]) for one in messages if one["role"] == "system")
    return Talk(str(messages[last]["content"]) if last >= 0 else "", names, made, told, system)


def reply(said: Talk) -> Reply:
    """What comes next."""
    for rule in RULES:
        if (answer := rule(said)) is not None:
            return answer
    return Reply("I do not know how to do that. Ask me to turn on the lamp in the study, say.")


def _document(content: Any) -> Any:
    try:
        return json.loads(content)
    except (TypeError, ValueError):
        return content


def _loop(said: Talk) -> Reply | None:
    """On "loop for ever": one call after the other."""
    if "loop for ever" not in said.goal.lower():
        return None
    if QUERY in said.names:
        return _wants(said, (QUERY, {"entity": "light.hall"}))
    return _wants(said, (CONTROL, {"entity": "light.hall", "action": "turn_on"}))


def _garbage(said: Talk) -> Reply | None:
    """On "say garbage": arguments that are no JSON; then what came of it."""
    if "garbage" not in said.goal.lower():
        return None
    if said.told:
        return Reply(f"I was told: {said.told[-1].get('error', 'nothing')}")
    return Reply(calls=(Call(said.names[0] if said.names else CONTROL, '{"entity": "light.'),))


def _repeat(said: Talk) -> Reply | None:
    """On "what were you told?": that."""
    return Reply(said.system) if "what were you told" in said.goal.lower() else None


def _obey(said: Talk) -> Reply | None:
    """On "call NAME with {…}", in the goal or in what a tool has answered: that, each once."""
    texts = [said.goal, *(json.dumps(one, ensure_ascii=False).replace('\\"', '"') for one in said.told)]
    for call in (one for text in texts for one in _called(text)):
        if call not in said.made:
            return Reply(calls=(call,))
    return None


def _called(text: str) -> Iterator[Call]:
    for found in _CALL.finditer(text):
        with contextlib.suppress(ValueError):
            arguments, _ = json.JSONDecoder().raw_decode(text, found.end())
            yield Call(found[1].replace(".", "-"), json.dumps(arguments))


def _make_sure(said: Talk) -> Reply | None:
    """On "make sure that the lamp in the study is off": look first, then act only if need be."""
    goal = said.goal.lower()
    found = re.search(rf"make sure (?:that )?{_THING} is (on|off)", goal)
    if found is None:
        return None
    entity, power = _entity(*found.groups()[:2]), found[3]
    if not said.told:
        return _wants(said, (QUERY, {"entity": entity}))
    if len(said.told) == 1 and (_value(said.told[0]) or {}).get("power") not in {None, power}:
        return _wants(said, (CONTROL, {"entity": entity, "action": f"turn_{power}"}))
    return None


def _order(said: Talk) -> Reply | None:
    """On "turn on the lamp in the study and the lamp in the hall", "set … to 40": all of them side by side."""
    goal = said.goal.lower()
    found = re.search(r"\b(?:turn|switch) (on|off)\b", goal)
    number = re.search(r"\bset\b.* to (\d+)", goal)
    things = re.findall(_THING, goal)
    if said.made or not things or not (found or number):
        return None
    if found:
        return _wants(said, *((CONTROL, {"entity": _entity(*one), "action": f"turn_{found[1]}"}) for one in things))
    assert number is not None  # noqa: S101  one of the two was found
    words = {"light": "brightness", "climate": "temperature", "cover": "position", "media_player": "volume"}
    return _wants(
        said,
        *(
            (CONTROL, {"entity": entity, "action": f"set_{words[entity.split('.')[0]]}", "value": int(number[1])})
            for entity in (_entity(*one) for one in things)
        ),
    )


def _lock(said: Talk) -> Reply | None:
    """On "unlock the front door": that."""
    found = re.search(r"\b(lock|unlock) the front door\b", said.goal.lower())
    if said.made or found is None:
        return None
    return _wants(said, (CONTROL, {"entity": "lock.front_door", "action": found[1]}))


def _ask(said: Talk) -> Reply | None:
    """On "is the lamp in the study on?": look."""
    things = re.findall(_THING, said.goal.lower())
    if said.made or not things or not re.match(r"(is|are|what|how)\b", said.goal.lower()):
        return None
    return _wants(said, *((QUERY, {"entity": _entity(*one)}) for one in things))


def _tell(said: Talk) -> Reply | None:
    """Once tools have answered: a sentence each, and of one thing only the newest."""
    newest = {_about(one, n): one for n, one in enumerate(said.told)}
    return Reply(" ".join(_sentence(one) for one in newest.values())) if newest else None


RULES: Final[tuple[Callable[[Talk], Reply | None], ...]] = (
    _loop,
    _garbage,
    _repeat,
    _obey,
    _make_sure,
    _order,
    _lock,
    _ask,
    _tell,
)


def _wants(said: Talk, *calls: tuple[str, Mapping[str, Any]]) -> Reply:
    if missing := [name for name, _ in calls if name not in said.names]:
        return Reply(f"I have no tool for that: {missing[0]} is missing.")
    return Reply(calls=tuple(Call(name, json.dumps(arguments)) for name, arguments in calls))


def _entity(kind: str, room: str) -> str:
    return f"{KINDS[kind]}.{room.strip().replace(' ', '_')}"


def _about(told: Any, n: int) -> str:
    return str(told["result"].get("entity", n)) if _value(told) is not None else str(n)


def _value(told: Any) -> dict[str, Any] | None:
    result = told.get("result") if isinstance(told, dict) else None
    value = result.get("value") if isinstance(result, dict) else None
    return value if isinstance(value, dict) else None


def _sentence(told: Any) -> str:
    """As in "The lamp in the study is on."."""
    value = _value(told)
    if value is not None:
        entity = str(told["result"].get("entity", "it"))
        kind, _, room = entity.partition(".")
        names = {domain: name for name, domain in reversed(KINDS.items())}
        thing = f"The {names[kind]} in the {room.replace('_', ' ')}" if kind in names else entity
        several = ", ".join(f"{name} {one}" for name, one in value.items())
        return (
            f"{thing} is {value.get('power') or (several if len(value) > 1 else next(iter(value.values()), 'gone'))}."
        )
    error = told.get("error", told.get("status")) if isinstance(told, dict) else told
    message = error.get("message") if isinstance(error, dict) else error
    if isinstance(told, dict) and told.get("status") == "SUCCEEDED":
        return "It is done."
    return f"That did not work: {message}"
