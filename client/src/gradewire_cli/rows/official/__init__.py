"""Read other programs' files: data sets' official files, and logs from evaluation harnesses."""
