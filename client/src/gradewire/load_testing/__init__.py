"""An open loop of calls against a server: the search for the knee, and a step at twice the knee."""
