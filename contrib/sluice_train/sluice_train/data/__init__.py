"""The node's side of datasets: manifests, copies on node-local disk, verification. Pure Python, no
dependency; never imports the training library's parts that need PyTorch."""
