"""`gradewire compare`: models or runs beside each other over the same questions, without labels."""
