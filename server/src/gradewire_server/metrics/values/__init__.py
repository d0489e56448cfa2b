"""Find and parse the values in a text (dates, quantities, ordinals, formulas), and compare answers with references."""
