"""OpenAI's client against a daemon with the model `chats`: a program of its own (test_served.py).

python openai.py HTTP_HOST:PORT
"""

import sys

sys.path.pop(0)  # this file has the name of the package

import openai

SAID = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Wie schön?"}]},
]
TRANSCRIPT = "system: Be brief.\nuser: Wie schön?\nassistant:"


def check_models(client):
    assert "chats" in [model.id for model in client.models.list()]


def check_completions(client):
    answer = client.completions.create(model="chats", prompt="Grüße", max_tokens=3)
    assert (answer.choices[0].text, answer.choices[0].finish_reason) == ("Grüße|3", "stop")
    assert (answer.model, answer.object) == ("chats", "text_completion")
    chunks = list(client.completions.create(model="chats/1.0", prompt="Grüße", stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks) == "Grüße|None"
    assert [chunk.choices[0].finish_reason for chunk in chunks[-2:]] == [None, "stop"]
    assert len(chunks) > 5


def check_chats(client):
    answer = client.chat.completions.create(model="chats", messages=SAID)
    assert answer.choices[0].message.content == f"{TRANSCRIPT}|None"
    assert answer.choices[0].message.role == "assistant"
    chunks = list(client.chat.completions.create(model="chats", messages=SAID, stream=True, max_tokens=7))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == f"{TRANSCRIPT}|7"
    assert len({chunk.id for chunk in chunks}) == 1


def refusal(call, **asked):
    try:
        call(**asked)
    except openai.APIStatusError as error:
        return error.status_code, error.body["message"]
    raise AssertionError(f"{asked} was not refused")


def check_refusals(client):
    create = client.completions.create
    assert refusal(create, model="nothing", prompt="a") == (404, "Model not found: nothing")
    assert refusal(create, model="chats", prompt="a", n=2) == (400, "`n` is 2; expected 1.")
    status, message = refusal(create, model="chats", prompt="a", stop="fail")
    assert status == 503, message


if __name__ == "__main__":
    with openai.OpenAI(base_url=f"http://{sys.argv[1]}/v1", api_key="none", max_retries=0) as opened:
        check_models(opened)
        check_completions(opened)
        check_chats(opened)
        check_refusals(opened)
    print("every call did as it should")
