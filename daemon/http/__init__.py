"""Parse bytes into requests and encode responses as bytes: HTTP/1.1, independent of the API above."""
