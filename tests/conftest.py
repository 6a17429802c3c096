"""Puts this folder on the import path for every test, those in browser/ included: they share its data and commands."""
