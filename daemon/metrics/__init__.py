"""The daemon's counters and measurements.

Observers are plain objects that are notified of events, with the time as an argument, and have no
clock and no loop. A model version has one, held by its sources, so that no request needs a look-up.

    histogram              plain numbers: counts by bucket, and a sum; those of the last minute
    version                one model version: requests, queue, batches, inference
    emitted                measurements of one version's handlers (`context.metrics`)
    metrics                all of it: versions by name, answers by status
    totals                 all counts, for the daemon that replaces this one

The counters of a version stay after unregistration, so that a sum over the host never falls and
the same version registered again goes on counting. Its gauges and histograms are removed.

Names. TorchServe's keep their names, labels and units (0.12, ts/configs/metrics.yaml); ours begin with
`tsctl_`, count in seconds and carry `model` and `version`. A handler's metric keeps its name and
dimensions and gains `Hostname`, `ModelName` and `ModelVersion`, unless it has them.

A name has one type, whatever handlers do. Within a version the first
type counts, and measurements of another are dropped, counted and logged once. Between versions the
one registered last counts, so that a corrected handler needs no restart.
"""
