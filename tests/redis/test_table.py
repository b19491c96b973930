"""The table of the protocol, verbs by places: read it, then see it hold.

A cell is the answer (· where the verb has none) and the place afterwards; nothing more: everything is as it was.
`frees` says that the hold has gone on to the mission that waited for it, `told` that an entry was posted, `ranked` that
it has another priority, `inherits` that the holder has it too. Rows that name no target held have it free or held by
the mission. A cell that is `-` cannot be reached. `case.py` sets a mission up in a place, and does the verb.
"""

# ruff: noqa: E501  the table is wider than a line

from typing import Final

import pytest

from tests.redis.audit import faults, read
from tests.redis.case import PLACES, Case
from tests.redis.scripts_client import Verbs

TABLE: Final = """
verb                    lane             leased            kept             waiting          waiters           parked          paused          ended     gone
accept again            DUPLICATE        DUPLICATE         DUPLICATE        DUPLICATE        DUPLICATE         DUPLICATE       DUPLICATE       DUPLICATE -
claim, knows            ·leased          ·                 ·                ·                ·                 ·leased         ·               ·         ·
claim, target held      -                -                 -                -                ·                 ·waiters        -               -         -
claim, unknown          ·parked·frees    ·                 ·                ·                ·                 ·               ·               ·         ·
takeover                ·                ·lane             ·                ·                ·                 ·               ·               ·         ·
takeover, convicted     ·                ·ended·frees      ·                ·                ·                 ·               ·               ·         ·
commit again            DUPLICATE        DUPLICATE         DUPLICATE        DUPLICATE        DUPLICATE         DUPLICATE       DUPLICATE       DUPLICATE GONE
commit, stale fence     FENCED           FENCED            FENCED           FENCED           FENCED            FENCED          FENCED          FENCED    GONE
commit, stale rev       FENCED           FENCED            FENCED           FENCED           FENCED            FENCED          FENCED          FENCED    GONE
commit, unread          FENCED           SIGNALLED         -                -                FENCED            FENCED          FENCED          -         GONE
commit, go on           FENCED           OK                FENCED           FENCED           FENCED            FENCED          FENCED          FENCED    GONE
commit, act             FENCED           OK                FENCED           FENCED           FENCED            FENCED          FENCED          FENCED    GONE
commit, act, newer      FENCED           SUPERSEDED        FENCED           FENCED           FENCED            FENCED          FENCED          FENCED    GONE
commit, act, unread     FENCED           SIGNALLED         -                -                FENCED            FENCED          FENCED          -         GONE
commit, wait, kept      FENCED           OK·kept           FENCED           FENCED           FENCED            FENCED          FENCED          FENCED    GONE
commit, wait, given up  FENCED           OK·waiting·frees  FENCED           FENCED           FENCED            FENCED          FENCED          FENCED    GONE
commit, pause           FENCED           OK·paused·frees   FENCED           FENCED           FENCED            FENCED          FENCED          FENCED    GONE
commit, yield           FENCED           OK·lane           FENCED           FENCED           FENCED            FENCED          FENCED          FENCED    GONE
commit, offer           FENCED           OK                FENCED           FENCED           FENCED            FENCED          FENCED          FENCED    GONE
commit, offer, wanted   FENCED           YIELDED·lane      FENCED           FENCED           FENCED            FENCED          FENCED          FENCED    GONE
commit, checkpoint      FENCED           OK                FENCED           FENCED           FENCED            FENCED          FENCED          FENCED    GONE
commit, checkpt, newer  FENCED           OK                FENCED           FENCED           FENCED            FENCED          FENCED          FENCED    GONE
commit, end             FENCED           OK·ended·frees    FENCED           FENCED           FENCED            FENCED          FENCED          FENCED    GONE
commit, bury            FENCED           OK·ended·frees    FENCED           FENCED           FENCED            FENCED          FENCED          FENCED    GONE
progress                FENCED           OK                FENCED           FENCED           FENCED            FENCED          FENCED          FENCED    GONE
progress, stale fence   FENCED           FENCED            FENCED           FENCED           FENCED            FENCED          FENCED          FENCED    GONE
progress, stale rev     FENCED           FENCED            FENCED           FENCED           FENCED            FENCED          FENCED          FENCED    GONE
release                 FENCED           OK·lane           FENCED           FENCED           FENCED            FENCED          FENCED          FENCED    FENCED
release, stale fence    FENCED           FENCED            FENCED           FENCED           FENCED            FENCED          FENCED          FENCED    FENCED
adopt                   FENCED           OK                FENCED           FENCED           FENCED            FENCED          FENCED          FENCED    FENCED
adopt, stale fence      FENCED           FENCED            FENCED           FENCED           FENCED            FENCED          FENCED          FENCED    FENCED
due                     ·                ·                 ·lane            ·lane            ·                 ·               ·               ·         ·
due, target held        -                -                 -                ·waiters         ·                 ·               ·               -         -
cancel, rev = 0         OK·ended·frees   OK·told           -                -                OK·ended          OK·ended        OK·ended        ENDED     GONE
cancel, rev > 0         OK·told          OK·told           OK·lane·told     OK·lane·told     OK·told           OK·told         OK·lane·told    ENDED     GONE
cancel, target held     -                -                 -                OK·waiters·told  OK·told           OK·told         OK·waiters·told -         -
cancel, no room         OK·told          OK·told           -                -                OK·told           OK·told         OK·lane·told    ENDED     GONE
abandon, rev = 0        ·ended·frees     ·told             -                -                ·ended            ·ended          ·ended          ·         ·
abandon, rev > 0        ·told            ·told             ·lane·told       ·lane·told       ·told             ·told           ·lane·told      ·         ·
deadline, rev = 0       ·ended·frees     ·told             -                -                ·ended            ·ended          ·               ·         ·
deadline, rev > 0       ·told            ·told             ·lane·told       ·lane·told       ·told             ·told           ·               ·         ·
deadline, target held   -                -                 -                ·waiters·told    ·told             ·told           ·               -         -
pause limit, rev = 0    -                -                 -                -                -                 -               ·ended          -         -
pause limit, rev > 0    -                -                 -                -                -                 -               ·lane·told      -         -
pause limit, held       -                -                 -                -                -                 -               ·waiters·told   -         -
pause, rev = 0          OK·paused·frees  OK·told           -                -                OK·paused         OK·paused       OK              ENDED     GONE
pause, rev > 0          OK·paused·frees  OK·told           OK·paused·frees  OK·paused        OK·paused         OK·paused       OK              ENDED     GONE
pause, unread           OK·told          OK·told           -                -                OK·told           OK·told         OK              -         GONE
pause, no room          FULL             FULL              -                -                FULL              FULL            OK              ENDED     GONE
resume, nothing unread  OK               OK                OK               OK               OK                OK              OK·lane         ENDED     GONE
resume, wake ahead      OK               OK                OK               OK               OK                OK              OK·waiting      ENDED     GONE
resume, wake passed     -                -                 -                -                -                 -               OK·lane         -         -
resume, unread          OK               OK                -                -                OK                OK              OK·lane         -         GONE
resume, pause unread    OK·told          OK·told           -                -                OK·told           OK·told         -               -         GONE
resume, rev = 0         OK               OK                -                -                OK                OK              OK·lane         ENDED     GONE
resume, target held     -                -                 -                OK               OK                OK              OK·waiters      -         -
event, rev = 0          OK·told          OK·told           -                -                OK·told           OK·told         OK·told         ENDED     GONE
event, rev > 0          OK·told          OK·told           OK·lane·told     OK·lane·told     OK·told           OK·told         OK·told         ENDED     GONE
event, target held      -                -                 -                OK·waiters·told  OK·told           OK·told         OK·told         -         -
event, seen             DUPLICATE        DUPLICATE         -                -                DUPLICATE         DUPLICATE       DUPLICATE       ENDED     GONE
event, consumed         DUPLICATE        DUPLICATE         DUPLICATE        DUPLICATE        DUPLICATE         DUPLICATE       DUPLICATE       ENDED     GONE
event, no room          FULL             FULL              -                -                FULL              FULL            FULL            ENDED     GONE
child's end             OK·told          OK·told           OK·lane·told     OK·lane·told     OK·told           OK·told         OK·told         ENDED     GONE
child's end, seen       DUPLICATE        DUPLICATE         -                -                DUPLICATE         DUPLICATE       DUPLICATE       ENDED     GONE
child's end, consumed   DUPLICATE        DUPLICATE         DUPLICATE        DUPLICATE        DUPLICATE         DUPLICATE       DUPLICATE       ENDED     GONE
child's end, no room    OK·told          OK·told           -                -                OK·told           OK·told         OK·told         ENDED     GONE
child's end, older run  ENDED            ENDED             ENDED            ENDED            ENDED             ENDED           ENDED           ENDED     GONE
skip, rev = 0           OK·told          OK·told           -                -                OK·told           OK·told         OK·told         ENDED     GONE
skip, rev > 0           OK·told          OK·told           OK·lane·told     OK·lane·told     OK·told           OK·told         OK·told         ENDED     GONE
skip, no room           OK·told          OK·told           -                -                OK·told           OK·told         OK·told         ENDED     GONE
complete, rev = 0       OK·told          OK·told           -                -                OK·told           OK·told         OK·told         ENDED     GONE
complete, rev > 0       OK·told          OK·told           OK·lane·told     OK·lane·told     OK·told           OK·told         OK·told         ENDED     GONE
priority                OK·ranked        OK·ranked         OK·ranked        OK·ranked        OK·ranked·inherits OK·ranked      OK·ranked       ENDED     GONE
priority, as it was     OK               OK                OK               OK               OK                OK              OK              ENDED     GONE
permit                  FENCED           OK                FENCED           FENCED           FENCED            FENCED          FENCED          FENCED    FENCED
permit, none left       FENCED           BUSY              FENCED           FENCED           FENCED            FENCED          FENCED          FENCED    FENCED
park limit              ·                ·                 ·                ·                ·                 ·ended          ·               ·         ·
park limit, known       ·                ·                 ·                ·                ·                 ·               ·               ·         ·
replay                  RUNNING          RUNNING           RUNNING          RUNNING          RUNNING           RUNNING         RUNNING         ENDED     GONE
replay, dead            -                -                 -                -                -                 -               -               OK·lane   GONE
replay, dead, held      -                -                 -                -                -                 -               -               OK·waiters -
replay, dead, rows      -                -                 -                -                -                 -               -               ROWS      -
discard                 RUNNING          RUNNING           RUNNING          RUNNING          RUNNING           RUNNING         RUNNING         ENDED     GONE
discard, dead           -                -                 -                -                -                 -               -               OK        GONE
watch                   OK               OK                OK               OK               OK                OK              OK              ENDED     GONE
retire                  ·                ·                 ·                ·                ·                 ·               ·               ·gone     ·
retire, dead            -                -                 -                -                -                 -               -               ·gone     -
retire, rows left       ·                ·                 ·                ·                ·                 ·               ·               ·         ·
"""


def _cells() -> list[tuple[str, str, str]]:
    rows = [line for line in TABLE.splitlines() if line]
    verb_width = rows[0].index(PLACES[0])
    found = []
    for row in rows[1:]:
        cells = row[verb_width:].split()
        assert len(cells) == len(PLACES), row
        found += [(row[:verb_width].strip(), *one) for one in zip(PLACES, cells, strict=True) if one[1] != "-"]
    return found


UNCHANGED: Final = {"DUPLICATE", "FENCED", "SIGNALLED", "SUPERSEDED", "FULL", "ENDED", "GONE", "RUNNING", "ROWS"}


@pytest.mark.parametrize(("verb", "place", "cell"), [pytest.param(*one, id=f"{one[0]} @ {one[1]}") for one in _cells()])
def test_the_table(verbs: Verbs, verb: str, place: str, cell: str) -> None:
    case = Case(verbs, verb, place)
    case.stand()
    assert faults(read(verbs.redis)) == [], "the case is set up wrongly"
    before, entries, rival = verbs.record("m"), verbs.unread("m"), verbs.place("rival")

    answer = case.act()

    wanted_answer, *wanted = cell.split("·")
    assert answer in (wanted_answer, "")
    where = next((one for one in wanted if one in PLACES), place)
    assert case.where() == where
    told = verbs.unread("m")[len(entries) :]
    assert bool(told) == ("told" in wanted)
    if "frees" in wanted:
        assert (rival, verbs.holder("a:lamp")) == ("waiters", "rival")
    assert verbs.record("m").get("lane", before.get("lane")) == before.get("lane") or "ranked" in wanted
    if "ranked" in wanted:
        assert verbs.record("m")["lane"] == "urgent:default:a"
    if "inherits" in wanted:
        assert verbs.record("rival")["lane"] == "urgent:default:a"
    if wanted_answer in UNCHANGED:
        assert verbs.record("m") == before
        assert verbs.unread("m") == entries
    assert faults(read(verbs.redis)) == []
    if where == "gone":
        assert not verbs.redis.keys("*:m")
