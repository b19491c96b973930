"""A change that another process tells was before it came, whatever clock that one has."""

from backend_loop.devices.judge import overridden
from backend_loop.devices.mqtt import changes
from backend_loop.devices.mqtt.tracker import Tracker
from backend_loop.devices.protocol import Change, Command, Reading

NOW = 1_790_000_000_000


def reading(lamp: Tracker) -> Reading:
    return Reading(value=lamp.values, version=lamp.version, observed_at=NOW, source="mqtt", changes=lamp.changes)


def test_a_hand_of_tomorrow_does_not_win_against_all_that_is_said_today() -> None:
    lamp = Tracker(["power"], optimistic=False)
    hand = changes.Moved(Change(by="hand", version="v", at=NOW + 86_400_000), "off")
    told = changes.read(changes.written({"power": hand}), NOW)
    assert told is not None
    lamp.adopt(told)
    seen, command = reading(lamp), Command(entity="light.a", action="turn_on")
    assert lamp.changes["power"] == Change(by="hand", version="v", at=NOW)
    assert not overridden(seen, seen, command, asked_at=NOW + 1_000)
    assert overridden(seen, seen, command, asked_at=NOW - 1_000)
