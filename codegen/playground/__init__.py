"""Answer the playground's questions, independently of a browser.

In: a `Question`, as JSON. Out: messages as JSON, each told as soon as what it says stands:

    stage    what is being done
    parts    pieces of the answer, by name: MathML and words for a page, texts to copy
    warning  something that has no influence, and its line
    trouble  what was not understood, or not proved, and its line
    done     nothing follows

Nothing here runs torch: the code that is shown was proved, and was not run beside autograd.
"""

from codegen.playground.answering import answer as answer
from codegen.playground.gallery import gallery as gallery
