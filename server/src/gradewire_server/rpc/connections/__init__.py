"""What bounds connections: how calls are taken in, how many there are, who may open none for now."""
