"""Why, for whom and until when: the fleet's state as a document, and answers from it.

The same functions answer in the running controller and from an exported file, so that
a support case can be replayed.
"""
