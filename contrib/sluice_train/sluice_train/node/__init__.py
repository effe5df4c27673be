"""The node tools: what a job of Sluice runs beside the training, on its own nodes.

Each verb is a module with `main(argv) -> exit code`, started by the batch script as
`python -m sluice_train.node VERB`. Nothing here is for people's own scripts.
"""
