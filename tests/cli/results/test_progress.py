"""What progress says."""

from gradewire_cli.results.progress import rows_per_second


def test_rates_are_readable_where_a_row_takes_seconds() -> None:
    assert [rows_per_second(rate) for rate in (1234.5, 12.3, 4.56, 0.273)] == [
        "1234 rows/s",
        "12 rows/s",
        "4.6 rows/s",
        "0.27 rows/s",
    ]
