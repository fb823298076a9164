"""A closed form is proved."""
