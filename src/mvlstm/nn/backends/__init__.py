"""The fast paths of the networks, each proven equal to `mvlstm.nn.reference`."""
