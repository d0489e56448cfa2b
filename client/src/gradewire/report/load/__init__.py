"""The page of a load run: one HTML file that loads nothing."""
