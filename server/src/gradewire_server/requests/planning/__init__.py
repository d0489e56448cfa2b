"""From a request's metric specs to what the scorer runs."""
