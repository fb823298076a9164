// Keeps the page for a visit without a network: every file of this version, each checked by its
// hash when it is stored. `FILES` and `VERSION` are put in when the page is built.
const CACHE = `gradform-play-${VERSION}`;

async function fetched(name, hash) {
  const response = await fetch(name, { cache: "no-cache" });
  if (!response.ok) throw new Error(`${name}: ${response.status}`);
  const bytes = await response.clone().arrayBuffer();
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const found = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  if (found !== hash) throw new Error(`${name} is not of this version`);
  return response;
}

addEventListener("install", (event) => {
  const all = async () => {
    const cache = await caches.open(CACHE);
    for (const [name, hash] of Object.entries(FILES)) await cache.put(name, await fetched(name, hash));
  };
  event.waitUntil(all());
});

addEventListener("activate", (event) => {
  const others = async () => {
    const names = await caches.keys();
    const old = names.filter((name) => name.startsWith("gradform-play-") && name !== CACHE);
    await Promise.all(old.map((name) => caches.delete(name)));
    await clients.claim();
  };
  event.waitUntil(others());
});

addEventListener("fetch", (event) => {
  const address = new URL(event.request.url);
  if (event.request.method !== "GET" || !address.href.startsWith(registration.scope)) return;
  const kept = async () => {
    const cache = await caches.open(CACHE);
    const name = address.pathname.endsWith("/") ? "index.html" : address.pathname;
    return (await cache.match(name, { ignoreSearch: true })) ?? fetch(event.request);
  };
  event.respondWith(kept());
});
