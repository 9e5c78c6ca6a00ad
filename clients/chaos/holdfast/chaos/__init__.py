"""Breaks a cluster on purpose, writes down what its clients saw, and judges whether it held."""
