"""Files as the official programs of data sets have them."""
