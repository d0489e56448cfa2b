"""`gradewire agree`: holds scores against human labels."""
