// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

const LONGEST = 500;

// Control characters, and the marks that turn the direction of what follows: a name
// that holds one could rewrite the sentence around it.
const UNSAFE =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/**
 * Return a name or a text that somebody else chose, made safe to stand in a sentence.
 *
 * It goes into text nodes only, so markup in it is shown as it is.
 */
export function foreign(text: string | null | undefined): string {
  const plain = (text ?? '').replace(UNSAFE, ' ').trim();
  return plain.length > LONGEST ? `${plain.slice(0, LONGEST)}…` : plain;
}
