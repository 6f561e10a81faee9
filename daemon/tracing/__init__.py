"""Traces of requests, for OpenTelemetry: recorded by the daemon, sent to a collector by a thread of its own.

export     the room's door: off, or on the way to a collector
endpoint   what the operator asks for, by settings or by OpenTelemetry's variables
tracer     which requests are recorded; from the times of jobs and batches to spans
span       a span, as plain values
buffer     the spans that wait, bounded, and the thread that sends them
otlp       the sender: opentelemetry's exporter, imported only where traces are asked for
"""
