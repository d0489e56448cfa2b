"""What stands between the judge service and a judge: two levels of cache, single flight, checks; each a wrapper."""
