"""Training: plain functions over networks and windows; nothing here knows a forecaster."""
