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


class Shrinkage:
    """The step above, for several members at once.

    Parameters
    ----------
    owner : (P,) int64
        Variable that each weight takes in; -1 for weights that are left alone.
    strength : (k, 1)
        Each member's share s; one with 0 is left as it is, to the bit.
    """

    def __init__(self, owner: Tensor, strength: Tensor) -> None:
        index = (owner >= 0).nonzero().flatten()
        self.index, self.owner = index, owner[index]  # (Q,)
        variables = torch.arange(int(owner.max()) + 1, device=owner.device)
        self.membership = (self.owner.unsqueeze(1) == variables).to(strength)  # (Q, N)
        self.pull = strength * self.membership.sum(dim=0).sqrt()  # (k, N)

    def __call__(self, flat: Tensor, learning_rate: Tensor, members: slice = slice(None)) -> None:
        """Shrink some members' weights (k, P) in place, after a step of given rates (k, 1)."""
        weights = flat.index_select(1, self.index)  # (k, Q)
        norms = (weights.square() @ self.membership).sqrt_()  # (k, N)
        share = learning_rate * self.pull[members] / norms.clamp_(min=torch.finfo(flat.dtype).tiny)
        kept = (1 - share).clamp_(min=0.0)  # (k, N)
        flat.index_copy_(1, self.index, weights * kept.index_select(1, self.owner))
