"""What the definitions of a forward say about its values."""
