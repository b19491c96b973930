"""How a command writes a file: what goes wrong becomes one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dualloop.cli.output import clean
from dualloop.errors import Refusal


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Around all that is written there.

    Raises:
        Refusal: it cannot be written.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise  # it is not the system's: where the content was to come from does not answer
        raise Refusal(clean(f"{path} cannot be written: {error.strerror}.")) from error
