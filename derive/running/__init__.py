"""How a program begins, waits, writes files and ends."""
