"""One settings class for every process: environment prefix ``DUALLOOP_``, ``.env`` honoured."""

import re
from base64 import b64decode
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

Seconds = Annotated[float, Field(gt=0)]

HOST = re.compile(r"(?=.*[A-Za-z])[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?\.?")
"""A name, and no number."""


def parts(text: str) -> tuple[str, ...]:
    """What is given by comma."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


class Settings(BaseSettings):
    """Everything that may be configured, with its default and its unit."""

    model_config = SettingsConfigDict(
        env_prefix="DUALLOOP_", env_file=".env", extra="ignore", frozen=True, hide_input_in_errors=True
    )

    host: str = Field("127.0.0.1", description="address the foreground listens on")
    port: int = Field(8000, ge=0, le=65535, description="port of the foreground")
    url: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="base URLs of foregrounds for client and command line, by comma; unset: host and port above"
    )
    health_port: int = Field(0, ge=0, le=65535, description="health port of a background process; 0: a free one")
    home_host: str = Field("127.0.0.1", description="address the simulated home listens on")
    home_port: int = Field(0, ge=0, le=65535, description="port of the simulated home; 0: a free one")
    home_url: str | None = Field(
        None, description="base URL of the home, for adapter and hand switch; unset: that of the state folder"
    )
    mqtt_url: SecretStr | None = Field(
        None, description="mqtt:// or mqtts:// URL of the broker of the devices; unset: the broker of `up`, if it runs"
    )
    zigbee2mqtt_topic: Annotated[tuple[str, ...], NoDecode] = Field(
        ("zigbee2mqtt",), description="base topics of the Zigbee2MQTT bridges behind that broker, by comma"
    )
    discovery_prefix: str = Field(
        "homeassistant", description="topic under which devices announce themselves as Home Assistant wants it"
    )
    mqtt_port: int = Field(0, ge=0, le=65535, description="port of the MQTT broker of `up`, on loopback; 0: a free one")
    home_file: Path | None = Field(
        None, description="inventory of the home, which people edit while it runs; unset: home.json, in state_dir"
    )
    outside_host: str = Field("127.0.0.1", description="address the demonstration's outside services listen on")
    outside_port: int = Field(0, ge=0, le=65535, description="port of these services; 0: a free one")
    outside_url: str | None = Field(
        None, description="base URL of the outside services that missions call; unset: that of the state folder"
    )
    model_url: str | None = Field(
        None, description="base URL of an OpenAI-compatible model, with its /v1; unset: the demonstration's, if it runs"
    )
    model_name: str | None = Field(None, description="which of its models; unset: none is named")
    model_key: SecretStr | None = Field(None, description="key that it wants; never logged")
    webhook_secret: SecretStr | None = Field(
        None, description="whsec_… to sign webhooks with; while it is changed the new and the old one, by comma"
    )
    webhook_allow: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="hosts, addresses and CIDRs within the own network that webhooks may go to, by comma"
    )
    state_dir: Path = Field(
        Path(".dualloop"), description="folder of the embedded Redis, the home, the outside services and process files"
    )
    files_dir: Path | None = Field(
        None, description="folder of the files that missions make; one for all processes; unset: files, in state_dir"
    )
    max_files_bytes: int = Field(
        4 * 1024**3, ge=1024, description="bytes that the files of a mission may have together"
    )
    data_dir: Path = Field(Path("data"), description="folder of the files that missions may read: sources of `etl.run`")
    speech_engine: Literal["auto", "wyoming", "openai", "whisper", "sphinx"] = Field(
        "auto", description="what turns speech into text; auto: the first of these that is configured, sphinx always is"
    )
    wyoming_url: str | None = Field(None, description="tcp://host:port or unix:///path of a Wyoming speech server")
    speech_url: str | None = Field(
        None, description="base URL of an OpenAI-compatible speech server, with its /v1: audio/transcriptions is there"
    )
    speech_model: str | None = Field(None, description="which of the speech server's models; unset: whisper-1, or none")
    speech_key: SecretStr | None = Field(None, description="key that the speech server wants; never logged")
    whisper_dir: Path | None = Field(
        None, description="folder of faster-whisper's weights; needs the extra dualloop[whisper]; nothing is downloaded"
    )
    speech_processes: int = Field(2, ge=1, description="child processes a worker listens in, at most")
    speech_s: Seconds = Field(30.0, description="longest recording that is listened to")
    max_audio: int = Field(4 * 1024 * 1024, ge=1, description="bytes of a recording")
    audio_kept: int = Field(
        256 * 1024 * 1024,
        ge=1,
        description="bytes of all recordings that wait in Redis to be understood; one counts for 64 KiB at least",
    )
    voice_sessions: int = Field(
        32, ge=1, description="people that may speak to one foreground at a time, and that one worker listens to"
    )
    audio_memory: float = Field(
        0.8,
        gt=0,
        le=1,
        description="share of Redis' maxmemory beyond which no recording is taken, but commands are",
    )
    database: str | None = Field(
        None,
        description="sqlite:/// URL of the database that `etl.run` loads into and `report.export` reads; "
        "unset: data.sqlite, in state_dir",
    )
    redis_url: str | None = Field(None, description="redis://, rediss:// or unix://; unset: the embedded Redis of `up`")
    redis_server: Path | None = Field(None, description="program of the embedded Redis; unset: the bundled one")
    catalogue: Path | None = Field(
        None,
        description="file of `dualloop types export`: the types a foreground knows where no worker has announced any",
    )
    missions: Annotated[tuple[str, ...], NoDecode] = Field((), description="import paths of mission modules, by comma")
    pools: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="pools this worker serves, by comma; unset: those of all types that it knows"
    )
    shards: int = Field(1, ge=1, le=1024, description="shards of the fleet; fixed at its first start")

    slots: int = Field(100, ge=1, description="missions a worker runs at a time")
    urgent_slots: int = Field(4, ge=0, description="further slots kept for urgent missions")
    tenant_concurrency: int = Field(0, ge=0, description="handlers of one tenant that run at a time; 0: any number")
    lease_s: Seconds = Field(6.0, description="lease of a worker on its missions")
    drain_s: Seconds = Field(20.0, description="grace of a stop before handlers are cut")
    retention_s: Seconds = Field(86_400.0, description="how long a result is kept")
    dead_retention_s: Seconds = Field(1_209_600.0, description="how long a dead letter is kept")
    audit_s: Seconds = Field(1.0, description="pause between two steps of the audit of a shard")
    schedules: int = Field(10_000, ge=0, description="schedules there may be")
    stuck_s: Seconds = Field(
        60.0, description="how long a vital loop may be stuck while Redis is there, before its process ends itself"
    )
    pause_limit_s: Seconds = Field(86_400.0, description="how long a pause may outlast the mission's deadline")
    park_limit_s: Seconds = Field(3_600.0, description="how long a mission waits for a worker that knows its type")
    deadline_s: Seconds = Field(300.0, description="deadline of a command that names none, unless its type does")
    cut_grace_s: Seconds = Field(5.0, description="how long a cut handler in a thread or a process may take to end")
    processes: int = Field(4, ge=1, description="child processes a worker runs handlers in, at most")
    process_runs: int = Field(1_000, ge=1, description="handlers that such a process runs before it is replaced")
    process_idle_s: Seconds = Field(60.0, description="how long such a process is kept without work")
    max_body: int = Field(256 * 1024, ge=1, description="bytes of a command's body")
    max_depth: int = Field(64, ge=1, description="nesting of a command's JSON")
    max_wait_s: Seconds = Field(30.0, description="longest long-poll")
    max_output: int = Field(
        1024 * 1024, ge=1024, description="bytes that a step's context, result and events may have together"
    )
    max_transitions: int = Field(10_000, ge=1, description="transitions a mission may have before it is failed")
    redis_timeout_s: Seconds = Field(2.0, description="how long an answer of Redis may take before the link is dropped")

    disconnect_grace_s: Seconds = Field(
        5.0,
        description="how long nobody watches before a command with on_disconnect cancel is cancelled; "
        "a foreground that was killed counts as a watcher for another minute",
    )
    ws_frames: int = Field(1_000, ge=1, description="frames that may wait for a slow reader of a socket")
    ws_bytes: int = Field(1024 * 1024, ge=1, description="characters of such frames")
    ws_watches: int = Field(10_000, ge=1, description="missions that one socket may watch at a time")

    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        ("localhost", "127.0.0.1", "[::1]"), description="Host header values served, by comma; * for all"
    )
    allowed_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="further Origin values that may open sockets, by comma; the own host always may"
    )
    log_format: Literal["auto", "terminal", "json"] = Field("auto", description="auto: terminal on a TTY, else json")
    log_level: str = Field("info", description="debug, info, warning or error")
    otlp_endpoint: str | None = Field(None, description="OTLP/HTTP base URL for traces; unset: tracing is off")

    @field_validator(
        "url",
        "missions",
        "pools",
        "allowed_hosts",
        "allowed_origins",
        "webhook_allow",
        "zigbee2mqtt_topic",
        mode="before",
    )
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return parts(value)
        return value

    @field_validator("database")
    @classmethod
    def _spoken(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith("sqlite:///"):
            raise ValueError("only SQLite is spoken: write sqlite:////absolute/path.sqlite")
        return value

    @field_validator("zigbee2mqtt_topic", "discovery_prefix")
    @classmethod
    def _is_topic(cls, value: tuple[str, ...] | str) -> tuple[str, ...] | str:
        for topic in (value,) if isinstance(value, str) else value:
            if not topic or {"+", "#"} & {*topic} or topic.strip("/") != topic:
                raise ValueError(f"{topic!r} is no topic: write words with / between them, without + and #")
        return value

    @field_validator("webhook_secret")
    @classmethod
    def _is_key(cls, value: SecretStr | None) -> SecretStr | None:
        for secret in parts(value.get_secret_value()) if value is not None else ():
            try:
                size = len(b64decode(secret.removeprefix("whsec_"), validate=True))
            except ValueError:
                size = 0
            if not (secret.startswith("whsec_") and 24 <= size <= 64):
                raise ValueError("not whsec_ and 24 to 64 bytes in base64: make one with openssl rand -base64 32")
        return value

    @field_validator("webhook_allow")
    @classmethod
    def _is_somewhere(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for entry in value:
            if HOST.fullmatch(entry) is None:
                try:
                    ip_network(entry)
                except ValueError as error:
                    raise ValueError(f"{error}: give hosts, addresses and CIDRs by comma") from None
        return value

    @property
    def webhook_secrets(self) -> tuple[str, ...]:
        """Each by itself."""
        return () if self.webhook_secret is None else parts(self.webhook_secret.get_secret_value())

    @property
    def files_path(self) -> Path:
        """Folder of the files that missions make, absolute."""
        return (self.files_dir or self.state_dir / "files").absolute()

    @property
    def home_path(self) -> Path:
        """The file of the home's inventory, absolute."""
        return (self.home_file or self.state_dir / "home.json").absolute()

    @property
    def database_url(self) -> str:
        """URL of the database, absolute unless it was given otherwise."""
        return self.database or f"sqlite:///{(self.state_dir / 'data.sqlite').absolute()}"

    def opened(self) -> dict[str, Any]:
        """As JSON carries it, secrets as they are: for the pipe to a child of this process, and nothing else."""
        secrets = {name: value.get_secret_value() for name, value in self if isinstance(value, SecretStr)}
        return self.model_dump(mode="json") | secrets

    @property
    def renew_s(self) -> float:
        """Renewal interval R: at most a third of the lease (P7)."""
        return self.lease_s / 3

    @property
    def poll_s(self) -> float:
        """Slow poll p: at most a sixth of the lease, so that L + 2R + 2p <= 2L (P7)."""
        return self.lease_s / 6
