// What there is once in a process, however often the host loads and registers a plugin.
//
// OpenClaw runs a plugin from captured copies, registers it two or three times and again on reload, so a
// module's own variables are not shared. The global symbol registry is.

/** Gives the one instance, and makes it the first time. `version` changes whenever its shape does. */
export function processWide<T>(name: string, version: number, make: () => T): T {
  const key = Symbol.for(`holdfast.openclaw.${name}/${version}`);
  const globals = globalThis as Record<symbol, unknown>;
  globals[key] ??= make();
  return globals[key] as T;
}

/** A map that forgets what was set longest ago, so that nothing grows for ever. */
export class BoundedMap<K, V> {
  readonly #entries = new Map<K, V>();
  readonly #entriesMax: number;

  constructor(entriesMax: number) {
    this.#entriesMax = entriesMax;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key);
  }

  set(key: K, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size > this.#entriesMax) {
      const [oldest] = this.#entries.keys();
      this.#entries.delete(oldest as K);
    }
  }

  delete(key: K): void {
    this.#entries.delete(key);
  }

  get size(): number {
    return this.#entries.size;
  }
}
