"""Hyperparameter search, with the same budget for every method."""
