"""What there is to build: the catalog's models, variants, adapters and calibrations as typed values."""
