"""Regression trees as plain arrays: made from each library's trees, predicted and stored here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvlstm.errors import ModelFileError
from mvlstm.model.learned import take_array
from mvlstm.types import FloatArray

CHUNK = 2_048  # rows that walk down the trees together


@dataclass(frozen=True, eq=False)
class Trees:
    """The nodes of R trees, one after another; ``x <= threshold`` goes left, a leaf to itself."""

    roots: NDArray[np.int32]  # (R,) each tree's first node
    feature: NDArray[np.int32]  # (nodes,), as all that follow
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    threshold: FloatArray  # 0 of a leaf
    value: FloatArray  # 0 of a split

    def leaves(self, X: NDArray[Any]) -> FloatArray:
        """Return the value each tree gives to rows X (M, features): (R, M)."""
        out = np.empty((len(self.roots), len(X)))
        for start in range(0, len(X), CHUNK):
            part = X[start : start + CHUNK]
            m = len(part)
            flat = np.ascontiguousarray(part.T).reshape(-1)  # feature by feature
            row = np.arange(m)
            node = np.repeat(self.roots[:, None], m, axis=1)  # (R, m)
            while True:
                goes_left = flat[self.feature[node] * np.int64(m) + row] <= self.threshold[node]
                following = np.where(goes_left, self.left[node], self.right[node])
                if np.array_equal(following, node):
                    break
                node = following
            out[:, start : start + m] = self.value[node]
        return out

    def first(self, count: int) -> Trees:
        """Return the first ``count`` trees."""
        end = self.roots[count] if count < len(self.roots) else len(self.feature)
        nodes: Any = (self.feature, self.left, self.right, self.threshold, self.value)
        return Trees(self.roots[:count], *(one[:end] for one in nodes))

    def arrays(self, name: str) -> dict[str, NDArray[Any]]:
        """Return the arrays under names that start with ``name``, for the model file."""
        return {f"{name}.{key}": getattr(self, key) for key in self.__dataclass_fields__}

    @classmethod
    def restore(cls, arrays: dict[str, Any], name: str, n_features: int) -> Trees:
        """Take the arrays of `arrays` back, refusing any that do not make trees."""
        kinds = {"threshold": np.float64, "value": np.float64}
        found = {
            key: take_array(arrays, f"{name}.{key}", (None,), kinds.get(key, np.int32))
            for key in cls.__dataclass_fields__
        }
        trees = cls(**found)
        nodes = np.arange(len(trees.feature))
        own = trees.left == nodes
        sound = (
            all(len(found[key]) == len(nodes) for key in found if key != "roots")
            and len(trees.roots) > 0
            and bool(((trees.roots >= 0) & (trees.roots < len(nodes))).all())
            and bool(((trees.feature >= 0) & (trees.feature < n_features)).all())
            and bool((own == (trees.right == nodes)).all())
            and all(
                bool(((child > nodes) & (child < len(nodes)))[~own].all())
                for child in (trees.left, trees.right)
            )
        )
        if not sound:
            raise ModelFileError(f"its arrays '{name}.*' do not make trees.")
        return trees


def join(parts: list[dict[str, NDArray[Any]]]) -> Trees:
    """Put trees one after another; each part holds one tree's nodes, a leaf's children below 0."""
    sizes = np.array([len(part["feature"]) for part in parts])
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    offset = np.repeat(roots, sizes)
    nodes = np.arange(len(offset))
    leaf = joined["left"] < 0
    return Trees(
        roots=roots.astype(np.int32),
        feature=np.where(leaf, 0, joined["feature"]).astype(np.int32),
        left=np.where(leaf, nodes, joined["left"] + offset).astype(np.int32),
        right=np.where(leaf, nodes, joined["right"] + offset).astype(np.int32),
        threshold=np.where(leaf, 0.0, joined["threshold"]).astype(np.float64),
        value=np.where(leaf, joined["value"], 0.0).astype(np.float64),
    )


def from_forest(forest: Any) -> Trees:
    """Read the trees of scikit-learn's random forest; they compare inputs in float32."""
    return join(
        [
            {
                "feature": one.tree_.feature,
                "left": one.tree_.children_left,
                "right": one.tree_.children_right,
                "threshold": one.tree_.threshold,
                "value": one.tree_.value[:, 0, 0],
            }
            for one in forest.estimators_
        ]
    )


def from_histogram(model: Any) -> tuple[Trees, FloatArray]:
    """Read scikit-learn's histogram gradient boosting, and each feature's summed gain."""
    gains = np.zeros(model.n_features_in_)
    parts = []
    for (predictor,) in model._predictors:
        nodes = predictor.nodes
        leaf = nodes["is_leaf"].astype(bool)
        np.add.at(gains, nodes["feature_idx"][~leaf], nodes["gain"][~leaf])
        parts.append(
            {
                "feature": nodes["feature_idx"].astype(np.int64),
                "left": np.where(leaf, -1, nodes["left"].astype(np.int64)),
                "right": np.where(leaf, -1, nodes["right"].astype(np.int64)),
                "threshold": nodes["num_threshold"],
                "value": nodes["value"],
            }
        )
    return join(parts), gains


def from_xgboost(booster: Any, rounds: int) -> tuple[Trees, float, FloatArray]:
    """Read the first ``rounds`` trees of xgboost, its base score, and each feature's summed gain.

    xgboost goes left where ``x < threshold``, both in float32; the next smaller threshold says
    the same with ``<=``.
    """
    learner = json.loads(bytes(booster.save_raw(raw_format="json")))["learner"]
    base = float(str(learner["learner_model_param"]["base_score"]).strip("[]"))
    gains = np.zeros(int(learner["learner_model_param"]["num_feature"]))
    parts = []
    for tree in learner["gradient_booster"]["model"]["trees"][:rounds]:
        left = np.array(tree["left_children"], dtype=np.int64)
        feature = np.array(tree["split_indices"], dtype=np.int64)
        condition = np.array(tree["split_conditions"], dtype=np.float32)
        np.add.at(gains, feature[left >= 0], np.array(tree["loss_changes"])[left >= 0])
        parts.append(
            {
                "feature": feature,
                "left": left,
                "right": np.array(tree["right_children"], dtype=np.int64),
                "threshold": np.nextafter(condition, np.float32(-np.inf)),
                "value": condition,
            }
        )
    return join(parts), base, gains
