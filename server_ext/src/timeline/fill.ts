// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

import type { Phrase } from './phrases.js';
import type { ITranslator } from './translator.js';

const PLACEHOLDER = /\{[a-z]+\}/g;

/** What stands for the placeholders; an empty text is no value. */
export type Values = Readonly<Record<string, string | number>>;

/** Return a phrase in the reader's language, filled. */
export function say(
  trans: ITranslator,
  phrase: Phrase,
  values: Values = {}
): string {
  return fill(trans.__(phrase), values);
}

/**
 * Fill the placeholders of a text. A part in `[brackets]` is left out when one of its
 * placeholders has no value.
 */
export function fill(text: string, values: Values): string {
  const known = (mark: string) => {
    const value = values[mark.slice(1, -1)];
    return value === undefined || value === '' ? null : String(value);
  };
  const kept = text.replace(/\[([^\]]*)\]/g, (_, part: string) =>
    (part.match(PLACEHOLDER) ?? []).every(mark => known(mark) !== null)
      ? part
      : ''
  );
  return kept.replace(PLACEHOLDER, mark => known(mark) ?? 'it');
}
