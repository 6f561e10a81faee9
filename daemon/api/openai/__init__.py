"""An envelope over text handlers: the requests and answers of OpenAI's API for completions and chats.

POST /v1/completions, /v1/chat/completions  →  requests.py: a row of named parts  →  the model
whole texts and pieces of the model         →  completion.py: the API's JSON, or server-sent events
"""
