"""`etl.run`: a file into a table, chunk by chunk; and its three stages, each a mission type with a pool of its own.

The file is surveyed first: where each chunk begins, and how many rows it has. Then each chunk goes through extract,
transform (which cleans too) and load as a child mission per stage. A stage that is slow holds back those before it, so
what lies between them is bounded; `backend_loop.pipeline` says what begins next. Workers that are to run one stage
alone are told so by ``DUALLOOP_POOLS``: ``etl-extract``, ``etl-transform``, ``etl-load``.

Whatever dies, each good row is in the table once: a stage writes a whole file or none, and a chunk is loaded in one
transaction that says so. Each bad row is in the report, with its line, the reason and its text. What was loaded stays,
also where the run fails or is cancelled later; a replay loads the rest.
"""

import asyncio
import os
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar, Final

from pydantic import BaseModel
from pydantic_core import to_json

from backend_loop.database import connect, until_free
from backend_loop.etl import chunk_file, source
from backend_loop.etl.account import ROUND, Account, account
from backend_loop.etl.chunk_file import Item
from backend_loop.etl.job import Job
from backend_loop.etl.records import SourceError
from backend_loop.etl.rows import reading
from backend_loop.etl.survey import Piece, Survey, records
from backend_loop.etl.table import Table, TableError
from backend_loop.files import File
from backend_loop.mission import Mission, Nothing, state, steps
from backend_loop.outcomes import Fail, Go, Outcome, WaitForChildren
from backend_loop.pipeline import Line, Stage
from backend_loop.step_tools import StepTools
from backend_loop.toolbox import Toolbox
from shared.status import Priority

DAY_S: Final = 86_400.0
STAGE_S: Final = 300.0
"""What one chunk may take in one stage."""

EXTRACTED, TRANSFORMED = "extracted", "transformed"


class NotOfARunError(Exception):
    """A stage is spawned by an `etl.run`, whose files it reads and writes; nobody else can ask for one."""


def name_of(n: int, what: str) -> str:
    """Of a file between two stages."""
    return f"chunk-{n:04}.{what}"


class Chunk(BaseModel):
    """What a stage needs to know of a chunk; its rows are in files.

    Args:
        job: of the run.
        n: which chunk.
        piece: where it is in the source.
        columns: of a csv, those of its header.
        stamp: by which the source is known again.
        load: key under which the chunks are loaded.
    """

    job: Job
    n: int
    piece: Piece
    columns: tuple[str, ...]
    stamp: str
    load: str


Tools = StepTools[Chunk, Nothing]


class EtlExtract(Mission):
    """One chunk of an `etl.run`: read its records from the source."""

    type = "etl.extract"
    pool = "etl-extract"
    priority = Priority.BULK
    permanent = (SourceError, NotOfARunError)
    table = steps("EXTRACTING")
    Payload = Chunk

    @state("EXTRACTING", runs="process", timeout_s=STAGE_S)
    def extract(self, tools: Tools) -> Outcome:
        """The same records as the survey has seen, or none."""
        chunk = tools.payload
        file = _file(tools, EXTRACTED)
        with source.opened(tools.data, chunk.job.source, chunk.stamp) as (stream, _):
            found = records(stream, chunk.job, chunk.piece)
        return _written(file, chunk_file.extracted(reading(chunk.job, chunk.columns), found))


class EtlTransform(Mission):
    """One chunk of an `etl.run`: clean its rows, and make the table's columns of them."""

    type = "etl.transform"
    pool = "etl-transform"
    priority = Priority.BULK
    permanent = (NotOfARunError,)
    table = steps("TRANSFORMING")
    Payload = Chunk

    @state("TRANSFORMING", runs="process", timeout_s=STAGE_S)
    def transform(self, tools: Tools) -> Outcome:
        """What was rejected before is handed on too."""
        file, extracted = _file(tools, TRANSFORMED), chunk_file.read(_place(tools, EXTRACTED))
        return _written(file, chunk_file.transformed(tools.payload.job, extracted))


class EtlLoad(Mission):
    """One chunk of an `etl.run`: put its rows into the table, once."""

    type = "etl.load"
    pool = "etl-load"
    priority = Priority.BULK
    permanent = (TableError, NotOfARunError)
    table = steps("LOADING")
    Payload = Chunk

    @state("LOADING", runs="thread", acting=True, timeout_s=STAGE_S)
    def load(self, tools: Tools) -> Outcome:
        """In one transaction; whoever comes a second time finds the chunk in, and needs its files no more."""
        chunk = tools.payload
        extracted, transformed = _place(tools, EXTRACTED), _place(tools, TRANSFORMED)
        try:
            with closing(connect(tools.database)) as db:
                table = Table(db, chunk.job, chunk.load, chunk.stamp)
                tally = table.fill(chunk.n, chunk_file.read(transformed), chunk.piece.rows, tools.check)
        except sqlite3.OperationalError as error:
            return until_free(tools, error)
        for file in (extracted, transformed):
            file.unlink(missing_ok=True)
        return Go("done", result=tally._asdict())


def _place(tools: Tools, what: str) -> Path:
    """Where a file of this chunk lies: with those of the run."""
    if tools.envelope.source != "mission" or tools.envelope.parent is None:
        raise NotOfARunError(f"{tools.envelope.type} is a stage of etl.run: send that one")
    return tools.files.of(tools.envelope.parent) / name_of(tools.payload.n, what)


def _file(tools: Tools, what: str) -> File:
    """The same, to be written."""
    place = _place(tools, what)
    return tools.files.file(place.parent.name, place.name, tools.fence, tools.check)


def _written(file: File, items: Iterable[Item]) -> Go:
    """Begun anew, so that what an earlier try has left does not fill the disk."""
    with file.resume(0) as stream:
        tally = chunk_file.write(stream, items)
    file.publish()
    return Go("done", result=tally._asdict())


class EtlRun(Mission):
    """Extract rows from a CSV or JSON file, clean and transform them, and load them into a table of the database."""

    type = "etl.run"
    priority = Priority.BULK
    deadline_s = DAY_S
    permanent = (SourceError, TableError)
    table: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "SURVEYING": {"surveyed": "PREPARING"},
        "PREPARING": {"prepared": "MOVING"},
        "MOVING": {"moved": "TIDYING"},
        "TIDYING": {"tidied": "SUCCEEDED"},
    }

    class Payload(Job):
        """What is to be moved from where to where."""

    class Context(BaseModel):
        """The chunks, and what became of them.

        Attributes:
            load: key under which they are loaded.
            round: tells the children of one run of MOVING from those of a run before a replay.
        """

        survey: Survey = Survey()
        load: str = ""
        round: int = 0
        result: dict[str, Any] = {}

    @state("SURVEYING", runs="process", timeout_s=STAGE_S)
    def look(self, tools: StepTools[Payload, Context]) -> Outcome:
        """Where does each chunk begin? A worker that takes over goes on behind the last block."""
        survey, job = tools.context.survey, tools.payload
        with source.opened(tools.data, job.source, survey.stamp) as (stream, survey.stamp):
            size = os.fstat(stream.fileno()).st_size

            def kept() -> None:
                tools.progress(survey.offset, size, f"surveying, {survey.rows} rows so far")
                tools.checkpoint()

            survey.carry_on(stream, job, kept)
        return Go("surveyed")

    @state("PREPARING", runs="thread", acting=True)
    def prepare(self, tools: StepTools[Payload, Context]) -> Outcome:
        """Will the rows fit? The table is made if it is not there; what an earlier run has left behind is removed."""
        tools.context.load = tools.key
        _tidy(tools)
        try:
            with closing(connect(tools.database)) as db:
                Table(db, tools.payload, tools.key, tools.context.survey.stamp).prepare()
        except sqlite3.OperationalError as error:
            return until_free(tools, error)
        return Go("prepared")

    @state("MOVING", timeout_s=STAGE_S)
    async def move(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """Begin what may begin, then wait for whoever ends next; in the end tell what is not in the table."""
        context, survey = tools.context, tools.context.survey
        if not tools.children:
            # what an earlier run has extracted is not there any more: nobody is met again
            context.round, context.result = tools.fence, {}
        line = _line(tools.payload, survey)
        so_far = account(line, tools.children)
        standing = line.standing(so_far.ends, so_far.rejected)
        for step in standing.begin:
            chunk = _chunk(tools.payload, context, step.chunk)
            tools.spawn(step.stage.type, chunk, name=f"{step.name}{ROUND}{context.round}")
        tools.progress(standing.through + standing.lost, survey.rows, f"{len(so_far.loaded)} chunks are loaded")
        if not standing.over:
            return WaitForChildren("any", "continue")
        if not context.result:
            try:
                context.result = await asyncio.to_thread(_report, tools, so_far, standing.spent)
            except sqlite3.OperationalError as error:
                return until_free(tools, error, standing.through + standing.lost, survey.rows)
        if standing.spent is not None:
            await tools.checkpoint()  # whoever takes over could not report what is removed now
            await asyncio.to_thread(_tidy, tools)  # a replay extracts anew what is not in
            return Fail(standing.spent, result=context.result)
        return Go("moved")

    @state("TIDYING", runs="thread", timeout_s=STAGE_S)
    def tidy(self, tools: StepTools[Payload, Context]) -> Outcome:
        """Remove what lay between the stages, and what is in the report now."""
        context = tools.context
        _tidy(tools)
        try:
            with closing(connect(tools.database)) as db:
                Table(db, tools.payload, context.load, context.survey.stamp).forget_rejects()
        except sqlite3.OperationalError as error:
            return until_free(tools, error, context.survey.rows, context.survey.rows)
        return Go("tidied", result=context.result)


def _line(job: Job, survey: Survey) -> Line:
    """Its stages; loaded is one chunk at a time and in order, so that of two rows with one key the first one stays."""
    stages = (
        Stage("extract", EtlExtract.type, at_once=job.at_once, ahead=2 * job.at_once),
        Stage("transform", EtlTransform.type, at_once=job.at_once, ahead=2 * job.at_once),
        Stage("load", EtlLoad.type, in_order=True),
    )
    return Line(stages, [piece.rows for piece in survey.pieces], job.budget.budget)


def _chunk(job: Job, context: EtlRun.Context, n: int) -> Chunk:
    survey = context.survey
    return Chunk(job=job, n=n, piece=survey.pieces[n], columns=survey.columns, stamp=survey.stamp, load=context.load)


def _report(tools: Toolbox[EtlRun.Payload, EtlRun.Context], so_far: Account, spent: str | None) -> dict[str, Any]:
    """The result, by what the database says; with a file of all that is not in the table, in the source's order."""
    job, context, survey = tools.payload, tools.context, tools.context.survey
    file, loaded, rejected = tools.file("rejects.jsonl"), 0, 0
    with closing(connect(tools.database)) as db, file.path.open("wb") as report:
        table = Table(db, job, context.load, survey.stamp)
        for n, piece in enumerate(survey.pieces):
            if (tally := table.known(n)) is not None:
                report.write(table.rejects(n))
                loaded, rejected = loaded + tally.rows, rejected + tally.rejected
            else:
                why = so_far.failed.get(n, f"not loaded: {spent}")
                report.write(_left(tools.files.of(tools.task_id), n, piece, why))
    return {
        "table": job.table,
        "rows": survey.rows,
        "loaded": loaded,
        "rejected": rejected,
        "lost": survey.rows - loaded - rejected,
        "chunks": len(survey.pieces),
        "report": file.publish() if loaded < survey.rows else None,
    }


def _left(folder: Path, n: int, piece: Piece, why: str) -> bytes:
    """Of a chunk that is not in: the rejects as far as they are known, and that the rest of it is not."""
    rejects = list[bytes]()
    for file in (folder / name_of(n, TRANSFORMED), folder / name_of(n, EXTRACTED)):
        if file.exists():
            rejects = [item.told() for item in chunk_file.read(file) if item.row is None]
            break
    if rest := piece.rows - len(rejects):
        rejects.append(to_json({"line": piece.line, "reason": why, "rows": rest}) + b"\n")
    return b"".join(rejects)


def _tidy(tools: StepTools[Any, Any] | Toolbox[Any, Any]) -> None:
    folder = tools.files.of(tools.task_id)
    for place in (*folder.glob("chunk-*"), *folder.glob(".chunk-*")):
        place.unlink(missing_ok=True)
