"""Characters, words and numbers as texts have them."""
