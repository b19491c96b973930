"""The file of ``dualloop missions export``, read and checked."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json

from backend_loop.mission_type import MissionType
from shared.status import Status

FORMAT: Final = 1
"""Of the files that are understood here."""


class ExportError(ValueError):
    """A file that cannot be used; the sentence says why."""


class Event(BaseModel):
    """A line of the log."""

    model_config = ConfigDict(extra="allow", frozen=True)

    seq: int
    at: str
    status: Status
    state: str
    data: Any = None


class Exported(BaseModel):
    """A mission as it stood when it was exported.

    Attributes:
        export: the format's version. product: of the installation.
        document: what its worker had written last: how far it was, and its context.
        log: its events; the oldest may lack.
        inbox: what it had been told and not read.
        result: its result document, if that was still there.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    export: int
    product: str
    exported_at: str
    type: str
    version: int
    task_id: str
    correlation_id: str
    status: Status
    state: str
    failed_in: str | None = None
    dead_letter: bool = False
    place: str
    run: int = 1
    key_run: int = 1
    deaths: int = 0
    rev: int = 0
    created_at: str
    started_at: str | None = None
    deadline: str
    latest: str | None = None
    envelope: dict[str, Any]
    envelope_base64: str | None = None
    document: dict[str, Any] = Field(default_factory=dict)
    progress: dict[str, Any] | None = None
    log: list[Event]
    inbox: list[dict[str, Any]] = Field(default_factory=list)
    result: dict[str, Any] | None = None

    @property
    def payload_version(self) -> int:
        """That of the payload in the envelope."""
        version = self.envelope.get("payload_version")
        return version if isinstance(version, int) else self.version

    @classmethod
    def read(cls, file: str | Path | Mapping[str, Any], definition: MissionType) -> Self:
        """Out of a file, or what was in one.

        Raises:
            ExportError: it is none, of another format, of another type, or of a version that is not upcast.
            OSError: it cannot be read.
        """
        try:
            content = dict(file) if isinstance(file, Mapping) else from_json(Path(file).read_bytes())
        except ValueError as error:
            raise ExportError(f"{file} is no JSON: {error}") from error
        if not isinstance(content, dict) or "export" not in content:
            raise ExportError(f"{file} is no file of `dualloop missions export`")
        if content["export"] != FORMAT:
            raise ExportError(f"it is in format {content['export']!r}, and this release reads {FORMAT}: export it anew")
        try:
            exported = cls.model_validate(content)
        except ValidationError as error:
            raise ExportError(f"it is damaged: {error}") from error
        if exported.envelope_base64 is not None or "unreadable" in exported.document:
            raise ExportError("its record was damaged: nobody can read its envelope, or how far it was")
        if exported.type != definition.type:
            raise ExportError(f"it is a {exported.type}, and this bench runs {definition.type}")
        if not definition.versions.oldest <= exported.payload_version <= definition.version:
            known = f"{definition.versions.oldest} to {definition.version}"
            raise ExportError(f"it is of version {exported.payload_version}, and {definition.type} takes {known}")
        return exported
