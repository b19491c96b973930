"""The simulated home as a process."""

import contextlib

from dualloop.errors import Refusal
from dualloop.home.house import House
from dualloop.home.server import home_app
from dualloop.home.store import Store
from dualloop.serving import heed_signals, serve
from shared import logs
from shared.clock import now_ms
from shared.mqtt import MqttUrl, MqttUrlError
from shared.settings import Settings


def run(settings: Settings) -> None:
    """Serve the home until SIGTERM or SIGINT, then exit 0; its memory is ``<state_dir>/home/``. See `serve`.

    Raises:
        HomeTaken: another home runs on this state folder.
        OSError: the configured port is taken.
        Refusal: the URL of the broker is none.
    """
    heed_signals()
    logs.configure(settings, "home")
    broker = None if settings.mqtt_url is None else settings.mqtt_url.get_secret_value()
    try:
        if broker is not None:
            MqttUrl.parse(broker)
    except MqttUrlError as fault:
        raise Refusal(f"DUALLOOP_MQTT_URL: {fault}.") from fault
    with contextlib.closing(Store(settings.state_dir / "home")) as store:
        app = home_app(House(store, now_ms), settings.allowed_hosts, broker)
        serve(app, "home", settings.home_host, settings.home_port, settings.state_dir)
