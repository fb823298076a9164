// Pages that a worker made, brought into this one: elements and attributes of the renderers and no
// others. The worker ran a text that may be anybody's.

const words = (text) => new Set(text.trim().split(/\s+/));

const ELEMENTS = words(`
  div span p i code dl dt dd details summary figure figcaption
  math mi mn mo ms mtext mrow mfrac msqrt mroot msub msup msubsup munder mover munderover
  mtable mtr mtd mspace mstyle mpadded
  svg g title desc defs marker path rect text
`);
const ATTRIBUTES = words(`
  class id display stretchy width height tabindex role aria-label aria-labelledby
  viewBox refX refY markerWidth markerHeight orient d x y rx marker-end
  columnalign largeop movablelimits mathvariant fence separator form lspace rspace depth voffset
`);
const isOwn = (id) => /^(graph-(title|description)|(forward|backward)-tip)-\d+$/.test(id);
const MARKER = /^url\(#[\w-]+\)$/;

export function clean(html) {
  const page = new DOMParser().parseFromString(String(html), "text/html");
  for (const element of [...page.body.querySelectorAll("*")]) {
    if (!ELEMENTS.has(element.localName)) element.remove();
    for (const { name, value } of [...element.attributes]) {
      const known = ATTRIBUTES.has(name) && (name !== "marker-end" || MARKER.test(value));
      // Nothing gets the name of a part of the page around it.
      const own = !["id", "aria-labelledby"].includes(name) || value.split(" ").every(isOwn);
      if (!known || !own) element.removeAttribute(name);
    }
  }
  const fragment = document.createDocumentFragment();
  fragment.append(...[...page.body.childNodes].map((node) => document.adoptNode(node)));
  return fragment;
}
