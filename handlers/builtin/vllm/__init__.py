"""`vllm_handler`: vLLM's engine behind OpenAI's API; vLLM is an optional package."""
