"""Guards: what a verdict of right has to withstand before it is believed."""
