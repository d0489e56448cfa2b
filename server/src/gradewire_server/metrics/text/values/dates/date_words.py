"""Names of months, days, seasons and decades."""

from typing import Final

_NAMES: Final = "january february march april may june july august september october november december"
MONTH_NAMES: Final = {
    **{name: number for number, name in enumerate(_NAMES.split(), 1)},
    **{name[:3]: number for number, name in enumerate(_NAMES.split(), 1)},
    "sept": 9,
}
"""Months by name and short name."""
WEEKDAYS: Final = {
    name: number // 2
    for number, name in enumerate(
        [
            "monday",
            "mondays",
            "tuesday",
            "tuesdays",
            "wednesday",
            "wednesdays",
            "thursday",
            "thursdays",
            "friday",
            "fridays",
            "saturday",
            "saturdays",
            "sunday",
            "sundays",
        ]
    )
}
"""Days of the week by name."""
SEASONS: Final = {"spring": (3, 6), "summer": (6, 9), "autumn": (9, 12), "fall": (9, 12), "winter": (12, 15)}
"""First and last month of the seasons in the north."""
DECADES: Final = {
    "twenties": 20, "thirties": 30, "forties": 40, "fifties": 50, "sixties": 60, "seventies": 70, "eighties": 80,
    "nineties": 90,
}  # fmt: skip
"""Decades by name, of the 20th century."""
