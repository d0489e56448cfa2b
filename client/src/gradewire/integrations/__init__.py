"""gradewire where models are trained and evaluated: one package a purpose, one module a framework."""
