"""Missions that make files, each where its handler runs."""

from typing import Any

from pydantic import BaseModel

from backend_loop.mission import Mission, state, steps
from backend_loop.outcomes import Go, Outcome, WaitFor
from backend_loop.step_tools import StepTools
from backend_loop.toolbox import Toolbox


class Sheet(BaseModel):
    """What the file is called, and what stands in it."""

    name: str = "sheet.txt"
    text: str = "a line\n"


class Filing(Mission):
    """Writes a file in the loop."""

    type = "test.filing"
    table = steps("WRITING")
    Payload = Sheet

    @state("WRITING")
    async def write(self, tools: Toolbox[Sheet, Any]) -> Outcome:
        file = tools.file(tools.payload.name)
        file.path.write_text(tools.payload.text)
        return Go("done", result={"file": file.publish()})


class FilingBeside(Mission):
    """Writes a file in a thread, and another one in a process, which reads the first one too."""

    type = "test.filing_beside"
    table = steps("IN_THREAD", "IN_PROCESS")
    Payload = Sheet

    class Context(BaseModel):
        """The first file's link."""

        first: str = ""

    @state("IN_THREAD", runs="thread")
    def thread(self, tools: StepTools[Sheet, "FilingBeside.Context"]) -> Outcome:
        file = tools.file(tools.payload.name)
        with file.resume(0) as stream:
            stream.write(tools.payload.text.encode())
        tools.context.first = file.publish()
        return Go("done")

    @state("IN_PROCESS", runs="process")
    def process(self, tools: StepTools[Sheet, "FilingBeside.Context"]) -> Outcome:
        again = tools.files.find(tools.context.first).read_text()
        file = tools.file(f"again-{tools.payload.name}")
        file.path.write_text(again)
        return Go("done", result={"file": file.publish(), "database": tools.database})


class Holding(Mission):
    """Publishes one file, begins another one, and waits for an event before that one is whole."""

    type = "test.holding"
    table = {"WRITING": {"WRITE": "SUCCEEDED"}}

    @state("WRITING")
    async def write(self, tools: Toolbox[Any, Any]) -> Outcome:
        whole, begun = tools.file("whole.txt"), tools.file("begun.txt")
        whole.path.write_text("all of it")
        whole.publish()
        begun.path.write_text("half of")
        return WaitFor("WRITE")
