import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import type { Store } from "./program.js";

/** Keeps the state of a program in a file that only its user reads. For Node. */
export class FileStore implements Store {
  constructor(readonly path: string) {}

  async load(): Promise<string | null> {
    try {
      return await readFile(this.path, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
      throw error;
    }
  }

  /** Replaces the file in one step: a reader or a crash finds the old text or the new one. */
  async save(text: string): Promise<void> {
    await mkdir(dirname(this.path), { recursive: true });
    const next = `${this.path}.${crypto.randomUUID()}`;
    try {
      const file = await open(next, "w", 0o600);
      try {
        await file.writeFile(text);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(next, this.path);
    } catch (error) {
      await rm(next, { force: true });
      throw error;
    }
  }
}
