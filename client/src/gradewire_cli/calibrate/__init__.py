"""`gradewire calibrate`: fits a metric to labelled answers and stores the fit with the model."""
