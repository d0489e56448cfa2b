"""Puts a load on a server and measures what it does: open loop, steps to the knee, capacity from measured costs."""
