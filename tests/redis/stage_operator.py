"""Clients and operators, in the random search: every verb of control, priorities, replay, and what workers ask for."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from tests.redis import items
from tests.redis.scripts_client import FAR, New, Said
from tests.redis.stage_base import Base, Hand, Worker

LIMITS: Final[Mapping[str, int]] = {"type:t": 1, "dep:x": 1}


class Operators(Base):
    """What people, and admission, do to both shards."""

    def _accept(self, mission: tuple[str, str, str, str], *, copies: int) -> None:
        type_, priority, target, aspect = mission
        task_id = f"m{self.accepted}"
        self.accepted += 1
        attended = priority == "bulk"
        child = self.accepted % 3 == 0
        latest = f"{target}:{aspect}" if target and aspect and not child else ""
        watcher = "" if attended else "front"
        item = New(task_id, type_, lane=f"{priority}:default:a", target=target, watcher=watcher, latest=latest)
        item = replace(item, root="root parent 1 77", deadline_ms=FAR) if child else item
        if attended:
            self.verbs.attend(task_id)
            self.model.attended[task_id] = False
        expected = [self.model.accept(task_id, type_, priority, target, latest, child=child) for _ in range(copies)]
        assert self.verbs.accept(*[item] * copies) == expected
        self._order(task_id)

    def _order(self, task_id: str) -> None:
        order = int(self.verbs.record(task_id)["order"])  # it may leave gaps
        assert order >= self.model.order
        self.model.order = self.model.missions[task_id].order = order

    def _control(self, task_id: str, verb: str, entry_id: str, run: int | None = None) -> None:
        """A verb of control; entries of events are their ids; `run` is that which a child's end is about."""
        entry = entry_id if verb == "event" else items.entry(verb, id=entry_id)
        count = len(self.model.missions[task_id].unread) if task_id in self.model.missions else 0
        expected = self.model.control(task_id, verb, entry_id, entry, run)
        self._controlled(task_id, verb, expected)
        note, about = items.note(f"{verb}d"), "" if run is None else run
        answer = self.verbs.control(task_id, verb, entry_id, entry, reason="requested", note=note, run=about)
        assert answer == expected
        m = self.model.missions.get(task_id)
        if m is not None and len(m.unread) > count:
            self.posts(task_id, entry)
        if m is not None:
            self.a_run_is_over(m)

    def _controlled(self, task_id: str, verb: str, said: Said) -> None:
        self.say(f"control {said.word}")
        if said.word == "OK":
            self.say(f"{verb}, then {self.at(task_id)}")

    def _prioritize(self, task_id: str, priority: str) -> None:
        expected = self.model.prioritize(task_id, priority)
        assert self.verbs.prioritize(task_id, priority) == expected
        self.say(f"priority in {self.at(task_id)}")

    def _replay(self, task_id: str, start: str, key: str) -> None:
        word, run = self.model.replay(task_id, start, key)
        assert self.verbs.replay(task_id, start, key) == (word, run)
        self.say(f"replay {word}")
        if word == "OK":
            self._order(task_id)

    def _discard(self, task_id: str) -> None:
        expected = self.model.discard(task_id)
        assert self.verbs.discard(task_id) == expected
        self.say(f"discard {expected}")

    def _permit(self, worker: Worker, number: int) -> None:
        """The same scopes for one run of a handler; who gets none may wait for one, or not."""
        for hand in [one for one in worker.hands.values() if one.pending is None][: 1 + number % 2]:
            hand.scopes = hand.scopes or (("type:t",), ("dep:x",), ("type:t", "dep:x"), ("type:t",))[number % 4]
            limits = {scope: LIMITS[scope] for scope in hand.scopes}
            expected = self.model.permit(worker.owner, hand.task_id, hand.fence, limits)
            told = {scope.replace(":", "__"): limit for scope, limit in limits.items()}
            assert self.verbs.permit(worker.owner, hand.task_id, hand.fence, **told) == expected
            self.say(f"permit {expected}")

    def _send_adopt(self, worker: Worker, solo: Worker, hand: Hand) -> str:
        expected = self.model.adopt(worker.owner, solo.owner, hand.task_id, hand.fence)
        assert self.verbs.adopt(worker.owner, solo.owner, hand.task_id, hand.fence) == expected
        self.say(f"adopt {expected}")
        return expected

    def _adopt(self, worker: Worker, number: int) -> None:
        """A suspect goes on alone, under an owner of its own."""
        free = [one for one in self.solos if not one.hands]
        hands = [one for one in worker.hands.values() if one.pending is None]
        if hands and free and worker not in self.solos:
            solo, hand = free[0], hands[number % len(hands)]
            if solo.registered:
                solo.begin()
            expected = self._send_adopt(worker, solo, hand)
            if number % 2:  # once more, as when the answer was lost, perhaps with a process that was begun meanwhile
                self._send_adopt(worker, self.solos[number // 2 % len(self.solos)], hand)
            del worker.hands[hand.task_id]
            if expected == "OK":
                solo.registered = True
                solo.hands[hand.task_id] = hand
