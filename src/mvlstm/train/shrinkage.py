r"""Doing without variables: all weights on a variable are pulled towards zero together.

After each of Adam's steps, which moves a weight by about the learning rate :math:`\eta` at most,
the :math:`q_n` weights :math:`\theta_n` that take in variable n are shrunk,

.. math::
    \theta_n \leftarrow \theta_n \max\Bigl(0,\;
    1 - \frac{\eta\, s \sqrt{q_n}}{\lVert \theta_n \rVert}\Bigr) .

This is the proximal step of a penalty on the norms of the groups. A variable stays if the loss
pulls its weights the same way in more than a share s of the steps; what only fits noise does not.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mvlstm.nn.parameters import Readers


def kept_share(norms: Tensor, threshold: Tensor) -> Tensor:
    """Return the share of each group, given its norm, that a proximal step of this size leaves."""
    return (1.0 - threshold / norms.clamp(min=torch.finfo(norms.dtype).tiny)).clamp(min=0.0)


class Shrinkage:
    """The step above, for members with shares s of ``strength`` (k, 1); 0 leaves one as it is."""

    def __init__(self, readers: Readers, strength: Tensor) -> None:
        self.places = readers.places.to(strength.device)  # (C, q)
        self.variables = readers.variables.to(strength.device)  # (C,)
        every = torch.arange(int(self.variables.max()) + 1, device=strength.device)
        self.membership = (self.variables.unsqueeze(1) == every).to(strength)  # (C, N)
        sizes = self.membership.sum(dim=0) * self.places.shape[1]  # (N,)
        self.pull = strength * sizes.sqrt()  # (k, N)

    def __call__(self, flat: Tensor, learning_rate: Tensor, members: slice = slice(None)) -> None:
        """Shrink some members' weights (k, P) in place, after a step of given rates (k, 1)."""
        index = self.places.flatten()
        weights = flat.index_select(1, index).view(-1, *self.places.shape)  # (k, C, q)
        norms = (weights.square().sum(dim=2) @ self.membership).sqrt_()  # (k, N)
        kept = kept_share(norms, learning_rate * self.pull[members])
        kept = kept.index_select(1, self.variables)  # (k, C)
        flat.index_copy_(1, index, (weights * kept.unsqueeze(2)).flatten(1))
