// The state of the page in the fragment of its address: JSON, deflated, in letters of base64url.

const LONGEST = 256 * 1024; // bytes; a longer state is no person's

async function through(stream, bytes, most = Infinity) {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  const parts = [];
  for (let size = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer());
    size += value.length;
    if (size > most) {
      await reader.cancel();
      throw new Error("the link holds too much");
    }
    parts.push(value);
  }
}

export async function written(state) {
  const bytes = new TextEncoder().encode(JSON.stringify(state));
  const packed = await through(new CompressionStream("deflate-raw"), bytes);
  const letters = Array.from(packed, (byte) => String.fromCharCode(byte)).join("");
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

// The state that a fragment holds, or null where there is none that can be read.
export async function read(fragment) {
  try {
    if (!fragment) return null;
    const letters = atob(fragment.replaceAll("-", "+").replaceAll("_", "/"));
    const packed = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
    const bytes = await through(new DecompressionStream("deflate-raw"), packed, LONGEST);
    const state = JSON.parse(new TextDecoder().decode(bytes));
    return state && typeof state === "object" ? state : null;
  } catch {
    return null;
  }
}
