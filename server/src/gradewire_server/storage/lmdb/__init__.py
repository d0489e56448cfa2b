"""The second level on this machine's disk, in LMDB."""
