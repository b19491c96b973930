"""The gadgets outside: flashed once per key, a moment later, over deaths; some never; their books."""

from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL
from typing import Any

import httpx
import pytest

from dualloop.outside.books import audit
from dualloop.outside.gadgets import BRICKED, FACTORY, OFFLINE
from dualloop.outside.ledger import Effect, Ledger
from tests.services import OutsideServices
from tests.waiting import until


@pytest.fixture(scope="module")
def shared_gadgets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OutsideServices]:
    with OutsideServices(tmp_path_factory.mktemp("outside")) as outside:
        yield outside


@pytest.fixture
def outside(shared_gadgets: OutsideServices) -> Iterator[OutsideServices]:
    """All well, and with books that balance whatever the test did."""
    yield shared_gadgets
    shared_gadgets.faults("gadgets")
    books = shared_gadgets.books()
    assert books["balanced"], books["faults"]


def look(outside: OutsideServices, gadget: str) -> dict[str, Any]:
    answer = outside.http.get(f"/gadgets/{gadget}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def flash(outside: OutsideServices, gadget: str, key: str, version: str = "2.0.0", **more: Any) -> httpx.Response:
    return outside.post(f"/gadgets/{gadget}/flash", key=key, version=version, **more)


def shows(outside: OutsideServices, gadget: str, version: str) -> None:
    until(lambda: look(outside, gadget)["version"] == version, what=f"{gadget} shows {version}")


def test_a_flash_is_taken_at_once_and_shows_later_over_a_death(tmp_path: Path) -> None:
    with OutsideServices(tmp_path) as outside:
        first = flash(outside, "gadget.0001", "t:1:I:1")
        assert first.status_code == 202
        seen = look(outside, "gadget.0001")
        assert seen["version"] in {FACTORY, "2.0.0"}, "before or after its time"
        if seen["flashing"] is not None:
            assert (seen["version"], seen["flashing"]["version"]) == (FACTORY, "2.0.0")
        outside.end(SIGKILL)
        outside.start()
        shows(outside, "gadget.0001", "2.0.0")
        seen = look(outside, "gadget.0001")
        assert (seen["flash"], seen["flashing"]) == ("t:1:I:1", None)
        assert seen["last_flashed"] == first.json()["accepted_at"] + first.json()["takes_ms"]
        assert flash(outside, "gadget.0001", "t:1:I:1", "9.9.9").json() == first.json(), "the first answer counts"
        assert outside.books()["firmware"] == {FACTORY: 599, "2.0.0": 1}
        assert outside.books()["balanced"]


def test_some_take_no_firmware_and_some_are_never_there(outside: OutsideServices) -> None:
    for n, (gadget, code) in enumerate([(min(BRICKED), "bricked"), (min(OFFLINE), "offline")]):
        said = flash(outside, gadget, f"never{n}:1:I:1")
        assert (said.status_code, said.json()["code"]) == (409, code)
        assert look(outside, gadget)["version"] == FACTORY
    assert look(outside, min(OFFLINE))["online"] is False
    missing = flash(outside, "gadget.9999", "never:1:I:1")
    assert (missing.status_code, missing.json()["code"]) == (404, "no_such_gadget")


def test_what_has_changed_since_it_was_seen_is_not_flashed_over(outside: OutsideServices) -> None:
    seen = look(outside, "gadget.0002")["flash"]
    outside.bench("/devices/gadget.0002", version="3.0.0")
    late = flash(outside, "gadget.0002", "c:1:I:1", seen=seen)
    assert (late.status_code, late.json()["code"]) == (409, "changed")
    assert look(outside, "gadget.0002")["version"] == "3.0.0"
    again = flash(outside, "gadget.0002", "c:1:I:2", seen=look(outside, "gadget.0002")["flash"])
    assert again.status_code == 202
    busy = flash(outside, "gadget.0002", "d:1:I:1")
    assert (busy.status_code, busy.json()["code"]) == (409, "busy")
    shows(outside, "gadget.0002", "2.0.0")
    states = [one["state"] for one in outside.page("gadget.0002")["standing"].values()]
    assert states == ["flashed"]
    assert [one["verb"] for one in outside.page("gadget.0002")["journal"]] == ["flash", "flash"]


def test_a_hand_takes_a_gadget_away_and_mends_another_one(outside: OutsideServices) -> None:
    assert outside.bench("/devices/gadget.0003", online=False)["online"] is False
    assert flash(outside, "gadget.0003", "h:1:I:1").json()["code"] == "offline"
    outside.bench("/devices/gadget.0003", online=True)
    outside.bench("/devices/gadget.0413", bricked=False)
    assert flash(outside, "gadget.0413", "h:1:I:2").status_code == 202
    assert outside.http.post("/devices/gadget.9999", json={}).status_code == 404
    assert outside.http.post("/devices/gadget.0003", json={"colour": "red"}).status_code == 422


def test_they_are_listed_by_name_and_by_model(outside: OutsideServices) -> None:
    def listed(**asked: Any) -> dict[str, Any]:
        return dict(outside.http.get("/gadgets/", params=asked).json())

    first = listed(prefix="gadget.", limit=200)
    assert (len(first["gadgets"]), first["more"]) == (200, True)
    last = listed(prefix="gadget.", after="gadget.0580")
    assert [one["id"] for one in last["gadgets"]] == [f"gadget.{n:04}" for n in range(581, 601)]
    assert last["more"] is False
    assert {one["model"] for one in listed(model="lock")["gadgets"]} == {"lock"}
    assert [one["id"] for one in listed(ids="gadget.0007,gadget.9999")["gadgets"]] == ["gadget.0007"]


def test_a_reply_that_is_lost_came_after_the_flash(outside: OutsideServices) -> None:
    outside.faults("gadgets", lose_reply=True, times=1)
    with pytest.raises(httpx.TransportError):
        flash(outside, "gadget.0004", "l:1:I:1")
    assert flash(outside, "gadget.0004", "l:1:I:1").status_code == 202
    assert len(outside.page("gadget.0004")["journal"]) == 1


def test_the_audit_finds_a_gadget_that_is_not_as_it_was_flashed(tmp_path: Path) -> None:
    with OutsideServices(tmp_path) as outside:
        assert flash(outside, "gadget.0001", "t:1:I:1").is_success
        outside.end()
        ledger = Ledger(tmp_path / "outside")
        assert audit(ledger) == []
        known = ledger.fact("gadget", "gadget.0001") or {}
        ledger.know("gadget", "gadget.0001", known | {"version": "1.0.0"})
        assert audit(ledger) == ["gadget.0001 has 1.0.0, and its last flash was 2.0.0"]
        ledger.know("gadget", "gadget.0001", known)
        ledger.journal(Effect("t:1:I:1", "gadgets", "flash", "t:1:I:1", "gadget.0001", 1, 0))
        assert audit(ledger) == ["key t:1:I:1 has 2 effects", "gadgets did flash 2 times to t:1:I:1"]
        ledger.close()
        outside.start()
