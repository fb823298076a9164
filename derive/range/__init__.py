"""What a value can be."""
