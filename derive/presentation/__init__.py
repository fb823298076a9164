"""A derivation as a person reads it: one document, and a renderer for each format."""

from derive.presentation.document import Document as Document
from derive.presentation.sections import document_of as document_of
