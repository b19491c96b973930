"""What a mission costs Redis: each script's µs per item, commands, and bytes while it waits and at its end."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

import redis
import uvloop
from pydantic_core import to_json

from backend_loop import document
from backend_loop.lease import Lease
from backend_loop.machine import Course, fold
from backend_loop.outcomes import Go, Signal, Wake
from backend_loop.redis_clock import RedisClock
from backend_loop.store import Claimed, Commit, Move, Store, prepare
from shared.redis import Link
from shared.settings import Settings
from shared.status import Status
from tests.benchmarks.figure import Benchmark, Row, Sample, Size
from tests.benchmarks.fill import open_door
from tests.benchmarks.stage import Stage
from tests.missions.plain import Five

MISSION: Final = Five.definition
COMMAND: Final = {"type": MISSION.type, "payload": {"entity": "light.living_room", "action": "on", "value": 80}}
FLEET: Final = (b"catalogue", b"fleet")
BATCHES: Final = (25, 1)
VERBS: Final = ("accept", "claim", "commit", "end")


def _measure(stage: Stage, size: Size) -> dict[str, Sample]:
    many, samples = (100 if size.quick else 500), dict[str, Sample]()
    for batch in BATCHES:
        stage.empty()
        counted = uvloop.run(_Course(stage.redis, batch, many).run(stage.url))
        for verb in VERBS:
            samples[f"cost-{verb}-{batch}"] = Sample(counted.us[verb])
        if batch == BATCHES[0]:
            samples["cost-commands"] = Sample(counted.commands)
            samples["cost-pending"] = Sample(counted.pending)
            samples["cost-finished"] = Sample(counted.finished)
    return samples


@dataclass
class _Counted:
    us: dict[str, float] = field(default_factory=dict)
    commands: float = 0.0
    pending: float = 0.0
    finished: float = 0.0


class _Course:
    """Takes missions of five states from accept to end, a batch at a time, through the product's own store."""

    def __init__(self, client: redis.Redis, batch: int, many: int) -> None:
        self._client, self._batch, self._many = client, batch, many
        self._counted = _Counted()
        self._settings = Settings(_env_file=None, pools=("default",))

    async def run(self, url: str) -> _Counted:
        link = await Link(url).open(wait_s=10)
        try:
            lease = Lease(0, self._settings.lease_s, lambda _owner: None)
            store = Store(link, 0, lease, self._settings, RedisClock())
            door, raw = await open_door(link), to_json(COMMAND)
            self._begin()
            for _ in range(self._many // self._batch):
                await asyncio.gather(*(door.accept(raw, "cli") for _ in range(self._batch)))
            self._took("accept")
            self._counted.pending = self._bytes()
            self._begin()
            claimed = [one for _ in range(self._many // self._batch) for one in await self._claim(store)]
            self._took("claim")
            await self._drive(store, claimed)
            self._counted.finished = self._bytes()
        finally:
            await link.close()
        return self._counted

    async def _claim(self, store: Store) -> Sequence[Claimed]:
        answer = await store.claim(self._batch, self._batch, f",{MISSION.kind},")
        if answer is None or len(answer[1]) != self._batch:
            raise RuntimeError(f"claim gave {answer} instead of {self._batch} missions")
        return answer[1]

    async def _drive(self, store: Store, claimed: Sequence[Claimed]) -> None:
        states, context = list(MISSION.states), Five.Context()
        course = fold(Course(states[0]), MISSION.plan, [Wake()], 0).course
        for rev, state in enumerate(states):
            signal: Signal = Go("done", result={"steps": rev + 1})
            reaction = fold(course, MISSION.plan, [signal], 0)
            last = reaction.course.status is Status.SUCCEEDED
            move: Move = "end" if last else "stay"
            text = document.write(reaction.course, context)
            self._begin()
            await self._commit(
                store,
                [prepare(one, reaction, rev=rev, consumed=0, move=move, document=text) for one in claimed],
            )
            self._took("end" if last else "commit", times=1 if last else len(states) - 1)
            course = reaction.course
            if not last and course.state == state:
                raise RuntimeError(f"{state} was not left")

    async def _commit(self, store: Store, commits: Sequence[Commit]) -> None:
        for start in range(0, len(commits), self._batch):
            answers = await asyncio.gather(*(store.commit(one) for one in commits[start : start + self._batch]))
            if any(answer.word != "written" for answer in answers):
                raise RuntimeError(f"commit answered {answers}")

    def _begin(self) -> None:
        self._client.config_resetstat()

    def _took(self, verb: str, times: int = 1) -> None:
        """Add what Redis did since `_begin`, per mission; the µs also per time that a mission passes here."""
        stats = cast("dict[str, dict[str, float]]", self._client.info("commandstats"))
        script = stats.pop("cmdstat_evalsha")
        self._counted.us[verb] = self._counted.us.get(verb, 0.0) + script["usec"] / self._many / times
        inside = sum(one["calls"] for name, one in stats.items() if not name.startswith("cmdstat_config"))
        self._counted.commands += (inside + script["calls"]) / self._many

    def _bytes(self) -> float:
        keys: Iterable[bytes] = self._client.scan_iter(b"dl:*", count=1000)
        own = [key for key in keys if not key.partition(b"}:")[2].startswith(FLEET)]
        with self._client.pipeline(transaction=False) as pipeline:
            for key in own:
                pipeline.memory_usage(key, samples=0)
            return float(sum(pipeline.execute())) / self._many


def _rows() -> tuple[Row, ...]:
    told = {"accept": "accept", "claim": "claim", "commit": "commit of a step", "end": "commit of the end"}
    return (
        *(
            Row(f"cost-{verb}-{batch}", f"script {told[verb]}, {batch} at a time", "µs/item")
            for verb in VERBS
            for batch in BATCHES
        ),
        Row("cost-commands", "commands of Redis, five states", "/mission"),
        Row("cost-pending", "memory, pending", "bytes/mission"),
        Row("cost-finished", "memory, five states finished", "bytes/mission"),
    )


COST = Benchmark("cost", _rows(), _measure)
