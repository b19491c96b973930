"""A batch at the door, before anything of it is taken."""

import asyncio
import tracemalloc
from typing import Any, cast

import pytest

from frontend_loop.ingress.batch import Batches
from shared.errors import Problem
from shared.settings import Settings


@pytest.mark.parametrize(
    ("content_type", "raw"),
    [("application/x-ndjson", b"1\n" * 200_000), ("application/json", b"[" + b"1," * 200_000 + b"1]")],
)
def test_one_that_is_refused_for_its_number_takes_little_room(content_type: str, raw: bytes) -> None:
    batches = Batches(cast("Any", None), Settings(_env_file=None))
    tracemalloc.start()
    try:
        with pytest.raises(Problem) as refused:
            asyncio.run(batches.take(raw, content_type, None))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert refused.value.code == "too_large"
    assert most < 20 * len(raw), "nothing is made of each command before they are counted"
