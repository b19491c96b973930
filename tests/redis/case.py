"""One mission in one place, and a verb that meets it there: the cells of `test_table.py`."""

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tests.redis.scripts_client import FAR, STATUS, Move, New, Taken, Verbs, Write, event

if TYPE_CHECKING:
    from collections.abc import Callable

PLACES: Final = ("lane", "leased", "kept", "waiting", "waiters", "parked", "paused", "ended", "gone")
"""`kept`: waiting with its hold; `waiting`: it gave its hold up."""

PAUSE: Final = '{"entry":"pause","by":"op"}'


class Case:
    """One mission, `m`, brought to one place, and what is then done to it; `rival` wants, or has, the same target."""

    def __init__(self, verbs: Verbs, verb: str, place: str) -> None:
        self.verbs, self.verb, self.place = verbs, verb, place
        self.begun = "rev = 0" not in verb
        away = place in ("ended", "gone", "parked", "waiting", "paused")
        self.rival = not away or "held" in verb
        self.owner = "solo-1" if "convicted" in verb else "w1"
        self.last: Write | None = None
        self.taken: Taken | None = None

    # where it stands

    def stand(self) -> None:
        """Bring the mission to its place; it has committed once, unless the row says rev = 0."""
        verbs = self.verbs
        if "none left" in self.verb:
            verbs.accept(New("other"))
            verbs.permit("w9", "other", verbs.take("w9")["other"].fence, type__t=1)
        first, second = ("rival", "m") if self.place == "waiters" and not self.begun else ("m", "rival")
        latest = "a:lamp:power" if "act" in self.verb or "checkp" in self.verb else ""
        watch = 1 if "abandon" in self.verb else 1_000_000
        if "abandon" in self.verb:
            verbs.attend("m", 0)
        new = {
            "m": New("m", target="a:lamp", latest=latest, watcher="front", watch_ms=watch),
            "rival": New("rival", type="r", target="a:lamp"),
        }
        verbs.accept(new[first])
        if self.rival or first == "rival":
            verbs.accept(new[second])
        getattr(self, f"_{self.place}")()
        assert self.where() == self.place, "the case is set up wrongly"
        self._entries()
        if "newer" in self.verb:
            verbs.accept(New("newer", target="a:fan", latest="a:lamp:power"))
        if "wanted" in self.verb:
            verbs.accept(New("wants", lane="urgent:default:a"))

    def _entries(self) -> None:
        verbs = self.verbs
        if "pause unread" in self.verb:
            verbs.control("m", "pause", "p1", PAUSE) if self.place == "leased" else self._pause_unread()
        elif "seen" in self.verb or ("unread" in self.verb and "nothing" not in self.verb):
            verbs.event("m", "e1")
        if "no room" in self.verb:
            for n in range(64):
                verbs.event("m", f"f{n}")

    def _pause_unread(self) -> None:
        """A pause is an entry where something else is unread."""
        self.verbs.event("m", "e0")
        self.verbs.control("m", "pause", "p1", PAUSE)

    def _claimed(self) -> Taken:
        self.taken = self.verbs.take(self.owner, 1)["m"]
        if "consumed" in self.verb:
            self.verbs.event("m", "e1")
            self.taken = self.taken._replace(unread=("e1",))
        return self.taken

    def _commit(self, move: Move, **changes: object) -> None:
        self.last = self._claimed().write(move, **changes)
        (answer,) = self.verbs.commit(self.owner, self.last)
        assert answer.word == "OK"

    def _lane(self) -> None:
        if self.begun:
            self._commit("yield")

    def _leased(self) -> None:
        if self.begun:
            self._commit("stay")
        else:
            self._claimed()
        if "convicted" in self.verb:
            self.verbs.redis.hset(self.verbs.key("mission:m"), mapping={"deaths": 4, "solo_deaths": 2})

    def _kept(self) -> None:
        self._commit("wait", wake_at=FAR, waiting_for="retry")

    def _waiting(self) -> None:
        self._commit("leave", wake_at=FAR, waiting_for="timer")
        if self.rival and "held" not in self.verb:
            raise AssertionError

    def _waiters(self) -> None:
        if self.begun:
            self._commit("leave", wake_at=1, waiting_for="timer")
            self.verbs.claim("w2", 0)

    def _parked(self) -> None:
        if self.begun:
            self._commit("yield")
        self.verbs.claim("w2", 1, knows=("r@1",))

    def _paused(self) -> None:
        wake = {"wake ahead": FAR, "wake passed": 1}.get(self.verb.partition(", ")[2])
        if not self.begun:
            self.verbs.pause("m")
        elif wake is None:
            self._commit("pause")
        else:
            self._commit("pause", wake_at=wake, waiting_for="timer")

    def _ended(self) -> None:
        rows = ("row",) if "rows" in self.verb else ()
        if "dead" in self.verb and "deadline" not in self.verb:
            self._commit("bury", rows=rows, waiting_for="START")
        elif self.begun:
            self._commit("end", rows=rows)
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
        verbs = self.verbs
        acts: dict[str, Callable[[], str]] = {
            "accept again": lambda: verbs.accept(New("m", target="a:lamp"))[0],
            "claim": self._claim,
            "takeover": self._takeover,
            "commit again": lambda: verbs.commit(self.owner, self.last or Write("m", 1, 0))[0].word,
            "commit": self._send,
            "release": lambda: verbs.release("w1", ("m", self._fence()))[0],
            "progress": lambda: verbs.progress("w1", ("m", self._fence(), self._rev(), "{}"))[0],
            "adopt": lambda: verbs.adopt("w1", "solo-1", "m", self._fence()),
            "permit": self._permit,
            "due": self._due,
            "cancel": lambda: verbs.cancel("m")[0],
            "abandon": self._abandon,
            "deadline": self._deadline,
            "pause limit": self._pause_limit,
            "pause": lambda: verbs.pause("m")[0],
            "resume": lambda: verbs.resume("m")[0],
            "event": lambda: verbs.event("m", "e1")[0],
            "child's end": lambda: verbs.control("m", "child", "e1", run=2 if "older run" in self.verb else 1).word,
            "skip": lambda: verbs.control("m", "skip", "s1").word,
            "complete": lambda: verbs.control("m", "complete", "c1").word,
            "priority": lambda: verbs.prioritize("m", "normal" if "as it was" in self.verb else "urgent").word,
            "park limit": self._park_limit,
            "replay": lambda: verbs.replay("m")[0],
            "discard": lambda: verbs.discard("m"),
            "watch": lambda: verbs.watch("front", 1000, "m")[0],
            "retire": self._retire,
        }
        return acts[self.verb.partition(",")[0]]()

    def _claim(self) -> str:
        self.verbs.claim("w2", 1, knows=("r@1",) if "unknown" in self.verb else ("r@1", "t@1"))
        return ""

    def _takeover(self) -> str:
        if self.verbs.redis.zscore(self.verbs.key("owners"), self.owner) is not None:
            self.verbs.set_score("owners", self.owner, 1)
        for _ in range(2):
            self.verbs.claim("w3", 0, renew_ms=0)
        return ""

    def _fence(self) -> int:
        return (self.taken.fence if self.taken is not None else 0) - ("stale" in self.verb)

    def _send(self) -> str:
        rev = self._rev()
        if self.place != "leased":
            rev += 1  # else a copy of the last one would be a duplicate
        kinds: dict[str, Move] = {
            "kept": "wait",
            "given up": "leave",
            "pause": "pause",
            "yield": "yield",
            "offer": "offer",
            "wanted": "offer",
            "end": "end",
            "bury": "bury",
        }
        move: Move = next((kind for word, kind in kinds.items() if self.verb.endswith(word)), "stay")
        wake_at = FAR if move in ("wait", "leave", "pause") else None
        act = "act" in self.verb
        write = Write("m", self._fence(), rev, 0, move, STATUS[move], events=(event(),), wake_at=wake_at, act=act)
        if "checkp" in self.verb:
            write = replace(write, events=(), midway="kept")
        if move == "bury":
            write = replace(write, waiting_for="START")
        return self.verbs.commit("w1", write)[0].word

    def _rev(self) -> int:
        return (1 if self.begun else 0) + ("stale rev" in self.verb)

    def _permit(self) -> str:
        return self.verbs.permit("w1", "m", self._fence(), type__t=1)

    def _due(self) -> str:
        if self.place in ("kept", "waiting"):
            self.verbs.redis.hset(self.verbs.key("mission:m"), "wake_at", 1)
            self.verbs.set_score("timers", "m", 1)
        self.verbs.claim("w2", 0)
        return ""

    def _abandon(self) -> str:
        if self.place not in ("ended", "gone"):
            self.verbs.redis.hset(self.verbs.key("mission:m"), "watchers", "front 1")
            self.verbs.set_score("attended", "m", 1)
        self.verbs.abandon()
        return ""

    def _deadline(self) -> str:
        if self.place not in ("ended", "gone"):
            self.verbs.set_score("deadlines", "m", 1)
        self.verbs.sweep()
        return ""

    def _pause_limit(self) -> str:
        self._deadline()
        assert (self.verbs.score("deadlines", "m") or 0) > self.verbs.now()
        self.verbs.redis.hset(self.verbs.key("mission:m"), "paused_at", 1)
        self.verbs.redis.zadd(self.verbs.key("paused"), {"m": 1})
        return self._deadline()

    def _park_limit(self) -> str:
        if self.place == "parked":
            self.verbs.redis.hset(self.verbs.key("mission:m"), "parked_at", 1)
            self.verbs.set_score("parked:t@1", "m", 1)
        if "known" in self.verb:
            self.verbs.redis.hset(self.verbs.key("parked_known"), "t@1", self.verbs.now())
        else:
            self.verbs.redis.hdel(self.verbs.key("parked_known"), "t@1")
        self.verbs.sweep(knows=("r@1",))
        return ""

    def _retire(self) -> str:
        if self.place == "ended":
            self.verbs.set_score("retire", "m", 1)
        self.verbs.retire()
        return ""
