"""Argon2 with the library's defaults, in one place."""

from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from gateway.errors import Refused

SHORTEST = 10
LONGEST = 200  # argon2 takes more; a megabyte of password is an attack on our processor


def hash_password(password: str) -> str:
    """Refused when it is too short or too long to be a password."""
    if len(password) < SHORTEST:
        raise Refused("password_too_short", field="password", shortest=SHORTEST)
    if len(password) > LONGEST:
        raise Refused("password_too_long", field="password", longest=LONGEST)
    return PasswordHasher().hash(password)


def verifies(hashed: str | None, password: str) -> bool:
    """Whether it is the password. For nobody (None) it takes as long, and answers no."""
    nobody = _of_nobody()
    try:
        PasswordHasher().verify(hashed or nobody, password[: LONGEST + 1])
    except (VerificationError, InvalidHashError):
        return False
    return hashed is not None


def is_outdated(hashed: str) -> bool:
    """Made with weaker parameters than today's."""
    return PasswordHasher().check_needs_rehash(hashed)


@cache
def _of_nobody() -> str:
    return PasswordHasher().hash("no account has this hash")
