"""Stand-ins of libraries that need a GPU, a compiler or hours to install: as much as one example calls.

They are written into a folder of `PYTHONPATH`, each only where its library is not installed. With one, an example
proves the handler's way through tsctl: its imports, its files, its input and its answer; not the library.
"""

import importlib.util
from pathlib import Path

_IMAGES = """
from PIL import Image

class Images:
    def __init__(self, images):
        self.images = images
"""

# Zipped into the archive of the example dcgan_fashiongen, which downloads it.
DCGAN = """
import torch

class DCGAN:
    def __init__(self, useGPU, storeAVG):
        self.weights = {}

    def load_state_dict(self, state):
        self.weights = dict(state)

    def buildNoiseDataWithConstraints(self, count, labels):
        return torch.rand(count, 3, 64, 64)

    def test(self, noise, getAvG, toCPU):
        return noise * self.weights["scale"]
"""

# Library → file → text; the first file is the one whose import fails without the library.
STAND_INS: dict[str, dict[str, str]] = {
    "llama_cpp": {
        "llama_cpp.py": '''
class Llama:
    def __init__(self, model_path):
        open(model_path, "rb").close()

    def tokenize(self, text):
        return list(text)

    def create_completion(self, prompt, max_tokens, top_p, temperature, stop, echo):
        return {"choices": [{"text": prompt[:max_tokens]}]}
''',
    },
    "fairseq": {
        "fairseq/__init__.py": "",
        "fairseq/models/__init__.py": "",
        "fairseq/models/transformer.py": '''
import os

class TransformerModel:
    @classmethod
    def from_pretrained(cls, folder, checkpoint_file, data_name_or_path, tokenizer, bpe):
        open(os.path.join(folder, checkpoint_file), "rb").close()
        return cls()

    def to(self, device):
        return self

    def eval(self):
        return self

    def translate(self, texts, beam):
        return [text[::-1] for text in texts]
''',
    },
    "diffusers": {
        "diffusers.py": _IMAGES + '''
import os

__version__ = "0"

class DiffusionPipeline:
    @classmethod
    def from_pretrained(cls, folder):
        assert os.listdir(folder)
        return cls()

    def to(self, device):
        return self

    def __call__(self, prompts, height, width, **options):
        return Images([Image.new("RGB", (width, height)) for _ in prompts])
''',
    },
    "mii": {
        "mii/__init__.py": '''
__version__ = "0"

class constants:
    ModelProvider = {"DIFFUSER": 1}
''',
    },
    "segment_anything_fast": {
        "segment_anything_fast.py": '''
import torch

def build(checkpoint):
    open(checkpoint, "rb").close()
    return torch.nn.Identity()

sam_model_fast_registry = {"vit_h": build}

class SamAutomaticMaskGenerator:
    def __init__(self, model, process_batch_size, output_mode):
        pass

    def generate(self, image):
        return [{"area": image.size}]
''',
    },
    "pytorch_GAN_zoo": {"pytorch_GAN_zoo/DCGAN.py": DCGAN},
    "torchtext": {"torchtext.py": ""},
    "torchaudio": {
        "torchaudio.py": '''
import soundfile
import torch

def load(file, format):
    samples, rate = soundfile.read(file, dtype="float32", always_2d=True)
    return torch.from_numpy(samples.T), rate
''',
    },
}  # fmt: skip


def write_stand_ins(folder: Path, further: Path) -> list[str]:
    """Put the stand-ins of the libraries that are not installed into a folder; return the names of these libraries.

    Args:
        further: where packages are, too.
    """
    installed = (each for each in STAND_INS if importlib.util.find_spec(each) or (further / each).exists())
    missing = sorted(set(STAND_INS).difference(installed))
    for library in missing:
        for name, text in STAND_INS[library].items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text.lstrip("\n"))
    return missing
