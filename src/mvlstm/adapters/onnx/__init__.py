"""A fitted model as one ONNX graph, from raw rows to forecasts."""
