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

/** The words of one language, as a page of the Hub or of the controller has them. */
export interface ICatalogue {
  tag: string;
  /** Which form each of the first numbers takes. */
  plurals: readonly number[];
  /** For each English text its forms. */
  texts: Readonly<Record<string, readonly string[]>>;
}

/** Return who speaks the language of a page. */
export function translatorOf(catalogue: ICatalogue): ITranslator {
  const { plurals, texts } = catalogue;
  const formOf = (count: number) => {
    const whole = Number.isInteger(count) ? count : 2;
    return plurals[whole < plurals.length ? whole : 100 + (whole % 100)] ?? 0;
  };
  return {
    __: (text, ...values) => filled(texts[text]?.[0] ?? text, values),
    _n: (one, many, count, ...values) => {
      const forms = texts[one] ?? [];
      const form = forms[Math.min(formOf(count), forms.length - 1)];
      return form === undefined
        ? english._n(one, many, count, ...values)
        : filled(form, [count, ...values]);
    }
  };
}

/** Return the same, speaking to whoever looks at somebody else's server. */
export function ofAnother(
  translator: ITranslator,
  others: Readonly<Record<string, string>>
): ITranslator {
  return {
    __: (text, ...values) => translator.__(others[text] ?? text, ...values),
    _n: (one, many, count, ...values) =>
      translator._n(one, many, count, ...values)
  };
}

/** The words as they stand in the code. */
export const english: ITranslator = {
  __: (text, ...values) => filled(text, values),
  _n: (one, many, count, ...values) =>
    filled(count === 1 ? one : many, [count, ...values])
};
