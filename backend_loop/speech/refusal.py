"""The no of a speech engine, or of what decodes for it, as its child process says it."""


class Refusal(ValueError):  # noqa: N818  an answer, not a fault of the program
    """This will not be listened to, now or later.

    Args:
        sentence: for the person who spoke, or who set this up.
        code: one word for it, such as ``too_long`` or ``no_weights``.
    """

    def __init__(self, sentence: str, code: str) -> None:
        """`sentence` says what would do."""
        super().__init__(sentence)
        self.code = code
