"""The forecasters: one contract, many models."""
