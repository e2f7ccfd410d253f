// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

/**
 * Return how times are written: in the language of the application, and where that names
 * no country in the way of the reader's own. A British reader of an English JupyterLab
 * does not get American times.
 */
export function localeOf(
  languageCode: string | undefined,
  readers: readonly string[]
): string | undefined {
  const language = (languageCode ?? 'en').replace('_', '-');
  const own = readers.find(tag => tag.startsWith(`${language}-`));
  return Intl.DateTimeFormat.supportedLocalesOf([own ?? language])[0];
}
