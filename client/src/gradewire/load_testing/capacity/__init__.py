"""What a rate of answers needs, from measured costs."""
