import type { Store } from "./program.js";

const table = "states";

/** Keeps the state of a program in a database of its name in a browser, for as long as the browser keeps it. */
export class IndexedDBStore implements Store {
  constructor(readonly name = "licet") {}

  load(): Promise<string | undefined> {
    return this.#run("readonly", (texts) => texts.get(0)) as Promise<string | undefined>;
  }

  /** Replaces the text in one transaction. */
  async save(text: string): Promise<void> {
    await this.#run("readwrite", (texts) => texts.put(text, 0));
  }

  async #run(mode: IDBTransactionMode, ask: (texts: IDBObjectStore) => IDBRequest): Promise<unknown> {
    const database = await new Promise<IDBDatabase>((resolve, reject) => {
      const opening = indexedDB.open(this.name);
      opening.onupgradeneeded = () => opening.result.createObjectStore(table);
      opening.onsuccess = () => resolve(opening.result);
      opening.onerror = () => reject(opening.error);
    });
    try {
      return await new Promise((resolve, reject) => {
        const transaction = database.transaction(table, mode);
        const request = ask(transaction.objectStore(table));
        transaction.oncomplete = () => resolve(request.result);
        transaction.onabort = () => reject(transaction.error);
      });
    } finally {
      database.close();
    }
  }
}
