// Where the packages lie in Pyodide's file system, when the memory is written and when it is read.
export const FOLDER = "/home/pyodide/library";
