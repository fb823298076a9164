"""What can be said about a wrong claim: which terms differ, and what else it would be right for."""
