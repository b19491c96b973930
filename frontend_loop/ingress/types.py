"""Mission types over HTTP: what live workers know, as data and as drawings."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Header, Query
from pydantic_core import to_json
from starlette.responses import Response

from frontend_loop.diagram import diagram
from frontend_loop.diagram_mermaid import mermaid
from frontend_loop.diagram_svg import POLICY, svg
from shared.catalogue import Catalogue, Row
from shared.errors import Problem

Format = Literal["json", "svg", "mermaid"]

MEDIA: Final[dict[Format, str]] = {
    "json": "application/json",
    "svg": "image/svg+xml",
    "mermaid": "application/vnd.mermaid",
}
"""In the order in which they are preferred where a client likes them as well."""

MOST_KNOWN: Final = 20
"""Types that are named to who asked for another."""


@dataclass(frozen=True, slots=True)
class Graph:
    """The drawings of a row."""

    row: Row
    mermaid: str
    svg: str


class Graphs:
    """Draws rows, each once."""

    def __init__(self) -> None:
        """Nothing is drawn yet."""
        self._drawn: dict[str, Graph] = {}

    async def of(self, row: Row) -> Graph:
        """Its drawings; made in a thread, since a large machine takes some hundredths of a second."""
        known = self._drawn.get(row.kind)
        if known is None or known.row is not row:
            known = self._drawn[row.kind] = await asyncio.to_thread(_draw, row)
        return known


def _draw(row: Row) -> Graph:
    drawn = diagram(row)
    return Graph(row, mermaid(drawn), svg(drawn))


def types_router(catalogue: Catalogue) -> APIRouter:
    """The routes under ``/v1/mission-types``."""
    routes = APIRouter(prefix="/v1/mission-types", tags=["types"])
    graphs = Graphs()

    @routes.get("")
    async def mission_types() -> dict[str, Any]:
        """What live workers know, each type in its newest version."""
        return {"mission_types": [_listed(row, catalogue.versions(row.type)) for row in catalogue.newest()]}

    @routes.get("/{type_}", responses={200: {"content": {media: {} for media in MEDIA.values()}}})
    async def mission_type(
        type_: str,
        version: int | None = None,
        format_: Annotated[Format | None, Query(alias="format", description="default: as Accept says")] = None,
        accept: Annotated[str, Header()] = "*/*",
    ) -> Response:
        """The payload's JSON Schema, states and transitions of a type, and a graph of them; or a drawing alone."""
        entry = catalogue.find(type_, version)
        if entry is None:
            raise Problem("not_found", _unknown(type_, version, catalogue))
        graph, wanted = await graphs.of(entry.row), format_ or preferred(accept)
        head = {"vary": "Accept", "x-content-type-options": "nosniff"}
        if wanted == "json":
            more = {"versions": catalogue.versions(type_), "graph": {"mermaid": graph.mermaid, "svg": graph.svg}}
            return Response(to_json(entry.row.model_dump(mode="json") | more), 200, head, MEDIA["json"])
        if wanted == "svg":
            return Response(graph.svg, 200, head | {"content-security-policy": POLICY}, MEDIA["svg"])
        return Response(graph.mermaid, 200, head, MEDIA["mermaid"])

    return routes


def preferred(accept: str) -> Format:
    """The format that an Accept header likes best; drawings only where they are named, not by a ``*``."""
    likes: dict[str, float] = {}
    for part in accept.lower().split(","):
        media, *parameters = (piece.strip() for piece in part.split(";"))
        quality = next((value for value in parameters if value.startswith("q=")), "q=1")
        try:
            likes[media] = float(quality[2:])
        except ValueError:
            continue
    wild = max(likes.get("*/*", 0.0), likes.get("application/*", 0.0))
    liked: dict[Format, float] = {
        name: likes.get(media, wild if name == "json" else 0.0) for name, media in MEDIA.items()
    }
    best = max(liked, key=lambda name: liked[name])
    return best if liked[best] > 0 else "json"


def _unknown(type_: str, version: int | None, catalogue: Catalogue) -> str:
    """What is known instead: other versions of the type, or other types."""
    if versions := catalogue.versions(type_):
        return f"no live worker knows {type_} in version {version}; known: {', '.join(map(str, versions))}"
    known = ", ".join(row.type for row in catalogue.newest()[:MOST_KNOWN])
    return f"no live worker knows {type_}" + (f"; known: {known}" if known else "")


def _listed(row: Row, versions: list[int]) -> dict[str, Any]:
    return {
        "type": row.type,
        "version": row.version,
        "versions": versions,
        "description": row.description,
        "pool": row.pool,
        "priority": row.priority,
        "target": row.target,
        "states": list(row.states),
    }
