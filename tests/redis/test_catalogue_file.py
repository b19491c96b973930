"""Rows of a file become the catalogue only where there never was one, and never in the place of a live worker's."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from backend_loop.missions.device_control import DeviceControl
from shared import catalogue_file, keys
from shared.catalogue import Catalogue
from shared.catalogue_file import packed, publish
from shared.redis import Link
from tests.redis.scripts_client import Verbs

KIND = "device.control@1"
ROWS = {KIND: DeviceControl.definition.row().model_dump_json().encode(), "test.unborn@3": b"{}"}


@pytest.fixture
async def link(any_redis_url: str) -> AsyncIterator[Link]:
    link = await Link(any_redis_url).open(wait_s=30)
    yield link
    await link.close()


async def test_an_empty_redis_takes_them_and_foregrounds_see_them(link: Link) -> None:
    assert await publish(link, ROWS)
    catalogue = Catalogue()
    assert await catalogue.refresh(link)
    assert catalogue.find("device.control") is not None
    assert not await publish(link, ROWS)
    assert not await catalogue.refresh(link)


async def test_they_go_like_all_rows_that_no_worker_announces(link: Link, verbs: Verbs) -> None:
    await publish(link, ROWS)
    await link.call("ZADD", keys.CATALOGUE_SEEN, "XX", 1, "test.unborn@3")
    await link.run("announce", keys.prefix(0), 86_400_000)
    assert verbs.redis.hkeys(keys.CATALOGUE) == [KIND.encode()]
    assert verbs.redis.zcard(keys.CATALOGUE_SEEN) == 1


async def test_a_catalogue_that_was_there_is_left_alone_even_when_all_its_rows_have_gone(link: Link) -> None:
    await link.run("announce", keys.prefix(0), 86_400_000, "a.b@1", "{}")
    await link.call("DEL", keys.CATALOGUE, keys.CATALOGUE_SEEN)
    assert not await publish(link, ROWS)
    assert await link.call("EXISTS", keys.CATALOGUE) == 0


async def test_a_worker_that_comes_in_between_wins(link: Link) -> None:
    await link.call("HSET", keys.CATALOGUE, KIND, b"its own")
    await link.call("ZADD", keys.CATALOGUE_SEEN, 7, KIND)
    assert await publish(link, ROWS)
    assert await link.call("HGET", keys.CATALOGUE, KIND) == b"its own"
    assert await link.call("ZSCORE", keys.CATALOGUE_SEEN, KIND) == b"7"


async def test_what_was_cut_halfway_is_finished_by_the_next_one(link: Link) -> None:
    await link.call("ZADD", keys.CATALOGUE_SEEN, 7, KIND)
    assert await publish(link, ROWS)
    assert await link.call("HLEN", keys.CATALOGUE) == 2


async def test_no_file_is_no_write(link: Link) -> None:
    assert not await publish(link, {})
    assert await link.call("EXISTS", keys.CATALOGUE_REV) == 0


def test_a_file_is_read_as_it_was_packed_fields_of_later_releases_included(tmp_path: Path) -> None:
    rows = [DeviceControl.definition.row().model_dump(mode="json") | {"of_tomorrow": 1}]
    file = tmp_path / "catalogue.json"
    file.write_bytes(packed(rows))
    assert b'"of_tomorrow":1' in catalogue_file.read(file)[KIND]
