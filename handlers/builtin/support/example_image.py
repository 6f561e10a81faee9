"""An image that handlers are tried with."""

import io

import torch


def example_image() -> bytes:
    """Return a JPEG of 500 × 375 pixels, the same each time: smooth patches under fine noise, as in a photograph."""
    from PIL import Image

    generator = torch.Generator().manual_seed(7)
    patches = torch.randint(0, 256, (12, 16, 3), generator=generator, dtype=torch.uint8)
    image = Image.fromarray(patches.numpy()).resize((500, 375), Image.Resampling.BICUBIC)
    noise = torch.randint(0, 256, (375, 500, 3), generator=generator, dtype=torch.uint8)
    image = Image.blend(image, Image.fromarray(noise.numpy()), 0.15)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=90)
    return buffer.getvalue()
