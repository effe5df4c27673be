"""Quantiles by gradient-boosted trees: fitted by LightGBM, read and evaluated by NumPy alone, so
that neither a library of 60 MB nor anything that could run code is loaded to read a model."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, Any]

_ROUNDS = 100
_AT_ONCE = 5_000  # rows times trees: what a core's cache holds
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
    """Nodes of all trees in a row. `roots`: where each tree begins. From a node one goes to
    `children` (nodes, 2): the first where the feature is at most the threshold. A leaf leads to
    itself and has the value."""

    roots: "Numbers"
    feature: "Numbers"
    threshold: "Numbers"
    children: "Numbers"
    value: "Numbers"

    def check(self, *, features: int) -> None:
        """ValueError where a walk could leave the nodes, go on for ever or end at no number. The
        children of a node stand behind it, as LightGBM numbers them."""
        import numpy as np  # noqa: PLC0415

        own = np.arange(len(self.value))
        whole = (self.roots, self.feature, self.children)
        shapes = (self.feature.shape, self.threshold.shape, self.value.shape)
        if not (
            all(one.dtype.kind == "i" for one in whole)
            and all(one.dtype.kind == "f" for one in (self.threshold, self.value))
            and all(shape == own.shape for shape in shapes)
            and self.children.shape == (len(own), 2)
            and self.roots.ndim == 1
            and len(self.roots)
            and ((self.roots >= 0) & (self.roots < len(own))).all()
            and ((self.feature >= 0) & (self.feature < features)).all()
            and ((self.children >= own[:, None]) & (self.children < len(own))).all()
            and np.isfinite(self.value).all()
        ):
            raise ValueError("no trees")

    def predict(self, features: "Numbers") -> "Numbers":
        """The sum of the leaves, for each row."""
        import numpy as np  # noqa: PLC0415

        step = max(_AT_ONCE // len(self.roots), 1)
        parts = [features[begin : begin + step] for begin in range(0, len(features), step)]
        return np.concatenate([np.zeros(0), *(self._sum(part) for part in parts)])

    def _sum(self, features: "Numbers") -> "Numbers":
        import numpy as np  # noqa: PLC0415

        row = (np.arange(len(features)) * features.shape[1])[:, None]
        node = np.broadcast_to(self.roots, (len(features), len(self.roots)))
        while True:
            # Flat positions: picking by two indices takes four times as long.
            value = features.take(row + self.feature.take(node))
            below = self.children.take(2 * node + (value > self.threshold.take(node)))
            if np.array_equal(below, node):
                result: Numbers = self.value.take(node).sum(axis=1)
                return result
            node = below


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
    roots, columns, total = [], [], 0
    for block in blocks:
        roots.append(total)
        columns.append(_nodes(block, total))
        total += len(columns[-1][0])
    feature, threshold, children, value = (
        np.concatenate(part) for part in zip(*columns, strict=True)
    )
    return Trees(np.array(roots), feature, threshold, children, value)


def _nodes(block: str, first: int) -> "tuple[Numbers, Numbers, Numbers, Numbers]":
    """The columns of one tree, whose nodes begin at `first`: its splits, then its leaves."""
    import numpy as np  # noqa: PLC0415

    lines = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)

    def numbers(name: str) -> "Numbers":
        return np.array(lines.get(name, "").split(), dtype=np.float64)

    values = numbers("leaf_value")
    splits = len(values) - 1
    leaves = np.arange(splits, splits + len(values))
    below = np.column_stack([numbers("left_child"), numbers("right_child")]).astype(np.int64)
    below = np.where(below < 0, splits - 1 - below, below)  # -1 is the first leaf
    return (
        np.concatenate([numbers("split_feature").astype(np.int64), np.zeros_like(leaves)]),
        np.concatenate([numbers("threshold"), np.full(len(leaves), np.inf)]),
        first + np.concatenate([below, np.column_stack([leaves, leaves])]),
        np.concatenate([np.zeros(splits), values]),
    )
