// An editor for Python: CodeMirror 6, in the colours of the page.
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { python, pythonLanguage } from "@codemirror/lang-python";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { highlightCode, tags as t, tagHighlighter } from "@lezer/highlight";

const NONCE = document.querySelector("style[nonce]").nonce;

// The names of the classes in play.css.
const CLASSES = tagHighlighter([
  { tag: [t.keyword, t.operatorKeyword, t.controlKeyword, t.definitionKeyword, t.moduleKeyword], class: "tok-keyword" },
  { tag: [t.string, t.docString], class: "tok-string" },
  { tag: [t.number, t.bool, t.null], class: "tok-number" },
  { tag: [t.comment], class: "tok-comment" },
  { tag: [t.definition(t.variableName), t.function(t.definition(t.variableName)), t.className], class: "tok-definition" },
]);

export function editor(parent, { label, text = "", onChange, onRun }) {
  const extensions = [
    EditorView.cspNonce.of(NONCE),
    lineNumbers(),
    lintGutter(),
    history(),
    drawSelection(),
    highlightActiveLine(),
    indentOnInput(),
    bracketMatching(),
    indentUnit.of("    "),
    python(),
    syntaxHighlighting(CLASSES),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", tabindex: "0" }),
    // Tab leaves the editor, as it leaves every other field.
    keymap.of([{ key: "Mod-Enter", run: () => (onRun(), true) }, ...defaultKeymap, ...historyKeymap]),
    EditorView.updateListener.of((update) => update.docChanged && onChange()),
  ];
  const view = new EditorView({ parent, state: EditorState.create({ doc: text, extensions }) });
  return {
    view,
    get text() {
      return view.state.doc.toString();
    },
    set text(text) {
      if (text === this.text) return;
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
    },
    // Marks: { line, severity, message }; without a line, on the first one.
    mark(marks) {
      const { doc } = view.state;
      const found = marks.map(({ line, severity, message }) => {
        const at = doc.line(Math.min(Math.max(line, 1), doc.lines));
        const start = at.from + (at.text.length - at.text.trimStart().length);
        return { from: start, to: Math.max(at.to, start), severity, message };
      });
      view.dispatch(setDiagnostics(view.state, found));
      return found;
    },
  };
}

// Lines of Python that are only read, in the same colours.
export function coloured(text) {
  const code = document.createElement("code");
  const put = (words, classes) => {
    const part = document.createElement("span");
    if (classes) part.className = classes;
    part.textContent = words;
    code.append(part);
  };
  const tree = pythonLanguage.parser.parse(text);
  highlightCode(text, tree, CLASSES, put, () => put("\n", ""));
  return code;
}
