"""Files that other programs wrote: the official ones of data sets, and evaluation harnesses."""
