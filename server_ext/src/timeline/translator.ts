// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/**
 * How the words become another language's.
 *
 * A JupyterLab `TranslationBundle` is one. Elsewhere `english` stands in, so that this
 * module needs nothing of JupyterLab.
 */
export interface ITranslator {
  /** Return `text` in the reader's language, with `%1`, `%2`, … replaced. */
  __(text: string, ...values: (string | number)[]): string;

  /** Return `one` or `many` for a count, which is `%1`; `values` begin at `%2`. */
  _n(
    one: string,
    many: string,
    count: number,
    ...values: (string | number)[]
  ): string;
}

function filled(text: string, values: readonly (string | number)[]): string {
  return text.replace(/%(\d+)/g, (mark, number) => {
    const value = values[Number(number) - 1];
    return value === undefined ? mark : String(value);
  });
}

/** The words as they stand in the code. */
export const english: ITranslator = {
  __: (text, ...values) => filled(text, values),
  _n: (one, many, count, ...values) =>
    filled(count === 1 ? one : many, [count, ...values])
};
