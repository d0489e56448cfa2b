"""`gradewire label`: label answers by hand on a local page, with the most uncertain answers first."""
