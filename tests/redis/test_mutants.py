"""Take a guard out, and the test that is named for it fails: so no guard goes unnoticed, and no test is idle."""

from collections.abc import Iterator

import pytest
import redis

from tests import waiting
from tests.redis.mutants import MUTANTS, Mutant, header, told
from tests.redis.scripts_client import Verbs


@pytest.fixture
def broken(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Verbs]:
    monkeypatch.setattr(waiting, "WITHIN_S", 1.0)  # what is waited for is to stay away
    with redis.Redis.from_url(redis_url) as client:
        yield Verbs(client)


@pytest.mark.parametrize(
    "mutant", [pytest.param(one, id=f"{one.script}: {one.test} {n}") for n, one in enumerate(MUTANTS)]
)
def test_a_guard_that_is_taken_out_is_missed(broken: Verbs, mutant: Mutant) -> None:
    test, broken.scripts = mutant.find(), mutant.scripts()
    try:
        test(broken, **mutant.arguments)
    except Exception:  # noqa: BLE001  however the test fails
        return
    pytest.fail(f"test_{mutant.file}.py: {mutant.test} passes without {mutant.old!r} in {mutant.script}.lua")


@pytest.mark.parametrize("script", sorted({one.script for one in MUTANTS}))
def test_the_header_of_a_script_names_the_files_that_guard_it(script: str) -> None:
    assert told(script) == header(script), "python -m tests.redis.mutants prints the headers"
