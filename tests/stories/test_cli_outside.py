"""`dualloop outside`: faults and books from the command line."""

from pathlib import Path

from tests.services import OutsideServices
from tests.stories.terminal import Terminal


async def test_faults_and_books_from_the_command_line(tmp_path: Path) -> None:
    with OutsideServices(tmp_path) as outside:
        terminal = Terminal(tmp_path, DUALLOOP_STATE_DIR=str(tmp_path))  # found by its file there
        said = await terminal.run("outside", "fault", "stock", "--lose-reply", "--times", "2")
        assert (said.code, said.out) == (0, "stock: lose_reply, times 2\n")
        assert outside.http.get("/faults").json()["stock"]["lose_reply"] is True
        assert (await terminal.run("outside", "fault", "stock")).out == "stock: well\n"
        told = (await terminal.run("outside", "fault", "payment", "--idle", "--json")).json
        assert told["idle"] is True

        assert outside.post("/stock/reservations", key="t:1:R:1", lines=[{"sku": "lamp", "quantity": 2}]).is_success
        books = await terminal.run("outside", "books")
        assert books.code == 0
        assert books.out.splitlines()[-1] == "The books balance."
        assert ["reserved:lamp", "2"] in [line.split() for line in books.out.splitlines()]
        assert (await terminal.run("outside", "books", "A-1", "--json")).json["states"] == {"stock": "reserved"}
        page = await terminal.run("outside", "books", "A-1")
        assert page.out.splitlines()[-1].split() == ["stock", "reserve", "reserved"]

        second = await terminal.run("outside")
        assert (second.code, "run already" in second.err) == (1, True)


async def test_where_none_run_it_says_what_to_do(tmp_path: Path) -> None:
    said = await Terminal(tmp_path).run("outside", "books")
    assert (said.code, "start them with dualloop up" in said.err) == (1, True)
    said = await Terminal(tmp_path, DUALLOOP_OUTSIDE_URL="http://127.0.0.1:1").run("outside", "books")
    assert (said.code, "No outside services answer" in said.err) == (1, True)
    assert (await Terminal(tmp_path).run("outside", "fault", "weather")).code == 2
