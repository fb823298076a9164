"""From the chain to a closed form."""
