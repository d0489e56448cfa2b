"""`gradewire rank`: rank several answers to each question by a judge's pairs."""
