"""What a person sees in a terminal of a certain width: what one was woken for is never cut away."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest

from dualloop.cli.output import table

ID = "040000D2563S08VEE6RGGY7D8JXNZA0X6S1Y51HP"
ERROR = '{"event":"retry","attempt":1,"error":"BusyError: the airline cannot give the seat back"}'

STYLE = re.compile(r"\x1b\[[0-9;]*m")


def seen(columns: int, call: str) -> list[str]:
    """The lines that a call of `dualloop.cli.output` leaves on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    code = f"from dualloop.cli.output import table\n{call}"
    hidden = {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"}
    env = {name: value for name, value in os.environ.items() if name not in hidden} | {"TERM": "xterm"}
    with subprocess.Popen((sys.executable, "-c", code), stdin=theirs, stdout=theirs, env=env) as process:
        os.close(theirs)
        text = b""
        while True:
            try:
                chunk = os.read(ours, 65_536)
            except OSError:  # the other side is closed: a terminal's end
                break
            if not chunk:
                break
            text += chunk
    os.close(ours)
    assert process.returncode == 0
    return STYLE.sub("", text.decode()).replace("\r\n", "\n").splitlines()


def test_a_history_goes_on_in_the_next_line_and_keeps_every_word() -> None:
    row = ("10", "22:58:02.029", "COMPENSATING", "HOLDING", ERROR)
    head = ("SEQ", "TIME", "STATUS", "STATE", "DATA")
    call = f"table({head}, [{row}], fixed=frozenset({set(head[:4])}), folded=frozenset({{'DATA'}}))"
    lines = seen(80, call)
    assert all(len(line) <= 80 for line in lines)
    assert lines[0].split() == ["SEQ", "TIME", "STATUS", "STATE", "DATA"]
    assert lines[1].startswith("10   22:58:02.029  COMPENSATING  HOLDING  {")
    folded = "".join([lines[1].split(maxsplit=4)[4], *lines[2:]]).replace(" ", "")
    assert folded == ERROR.replace(" ", "")
    assert len(seen(160, call)) == 2


def test_a_list_that_is_too_wide_cuts_its_widest_column_and_says_so() -> None:
    row = (ID, "retries_exhausted", "travel.flights.long_haul", "10 min")
    call = f"table(('MISSION', 'CODE', 'TYPE', 'AGE'), [{row}], fixed=frozenset({{'MISSION', 'AGE'}}))"
    lines = seen(80, call)
    assert all(len(line) <= 80 for line in lines)
    assert lines[1].startswith(f"{ID}  ")
    assert lines[1].endswith("  10 min")
    assert lines[1].count("…") == 2
    assert "…" not in seen(160, call)[1]


def test_in_a_pipe_no_line_ends_in_blanks(capsys: pytest.CaptureFixture[str]) -> None:
    table(("SEQ", "DATA"), [("1", ""), ("2", ERROR), ("3", "客")])
    assert capsys.readouterr().out == f"SEQ  DATA\n1\n2    {ERROR}\n3    客\n"
