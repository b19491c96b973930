"""Where a worker may be killed: before or after a commit or a call to the outside, or within a handler."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, Self


class KilledError(BaseException):
    """The worker is gone, from one instruction to the next."""


@dataclass(frozen=True, slots=True)
class Kill:
    """A kill -9 of the worker with all that it runs; another one takes over once its lease has run out.

    Each kills once. Made by its class methods; ``str`` of it is a sentence's part, such as ``before commit 3``.
    """

    when: Literal["before", "after", "within"]
    what: Literal["commit", "call", "state"]
    which: int | str

    @classmethod
    def before_commit(cls, number: int) -> Self:
        """With that commit of this run, from 1, prepared and not written."""
        return cls("before", "commit", number)

    @classmethod
    def after_commit(cls, number: int) -> Self:
        """With that commit written, and its answer read by nobody."""
        return cls("after", "commit", number)

    @classmethod
    def before_call(cls, which: int | str = 1) -> Self:
        """With that call not sent: a number from 1, or a path, such as ``payment/*``, whose first call is meant."""
        return cls("before", "call", which)

    @classmethod
    def after_call(cls, which: int | str = 1) -> Self:
        """With what was asked done outside, and the answer read by nobody."""
        return cls("after", "call", which)

    @classmethod
    def within(cls, state: str) -> Self:
        """In the handler of this state, or of ``UNDO_STATE``, at its first await."""
        return cls("within", "state", state)

    def __str__(self) -> str:
        """As a part of a sentence."""
        return f"within {self.which}" if self.what == "state" else f"{self.when} {self.what} {self.which}"

    def meets(self, when: str, what: str, number: int, name: str) -> bool:
        """Whether this is the place."""
        if (when, what) != (self.when, self.what):
            return False
        return number == self.which if isinstance(self.which, int) else fnmatchcase(name, self.which)
