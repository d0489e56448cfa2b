"""`gradewire calibrate`: fit a metric to labelled answers and store the fit with the model."""
