"""Values in a text (dates, quantities, ordinals, formulas), and which of a reference's an answer has."""
