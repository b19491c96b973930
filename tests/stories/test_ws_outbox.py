"""What waits for a reader is bounded; only what the writer cannot get rid of makes the reader slow."""

import asyncio
from collections.abc import Iterable

import pytest

from frontend_loop import outbox
from frontend_loop.outbox import Outbox, Parcel
from tests.waiting import eventually

MISSION = "m"


class Reader:
    """A writer to a reader who may stop reading; knows whether it was found to be slow."""

    def __init__(self, frames: int = 10, size: int = 1000) -> None:
        self.slow = 0
        self.box: Outbox[str] = Outbox(frames, size, self._judge)
        self.got: list[str] = []
        self.reads = asyncio.Event()
        self.reads.set()

    def _judge(self) -> None:
        self.slow += 1

    def put(self, *texts: str) -> None:
        for text in texts:
            self.box.put(Parcel(text))

    async def write(self) -> None:
        while (parcel := await self.box.first()) is not None:
            await self.reads.wait()
            self.got.append(parcel.text)
            self.box.sent(parcel)


async def test_much_at_once_is_no_fault_of_a_reader_who_reads() -> None:
    reader = Reader(frames=10)
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(reader.write())
        await asyncio.sleep(0)
        reader.put(*map(str, range(500)))
        await eventually(lambda: len(reader.got) == 500)
        assert reader.slow == 0
        writing.cancel()


@pytest.mark.parametrize(("frames", "size", "texts"), [(10, 10_000, ["x"] * 12), (100, 1000, ["x" * 400] * 4)])
async def test_a_reader_who_stops_is_slow_beyond_either_bound(frames: int, size: int, texts: list[str]) -> None:
    reader = Reader(frames, size)
    reader.reads.clear()
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(reader.write())
        reader.put(*texts[:-2])
        for _ in range(5):
            await asyncio.sleep(0)
        assert reader.slow == 0
        reader.put(*texts[-2:])
        await eventually(lambda: reader.slow == 1)
        writing.cancel()


async def test_room_is_when_less_than_half_is_taken() -> None:
    reader = Reader(frames=10)
    reader.put(*map(str, range(8)))
    waiting = asyncio.ensure_future(reader.box.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(reader.write())
        await waiting
        writing.cancel()


async def test_a_close_comes_after_what_waits_unless_that_is_dropped() -> None:
    reader = Reader()
    reader.put("a", "b")
    reader.box.close(1012, "going")
    reader.put("too late")
    reader.box.close(4408, "only the first counts")
    await reader.write()
    assert reader.got == ["a", "b"]
    assert reader.box.end == (1012, "going")
    dropped = Reader()
    dropped.put("a", "b")
    dropped.box.close(4408, "slow", drop=True)
    await dropped.write()
    assert dropped.got == []
    await dropped.box.room()


async def test_the_cursor_is_what_the_client_has_when_it_learns_of_it() -> None:
    """The head is just leaving: it comes before the close that tells the cursor."""
    box: Outbox[str] = Outbox(10, 1000, lambda: None)
    assert box.cursor() is None
    box.put(Parcel("pong"))
    assert box.cursor() is None
    parcels = [Parcel("ack", MISSION), Parcel("event", MISSION, 1), Parcel("progress", MISSION, 1, passing=True)]
    parcels.append(Parcel("event", MISSION, 2))
    parcels.append(Parcel("result", MISSION, 2, final=True))
    for parcel in parcels:
        box.put(parcel)
    cursors = []
    while (head := box.head) is not None:
        cursors.append((head.text, box.cursor()))
        box.sent(head)
    assert cursors == [
        ("pong", (MISSION, 0)),
        ("ack", (MISSION, 0)),
        ("event", (MISSION, 1)),
        ("progress", (MISSION, 1)),
        ("event", (MISSION, 2)),
        ("result", (MISSION, 2)),
    ]


@pytest.mark.parametrize(
    ("limit_s", "waits", "stuck"),
    [
        (-1.0, [], False),
        (-1.0, [Parcel("a")], True),
        (60.0, [Parcel("a")], False),
        (-1.0, [Parcel("1 of 2", MISSION, passing=True)], False),
        (-1.0, [Parcel("1 of 2", MISSION, passing=True), Parcel("a")], True),
    ],
)
async def test_nothing_leaves_for_long(
    monkeypatch: pytest.MonkeyPatch, limit_s: float, waits: list[Parcel[str]], stuck: bool
) -> None:
    monkeypatch.setattr(outbox, "STUCK_S", limit_s)
    box: Outbox[str] = Outbox(10, 1000, lambda: None)
    for parcel in waits:
        box.put(parcel)
    assert box.stuck is stuck


# Progress is passing: the newest is enough


def passing(*texts: str, about: str = MISSION) -> Iterable[Parcel[str]]:
    return [Parcel(text, about, passing=True) for text in texts]


async def test_newer_progress_takes_the_place_of_what_waits_and_comes_after_what_came_meanwhile() -> None:
    reader = Reader()
    for parcel in (*passing("1"), Parcel("event", MISSION, 1), *passing("x", about="other"), *passing("2", "3")):
        reader.box.put(parcel)
    reader.box.put(Parcel("result", MISSION, 1, final=True))
    reader.box.close(1012, "going")
    await reader.write()
    assert reader.got == ["event", "x", "3", "result"]


async def test_progress_that_is_just_leaving_leaves_once_and_loses_nobodys_place() -> None:
    reader = Reader()
    reader.reads.clear()
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(reader.write())
        for parcel in passing("1"):
            reader.box.put(parcel)
        await eventually(lambda: reader.box.head is not None)
        await asyncio.sleep(0)  # the writer has it
        reader.box.put(Parcel("event", MISSION, 7))
        for parcel in passing("2", "3"):
            reader.box.put(parcel)
        assert reader.box.cursor() == (MISSION, 6)
        reader.reads.set()
        await eventually(lambda: len(reader.got) == 3)
        assert reader.got == ["1", "event", "3"]
        assert reader.box.head is None
        writing.cancel()


async def test_progress_alone_makes_nobody_slow_and_costs_one_frame_a_mission() -> None:
    reader = Reader(frames=10, size=1000)
    for number in range(5000):
        for parcel in passing(f"{number} {'x' * 200}", about=f"m{number % 50}"):
            reader.box.put(parcel)
    for _ in range(5):
        await asyncio.sleep(0)
    assert reader.slow == 0
    assert len(reader.box._parcels) == 50
    await asyncio.wait_for(reader.box.room(), 60)
    reader.put(*map(str, range(12)))
    await eventually(lambda: reader.slow == 1, what="what has to be sent counts as ever")


async def test_how_long_a_reader_is_stuck_counts_from_what_has_to_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "STUCK_S", 0.5)
    box: Outbox[str] = Outbox(10, 1000, lambda: None)
    box._moved_at -= 3600
    for parcel in passing("1"):
        box.put(parcel)
    box.put(Parcel("event", MISSION, 1))
    assert box.stuck is False
