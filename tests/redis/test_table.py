"""The table of the protocol, verbs by places, as far as it is in force: read it, then see it hold.

A cell is the answer (· where the verb has none) and the place afterwards; nothing more: everything is as it was.
`frees` says that the hold has gone on to the mission that waited for it, `told` that an entry was posted. Rows that
name no target held have it free or held by the mission. A cell that is `-` cannot be reached.
"""

# ruff: noqa: E501  the table is wider than a line

from typing import Final

import pytest

from tests.redis.audit import faults, read
from tests.redis.scripts_client import FAR, STATUS, Move, New, Taken, Verbs, Write, event

PLACES: Final = ("lane", "leased", "kept", "waiting", "waiters", "parked", "ended", "gone")
"""`kept`: waiting with its hold; `waiting`: it gave its hold up."""

TABLE: Final = """
verb                    lane            leased            kept            waiting         waiters        parked          ended     gone
accept again            DUPLICATE       DUPLICATE         DUPLICATE       DUPLICATE       DUPLICATE      DUPLICATE       DUPLICATE -
claim, knows            ·leased         ·                 ·               ·               ·              ·leased         ·         ·
claim, target held      -               -                 -               -               ·              ·waiters        -         -
claim, unknown          ·parked·frees   ·                 ·               ·               ·              ·               ·         ·
takeover                ·               ·lane             ·               ·               ·              ·               ·         ·
commit again            DUPLICATE       DUPLICATE         DUPLICATE       DUPLICATE       DUPLICATE      DUPLICATE       DUPLICATE GONE
commit, stale fence     FENCED          FENCED            FENCED          FENCED          FENCED         FENCED          FENCED    GONE
commit, stale rev       FENCED          FENCED            FENCED          FENCED          FENCED         FENCED          FENCED    GONE
commit, unread          FENCED          SIGNALLED         -               -               FENCED         FENCED          -         GONE
commit, go on           FENCED          OK                FENCED          FENCED          FENCED         FENCED          FENCED    GONE
commit, wait, kept      FENCED          OK·kept           FENCED          FENCED          FENCED         FENCED          FENCED    GONE
commit, wait, given up  FENCED          OK·waiting·frees  FENCED          FENCED          FENCED         FENCED          FENCED    GONE
commit, yield           FENCED          OK·lane           FENCED          FENCED          FENCED         FENCED          FENCED    GONE
commit, end             FENCED          OK·ended·frees    FENCED          FENCED          FENCED         FENCED          FENCED    GONE
release                 FENCED          OK·lane           FENCED          FENCED          FENCED         FENCED          FENCED    FENCED
release, stale fence    FENCED          FENCED            FENCED          FENCED          FENCED         FENCED          FENCED    FENCED
due                     ·               ·                 ·lane           ·lane           ·              ·               ·         ·
due, target held        -               -                 -               ·waiters        ·              ·               -         -
cancel, rev = 0         OK·ended·frees  OK·told           -               -               OK·ended       OK·ended        ENDED     GONE
cancel, rev > 0         OK·told         OK·told           OK·lane·told    OK·lane·told    OK·told        OK·told         ENDED     GONE
cancel, target held     -               -                 -               OK·waiters·told OK·told        OK·told         -         -
deadline, rev = 0       ·ended·frees    ·told             -               -               ·ended         ·ended          ·         ·
deadline, rev > 0       ·told           ·told             ·lane·told      ·lane·told      ·told          ·told           ·         ·
deadline, target held   -               -                 -               ·waiters·told   ·told          ·told           -         -
event, rev = 0          OK·told         OK·told           -               -               OK·told        OK·told         ENDED     GONE
event, rev > 0          OK·told         OK·told           OK·lane·told    OK·lane·told    OK·told        OK·told         ENDED     GONE
event, target held      -               -                 -               OK·waiters·told OK·told        OK·told         -         -
event, seen             DUPLICATE       DUPLICATE         -               -               DUPLICATE      DUPLICATE       ENDED     GONE
event, consumed         DUPLICATE       DUPLICATE         DUPLICATE       DUPLICATE       DUPLICATE      DUPLICATE       ENDED     GONE
event, no room          FULL            FULL              -               -               FULL           FULL            ENDED     GONE
watch                   OK              OK                OK              OK              OK             OK              ENDED     GONE
retire                  ·               ·                 ·               ·               ·              ·               ·gone     ·
retire, rows left       ·               ·                 ·               ·               ·              ·               ·         ·
"""


def _cells() -> list[tuple[str, str, str]]:
    rows = [line for line in TABLE.splitlines() if line]
    starts = [rows[0].index(name) for name in PLACES]
    found = []
    for row in rows[1:]:
        for start, end, place in zip(starts, [*starts[1:], None], PLACES, strict=True):
            if (cell := row[start:end].strip()) != "-":
                found.append((row[: starts[0]].strip(), place, cell))
    return found


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
    if wanted_answer in ("DUPLICATE", "FENCED", "SIGNALLED", "FULL", "ENDED", "GONE"):
        assert verbs.record("m") == before
        assert verbs.unread("m") == entries
    assert faults(read(verbs.redis)) == []
    if where == "gone":
        assert not verbs.redis.keys("*:m")


class Case:
    """One mission, `m`, brought to one place, and what is then done to it; `rival` wants, or has, the same target."""

    def __init__(self, verbs: Verbs, verb: str, place: str) -> None:
        self.verbs, self.verb, self.place = verbs, verb, place
        self.begun = "rev = 0" not in verb
        self.rival = place not in ("ended", "gone", "parked", "waiting") or "held" in verb
        self.last: Write | None = None
        self.taken: Taken | None = None

    # where it stands

    def stand(self) -> None:
        """Bring the mission to its place; it has committed once, unless the row says rev = 0."""
        verbs = self.verbs
        first, second = ("rival", "m") if self.place == "waiters" and not self.begun else ("m", "rival")
        new = {"m": New("m", target="a:lamp"), "rival": New("rival", type="r", target="a:lamp")}
        verbs.accept(new[first])
        if self.rival or first == "rival":
            verbs.accept(new[second])
        getattr(self, f"_{self.place}")()
        assert self.where() == self.place, "the case is set up wrongly"
        if "seen" in self.verb:
            verbs.event("m", "e1")
        if "no room" in self.verb:
            for n in range(64):
                verbs.event("m", f"f{n}")
        if "unread" in self.verb:
            verbs.event("m", "e1")

    def _claimed(self) -> Taken:
        self.taken = self.verbs.take("w1", 1)["m"]
        if "consumed" in self.verb:
            self.verbs.event("m", "e1")
            self.taken = self.taken._replace(unread=("e1",))
        return self.taken

    def _commit(self, move: Move, **changes: object) -> None:
        self.last = self._claimed().write(move, **changes)
        (answer,) = self.verbs.commit("w1", self.last)
        assert answer.word == "OK"

    def _lane(self) -> None:
        if self.begun:
            self._commit("yield")

    def _leased(self) -> None:
        if self.begun:
            self._commit("stay")
        else:
            self._claimed()

    def _kept(self) -> None:
        self._commit("wait", wake_at=FAR)

    def _waiting(self) -> None:
        self._commit("leave", wake_at=FAR)

    def _waiters(self) -> None:
        if self.begun:
            self._commit("leave", wake_at=1)
            self.verbs.claim("w2", 0)

    def _parked(self) -> None:
        if self.begun:
            self._commit("yield")
        self.verbs.claim("w2", 1, knows=("r@1",))

    def _ended(self) -> None:
        if self.begun:
            self._commit("end", rows=("row",) if "rows" in self.verb else ())
        else:
            self.verbs.cancel("m")

    def _gone(self) -> None:
        self._ended()
        self.verbs.redis.delete(self.verbs.key("outbox:m"), self.verbs.key("outboxes"))
        self.verbs.set_score("retire", "m", 1)
        self.verbs.retire()

    def where(self) -> str:
        """The column it stands in."""
        place = self.verbs.place("m")
        return "kept" if place == "waiting" and self.verbs.holder("a:lamp") == "m" else place

    # what is done

    def act(self) -> str:
        """Do it; the answer's word, empty where there is none."""
        name = self.verb.partition(",")[0]
        acts = {
            "accept again": lambda: self.verbs.accept(New("m", target="a:lamp"))[0],
            "claim": self._claim,
            "takeover": self._takeover,
            "commit again": lambda: self.verbs.commit("w1", self.last or Write("m", 1, 0))[0].word,
            "commit": self._send,
            "release": self._release,
            "due": self._due,
            "cancel": lambda: self.verbs.cancel("m")[0],
            "deadline": self._deadline,
            "event": lambda: self.verbs.event("m", "e1")[0],
            "watch": lambda: self.verbs.watch("front", 1000, "m")[0],
            "retire": self._retire,
        }
        return acts[name]()

    def _claim(self) -> str:
        self.verbs.claim("w2", 1, knows=("r@1",) if "unknown" in self.verb else ("r@1", "t@1"))
        return ""

    def _takeover(self) -> str:
        if self.verbs.redis.zscore(self.verbs.key("owners"), "w1") is not None:
            self.verbs.set_score("owners", "w1", 1)
        for _ in range(2):
            self.verbs.claim("w3", 0, renew_ms=0)
        return ""

    def _send(self) -> str:
        fence = self.taken.fence if self.taken is not None else 0
        rev = 1 if self.begun else 0
        if "fence" in self.verb:
            fence -= 1
        if "rev" in self.verb or self.place != "leased":
            rev += 1  # else a copy of the last one would be a duplicate
        kinds: dict[str, Move] = {"kept": "wait", "given up": "leave", "yield": "yield", "end": "end"}
        move: Move = next((kind for word, kind in kinds.items() if self.verb.endswith(word)), "stay")
        wake_at = FAR if move in ("wait", "leave") else None
        write = Write("m", fence, rev, 0, move, STATUS[move], events=(event(),), wake_at=wake_at)
        return self.verbs.commit("w1", write)[0].word

    def _release(self) -> str:
        fence = (self.taken.fence if self.taken is not None else 0) - ("stale" in self.verb)
        return self.verbs.release("w1", ("m", fence))[0]

    def _due(self) -> str:
        if self.place in ("kept", "waiting"):
            self.verbs.redis.hset(self.verbs.key("mission:m"), "wake_at", 1)
            self.verbs.set_score("timers", "m", 1)
        self.verbs.claim("w2", 0)
        return ""

    def _deadline(self) -> str:
        if self.place not in ("ended", "gone"):
            self.verbs.set_score("deadlines", "m", 1)
        self.verbs.sweep()
        return ""

    def _retire(self) -> str:
        if self.place == "ended":
            self.verbs.set_score("retire", "m", 1)
        self.verbs.retire()
        return ""
