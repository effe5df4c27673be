"""Quantiles by gradient-boosted trees: fitted by LightGBM, read and evaluated by NumPy alone, so
that neither a library of 60 MB nor anything that could run code is loaded to read a model."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, Any]

_ROUNDS = 100
_AT_ONCE = 2_000_000  # rows times trees
_SETTINGS: dict[str, Any] = {
    "objective": "quantile",
    "num_leaves": 31,
    "learning_rate": 0.1,
    "min_data_in_leaf": 200,
    "max_bin": 63,
    "feature_fraction": 0.5,
    "bagging_fraction": 0.5,
    "bagging_freq": 1,
    "lambda_l2": 1.0,
    # The same rows make the same trees, bit for bit: the check for leaks rests on it.
    "seed": 1,
    "deterministic": True,
    "force_col_wise": True,
    "num_threads": 1,
    "verbosity": -1,
}


@dataclass(frozen=True, slots=True)
class Trees:
    """Trees of up to `splits` splits: arrays of (trees, splits), `leaf` (trees, splits + 1). A
    split goes left where the feature is at most the threshold; a child below zero is the leaf
    -1 - child. A tree without splits goes to its leaf 0 at once."""

    feature: "Numbers"
    threshold: "Numbers"
    left: "Numbers"
    right: "Numbers"
    leaf: "Numbers"

    def predict(self, features: "Numbers") -> "Numbers":
        """The sum of the leaves, for each row."""
        import numpy as np  # noqa: PLC0415

        step = max(_AT_ONCE // max(len(self.leaf), 1), 1)
        parts = [features[begin : begin + step] for begin in range(0, len(features), step)]
        return np.concatenate([np.zeros(0), *(self._sum(part) for part in parts)])

    def _sum(self, features: "Numbers") -> "Numbers":
        import numpy as np  # noqa: PLC0415

        trees = np.arange(len(self.leaf))
        rows = np.arange(len(features))[:, None]
        node = np.zeros((len(features), len(trees)), dtype=np.int64)
        while (inner := node >= 0).any():
            at = np.maximum(node, 0)
            goes_left = features[rows, self.feature[trees, at]] <= self.threshold[trees, at]
            child = np.where(goes_left, self.left[trees, at], self.right[trees, at])
            node = np.where(inner, child, node)
        result: Numbers = self.leaf[trees, -1 - node].sum(axis=1)
        return result


def fit(features: "Numbers", target: "Numbers", weights: "Numbers", *, quantile: float) -> Trees:
    """Trees for the quantile of the target. The features hold no NaN."""
    import lightgbm  # noqa: PLC0415  # loaded by who trains alone

    booster = lightgbm.train(
        {**_SETTINGS, "alpha": quantile},
        lightgbm.Dataset(features, target, weight=weights),
        num_boost_round=_ROUNDS,
    )
    return parse(booster.model_to_string())


def parse(text: str) -> Trees:
    """LightGBM's own text of a model without categories."""
    import numpy as np  # noqa: PLC0415

    blocks = text.split("end of trees", maxsplit=1)[0].split("\nTree=")[1:]
    found = [dict(line.split("=", 1) for line in b.splitlines() if "=" in line) for b in blocks]
    splits = max((int(tree["num_leaves"]) - 1 for tree in found), default=0)

    def column(name: str, kind: type, width: int, empty: float) -> "Numbers":
        values: Numbers = np.full((len(found), width), empty, dtype=kind)
        for row, tree in zip(values, found, strict=True):
            numbers = tree.get(name, "").split()
            row[: len(numbers)] = np.array(numbers, dtype=np.float64)
        return values

    width = max(splits, 1)
    return Trees(
        feature=column("split_feature", np.int64, width, 0),
        threshold=column("threshold", np.float64, width, 0),
        left=column("left_child", np.int64, width, -1),
        right=column("right_child", np.int64, width, -1),
        leaf=column("leaf_value", np.float64, width + 1, 0),
    )
