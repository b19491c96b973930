"""What a handler's `spawn` makes: an id that is known at once, what is inherited, and what is refused."""

from typing import Any

import pytest

from backend_loop.children import MOST, Child
from backend_loop.spawning import Brood, Parent, SpawnError, Spawning
from shared.catalogue import Catalogue
from shared.fleet import Fleet
from shared.ids import Ids
from shared.status import Priority
from tests.missions.family import Kid
from tests.pure.plans import NOW


class Known(Fleet):
    """Two shards, and a key of our own."""

    @property
    def ids(self) -> Ids:
        return Ids(b"k" * 32)


FLEET = Known(2)
SPAWNING = Spawning(FLEET, [Kid.definition], Catalogue(), 300)


def parent(**changes: Any) -> Parent:
    one = Parent(FLEET.ids.new(1, 77), 1, 1, "FAN", 1, "default", Priority.BULK, NOW + 60_000, NOW, "00-trace", ())
    return one._replace(**changes)


def spawned(one: Parent, *args: object, **more: object) -> Child:
    brood = Brood(SPAWNING, one)
    options = {"target": None, "name": None, "priority": None, "deadline_s": None, **more}
    brood.spawn(*(args or ("test.kid", {"n": 1})), **options)  # type: ignore[arg-type]  # as a handler would
    return brood.spawned[0]


def test_ids_are_known_at_once_and_are_the_same_in_each_try() -> None:
    mother = parent()
    first, again = spawned(mother), spawned(mother._replace(now=NOW + 5, traceparent="00-other"))
    assert first.task_id == again.task_id
    assert FLEET.ids.read(first.task_id) is not None
    others = {spawned(mother._replace(**one)).task_id for one in ({"run": 2}, {"visit": 2}, {"state": "NEXT"})}
    assert len({first.task_id, *others}) == 4
    second = spawned(mother._replace(children=(first,)))
    assert (second.n, second.task_id == first.task_id) == (2, False), "a handler that is called again spawns more"


def test_a_child_inherits_and_never_outlives_its_parents_deadline() -> None:
    spec = spawned(parent()).spec or {}
    assert (spec["lane"], spec["deadline"], spec["state"]) == ("bulk:default:default", NOW + 60_000, "WORKING")
    own = spawned(parent(), priority=Priority.URGENT, deadline_s=5.0).spec or {}
    assert (own["lane"], own["deadline"]) == ("urgent:default:default", NOW + 5_000)
    assert (spawned(parent(), deadline_s=900.0).spec or {})["deadline"] == NOW + 60_000
    assert (spawned(parent(deadline=None)).spec or {})["deadline"] == NOW + 300_000, "an undo has none"


def test_a_target_says_the_shard() -> None:
    shards = {}
    for n in range(8):
        child = spawned(parent(), "test.kid", {"at": f"lamp.{n}"})
        mission = FLEET.ids.read(child.task_id)
        assert mission is not None
        assert (child.spec or {})["target"] == f"lamp.{n}"
        shards[n] = mission.shard
    assert set(shards.values()) == {0, 1}
    assert (spawned(parent(), "test.kid", {}, target="fan.1").spec or {})["target"] == "fan.1"


def test_a_name_is_one_child_in_a_visit() -> None:
    known = spawned(parent(), name="one")
    brood = Brood(SPAWNING, parent(children=(known,)))
    options = {"target": None, "priority": None, "deadline_s": None}
    assert brood.spawn("test.kid", {"n": 2}, name="one", **options) == known.task_id
    assert brood.spawned == []


def test_what_an_earlier_run_saw_succeed_is_met_again_unless_new_keys_are_wanted() -> None:
    old = spawned(parent())._replace(spec=None, status="SUCCEEDED", result=7, old=True)
    met = spawned(parent(run=2, children=(old,)))
    assert (met.task_id, met.result, met.old, met.run) == (old.task_id, 7, False, 2)
    anew = spawned(parent(run=2, key_run=2, children=(old,)))
    assert (anew.task_id == old.task_id, anew.status) == (False, None)
    assert spawned(parent(run=2, children=(old,)), name="other").task_id != old.task_id


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("test.kid", {"n": "many"}), "/n: Input should be a valid integer"),
        (("test.kid", {"seconds": float("nan")}), "no JSON"),
        (("test.kid", []), "no object"),
    ],
)
def test_a_payload_that_its_type_refuses_is_refused_at_once(args: tuple[object, ...], said: str) -> None:
    with pytest.raises(SpawnError, match=said):
        spawned(parent(), *args)


def test_a_type_that_nobody_knows_is_left_to_a_worker_that_does() -> None:
    spec = spawned(parent(), "test.unheard", {"x": 1}).spec or {}
    assert (spec["version"], spec["state"], spec["lane"]) == (1, "UNKNOWN", "bulk:default:default")


def test_there_is_a_limit() -> None:
    many = tuple(Child(f"k{n}", "test.kid", None, "FAN", 1, n) for n in range(MOST))
    with pytest.raises(SpawnError, match="spawn missions that spawn"):
        spawned(parent(children=many))
