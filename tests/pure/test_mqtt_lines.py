"""Who is there, who was, and to whom a topic belongs."""

import json

import pytest

from backend_loop.devices.mqtt import lines as module
from backend_loop.devices.mqtt.book import Book
from backend_loop.devices.mqtt.lines import Lines, spoken


class Announced:
    """A book of plugs, and the lines of it."""

    def __init__(self) -> None:
        self.book, self.lines, self.now = Book(["zigbee2mqtt"], "homeassistant"), Lines(), 1_000

    def say(self, plug: str, **config: str) -> bool:
        """Announce one, or take it away; whether that is anything new."""
        told = json.dumps({"unique_id": plug, "state_topic": f"{plug}/state", **config}) if config else ""
        self.book.hear(f"homeassistant/switch/{plug}/config", told)
        self.now += 1
        return self.lines.take_in(self.book.devices(), self.now)

    def gone(self) -> dict[str, int]:
        """Who is announced no more, and since when."""
        lines = self.lines.by_wire.items()
        return {wire.removeprefix("homeassistant/"): one.gone_at for wire, one in lines if one.gone_at is not None}


def test_who_is_announced_no_more_is_known_as_gone_and_heard_still() -> None:
    home = Announced()
    assert [home.say("a", name="a"), home.say("b", name="b"), home.say("a", name="a")] == [True, True, False]
    line = home.lines.by_wire["homeassistant/a"]
    assert home.say("a")
    assert (home.gone(), home.lines.routes["a/state"]) == ({"a": home.now}, [line])
    since = home.now
    assert home.say("c", name="c")
    assert home.gone() == {"a": since}, "since when it is gone, and not since somebody else came"
    assert home.say("a", name="a")
    assert (home.gone(), home.lines.by_wire["homeassistant/a"]) == ({}, line)
    assert (line.gone_at, line.silent) == (None, False)


def test_one_that_is_announced_again_as_it_was_is_nothing_new_and_heard_on() -> None:
    home, told = Announced(), {"value_template": "{{ value_json.a['b'] }}", "availability_topic": "there"}
    home.say("a", **told)
    (line,) = home.lines.by_wire.values()
    line.there.set()
    assert not home.say("a", **told)
    assert line.there.is_set()
    assert home.say("a", **told | {"value_template": "{{ value_json.c }}"})
    assert not line.there.is_set()


def test_who_speaks_by_another_name_now_is_not_gone() -> None:
    home = Announced()
    home.say("a", name="a")
    home.book.hear("homeassistant/switch/a/config", "")
    home.say("other", name="a", state_topic="a/state")
    assert ([*home.lines.by_wire], home.gone()) == (["homeassistant/other"], {})


def test_of_many_that_are_gone_those_are_known_who_went_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_GONE", 2)
    home = Announced()
    for plug in "abcd":
        home.say(plug, name=plug)
    for plug in "cab":
        home.say(plug)
    assert set(home.gone()) == {"a", "b"}
    assert "c/state" not in home.lines.routes
    assert len(home.lines._clocks) == 3, "of who is forgotten nothing is kept"


def test_all_that_is_said_of_a_device_comes_to_it() -> None:
    home = Announced()
    home.say("a", name="a", availability_topic="there")
    (line,) = home.lines.by_wire.values()
    assert spoken(line) == ("dualloop/changes/homeassistant/a", "a/state", "there")
    assert home.lines.routes == {topic: [line] for topic in spoken(line)}
