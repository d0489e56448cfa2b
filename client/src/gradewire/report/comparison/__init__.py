"""The page of a comparison of models or runs."""
