"""The demonstration: a cluster, the portal's processes and sample people, under one folder."""
