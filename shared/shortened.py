"""Texts of others in logs, errors and answers: their beginning, if they are long. Pure."""


def shortened(text: str, most: int) -> str:
    """A text of so many characters as it is; of a longer one so many of the first, and ``…``."""
    return text if len(text) <= most else text[:most] + "…"
