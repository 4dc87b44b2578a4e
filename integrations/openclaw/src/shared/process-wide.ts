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

/** How much values may weigh together, and what each does. */
export interface Weight<V> {
  max: number;
  of: (value: V) => number;
}

/** A map that forgets what was set longest ago, so that nothing grows for ever. */
export class BoundedMap<K, V> {
  readonly #entries = new Map<K, { value: V; weight: number }>();
  readonly #entriesMax: number;
  readonly #weight: Weight<V> | undefined;
  #weighs = 0;

  constructor(entriesMax: number, weight?: Weight<V>) {
    this.#entriesMax = entriesMax;
    this.#weight = weight;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key)?.value;
  }

  set(key: K, value: V): void {
    this.delete(key);
    const weight = this.#weight?.of(value) ?? 0;
    this.#entries.set(key, { value, weight });
    this.#weighs += weight;
    // The newest stays, however much it weighs by itself.
    while (this.#entries.size > 1 && this.#isFull()) {
      const [oldest] = this.#entries.keys();
      this.delete(oldest as K);
    }
  }

  delete(key: K): void {
    this.#weighs -= this.#entries.get(key)?.weight ?? 0;
    this.#entries.delete(key);
  }

  #isFull(): boolean {
    return this.#entries.size > this.#entriesMax || (this.#weight !== undefined && this.#weighs > this.#weight.max);
  }

  get size(): number {
    return this.#entries.size;
  }
}
