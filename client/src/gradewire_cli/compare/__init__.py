"""`gradewire compare`: compare models or runs over the same questions, without labels."""
