"""The client processes that send the calls of a run."""
