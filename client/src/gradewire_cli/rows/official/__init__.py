"""Files that other programs wrote: the official ones of data sets, and logs of evaluation harnesses."""
