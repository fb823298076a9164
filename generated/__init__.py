"""Generated modules: torch and nothing else. Not edited by hand; ``make`` writes them."""
