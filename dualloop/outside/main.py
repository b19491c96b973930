"""The outside services as a process."""

import contextlib

from dualloop.address import local_url
from dualloop.outside.ledger import Ledger
from dualloop.outside.server import outside_app
from dualloop.serving import heed_signals, serve
from shared import logs
from shared.settings import Settings


def run(settings: Settings) -> None:
    """Serve them until SIGTERM or SIGINT, then exit 0; their memory is ``<state_dir>/outside/``. See `serve`.

    Raises:
        OutsideTaken: others run on this state folder.
        OSError: the configured port is taken.
    """
    heed_signals()
    logs.configure(settings, "outside")
    front = settings.url[0] if settings.url else local_url(settings.host, settings.port)
    with contextlib.closing(Ledger(settings.state_dir / "outside")) as ledger:
        app = outside_app(ledger, settings.allowed_hosts, front)
        serve(app, "outside", settings.outside_host, settings.outside_port, settings.state_dir)
