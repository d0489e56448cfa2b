"""`gradewire prepare`: gets the references of a file ready before answers come."""
