// JSON as documents have it. Parsers of different languages read some texts differently: this one refuses them.

/** A value of JSON. A number that is no integer, or not exact, is NaN: no member of the format may be one. */
export type Json = null | boolean | number | string | Json[] | JsonObject;
export interface JsonObject { [name: string]: Json }

/** How deep values may lie below the object. */
const maxDepth = 8;

/**
 * Parses one object in UTF-8. Throws at a member that is there twice, at a name with other characters than
 * `a-z 0-9 . _ -`, at values that lie too deep, at half of a surrogate pair, and at data after the object.
 */
export function parseObject(bytes: Uint8Array): JsonObject {
  const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  const word = /[-+.0-9A-Za-z]+/y;
  let at = 0;

  const fail = (problem: string): never => {
    throw new SyntaxError(`${problem} at character ${at}`);
  };
  /** Skips white space, and returns the next character. */
  const peek = () => {
    while (at < text.length && " \t\r\n".includes(text.charAt(at))) at++;
    return text.charAt(at);
  };
  const take = (wanted: string) => peek() === wanted && ++at > 0;
  const string = () => {
    const start = at++;
    while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
    const parsed = JSON.parse(text.slice(start, ++at)) as string; // throws at what is no string
    return /\p{Surrogate}/u.test(parsed) ? fail("half of a surrogate pair") : parsed;
  };
  const scalar = (): Json => {
    word.lastIndex = at;
    const found = word.exec(text)?.[0] ?? fail("no value");
    const value = JSON.parse(found) as Json;
    at += found.length;
    if (typeof value !== "number") return value;
    return /^-?\d+$/.test(found) && Number.isSafeInteger(value) ? value + 0 : NaN; // 0 for -0
  };
  const list = (end: string, item: () => void) => {
    at++;
    if (take(end)) return;
    do item();
    while (take(","));
    if (!take(end)) fail(`no ${end}`);
  };
  const value = (depth: number): Json => {
    if (depth > maxDepth) fail("a value that lies too deep");
    const members = Object.create(null) as JsonObject; // without the names that objects inherit
    const values: Json[] = [];
    switch (peek()) {
      case "{":
        list("}", () => {
          const name = peek() === '"' ? string() : fail("no name");
          if (!/^[a-z0-9._-]*$/.test(name)) fail("a name that the format does not allow");
          if (name in members) fail("a member that is there twice");
          members[name] = take(":") ? value(depth + 1) : fail("no colon");
        });
        return members;
      case "[":
        list("]", () => values.push(value(depth + 1)));
        return values;
      case '"':
        return string();
      default:
        return scalar();
    }
  };

  if (peek() !== "{") fail("no object");
  const parsed = value(0) as JsonObject;
  return peek() === "" ? parsed : fail("data after the object");
}
