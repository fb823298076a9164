"""Checking a formula: is this backward right, and if not, what is missing?"""
