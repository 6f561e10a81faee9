"""Files for other programs: rules of alerts for Prometheus, and a board for Grafana."""
