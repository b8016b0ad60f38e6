"""Backtests of one forecaster, and comparisons of many."""
