"""Numbers in addresses that can be ids."""

from werkzeug.routing import IntegerConverter, ValidationError

LARGEST_ID = 2**31 - 1  # what the columns of ids hold in PostgreSQL; SQLite's take more


class Id(IntegerConverter):
    """The converter `int` of all routes. A longer number is no address: a database would fail."""

    def to_python(self, value: str) -> int:
        if len(value) > len(str(LARGEST_ID)):
            raise ValidationError
        number: int = super().to_python(value)
        if number > LARGEST_ID:
            raise ValidationError
        return number
