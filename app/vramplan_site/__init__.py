"""Builds the static site in dist/, serves it, and runs the tests. Not part of the installed package."""
