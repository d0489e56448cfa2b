"""Numbers with what they count."""
