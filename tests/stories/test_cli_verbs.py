"""Acting on missions and dead letters from a terminal: what is printed, what is written to the log, the exit code."""

import getpass
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.stories.operating import Hand, events, operated
from tests.stories.stack import MISSIONS
from tests.stories.terminal import Terminal

TYPES = f"{MISSIONS},tests.missions.parcel,tests.missions.errand"


@pytest.fixture
async def hand(redis_url: str, tmp_path: Path) -> AsyncIterator[Hand]:
    async with operated(redis_url, tmp_path, DUALLOOP_MISSIONS=TYPES) as hand:
        yield hand


@pytest.fixture
def terminal(hand: Hand, tmp_path: Path) -> Terminal:
    return Terminal(tmp_path, DUALLOOP_URL=hand.stack.url)


@pytest.fixture
def depot(tmp_path: Path) -> Path:
    """Closed."""
    return tmp_path / "depot"


def open_(depot: Path) -> None:
    depot.touch()


async def test_a_mission_is_paused_told_and_let_go_on(hand: Hand, terminal: Terminal, depot: Path) -> None:
    open_(depot)
    parcel = await hand.submit("test.parcel", {"depot": str(depot), "signature": True})
    await hand.in_state(parcel, "SIGNING", "waiting")
    said = await terminal.run("missions", "pause", parcel, "--by", "anna", "--note", "a look first")
    assert (said.code, said.out, said.err) == (0, f"{parcel}  paused\n", "")
    why = (await terminal.run("why", parcel)).out
    assert why.startswith("PAUSED in SIGNING for ")
    assert (
        f": anna said pause (a look first); let it go on with: dualloop missions resume {parcel}; it goes on waiting "
        in why
    )
    assert "; while it is paused it ends no earlier than " in why
    said = await terminal.run("missions", "priority", parcel, "bulk")
    assert said.out == f"{parcel}  has priority bulk from now on (PAUSED)\n"
    said = await terminal.run("missions", "resume", parcel)
    assert said.out == f"{parcel}  goes on (WAITING)\n"

    refused = await terminal.run("missions", "event", parcel, "OPENED")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == "test.parcel@1 declares no event 'OPENED'; those that it does: SIGNED.\n"
    refused = await terminal.run("missions", "event", parcel, "SIGNED", "--data", "[1]")
    assert (refused.code, refused.err[:32]) == (1, "The data must be a JSON object, ")
    said = await terminal.run(
        "missions", "event", parcel, "SIGNED", "--data", "-", "--id", "one", stdin='{"name": "客"}'
    )
    assert said.code == 0
    assert said.out.startswith(f"{parcel}  was told SIGNED (")
    assert (await hand.ended(parcel))["status"] == "SUCCEEDED"
    mission = await hand.mission(parcel)
    assert [told["by"] for told in events(mission, "paused", "priority", "resumed")] == [
        *("anna", getpass.getuser(), getpass.getuser())
    ]
    late = await terminal.run("missions", "pause", parcel)
    assert (late.code, late.out) == (1, "")
    assert late.err.startswith("The mission has ended: SUCCEEDED")


async def test_an_event_that_is_told_twice_counts_once(hand: Hand, terminal: Terminal) -> None:
    patient = await hand.submit("test.patient", {"sleep_s": 600})
    await hand.in_state(patient, "SLEEPING", "waiting")
    first = await terminal.run("missions", "event", patient, "KNOCK", "--id", "one")
    assert first.out == (f"{patient}  was told KNOCK (WAITING)\nSee what becomes of it: dualloop watch {patient}\n")
    again = await terminal.run("missions", "event", patient, "KNOCK", "--id", "one")
    assert again.out.startswith(f"{patient}  had it already: nothing was changed (WAITING)\n")
    assert (await terminal.run("missions", "event", patient, "KNOCK", "--id", "one", "--json")).json[
        "duplicate"
    ] is True


async def test_an_operator_skips_and_completes(hand: Hand, terminal: Terminal, depot: Path) -> None:
    open_(depot)
    skipped, done = [await hand.submit("test.parcel", {"depot": str(depot), "signature": True}) for _ in range(2)]
    for parcel in (skipped, done):
        await hand.in_state(parcel, "SIGNING", "waiting")
    refused = await terminal.run("missions", "skip", skipped, "--state", "PACKING")
    assert (refused.code, refused.out) == (1, "")
    assert "PACKING of test.parcel@1 is not optional" in refused.err
    said = await terminal.run("missions", "skip", skipped, "--state", "SIGNING", "--note", "nobody at home")
    assert said.out.startswith(f"{skipped}  was told to skip SIGNING (")
    assert (await hand.ended(skipped))["result"]["street"] == "Main Street"
    [told] = events(await hand.mission(skipped), "skipped")
    assert (told["by"], told["note"]) == (getpass.getuser(), "nobody at home")
    said = await terminal.run("missions", "complete", done, "--result", '{"carried": "by hand"}', "--by", "bob")
    assert said.out.startswith(f"{done}  was told that it is done (")
    ended = await hand.ended(done)
    assert (ended["status"], ended["result"]) == ("SUCCEEDED", {"carried": "by hand"})
    again = await terminal.run("missions", "complete", done, "--json")
    assert (again.code, again.out) == (1, "")


async def test_a_cancel_waits_until_the_handler_has_stopped(hand: Hand, terminal: Terminal) -> None:
    slow, waiter, errand = [
        await hand.submit("test.slow", {"seconds": 600, "entity": "light.a"}),
        await hand.submit("test.slow", {"seconds": 600, "entity": "light.a"}),
        await hand.submit("test.errand", {"ship": "hangs", "refund": "fails"}),
    ]
    await hand.in_state(slow, "ACTING", "leased")
    await hand.in_state(errand, "SHIPPING", "leased")
    await terminal.run("missions", "pause", waiter)  # else it begins if the one before it happens to be cancelled first
    said = await terminal.run("missions", "cancel", waiter, slow, "--wait")
    assert (said.code, said.err) == (0, "")
    first, second = said.out.splitlines()
    assert first.startswith(f"{waiter}  CANCELLED after ")
    assert first.endswith(", no handler of it runs")
    assert second.startswith(f"{slow}  CANCELLED after ")
    assert second.endswith(", its handler has stopped; what it did in ACTING may have happened: look")
    assert (await hand.mission(slow))["place"] == "ended"

    said = await terminal.run("missions", "cancel", errand, "--wait")
    assert said.code == 1
    assert said.out.startswith(f"{errand}  FAILED after ")
    assert "CHARGING could not be undone: the bank is closed" in said.out
    assert said.out.endswith("; not undone: CHARGING, RESERVING\n")
    assert said.err == "1 of 1 did not end CANCELLED.\n"
    why = (await terminal.run("why", errand)).out
    assert "; it was to end CANCELLED (requested); undone: SHIPPING; not undone: CHARGING, RESERVING; kept as a " in why
    assert why.endswith(f"run it again with: dualloop dead-letters replay {errand} --from start.\n")

    fresh = await hand.submit("test.slow", {"seconds": 600})
    await hand.in_state(fresh, "ACTING", "leased")
    said = await terminal.run("missions", "cancel", fresh, slow, "nonsense")
    assert said.code == 1
    lines = said.out.splitlines()
    assert lines[0] == f"{fresh}  RUNNING, told to end: its handler is being cut"
    assert lines[1].startswith(f"{slow}  ")
    assert lines[2].startswith("nonsense  refused: This is no correlation_id of this system")
    assert said.err.endswith(" of 3 were refused.\n")
    told = await terminal.run("missions", "cancel", "nonsense", "--json")
    assert (told.code, told.json["nonsense"]["code"]) == (1, "bad_id")


async def letters(hand: Hand, depot: Path) -> tuple[list[str], str]:
    """Three parcels and a paid one, for which the depot was closed; the paid one was paid back."""
    fresh = [await hand.submit("test.parcel", {"depot": str(depot)}) for _ in range(3)]
    paid = await hand.submit("test.paid", {"depot": str(depot)})
    for parcel in (*fresh, paid):
        assert (await hand.ended(parcel))["status"] == "FAILED"
    return fresh, paid


async def test_dead_letters_are_listed_and_shown(hand: Hand, terminal: Terminal, depot: Path) -> None:
    assert (await terminal.run("dead-letters", "ls")).out == "There is no dead letter.\n"
    fresh, paid = await letters(hand, depot)
    listed = await terminal.run("dead-letters", "ls")
    head, *rows, _, hint = listed.out.splitlines()
    assert head.split() == ["MISSION", "CODE", "FAILED", "IN", "TYPE", "TARGET", "AGE", "ERROR"]
    assert [row.split()[0] for row in rows] == [paid, *fresh[::-1]]
    assert rows[0].split()[1:4] == ["permanent", "SHIPPING", "test.paid"]
    assert rows[0].rstrip().endswith("the depot is closed")
    assert "dualloop dead-letters replay ID" in hint
    some = await terminal.run("dead-letters", "ls", "--type", "test.parcel", "--limit", "2", "--json")
    assert ([row["task_id"] for row in some.json["dead_letters"]], some.json["whole"]) == (fresh[:0:-1], False)
    assert (await terminal.run("dead-letters", "ls", "--code", "timeout")).out == "No dead letter fits.\n"

    shown = (await terminal.run("dead-letters", "show", paid)).out
    assert shown.startswith("FAILED at ")
    assert f"run it again with: dualloop dead-letters replay {paid} --from start." in shown
    for told in ("permanent: the depot is closed", "Kept until", "Undone", "Failed in", "COMPENSATING", '"depot": '):
        assert told in shown
    alive = await hand.submit("test.slow", {"seconds": 600})
    refused = await terminal.run("dead-letters", "show", alive)
    assert (refused.code, refused.err[:26]) == (1, "It is no dead letter but R")


async def test_dead_letters_run_again_and_are_given_up(hand: Hand, terminal: Terminal, depot: Path) -> None:
    fresh, paid = await letters(hand, depot)
    refused = await terminal.run("dead-letters", "replay", paid, "--from", "failed_state")
    assert (refused.code, refused.err) == (1, "PAYING of it was undone: replay it from the start.\n")
    for wrong in ((), (paid, "--all"), (paid, "--type", "test.paid")):
        refused = await terminal.run("dead-letters", "replay", *wrong)
        assert (refused.code, refused.out, refused.err.count("\n")) == (1, "", 1)
    corrected = ("--payload", f'{{"depot": "{depot}", "street": "Side Street"}}', "--by", "anna", "--note", "moved")
    said = await terminal.run("dead-letters", "replay", fresh[0], *corrected)
    assert said.code == 0
    assert said.out.startswith(f"{fresh[0]}  run 2 from the state it failed in, with new keys for its effects (")
    [replay] = events(await hand.mission(fresh[0]), "replayed")
    assert (replay["by"], replay["note"], replay["key"]) == ("anna", "moved", "new")
    assert (await hand.ended(fresh[0]))["status"] == "FAILED"

    open_(depot)
    said = await terminal.run("dead-letters", "replay", "--all", "--type", "test.parcel")
    assert (said.code, said.err) == (0, "")
    assert {line.split()[0] for line in said.out.splitlines()[:-1]} == set(fresh)
    assert said.out.splitlines()[-1] == "3 run again."
    assert [(await hand.ended(parcel))["result"]["street"] for parcel in fresh] == ["Side Street", *["Main Street"] * 2]
    assert (await terminal.run("dead-letters", "replay", "--all", "-q", "nothing")).out == "No dead letter fits.\n"

    said = await terminal.run("dead-letters", "discard", paid, fresh[0])
    assert said.code == 1
    first, second = said.out.splitlines()
    assert first == f"{paid}  discarded: it is removed with its log"
    assert second.startswith(f"{fresh[0]}  refused: ")
    assert (await terminal.run("dead-letters", "ls", "--json")).json["dead_letters"] == []
