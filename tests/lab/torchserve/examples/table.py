"""What the examples need beside their archives: inputs, stubs of missing libraries, and what cannot be had here."""

import re
from base64 import b64encode
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

KITTEN = "examples/image_classifier/kitten.jpg"


class Sample(NamedTuple):
    """The input of the cases whose names fit a pattern.

    Attributes:
        path: in the checkout; empty for an input that is the form itself.
        form: how it is sent: as it is, if empty; else a text in which `{}` is the file as base64.
    """

    pattern: str
    path: str
    form: str = ""


_DOG = "examples/Workflows/dog_breed_classification/model_input/Dog1.jpg"

_HUGGING_FACE = "examples/Huggingface_Transformers"

# The first that fits the handler, the model file and the page.
SAMPLES: tuple[Sample, ...] = (
    # The two models of a workflow, asked as the workflow would ask them.
    Sample(r"dog_breed_classification$", _DOG, "pre_processing={}&cat_dog_classification=dog"),
    Sample(r"cat_dog_classification$", _DOG, "{}"),
    *(
        Sample(model, f"{_HUGGING_FACE}/{task}_artifacts/sample_text_captum_input.txt")
        for model, task in (
            ("BERTSeq", "Seq_classification"),
            ("BERTToken", "Token_classification"),
            ("BERTQA", "QA"),
            ("Textgeneration", "Text_gen"),
        )
    ),
    Sample(r"bloom$", "examples/large_models/Huggingface_accelerate/sample_text.txt"),
    Sample(r"Wav2Vec2$", "examples/speech2text_wav2vec2/sample.wav"),
    Sample(r"xgb_iris$", "examples/xgboost_classfication/sample_input_1.txt"),
    Sample(r"SpeechT5-TTS$", "examples/text_to_speech_synthesizer/SpeechT5/sample_input.txt"),
    Sample(r"nmt_transformer/", "examples/nmt_transformer/model_input/sample.txt"),
    Sample(r"dcgan_fashiongen$", "", '{"number_of_images": 1, "b_gender": "Men"}'),
    Sample(r"llamacpp$", "", '{"prompt": "hello", "temperature": 1, "top_p": 1, "max_tokens": 3}'),
    Sample(r"stable-diffusion$", "", "a photograph of a cat"),
    Sample(r"sam-fast$", KITTEN),
    Sample(r"mnist", "examples/image_classifier/mnist/test_data/0.png"),
    Sample(r"object_detector|yolo", "examples/object_detector/persons.jpg"),
    Sample(r"image_segmenter", "examples/image_segmenter/persons.jpg"),
    Sample(r"text_classifi", "examples/text_classification/sample_text.txt"),
    Sample(r"image|vgg|resnet|densenet|micro_batching|caching", KITTEN),
)

# Reasons why a case cannot be judged on a machine without GPU, network, and the libraries of all examples.
UNJUDGED: tuple[tuple[str, str], ...] = (
    (r"No module named '([\w.]+)'", "the library `{}` is not installed here"),
    (r"[Nn]o package metadata was found for (\w+)", "the library `{}` is not installed here"),
    (r"no NVIDIA driver|CUDA error|CUDA is not available|No CUDA GPUs|not compiled with CUDA", "a GPU is needed"),
    (r"urlopen|ProxyError|offline mode", "the example downloads when it is loaded"),
)


# Failures of the example itself, which TorchServe has, too.
ITS_OWN: tuple[tuple[str, str], ...] = (
    (r"DeepSpeedMIIHandler' object has no attribute 'setup_config'", "its command does not pack setup_config.json"),
    (r"ScriptModule\S* object has no attribute 'generate'", "its handler generates text, which a traced model cannot"),
)


def sample_for(text: str) -> Sample | None:
    """Return the input for a case, described by its names; None without one."""
    return next((sample for sample in SAMPLES if re.search(sample.pattern, text)), None)


def request_of(sample: Sample, root: Path) -> tuple[bytes, dict[str, str]]:
    """Return the body and the headers with which a sample is sent."""
    if not sample.path:
        return sample.form.encode(), {"Content_Type": "application/json" if sample.form[0] == "{" else "text/plain"}
    content = (root / sample.path).read_bytes()
    if not sample.form:
        return content, {}
    text = b64encode(content).decode()
    if "=" in sample.form.partition("{")[0]:
        return sample.form.format(quote(text)).encode(), {"Content_Type": "application/x-www-form-urlencoded"}
    return sample.form.format(text).encode(), {}


def its_own(message: str) -> str:
    """Return why an example cannot work with any server; empty if it can."""
    return next((why for pattern, why in ITS_OWN if re.search(pattern, message)), "")


def unjudged(message: str) -> str:
    """Return why a message says nothing about tsctl; empty if it does."""
    for pattern, reason in UNJUDGED:
        if match := re.search(pattern, message):
            return reason.format(*match.groups())
    return ""
