"""What the daemon counts and measures, and its text for Prometheus.

Observers are plain objects that are told what happened, with the time as an argument; they know no
clock and no loop. A model version has one, held by whoever tells it, so that nothing is looked up
for a request. Families for `prometheus_client` are made from them when somebody asks.

    histogram              plain numbers: counts by bucket, and a sum
    version                one model version: requests, queue, batches, inference
    emitted                what the handlers of one version measured (`context.metrics`)
    metrics                all of it: versions by name, answers by status
    host  gpu              this machine, read when asked
    families  merged       what is shown, as families; merged: what handlers emitted
    exposition             families → prometheus_client → text

What stays when a version is unregistered: its counters, so that a sum over the host never falls and
the same version registered again goes on counting. Its gauges and histograms go with it.

Names. TorchServe's keep its names, labels and units (0.12, ts/configs/metrics.yaml); ours begin with
`tsctl_`, count in seconds and carry `model` and `version`. What a handler emits keeps its name and
dimensions and gains `Hostname`, `ModelName` and `ModelVersion`, unless it has them.

A name has one type in Prometheus' text, whatever handlers do with it. Within a version the first
type counts, and what comes with another is dropped, counted and logged once. Between versions the
one registered last counts, so that a corrected handler needs no restart.
"""
