"""The author's test kit: missions on a bench, in one process, without Redis or network, in plain pytest.

    from backend_loop.testing import Bench, down, lost

    def test_a_parcel_is_paid_once() -> None:
        bench = Bench(Parcel, outside={"payment/orders": [down(), lost({"id": "p-1"})], "shipping/*": {}})
        mission = bench.run({"address": "Long Street 1"})  # until only the test can go on
        mission.event("PAID", {"amount": 12}).run()
        assert mission.status == "SUCCEEDED", mission.told()
        assert [call.path for call in mission.effects] == ["payment/orders", "shipping/parcels"]

        for killed in bench.killed_everywhere({"address": "nowhere"}, then=lambda one: one.event("PAID")):
            assert (killed.status, killed.undone) == ("FAILED", ["PAYING"]), killed.told()

Start at `Bench`. `Trial` and `View` say what may be said to a mission and looked at, `Script` and `Home` what answers
it, `Kill` where its workers die. `Bench.replay` and `Bench.resume` take a file of ``dualloop missions export``.

Real are the machine, the runner, the toolbox, what spawns, and the clients of services, devices and the model. In
memory is the shard, with the guards of the scripts: owner, fence, rev, unread entries, a newer command, targets, known
entries. Time is skipped as soon as everything waits; a call takes a millisecond. Chance is the same every time. A
worker that is killed is gone from one instruction to the next: no ``finally`` of it runs.

What it has not, so that it stays with tests on the real stack:

- permits, breakers, retry budgets and concurrency: every handler may begin at once
- lanes, pools, tenants and other missions: there is one root and its family. A bulk mission is never asked for its
  slot; targets are held against the family only; a newer command is there when the test says so
- two workers at a time, a lease that is lost while its handler goes on, a worker that drains, a suspect alone in its
  process: workers of the kit die, and the next one comes when the lease has run out
- Redis that is away, full or frozen, or loses an answer
- processes: handlers with ``runs="process"`` run in a thread of this one. A thread that is at work when its worker is
  killed goes on to its end, and while a handler has a thread at work or a socket open, time flows as outside
- the clock of others: ``time.time()`` and ``datetime.now()`` are the real ones; ``shared.clock.now_ms()`` is the kit's
- what handlers do by themselves, without their tools: files, databases and requests of their own are real
- the payloads of children that are scripted, which nobody checks; how far a handler is between its commits
- the door beyond schema and defaults: idempotency keys, sockets, schedules, retention, more than one shard
"""

from backend_loop.testing.bench import Bench
from backend_loop.testing.door import RefusedError
from backend_loop.testing.ends import Ends, cancelled, failed, never, succeeded
from backend_loop.testing.exported import ExportError
from backend_loop.testing.faults import Answers, Call, down, garbage, ignored, lost, meanwhile, refused, slow
from backend_loop.testing.home import Home
from backend_loop.testing.points import Kill
from backend_loop.testing.replaying import Replayed
from backend_loop.testing.script import Script, UnscriptedError
from backend_loop.testing.trial import EndedError, Trial
from backend_loop.testing.world import NeverEndsError

__all__ = [
    "Answers",
    "Bench",
    "Call",
    "EndedError",
    "Ends",
    "ExportError",
    "Home",
    "Kill",
    "NeverEndsError",
    "RefusedError",
    "Replayed",
    "Script",
    "Trial",
    "UnscriptedError",
    "cancelled",
    "down",
    "failed",
    "garbage",
    "ignored",
    "lost",
    "meanwhile",
    "never",
    "refused",
    "slow",
    "succeeded",
]
