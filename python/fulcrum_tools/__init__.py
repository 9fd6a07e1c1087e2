"""Helpers around the fulcrum program that need Python's ecosystem. No formula, no constant."""
