"""Writes sample.png: 32 × 32 pixels, orange."""

from PIL import Image

Image.new("RGB", (32, 32), (255, 128, 0)).save("sample.png")
