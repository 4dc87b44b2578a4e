// Texts on their way to the addon: as UTF-8, in memory that is used again and again. As strings the addon would
// have each measured first, and then copied into memory that is new and cleared.

import { TEXT_CHARS_MAX } from "./meant.js";

/** Most bytes that a character of JavaScript's has in UTF-8. */
const CHAR_BYTES_MAX = 3;
/** The longest text that crosses, and what is said of one that was longer. */
const BYTES_MAX = CHAR_BYTES_MAX * (TEXT_CHARS_MAX + 1024);

/** Some texts one after the other: good until the next ones are written. */
export interface Crossed {
  bytes: Uint8Array;
  /** Where each of them ends. */
  ends: number[];
}

/** What texts cross in. */
export class Crossing {
  readonly #buffer = Buffer.allocUnsafeSlow(BYTES_MAX);

  /** Writes one text, and says how long it is; `bytes` are the memory that it is in. */
  one(text: string): { bytes: Uint8Array; length: number } {
    const bytes = this.#room(text.length);
    return { bytes, length: bytes.write(text, 0, "utf8") };
  }

  /** Writes several. */
  all(texts: readonly string[]): Crossed {
    const bytes = this.#room(texts.reduce((sum, text) => sum + text.length, 0));
    let end = 0;
    const ends = texts.map((text) => (end += bytes.write(text, end, "utf8")));
    return { bytes, ends };
  }

  /** Memory for so many characters; of its own for a call of many long texts, which none has that means well. */
  #room(chars: number): Buffer {
    const bytes = chars * CHAR_BYTES_MAX;
    return bytes <= BYTES_MAX ? this.#buffer : Buffer.allocUnsafeSlow(bytes);
  }
}
