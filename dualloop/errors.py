"""What the command line says to a person instead of a traceback."""


class Refusal(Exception):  # noqa: N818  it is a sentence for a person, not a fault of the program
    """One sentence that says what is wrong and what to do; the command line prints it and exits 1.

    Where something was sent that has several faults it is a line for each.
    """
