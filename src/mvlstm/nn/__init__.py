"""The networks: tensors in, tensors out; every parameter has a leading members axis."""
