"""What bounds connections: how calls are taken in, how many there are, who resets too many."""
