"""Rules broken one after the other, to see that a test notices: ``make mutants``."""
