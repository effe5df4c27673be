"""What may go wrong, in words that the person at the terminal can act on."""


class DevclusterError(Exception):
    """The message is shown as it is; it says what failed and what it was for."""
