"""What frameworks post to a reward server, as functions from a request's JSON to a reply: no web framework is needed.

```python
reply = await openrlhf.answer(scorer, body)  # reply.status, reply.body
```
"""
