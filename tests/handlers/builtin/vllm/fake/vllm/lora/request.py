"""The request for an adapter."""

from dataclasses import dataclass


@dataclass
class LoRARequest:
    name: str
    number: int
    path: str
