"""Kinds of values."""

from enum import StrEnum


class Kind(StrEnum):
    """What a value is."""

    DATE = "date"
    """A day, month, year, decade, century, season or a stretch of them."""
    TIME = "time"
    """A time of day."""
    QUANTITY = "quantity"
    """A number, perhaps with a unit."""
    ORDINAL = "ordinal"
    """A place in an order: "third"; and the number of a name: "Apollo 11", "Henry VIII"."""
    OPERATOR = "operator"
    """A relation, "x < 3", or a direction, "A -> B"."""
    SYMBOL = "symbol"
    """A sign with an index or a charge: "x_3", "CO2", "Na+"."""
    LOCANT = "locant"
    """A chemical name with what tells isomers apart: "2-butanol", "carbon-14"."""
    EXPRESSION = "expression"
    """A formula with variables."""
    LIST = "list"
    """Things in an order that counts."""


class Outcome(StrEnum):
    """What becomes of a reference's values in an answer."""

    FOUND = "found"
    CONTRADICTED = "contradicted"
    MISSING = "missing"
