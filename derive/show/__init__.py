"""A derivation as a person reads it: one document, and a renderer for each format.

In: a `Proved`, and lines of code if there are some.
Out: a `Document`; of that the terminal's text, Markdown, LaTeX or a page.
"""

from derive.show.document import Document as Document
from derive.show.sections import document_of as document_of
