"""Tables of figures in the forms that other programs read."""
