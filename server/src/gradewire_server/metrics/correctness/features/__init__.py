"""The features of metric `correctness`, computed from texts and SMILE's terms."""
