"""What a load run sends."""
