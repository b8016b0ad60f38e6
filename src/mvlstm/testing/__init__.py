"""Checks that any forecaster must pass, for ours and for yours."""

from mvlstm.testing.checks import CHECKS, check_forecaster

__all__ = ["CHECKS", "check_forecaster"]
