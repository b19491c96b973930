"""The sentence of a mission in a pool that no worker serves."""

from pathlib import Path

from tests.stories.operating import operated


async def test_who_waits_in_a_pool_that_nobody_serves_is_told_so(redis_url: str, tmp_path: Path) -> None:
    missions = "tests.missions.errand"
    async with operated(redis_url, tmp_path, DUALLOOP_MISSIONS=missions, DUALLOOP_POOLS="default") as hand:
        task_id = await hand.submit("test.spoken")
        told = (await hand.until(task_id, lambda mission: "pool" in mission["why"], "its pool"))["why"]
        assert "but no live worker serves its pool speech; start one with speech in its DUALLOOP_POOLS" in told
