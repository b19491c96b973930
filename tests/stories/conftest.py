"""A simulated home for the stories of one module; those that end it or change its folder start their own."""

from collections.abc import Iterator

import pytest

from tests.home import Home, running_home


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """One process for the module."""
    with running_home(tmp_path_factory.mktemp("home")) as home:
        yield home


@pytest.fixture
def home(shared_home: Home) -> Home:
    """That home, as it was at its first start."""
    shared_home.fresh()
    return shared_home
