"""The features of metric `calibrated`, computed from texts and SMILE's terms."""
