"""Read other programs' files: official files of data sets, and logs of evaluation harnesses."""
